"""One run whole: how it ended, what it was shown, whom that is about, what it did and wrote."""

from __future__ import annotations

from datetime import UTC, timedelta

import streamlit as st

from memory_core import Purpose
from memory_core.errors import Refused
from memory_core.roles import Act
from memory_core.run_records import Termination
from memory_core.run_steps import Step, steps
from memory_core.run_trace import RecallTrace, RunTrace, Since
from memory_core.tracing import LOOK, MOST_RECALLS
from memory_core.units import in_utc
from pages import Visitor, explained, figures, plain, safe_frame
from pages.charts import runs as charts
from pages.charts import shown
from pages.desk import trail_view
from pages.desk.words import many
from pages.recall import session
from pages.runs import wrote_view
from pages.runs.found_view import keep_filters
from pages.runs.opening import open_run, read_open
from pages.runs.words import ENDS, end_of, named, outcome_of, since_of, span

LEFT_OUT = "observations: its model was outside the private network, and the organisation had not let them leave"
NONE_LEFT_OUT = "no kind of memory that its agent may be shown, when it began"


def show(visitor: Visitor, run_id: str) -> None:
    """Show a run, its figures and how it ended on top."""
    keep_filters()
    if st.button("All runs", type="tertiary", icon=":material/arrow_back:"):
        open_run(visitor, None)
    st.text(f"Organisation {visitor.org_id}")  # of which it is a run: another may have one of the same id
    run = read(visitor, run_id)
    if run is None:
        st.warning("Of a run with this id nothing is known in this organisation:")
        plain(run_id[:128])
        return
    plain(run.run_id)
    in_figures(run)
    ended(run)
    facts(run)
    in_time_order(run)
    was_shown(visitor, run)
    wrote_view.show(visitor, run)
    wrote_view.calls(run)
    if visitor.may(Act.READ_TRAIL):
        with st.expander("Who looked at this run", icon=":material/visibility:"), explained():
            desk = visitor.desk()
            trail_view.show(lambda limit: desk.trail(reference=run.run_id, act=LOOK, limit=limit))


def read(visitor: Visitor, run_id: str) -> RunTrace | None:
    """Read a run from its records, which is on record itself once it is opened; None where nothing is known of it."""
    with explained():
        try:
            return read_open(
                visitor,
                run_id,
                key=session.key_for(visitor),
                page=st.session_state.get(page_key(visitor, run_id), 1),
            )
        except Refused as refused:
            if refused.rule != "run_exists":
                raise
    return None


def page_key(visitor: Visitor, run_id: str) -> str:
    """Return under which name it is kept which of its recalls are shown."""
    return f"recalls {visitor.org_id} {run_id}"


def ended(run: RunTrace) -> None:
    """Say how it ended and what that means, and what has changed since."""
    end = end_of(run)
    if run.facts is None:
        told = (
            "It was a preview: its block was shown to a person and to no model."
            if run.is_preview
            else "Other software ran it: its start, its end and its tools are not on record here."
        )
        st.info(told, icon=":material/info:")
    elif run.is_cut_off:
        st.error(
            "**Cut off.** It has no end on record and its time is over: its process was killed, or the machine went down. "
            "What is on record until then stands below.",
            icon=":material/power_off:",
        )
    elif end == Termination.COMPLETED:
        st.success(f"**Completed.** {ENDS[end]}", icon=":material/check:")
    elif run.facts.termination is None:
        st.info("**Running.** It has no end yet; open it again for what comes.", icon=":material/pending:")
    elif end in ENDS:
        tell = st.warning if end == Termination.CANCELLED else st.error
        tell(f"**{end}.** {ENDS[end]}", icon=":material/error:")
    else:  # a code of another version is no text for Markdown
        st.error("**It failed,** with a code that this version does not know:", icon=":material/error:")
        plain(str(end))
    if run.facts and run.facts.detail:
        plain(run.facts.detail)
    if run.facts and run.facts.answer_was_cut:
        st.warning(
            "**The answer was cut.** It reached the output cap, or the server kept a part of it back: what was said is not "
            "all that the model had to say.",
            icon=":material/content_cut:",
        )
    changed_since(run)


