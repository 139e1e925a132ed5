"""Latency: where the model's time goes, call by call."""

import streamlit as st

from memory_core.chatting import models_in_memory
from memory_core.config import Provider, Settings, Tier
from memory_core.errors import GatewayError, ModelNotConfigured
from memory_core.figures import Counts, Headroom, Latency, Measures, Percentiles
from memory_core.latency import CALLS_FOR_P99, MOST_POINTS, latency
from memory_core.roles import Act
from memory_core.selection import Loading, Outcome, Period, Selection, read_address
from memory_core.units import in_bytes, in_time, in_utc, in_width, tokens_per_second
from pages import explained, figures, gate, plain, safe_frame
from pages.charts import latency as charts
from pages.charts import shown
from pages.recall.session import key_for

FILTERS = {"tier": Tier, "loading": Loading, "outcome": Outcome}
DEFINITIONS = f"""
- **Call**: one request to a chat model, its retries included. *Answered*: the model finished. *Failed*: it ended with an
  error code. *Open*: no end is on record; past its deadline it never will be, since its process was killed.
- **Percentiles** are nearest rank, from the raw rows of answered calls, so each is the time of one real call. p50: half of
  the calls took no longer. They are never averaged, and p99 is left out under {CALLS_FOR_P99} calls.
- **Total**: from the call's start until its answer was whole, waiting and retries included. **First token**: from the
  call's start until the first piece of the answer, thinking included.
- **Time per output token**: generation time ÷ output tokens, of calls that reported both. **Output tokens per second** is
  its reverse: half of the calls are at least as fast as p50, and 95 % of them at least as fast as p95.
- **Queue**: waiting for a turn before anything was sent. **Load**: until the model was in memory. **Prompt**: reading the
  prompt. **Generation**: writing the answer. **The rest**: total less all of these, such as the network and retries.
  Waiting for tokens of the ceiling counts as queue.
- **Cold**: the model had to be loaded first. *Warm*: it was in memory. *Not reported*: the server does not say.
- **Cached**: the server had most of the prompt from an earlier call. Its tokens are counted and its time is not, so a time
  per prompt token means something on calls that are *not cached* only.
- **Memory block tokens** are our own estimate; prompt and output tokens are the server's count.
- **Tokens a minute**: what the calls that began in one clock minute count under the ceiling. **Counted now**: what counts
  at this moment; a call that runs counts all that it may come to, and one that ended counts for a minute more.
- A filter for *warm* or *cold* leaves out failed and open calls, of which neither is known.
- Failed and open calls are counted, and their times enter no percentile. All times of day are UTC.
"""


def from_address() -> Selection:
    """Read the selection from the address, which alone keeps it, and set the filters to it."""
    read = read_address({name: st.query_params.get_all(name) for name in st.query_params})
    if read.ignored:
        st.warning("Part of the address is not understood and is ignored:")
        plain("\n".join(read.ignored))
    chosen = read.selection
    st.session_state["latency_period"] = chosen.period.value
    for name, values in (
        ("model", chosen.models),
        ("tier", chosen.tiers),
        ("loading", chosen.loading),
        ("outcome", chosen.outcomes),
    ):
        st.session_state[f"latency_{name}"] = sorted(str(one) for one in values)
    return chosen


def to_address() -> None:
    """Write what the filters say into the address, before the page runs on it."""
    chosen = {name: st.session_state[f"latency_{name}"] for name in ("model", *FILTERS)}
    selection = Selection(
        period=Period(st.session_state["latency_period"]),
        models=frozenset(chosen["model"]),
        tiers=frozenset(map(Tier, chosen["tier"])),
        loading=frozenset(map(Loading, chosen["loading"])),
        outcomes=frozenset(map(Outcome, chosen["outcome"])),
    )
    st.query_params.from_dict(selection.address())


