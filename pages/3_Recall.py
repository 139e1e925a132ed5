"""Recall: the exact block a model would see for a query, semantic beside recency."""

from uuid import UUID, uuid4

import streamlit as st

from memory_core import Kind, MemoryCoreError, Ranking, Recall, RecalledMemory, RecallMode
from memory_core.config import HOSTED_TOKENS_PER_MINUTE
from memory_core.figures import BlockCost
from memory_core.latency import block_cost, missing_for_a_cost, recorded_prompts
from memory_core.previewing import preview, shown_to
from memory_core.prompt.shorter import further, shortened
from memory_core.roles import Act
from memory_core.selection import Period, Selection
from memory_core.units import in_time
from pages import Visitor, explained, figures, gate, plain, require, safe_frame
from pages.recall import purpose
from pages.recall.session import key

SCORE = "Of its ranking: the cosine similarity, and with hybrid what words, names and dates add."


def outcome(recall: Recall, ceiling: int | None, *, with_pseudonyms: bool) -> None:
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
                "Minute",
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
    as_it_is = "as the model gets it but for the names" if with_pseudonyms else "exactly as the model gets it"
    st.text(f"The block, {as_it_is}:")
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


def reading_cost(visitor: Visitor) -> tuple[BlockCost | None, str | None]:
    """Return what a token of prompt takes by the calls of the last 30 days, or why that is not known."""
    try:
        prompts = visitor.call(recorded_prompts, Selection(period=Period.MONTH))
    except MemoryCoreError as error:
        return None, str(error)
    return block_cost(prompts), missing_for_a_cost(prompts, visitor.org_id)


@st.fragment
def how_many(
    visitor: Visitor,
    recall_id: UUID,
    scores: tuple[float | None, ...],
    *,
    cost: BlockCost | None,
    no_cost: str | None,
) -> None:
    """Show what a block of the first memories of a preview takes, and what each further one adds.

    It keeps the recall's identifier and numbers: the text is read again each time, so that what was erased meanwhile is
    not shown, and what was disclosed by the preview is not disclosed once more.
    """
    require(visitor, Act.PREVIEW)
    with explained():
        whole = visitor.call(shown_to, recall_id, by=visitor.author, key=key())
    if whole is None:
        return
    st.header("How many to show")
    st.caption(
        "The first ones of the semantic preview; to look at fewer of them is no further disclosure. How often a further one "
        "answers a question is measured in notebooks/recall_size.ipynb."
    )
    count = len(scores)
    k = st.slider("Memories shown", 1, count, count, key=f"first_of_{recall_id}") if count > 1 else 1
    block = shortened(whole, k)
    minute = visitor.settings.tokens_per_minute or HOSTED_TOKENS_PER_MINUTE
    rows = further(whole)
    figures(
        [
            ("Memories", f"{k} of {count}", "The first ones of the semantic preview."),
            ("Tokens", f"{block.tokens:,}", "Estimated, of the whole block."),
            ("Of a minute", f"{block.tokens / minute:.1%}", f"Of {minute:,} tokens a minute."),
            ("Prompt time", in_time(cost and cost.ms_per_token * block.tokens), "To read the block, if not cached."),
            ("The last adds", f"{rows[k - 1].tokens:,}", f"Tokens that memory {k} adds to the block."),
        ]
    )
    if cost is None:
        st.caption("What a token of prompt takes is not known:")
        plain(no_cost or "")
    else:
        st.caption(
            f"At {cost.ms_per_token:,.2f} ms a token, the median of {cost.uncached_prompts:,} calls of the last 30 days that "
            "were not cached."
        )
    st.dataframe(
        safe_frame(
            [
                {
                    "place": place,
                    "shown": "yes" if place <= k else "no",
                    "adds (tokens)": one.tokens,
                    "score": "" if score is None else f"{score:.3f}",
                    "text": one.value,
                    "adds (time)": in_time(cost and cost.ms_per_token * one.tokens),
                    "in all (tokens)": one.in_all,
                    "of a minute": f"{one.in_all / minute:.1%}",
                }
                for place, (one, score) in enumerate(zip(rows, scores, strict=True), start=1)
            ]
        ),
        hide_index=True,
        column_config={
            "adds (tokens)": st.column_config.NumberColumn(
                "adds (tokens)", help="The first one has the fence and its two sentences as well."
            ),
            "score": st.column_config.TextColumn("score", help=SCORE),
            "text": st.column_config.TextColumn("text", width="large"),
        },
    )
    if k < count:  # all of them are the block above
        st.text(f"The block of the first {k}:")
        plain(block.text)


visitor = gate(Act.PREVIEW, title="Recall")
st.title("Recall")
st.caption(
    "What a model would be shown for a question. A preview shows text about people: it is recorded as a disclosure to you, "
    "with your name and what it is for, each time the button is pressed. The query itself is not kept."
)
safeguards = purpose.safeguards(visitor)
purpose.tell(visitor, safeguards)
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
    because = purpose.ask()
    pressed = st.form_submit_button("Preview", type="primary", icon=":material/visibility:")
if pressed and not query.strip():
    st.warning("Ask something first.")
elif pressed and not because:
    st.warning("Say what for: a preview is a disclosure, and the record says why.")
elif pressed:
    st.text(f"Recorded as a disclosure to {visitor.author}, for: {because}")
    run_id = f"preview-{uuid4().hex[:12]}"
    semantic, recency = st.columns(2, gap="large")
    recalls = {}
    for column, heading, ranking in (
        (semantic, "Semantic", None),
        (recency, "Recency", Ranking.RECENCY),
    ):
        with column:
            st.subheader(heading)
            with explained():
                recalls[heading] = visitor.call(
                    preview,
                    query,
                    run_id=run_id,
                    by=visitor.author,
                    because=because,
                    key=key(),
                    limit=limit,
                    token_budget=int(budget) or None,
                    kinds=kinds or None,
                    ranking=ranking,
                )
            outcome(
                recalls[heading],
                visitor.settings.tokens_per_minute,
                with_pseudonyms=safeguards.preview_pseudonyms,
            )
    scores = tuple(one.score for one in recalls["Semantic"].memories if one.shown)
    cost, no_cost = reading_cost(visitor)
    how_many(visitor, recalls["Semantic"].recall_id, scores, cost=cost, no_cost=no_cost)