def changed_since(run: RunTrace) -> None:
    """Warn that what it was shown, or wrote, is not all there as it was."""
    since, written_since = run.since, run.written_since
    told = []
    if since:
        told.append(
            f"**Not as it was:** of the {many(len(run.shown), 'memory', 'memories')} that it was shown, {since_of(since)} "
            "since."
        )
    if since.keys() & {Since.CORRECTED, Since.ERASED, Since.SWEPT}:
        told.append("In the blocks below a tombstone's line stands in the place of each that has no text any more.")
    if written_since:
        written = many(len(run.written), "memory", "memories")
        told.append(f"**Not as it wrote it:** of the {written} that it wrote, {since_of(written_since)} since.")
    if Since.RESTRICTED in since or Since.RESTRICTED in written_since:
        told.append("What is restricted still has its text, and is shown to no model.")
    if told:
        st.warning(" ".join(told), icon=":material/history:")


def in_figures(run: RunTrace) -> None:
    """Show the run in figures."""
    known = run.facts
    turns = "–" if known is None or known.turns is None else f"{known.turns:,} of {known.turn_limit:,}"
    ended_at = run.ended_at
    figures(
        [
            ("Shown", f"{len(run.shown):,}", "Memories, each once."),
            ("Wrote", f"{len(run.written):,}", "Memories that it wrote, or said again."),
            ("Turns", turns, "How often the model was asked, of how often it may be."),
            ("Tool calls", f"{len(run.calls):,}", "On record, also those that were not carried out."),
            (
                "Time",
                span((ended_at - run.began_at) / timedelta(milliseconds=1)) if ended_at else "–",
                "From its start to its end, or to the last thing that is known of it where other software ran it.",
            ),
        ]
    )


def facts(run: RunTrace) -> None:
    """Say who asked which agent and which model, when."""
    known = run.facts
    if known is None:
        models = ", ".join(dict.fromkeys(one.model for one in run.model_calls))
        rows = [("Began", f"{in_utc(run.began_at)} UTC"), ("Model", models or "not on record")]
    else:
        rows = [
            ("Agent", known.agent),
            ("Specification", known.specification_digest.hex()[:12]),
            ("Asked by", known.asked_by),
            ("Model", f"{known.model}, {known.tier}"),
            ("Began", f"{known.started_at:%Y-%m-%d %H:%M:%S} UTC"),
            ("Had until", f"{known.deadline_at:%Y-%m-%d %H:%M:%S} UTC"),
            ("Ended", f"{known.ended_at:%Y-%m-%d %H:%M:%S} UTC" if known.ended_at else "not on record"),
            ("Documents", ", ".join(known.documents) or "none"),
            ("Left out", LEFT_OUT if known.observations_left_out else NONE_LEFT_OUT),
        ]
    with st.container(border=True, gap=None):
        for name, value in rows:
            with st.container(horizontal=True, gap="small"):
                st.caption(name, width=84)
                st.text(value, width="stretch")


def was_shown(visitor: Visitor, run: RunTrace) -> None:
    """Show every block that it was shown, rebuilt; what a person was shown in previews stands apart."""
    st.subheader("What it was shown")
    turned(visitor, run)
    numbered = list(enumerate(run.recalls, start=run.older_recalls + 1))
    its_own = [(number, one) for number, one in numbered if one.purpose is Purpose.RUN]
    previews = [(number, one) for number, one in numbered if one.purpose is Purpose.PREVIEW]
    if run.recalled_from is None:
        st.caption("No recall of this run is on record: it was shown no memory.")
    elif not its_own:
        st.caption("None of these recalls is its own: they are previews.")
    else:
        st.caption(
            "Each block is rebuilt from the record of what was disclosed: word for word as it was shown, as long as its "
            "memories have their text."
        )
        listed(run, its_own)
    if previews:
        st.subheader("Previews under its id")
        st.caption("A person was shown these, and no model: they count nowhere as shown to the run.")
        listed(run, previews, all_folded=bool(its_own))


