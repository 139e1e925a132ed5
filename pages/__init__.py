"""What every page shares: the role gate, the store for this visitor, a few widgets that interpret nothing."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import pandas as pd
import streamlit as st

from memory_core import MemoryCoreError, MemoryStore, Subject
from memory_core.addresses import is_loopback
from memory_core.characters import shown_whole
from memory_core.config import Settings, settings
from memory_core.errors import Refusal
from memory_core.health import Check, checks
from memory_core.membership import memberships_of
from memory_core.privacy import PrivacyDesk
from memory_core.roles import Act, Identity, Standing
from memory_core.spreadsheet import disarmed
from memory_core.workplace import Workplace
from pages.web.door import is_bypassed
from pages.web.signed_in import sign_in
from pages.web.signed_in import who as identity_by

Answer = TypeVar("Answer")

ORGANISATION = "org"  # in an address
FIGURE_WIDTH = 151  # pixels: five beside each other on a small desktop, two on a telephone
PAGES = (  # each with who may see it: anybody who may do one of the acts
    ("app.py", "Home", ":material/home:", (Act.OVERVIEW,)),
    ("pages/1_Subjects.py", "Subjects", ":material/person_search:", (Act.LOOK,)),
    ("pages/2_Requests.py", "Requests", ":material/inbox:", (Act.READ_REGISTER,)),
    ("pages/3_Recall.py", "Recall", ":material/manage_search:", (Act.PREVIEW,)),
    ("pages/4_Runs.py", "Runs", ":material/route:", (Act.READ_RUNS,)),
    ("pages/5_Latency.py", "Latency", ":material/speed:", (Act.READ_LATENCY,)),
    ("pages/6_Evals.py", "Evals", ":material/fact_check:", (Act.READ_EVALS,)),
    ("pages/7_Settings.py", "Settings", ":material/settings:", (Act.READ_SETTINGS, Act.READ_TRAIL)),
    ("pages/8_Members.py", "Members", ":material/group:", (Act.READ_MEMBERS,)),
)


@dataclass(frozen=True, kw_only=True)
class Visitor:
    """Who looks, in which organisation; what they may is asked each time they act."""

    work: Workplace
    author: str  # as what they do is recorded

    @property
    def org_id(self) -> str:
        """The organisation they look at."""
        return self.work.org_id

    @property
    def settings(self) -> Settings:
        """What the environment says."""
        return self.work.settings

    def may(self, *acts: Act) -> bool:
        """Say whether they may do one of the acts now."""
        standing = self.work.standing()
        return standing is not None and any(standing.may(act) for act in acts)

    def store(self) -> MemoryStore:
        """Open the visitor's organisation, each call checked; costs nothing after the first time."""
        return self.work.store()

    def desk(self) -> PrivacyDesk:
        """Open the desk of the visitor's organisation, in the visitor's name, each call checked."""
        return self.work.desk()

    def call(self, function: Callable[..., Answer], *given: Any, **named: Any) -> Answer:
        """Call one of the functions of an organisation, checked."""
        return self.work.call(function, *given, **named)


def gate(*acts: Act, title: str) -> Visitor:
    """Let in a visitor who may do one of the acts, or show why not and end the page. The first line of every page."""
    st.set_page_config(
        page_title=f"{title} · Memory Workbench", page_icon="🗂️", layout="wide"
    )  # a Material icon would be fetched from elsewhere
    st.html(
        "<style>.stMainBlockContainer {padding-top: 4.5rem}</style>"
    )  # the default leaves a fifth of the page empty
    with explained():
        chosen = settings()
        has_sign_in = sign_in() is not None
    refusal = refused_because(
        address=st.get_option("server.address"),
        has_sign_in=has_sign_in,
        is_production=chosen.app_env == "production",
        is_bypassed=is_bypassed(),
    )
    if refusal is not None:
        st.error(refusal)
        st.stop()
    who = _signed_in(chosen) if has_sign_in else None
    visitor = _visitor(who, chosen)
    require(visitor, *acts)
    restored(visitor)
    return visitor


def _signed_in(chosen: Settings) -> Identity:
    """Return who signed in, or offer to sign in and end the page."""
    if not st.user.get("is_logged_in"):
        st.title("Memory Workbench")
        st.markdown("Sign in to go on. What you may see depends on your role in each organisation.")
        st.button("Sign in", type="primary", on_click=st.login)
        st.stop()
    with explained():
        found = identity_by(st.user.to_dict(), settings=chosen)
    if isinstance(found, Refusal):
        st.error(f"You are not let in: {found.reason}.")
        is_over = found.rule == "session_is_not_over"
        st.button("Sign in again", type="primary", on_click=st.login if is_over else st.logout)
        st.stop()
    return found


def _still(chosen: Settings) -> Identity | Refusal:
    """Return who is signed in at this moment, or why nobody is any more."""
    return identity_by(st.user.to_dict(), settings=chosen)


def _visitor(who: Identity | None, chosen: Settings) -> Visitor:
    """Return the visitor in the organisation that they chose; says why there is none, and ends the page."""
    try:
        known = (
            MemoryStore.organisations(settings=chosen) if who is None else sorted(memberships_of(who, settings=chosen))
        )
    except MemoryCoreError:
        st.error("The database does not serve, so nothing can be shown.")
        if who is None:
            in_order(checks(chosen, chosen.memory_org))
        st.stop()
    if who is None:
        known = sorted({chosen.memory_org, *known})
    if not known:
        wanted = st.query_params.get(ORGANISATION) or st.session_state.get("org_id")
        if wanted is not None and who is not None:
            _on_record(wanted, who, chosen)
        contact = chosen.memory_contact or "an admin of the organisation"
        st.error("You are signed in, and no member of any organisation here.")
        st.text(f"Ask {contact} to add you. They need these two lines:")
        plain(f"issuer   {who.issuer if who else ''}\nsubject  {who.subject if who else ''}")
        st.button("Sign out", on_click=st.logout)
        st.stop()
    links = st.sidebar.container()
    org_id = _organisation(known, chosen.memory_org, who=who, chosen=chosen)
    work = Workplace(org_id, who, settings=chosen, still=None if who is None else lambda: _still(chosen))
    with explained():
        standing = work.standing()
    if standing is None:  # removed since the list was made
        _on_record(org_id, who, chosen)
        st.error("You are no member of this organisation any more.")
        st.stop()
    visitor = Visitor(work=work, author=standing.name)
    with links:
        _links(standing)
    _who(visitor, standing)
    return visitor