def filters(models: list[str]) -> None:
    """Show the filters."""
    places = st.columns([3, 5, 4, 4, 4])
    places[0].selectbox(
        "Period",
        [period.value for period in Period],
        format_func=lambda value: Period(value).label,
        key="latency_period",
        on_change=to_address,
    )
    places[1].multiselect("Model", models, placeholder="every model", key="latency_model", on_change=to_address)
    for place, (name, kinds) in zip(places[2:], FILTERS.items(), strict=True):
        place.multiselect(
            "Cold or warm" if name == "loading" else name.capitalize(),
            [kind.value for kind in kinds],
            placeholder="every one",
            key=f"latency_{name}",
            on_change=to_address,
        )


def in_figures(counts: Counts, measures: Measures) -> None:
    """Show the selected calls in figures."""
    share = counts.failed_share
    speed = tokens_per_second(measures.per_output_token.p50)
    figures(
        [
            ("Calls", f"{counts.calls:,}", "Selected, whatever became of them."),
            ("Answered", f"{counts.answered:,}", "The percentiles are of these."),
            ("Failed", "–" if share is None else f"{share:.1%}", f"{counts.failed:,} of the calls that ended."),
            ("Open", f"{counts.open:,}", f"No end yet; {counts.overdue:,} of them are past their deadline."),
            ("Tokens a second", "–" if speed is None else f"{speed:,.1f}", "Output; half of the calls are as fast."),
        ]
    )

    def row(name: str, of: Percentiles) -> dict[str, object]:
        tail = in_time(of.p99) if of.calls >= CALLS_FOR_P99 else f"under {CALLS_FOR_P99}"
        return {"time": name, "p50": in_time(of.p50), "p95": in_time(of.p95), "p99": tail, "calls": f"{of.calls:,}"}

    rows = [
        row("total", measures.total),
        row("first token", measures.first_token),
        row("per output token", measures.per_output_token),
    ]
    st.dataframe(safe_frame(rows), hide_index=True)


def over_time(seen: Latency) -> None:
    """Show how the times changed over the period."""
    st.subheader("Over time")
    left, right = st.columns(2, gap="medium")
    with left:
        shown(charts.over_time(seen, lambda one: one.total, title="Total time"), key="total")
    with right:
        shown(charts.over_time(seen, lambda one: one.first_token, title="Time to the first token"), key="first")
    left, right = st.columns(2, gap="medium")
    with left:
        shown(charts.over_time(seen, lambda one: one.per_output_token, title="Time per output token"), key="token")
    with right:
        chart = charts.over_time(seen, lambda one: one.per_output_token, title="Output tokens per second", speed=True)
        shown(chart, key="speed")
    st.caption(
        f"A point stands for the calls that began within {in_width(seen.bucket_width)} from there. "
        f"p99 is left out of points with fewer than {CALLS_FOR_P99} calls."
    )


def one_call_and_errors(seen: Latency) -> None:
    """Show the parts of a median call beside what failed."""
    left, right = st.columns(2, gap="medium")
    with left:
        st.subheader("Inside one call")
        call = seen.median_call
        if call is None:
            st.info("No selected call was answered.")
        else:
            shown(charts.breakdown(call), key="breakdown")
            st.caption("The newest call whose total is the median:")
            plain(f"call {call.call_id}\nrun {call.run_id}\nmodel {call.model}\nbegan {in_utc(call.started_at)} UTC")
    with right:
        st.subheader("What failed")
        if seen.counts.by_error:
            shown(charts.errors(seen.counts.by_error), key="errors")
        else:
            st.info("No selected call failed.")


def prompts(seen: Latency) -> None:
    """Show what the size of a prompt costs, and what a memory block does."""
    st.subheader("What a prompt costs")
    if not seen.prompts:
        st.info("No selected call reports both the size of its prompt and the time that it took.")
        return
    left, right = st.columns(2, gap="medium")
    with left:
        chart = charts.prompt_times(
            seen.prompts, lambda one: one.tokens, title="Prompt size and prompt time", x="Prompt (tokens)"
        )
        shown(chart, key="prompt")
    with right:
        chart = charts.prompt_times(
            seen.prompts, lambda one: one.memory_tokens, title="Memory block and prompt time", x="Memory block (tokens)"
        )
        shown(chart, key="block")
    cost = seen.block_cost
    if cost is not None:
        st.markdown(
            f"**What five memories cost: about {in_time(cost.ms)} of prompt time.** That is a block of "
            f"{cost.block_tokens:,} tokens, the median of {cost.prompts_with_block:,} calls with one (a recall gives five "
            f"memories unless asked otherwise), at {cost.ms_per_token:,.2f} ms a token, the median of "
            f"{cost.uncached_prompts:,} calls that were not cached."
        )
    models = len({one.model for one in seen.prompts})
    st.caption(
        f"The newest {len(seen.prompts):,} calls that report both; at most {MOST_POINTS:,} are drawn."
        + (f" They are of {models:,} models, which read at different speeds: choose one." if models > 1 else "")
    )


