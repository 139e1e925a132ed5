"""Recall: the exact block a model would see for a query, semantic beside recency."""

from uuid import uuid4

import streamlit as st

from memory_core import Kind, Purpose, Ranking, Recall, RecalledMemory, RecallMode
from memory_core.config import HOSTED_TOKENS_PER_MINUTE
from pages import explained, figures, gate, plain, safe_frame

SCORE = "Of its ranking: the cosine similarity, and with hybrid what words, names and dates add."


def outcome(recall: Recall, ceiling: int | None) -> None:
    """Show how a recall chose, what it showed, and the block itself."""
    if recall.mode is RecallMode.SEMANTIC:
        st.success(f"Mode semantic, ranking {recall.ranking}, search {recall.search}.")
    else:
        (st.info if recall.reason == "asked for" else st.warning)(f"Mode recency: {recall.reason}.")
    tokens = recall.block.tokens if recall.block else 0
    minute = ceiling or HOSTED_TOKENS_PER_MINUTE
    kept = "the ceiling that is kept" if ceiling else "the ceiling of a hosted model; with Ollama none is kept"
    figures(
        [
            (
                "Shown",
                f"{sum(one.shown for one in recall.memories)} of {len(recall.memories)}",
                "In the block, of those chosen.",
            ),
            ("Tokens", f"{tokens:,}", "Estimated, of the whole block."),
            (
                "Of a minute",
                f"{tokens / minute:.1%}",
                f"Of {minute:,} tokens a minute, {kept}.",
            ),
        ],
        width=114,
    )
    st.caption(
        f"Query embedded in {recall.timings.embed_ms:.1f} ms, searched in {recall.timings.search_ms:.1f} ms. "
        f"{recall.unembedded:,} live memories have no embedding. "
        f"{len(recall.passed_over):,} passed over, as a better one about the same subject says nearly the same."
    )
    if recall.memories:
        st.dataframe(
            safe_frame([row(place, one) for place, one in enumerate(recall.memories, start=1)]),
            hide_index=True,
            column_config={
                "score": st.column_config.TextColumn(
                    "score",
                    help=SCORE,
                ),
                "text": st.column_config.TextColumn("text", width="large"),
            },
        )
    if recall.block is None:
        st.info(
            "Nothing to show, so the model gets no block at all." if not recall.memories else "No line fits the budget."
        )
        return
    st.text("The block, exactly as the model gets it:")
    plain(recall.block.text)


def row(place: int, one: RecalledMemory) -> dict[str, object]:
    """Return one chosen memory as a row."""
    chosen = "no embedding, newest" if one.filled_up else "best" if one.score is not None else "newest"
    return {
        "rank": place,
        "in the block": "yes" if one.shown else "left out: budget",
        "score": "" if one.score is None else f"{one.score:.3f}",
        # What stands in no block was not disclosed, so nobody is shown it here either.
        "text": one.memory.text if one.shown else "",
        "chosen as": chosen,
        "kind": one.memory.kind.value,
        "origin": one.memory.origin.value,
        "about": str(one.memory.subject or ""),
        "author": one.memory.author,
        "written": f"{one.memory.created_at:%Y-%m-%d}",
    }


visitor = gate("engineer", title="Recall")
st.title("Recall")
st.caption(
    "What a model would be shown for a question. A preview shows text about people: it is recorded as a disclosure, "
    "with its purpose, each time the button is pressed. The query itself is not kept."
)
with st.form("preview"):
    query = st.text_input("Query", placeholder="how soon can they start?", max_chars=2000)
    left, middle, right = st.columns(3)
    limit = left.slider("Memories at most", 1, 20, 5)
    kinds = middle.multiselect("Kinds", [kind.value for kind in Kind], placeholder="every kind")
    budget = right.number_input(
        "Token budget",
        min_value=0,
        max_value=1_000_000,
        value=0,
        step=50,
        help="Of the whole block, in estimated tokens; 0 is no limit.",
    )
    pressed = st.form_submit_button("Preview", type="primary", icon=":material/visibility:")
if pressed and not query.strip():
    st.warning("Ask something first.")
elif pressed:
    run_id = f"preview-{uuid4().hex[:12]}"
    semantic, recency = st.columns(2, gap="large")
    for column, heading, ranking in (
        (semantic, "Semantic", None),
        (recency, "Recency", Ranking.RECENCY),
    ):
        with column:
            st.subheader(heading)
            with explained():
                recall = visitor.store().recall(
                    query,
                    run_id=run_id,
                    limit=limit,
                    token_budget=int(budget) or None,
                    kinds=kinds or None,
                    ranking=ranking,
                    purpose=Purpose.PREVIEW,
                )
            outcome(recall, visitor.settings.tokens_per_minute)