def turned(visitor: Visitor, run: RunTrace) -> None:
    """Offer the older ones of very many recalls."""
    count = run.older_recalls + len(run.recalls) + run.newer_recalls
    if count <= MOST_RECALLS:
        return
    first, last = run.older_recalls + 1, run.older_recalls + len(run.recalls)
    st.caption(f"Recalls {first:,} to {last:,} of {count:,}. The figures above are of them all.")
    pages = -(-count // MOST_RECALLS)
    st.number_input("Page, the newest recalls on the first", 1, pages, key=page_key(visitor, run.run_id), width=260)


def listed(run: RunTrace, recalls: list[tuple[int, RecallTrace]], *, all_folded: bool = False) -> None:
    """Show recalls, all but the first one folded, or all of them."""
    for number, one in recalls:
        if one is recalls[0][1] and not all_folded:
            recalled(run, number, one)
            continue
        with st.expander(f"Recall {number:,}, {one.at:%Y-%m-%d %H:%M:%S} UTC"):
            recalled(run, number, one)


def recalled(run: RunTrace, number: int, one: RecallTrace) -> None:
    """Show one recall: how it chose, its block, and what is not as it was in that."""
    why = f", as {one.reason}" if one.reason else ""
    st.text(
        f"Recall {number}, {one.at:%Y-%m-%d %H:%M:%S} UTC: {one.mode}, ranking {one.ranking}{why}"
        f"{', in a preview' if one.purpose is Purpose.PREVIEW else ''}"
    )
    if one.by is not None:
        st.text(f"Seen by {one.by}{f', for: {one.because}' if one.because else ''}")
    if one.block is not None:
        plain(one.block.text)
    elif one.showed:
        st.caption(
            "It showed memories whose tombstones are gone by now, after their retention: nothing is left of them."
        )
    else:
        st.caption("It showed no memory, so that the model got no block.")
    for change in (Since.CORRECTED, Since.DISPUTED):  # which the lines of a block do not say
        places = [
            f"[{place}]"
            for place, memory in zip(one.places, one.memories, strict=True)
            if change in run.changed(memory)
        ]
        if places:
            st.text(f"{str(change).capitalize()} since: {', '.join(places)}")


def in_time_order(run: RunTrace) -> None:
    """Draw what it did over its time, and list the same."""
    done = steps(run)
    if not done:
        return
    st.subheader("What it did, in time")
    drawn = done[: charts.MOST_STEPS]
    start = done[0].at - timedelta(milliseconds=done[0].since_ms)
    until = run.facts.ended_at if run.facts else None
    until_ms = (until - start) / timedelta(milliseconds=1) if until and len(drawn) == len(done) else None
    shown(charts.timeline(drawn, until_ms=until_ms), key="timeline")
    if len(drawn) < len(done):
        st.caption(f"The first {len(drawn):,} of its {len(done):,} steps are drawn; all of them are listed.")
    if run.older_recalls or run.newer_recalls:
        st.caption("Of its recalls these are the ones whose blocks stand below.")
    is_one_day = len({one.at.astimezone(UTC).date() for one in done}) == 1
    st.dataframe(
        safe_frame([step_row(number, one) for number, one in enumerate(done, start=1)]),
        hide_index=True,
        placeholder="–",
        height=min(len(done), 15) * 35 + 38,
        column_config={
            "step": st.column_config.NumberColumn("Step", width=45),
            "at": st.column_config.DatetimeColumn(
                "Time (UTC)",
                format="HH:mm:ss.SSS" if is_one_day else "YYYY-MM-DD HH:mm:ss",
                width=100 if is_one_day else 150,
            ),
            "what": st.column_config.TextColumn("What", width=80),
            "name": st.column_config.TextColumn("Tool, model, ranking", width=165),
            "outcome": st.column_config.TextColumn("Outcome", width=165),
            "took": st.column_config.NumberColumn("Took (ms)", format="localized", width=80),
            "tokens": st.column_config.TextColumn("Tokens", help="Of the prompt → of the output", width=95),
        },
    )


def step_row(number: int, one: Step) -> dict[str, object]:
    """Return a step as a row."""
    return {
        "step": number,
        "at": one.at,
        "what": one.kind.value,
        "name": named(one),
        "outcome": outcome_of(one),
        "took": None if one.took_ms is None else round(one.took_ms, 1),
        "tokens": tokens_of(one),
    }


def tokens_of(one: Step) -> str:
    """Write the tokens of a call to the model."""
    if one.prompt_tokens is None and one.output_tokens is None:
        return ""
    return " → ".join("?" if count is None else f"{count:,}" for count in (one.prompt_tokens, one.output_tokens))