def under_the_ceiling(headroom: Headroom) -> None:
    """Show what is left of the tokens a minute, now and in the busiest minutes."""
    st.subheader("Tokens a minute")
    if headroom.ceiling is None:
        st.info(
            f"No ceiling is kept; {headroom.counted_now:,} tokens count at this moment. "
            "A hosted model has a ceiling, and MODEL_TOKENS_PER_MINUTE sets one."
        )
        return
    most = max(headroom.busiest.values(), default=0)
    figures(
        [
            ("Ceiling", f"{headroom.ceiling:,}", "Tokens a minute, of the whole organisation."),
            ("Counted now", f"{headroom.counted_now:,}", "Tokens that count at this moment."),
            (
                "Left now",
                f"{headroom.left_now:,}",
                "What is not counted yet; a call that begins now is granted no more.",
            ),
            ("Busiest minute", f"{most / headroom.ceiling:.0%}", f"Of the ceiling: {most:,} tokens in one minute."),
        ]
    )
    shown(charts.busiest_minutes(headroom), key="minutes")
    st.caption("Of the whole organisation, whatever model or outcome is selected: the ceiling is shared.")


def in_memory(settings: Settings) -> None:
    """Show which models the server has in memory, and until when."""
    st.subheader("Models in memory")
    if settings.model_provider is not Provider.OLLAMA:
        st.info("A hosted model does not say what is in memory; Ollama does.")
        return
    try:
        loaded = models_in_memory(settings)
    except GatewayError as error:
        st.warning("The server does not say which models it has in memory:")
        plain(str(error))
        return
    if not loaded:
        st.info("No model is in memory, so the next call is a cold one.")
        return
    rows = [
        {
            "model": model.name,
            "memory": in_bytes(model.size_bytes),
            "of it on a GPU": in_bytes(model.vram_bytes),
            "context (tokens)": "not reported" if model.context_tokens is None else f"{model.context_tokens:,}",
            "leaves at (UTC)": "not reported" if model.expires_at is None else in_utc(model.expires_at),
        }
        for model in loaded
    ]
    st.dataframe(safe_frame(rows), hide_index=True)


visitor = gate(Act.READ_LATENCY, title="Latency")
st.title("Latency")
chosen = from_address()
with explained():
    seen = visitor.call(latency, chosen, key=key_for(visitor))
if not visitor.settings.has_model:
    st.warning("No model can be called now; what is on record is shown all the same.")
    plain(str(ModelNotConfigured()))
if seen.last_at is None:
    st.info("No call to a chat model is on record in this organisation yet. See that the model answers, then make one:")
    plain(f'python -m memory_core doctor\npython -m memory_core chat "How soon can they start?" --org {visitor.org_id}')
else:
    filters(sorted({*seen.models, *chosen.models}))
    if seen.counts.calls:
        in_figures(seen.counts, seen.measures)
        if seen.counts.answered:
            over_time(seen)
        one_call_and_errors(seen)
        prompts(seen)
    else:
        st.info(
            f"No call is selected; the last one on record began at {in_utc(seen.last_at)} UTC. "
            "Choose a longer period, or take filters away."
        )
    under_the_ceiling(seen.headroom)
if visitor.settings.has_model:
    in_memory(visitor.settings)
with st.expander("What the figures mean", icon=":material/info:"):
    st.markdown(DEFINITIONS)
