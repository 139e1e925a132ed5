"""What every page shares: the role gate, the store for this visitor, a few widgets that interpret nothing."""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from memory_core import MemoryCoreError, MemoryStore, Subject
from memory_core.characters import shown_whole
from memory_core.config import Settings, settings
from memory_core.health import Check, checks
from memory_core.privacy import PrivacyDesk
from memory_core.spreadsheet import disarmed

ROLES = frozenset({"dpo", "engineer"})
FIGURE_WIDTH = 151  # pixels: five beside each other on a small desktop, two on a telephone


@dataclass(frozen=True, kw_only=True)
class Visitor:
    """Who looks, in which organisation."""

    author: str  # as what they do is recorded
    roles: frozenset[str]
    org_id: str
    settings: Settings

    def store(self) -> MemoryStore:
        """Open the visitor's organisation; costs nothing after the first time."""
        return MemoryStore.open(self.org_id, settings=self.settings)

    def desk(self) -> PrivacyDesk:
        """Open the desk of the visitor's organisation, in the visitor's name."""
        return PrivacyDesk.open(self.org_id, by=self.author, settings=self.settings)


def gate(*roles: str, title: str) -> Visitor:
    """Let in whoever has one of the roles, or show why not and end the page. The first line of every page."""
    st.set_page_config(
        page_title=f"{title} · Memory Workbench", page_icon="🗂️", layout="wide"
    )  # a Material icon would be fetched from elsewhere
    st.html(
        "<style>.stMainBlockContainer {padding-top: 4.5rem}</style>"
    )  # the default leaves a fifth of the page empty
    refusal = refused_because(address=st.get_option("server.address"), has_sign_in="auth" in _secrets())
    with explained():
        chosen = settings()
        if chosen.app_env == "production":
            refusal = "APP_ENV is production, and there is no sign-in: nothing is served."
    if refusal is not None:
        st.error(refusal)
        st.stop()
    try:
        organisations = MemoryStore.organisations(settings=chosen)
    except MemoryCoreError:
        st.error("The database does not serve, so nothing can be shown.")
        in_order(checks(chosen, chosen.memory_org))
        st.stop()
    visitor = Visitor(
        author="user:local", roles=ROLES, org_id=_sidebar(chosen.memory_org, organisations), settings=chosen
    )
    require(visitor, *roles)
    restored(visitor)
    return visitor


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


def require(visitor: Visitor, *roles: str) -> None:
    """End the page unless the visitor has one of the roles; asked again before every act."""
    if visitor.roles.isdisjoint(roles):
        st.error("You do not have the role that this page needs.")
        st.stop()


def refused_because(*, address: str | None, has_sign_in: bool) -> str | None:
    """Say why nothing may be served by a server that listens on an address; None when only this machine can reach it.

    The browser's own address is not asked for: whoever can reach the server can forge it.
    """
    if has_sign_in:
        return "An [auth] section is configured, and this version has no sign-in: nothing is served."
    if not _is_loopback(address):
        return "Without a sign-in the workbench listens on 127.0.0.1 only. Start it with: make run"
    return None


def _is_loopback(address: str | None) -> bool:
    if address == "localhost":
        return True
    try:
        return address is not None and ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _secrets() -> set[str]:
    try:
        return set(st.secrets)
    except FileNotFoundError:
        return set()


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


def _sidebar(default: str, organisations: list[str]) -> str:
    known = sorted({default, *organisations})
    remembered = st.session_state.get("org_id", default)
    with st.sidebar:
        st.page_link("app.py", label="Home", icon=":material/home:")
        st.page_link("pages/1_Subjects.py", label="Subjects", icon=":material/person_search:")
        st.page_link("pages/2_Requests.py", label="Requests", icon=":material/inbox:")
        st.page_link("pages/3_Recall.py", label="Recall", icon=":material/manage_search:")
        st.page_link("pages/4_Runs.py", label="Runs", icon=":material/route:")
        st.page_link("pages/5_Latency.py", label="Latency", icon=":material/speed:")
        st.page_link("pages/6_Evals.py", label="Evals", icon=":material/fact_check:")
        st.page_link("pages/7_Settings.py", label="Settings", icon=":material/settings:")
        org_id = st.selectbox(
            "Organisation", known, index=known.index(remembered) if remembered in known else known.index(default)
        )
    st.session_state["org_id"] = org_id
    st.caption(":material/lock_open: No sign-in is configured: you are the one local user, with every role.")
    return str(org_id)
