"""Finding a run: by a part of its id, by its agent, by how it ended."""

from __future__ import annotations

import streamlit as st

from memory_core.run_records import RUNNING, FoundRun, Termination
from memory_core.tracing import agents_on_record, found_runs
from pages import Visitor, explained, plain, safe_frame
from pages.desk.picker import digest
from pages.recall import session
from pages.runs.opening import VISIT, open_run
from pages.runs.words import GATEWAY

MOST = 100  # that are listed
VEILED = (
    "A run that stands as person-… has an id that names somebody, and this organisation requires pseudonyms; a data "
    "protection officer can open it."
)
EVERY = "every one"
ENDED = [EVERY, *(one.value for one in Termination), RUNNING, *GATEWAY]
FILTERS = ("runs_typed", "runs_agent", "runs_ended")
COLUMNS = {
    "run": st.column_config.TextColumn("Run", width=185, pinned=True),
    "began": st.column_config.DatetimeColumn("Began (UTC)", format="YYYY-MM-DD HH:mm:ss", width=150),
    "agent": st.column_config.TextColumn("Agent", width=125),
    "ended": st.column_config.TextColumn("Ended as", width=145),
    "shown": st.column_config.NumberColumn("Shown", help="Memories that it was shown, each once", width=65),
    "wrote": st.column_config.NumberColumn("Wrote", help="Memories that it wrote first", width=65),
}


def show(visitor: Visitor) -> None:
    """Show the newest runs, or those that are looked for; a tick opens one."""
    st.text(f"Organisation {visitor.org_id}")  # an id is no text for Markdown
    typed, agent, ended = filters(visitor)
    with explained():
        found = visitor.call(
            found_runs, typed, agent=agent, termination=ended, limit=MOST + 1, key=session.key_for(visitor)
        )
    if not found:
        nothing(visitor, is_filtered=bool(typed.strip() or agent or ended))
        return
    listed(visitor, found[:MOST], are_all=len(found) <= MOST)


def filters(visitor: Visitor) -> tuple[str, str | None, str | None]:
    """Ask which runs to list."""
    with explained():
        agents = [EVERY, *visitor.call(agents_on_record)]
    if st.session_state.get("runs_agent", EVERY) not in agents:  # of another organisation
        del st.session_state["runs_agent"]
    which, who, how = st.columns([4, 3, 3])
    typed = which.text_input("Run", key="runs_typed", placeholder="part of a run's id, such as r-812", max_chars=128)
    agent = who.selectbox("Agent", agents, key="runs_agent")
    ended = how.selectbox(
        "Ended as",
        ENDED,
        format_func=lambda one: "running or cut off" if one == RUNNING else one,
        key="runs_ended",
    )
    return typed, None if agent == EVERY else agent, None if ended == EVERY else ended


def keep_filters() -> None:
    """Keep what the list was asked for while a run is read, of which Streamlit would let go."""
    for name in FILTERS:
        if name in st.session_state:
            st.session_state[name] = st.session_state[name]


def nothing(visitor: Visitor, *, is_filtered: bool) -> None:
    """Say why the list is empty."""
    if is_filtered:
        st.info(
            "No run is found by that. An agent and an end are on record only of runs that this product's agents made."
        )
        return
    st.info(
        "No run is on record in this organisation yet. This makes one, of an agent on the sample workspace with the memories "
        "of this organisation; a recall or a memory with a run's id puts that run here as well.",
        icon=":material/route:",
    )
    plain(f'python -m memory_core run scheduling "When could the panel meet next week?" --org {visitor.org_id}')


def listed(visitor: Visitor, found: list[FoundRun], *, are_all: bool) -> None:
    """Show the runs as a table, of which a tick opens one."""
    ids = [one.run_id for one in found]
    picked = st.dataframe(
        safe_frame([row(one) for one in found]),
        hide_index=True,
        placeholder="–",
        height=min(len(found), 15) * 35 + 38,
        column_config=COLUMNS,
        on_select="rerun",
        selection_mode="single-row",
        key=f"runs {visitor.org_id} {digest(ids)} {st.session_state.get(VISIT, 0)}",
    )["selection"]
    rows = picked["rows"]
    many = f"{len(found):,} listed" if are_all else f"The newest {len(found):,} are listed, and there are more"
    st.caption(f"{many}; newest first. Tick one to open it.")
    if any(one.is_veiled for one in found):
        st.caption(VEILED)
    if rows and rows[0] < len(found) and not found[rows[0]].is_veiled:
        open_run(visitor, ids[rows[0]])


def row(one: FoundRun) -> dict[str, object]:
    """Return a run as a row."""
    unended = "not on record" if one.agent is None else "running or cut off"
    return {
        "run": one.run_id,
        "began": one.at,
        "agent": one.agent or "other software",
        "ended": one.termination or unended,
        "shown": one.shown,
        "wrote": one.wrote,
    }