def _on_record(org_id: str, who: Identity | None, chosen: Settings) -> None:
    """Leave a line of an organisation's trail, where there is one, that somebody who is no member of it was kept out."""
    with suppress(MemoryCoreError):
        Workplace(org_id, who, settings=chosen).require(Act.OVERVIEW)


def restored(visitor: Visitor) -> None:
    """Say on every page that the database was restored from a backup, or that erasures are not on record outside it."""
    with explained():
        ledger = visitor.desk().ledger()
    if ledger.missing:
        st.error(
            f"This database was restored from a backup: {ledger.missing:,} entries of its ledger are not in it, so erased "
            "memories may be back. Nothing is recalled until this is run:"
        )
        plain(f"python -m memory_core replay-erasures {shlex.quote(str(ledger.path))}")
    if ledger.fault:
        st.warning("The ledger outside the database cannot be used, so a restore from a backup might not be noticed:")
        plain(ledger.fault)


def require(visitor: Visitor, *acts: Act) -> None:
    """End the page unless the visitor may do one of the acts now; asked again before every act."""
    with explained():
        if not visitor.may(*acts):
            visitor.work.require(acts[0])  # says so, and has it on record


def refused_because(
    *, address: str | None, has_sign_in: bool, is_production: bool = False, is_bypassed: bool = False
) -> str | None:
    """Say why nothing may be served by a server that listens on an address; None where it may.

    Without a sign-in only this machine may reach it. The browser's own address is not asked for: whoever can reach the
    server can forge it.
    """
    if is_bypassed:
        return "Streamlit was started by its own command, past the workbench's own door. Start it with: make run"
    if has_sign_in:
        return None
    if is_production:
        return "APP_ENV is production, and there is no sign-in: nothing is served."
    if not is_loopback(address):
        return "Without a sign-in the workbench listens on 127.0.0.1 only. Start it with: make run"
    return None


@contextmanager
def explained() -> Iterator[None]:
    """Show an error of the store as one line that nothing interprets, and end the page."""
    try:
        yield
    except MemoryCoreError as error:
        st.error(
            "This could not be done." if not error.retryable else "This could not be done now; trying again can help."
        )
        plain(str(error))
        st.stop()


def in_order(found: list[Check]) -> None:
    """Show each part's state, and the command that mends it."""
    for check in found:
        icon, colour = (":material/check_circle:", "green") if check.ok else (":material/error:", "red")
        name, what = st.columns([1, 5])
        name.markdown(f":{colour}[{icon}] **{check.part}**")  # our own words; what was found is shown plain
        what.text(check.found)
        if check.mend:
            with what:
                plain(check.mend)


def name_of(subject: Subject) -> str:
    """Write who it is: by what they are held first, then the name, of which nothing can reorder or forge that."""
    return f"{subject}:  {shown_whole(subject.label) if subject.label else 'no name is held'}"


def plain(text: str) -> None:
    """Show text exactly as it is: no Markdown, no HTML, no images fetched."""
    st.code(text, language=None, wrap_lines=True)


def safe_frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return rows for a table, their text disarmed: a table's own buttons copy and download it for a spreadsheet."""
    return pd.DataFrame(
        [{name: disarmed(value) if isinstance(value, str) else value for name, value in row.items()} for row in rows]
    )


def figures(values: list[tuple[str, str, str]], *, width: int = FIGURE_WIDTH) -> None:
    """Show a row of figures, each with its label and an explanation; it wraps where there is no room."""
    with st.container(horizontal=True):
        for label, value, explanation in values:
            st.metric(label, value, help=explanation, border=True, width=width)


def _organisation(known: list[str], default: str, *, who: Identity | None, chosen: Settings) -> str:
    """Let the visitor choose one of their organisations; an address may name one, if it is theirs."""
    asked = st.query_params.get(ORGANISATION)
    if asked is not None and asked not in known:
        _on_record(asked, who, chosen)
        st.error("The address names an organisation of which you are no member, or which is not here.")
        st.stop()
    remembered = st.session_state.get("org_id", default)
    first = next(one for one in (asked, remembered, default, known[0]) if one in known)
    with st.sidebar:
        org_id = st.selectbox("Organisation", known, index=known.index(first))
    st.session_state["org_id"] = org_id
    if org_id != first:  # what else the address names is of the one before
        st.query_params.from_dict({ORGANISATION: org_id})
    return str(org_id)


def _links(standing: Standing) -> None:
    for path, label, icon, acts in PAGES:
        if any(standing.may(act) for act in acts):
            st.page_link(path, label=label, icon=icon)


def _who(visitor: Visitor, standing: Standing) -> None:
    if visitor.work.who is None:
        st.caption(":material/lock_open: No sign-in is configured: you are the one local user, with every role.")
        return
    with st.sidebar:
        st.text(f"{standing.name}\n{', '.join(sorted(standing.roles))}")
        st.button("Sign out", icon=":material/logout:", on_click=st.logout)
