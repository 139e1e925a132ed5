"""What recorded calls come to is what the raw rows say, counted by hand."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import count
from math import ceil
from typing import Any
from uuid import UUID

import numpy
import pytest
from call_rows import Row, bare, believable, ended, store
from conftest import Database
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from rows import emptied, execute

from memory_core.config import Tier, settings
from memory_core.figures import Latency, Percentiles, Prompt
from memory_core.latency import CALLS_FOR_A_COST, MOST_BUCKETS, MOST_POINTS, block_cost, bucket_starts, bucket_width
from memory_core.latency import latency as latency_of
from memory_core.selection import Loading, Outcome, Period, Selection

T0 = datetime(2026, 11, 30, 12, 7, tzinfo=UTC)
ALL = Selection(period=Period.EVERYTHING)
ORGANISATIONS = count()


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


def keep(database: Database, rows: Iterable[Row], org_id: str = "acme") -> list[Row]:
    kept = list(rows)
    with database.connect() as connection:
        store(connection, org_id, kept)
    return kept


def latency(
    database: Database,
    selection: Selection = ALL,
    *,
    org_id: str = "acme",
    now: datetime | None = T0,
    tokens_per_minute: int | None = None,
) -> Latency:
    chosen = settings(
        database_url=database.application.render_as_string(hide_password=False),
        memory_embedder="none",
        model_tokens_per_minute=tokens_per_minute,
    )
    return latency_of(org_id, selection, settings=chosen, now=now)


def single(value: float | None) -> float | None:
    """Return a number as a REAL column keeps it."""
    return None if value is None else float(numpy.float32(value))


def nearest_rank(times: list[float], percent: int) -> float | None:
    return sorted(times)[ceil(Fraction(percent, 100) * len(times)) - 1] if times else None


def by_hand(times: Iterable[float | None]) -> tuple[int, list[float | None]]:
    known = [time for time in times if time is not None]
    return len(known), [nearest_rank(known, rank) if rank < 99 or len(known) >= 100 else None for rank in (50, 95, 99)]


def agrees(found: Percentiles, times: Iterable[float | None]) -> None:
    calls, ranks = by_hand(times)
    assert found.calls == calls
    assert [single(one) for one in (found.p50, found.p95, found.p99)] == [single(one) for one in ranks]


def per_output_token(row: Row) -> float | None:
    generation_ms, tokens = single(row["generation_ms"]), row["output_tokens"]
    return generation_ms / tokens if generation_ms is not None and tokens else None


def loading(row: Row) -> Loading:
    return {True: Loading.COLD, False: Loading.WARM, None: Loading.NOT_REPORTED}[row["cold"]]


def outcome(row: Row) -> Outcome:
    return Outcome.ANSWERED if row["finish_reason"] else Outcome.FAILED if row["error_code"] else Outcome.OPEN


def selected(rows: Iterable[Row], selection: Selection, now: datetime = T0) -> list[Row]:
    since = selection.period.since(now) or datetime.min.replace(tzinfo=UTC)
    return [
        row
        for row in rows
        if since <= row["started_at"] <= now
        and selection.takes(model=row["model"], tier=Tier(row["tier"]), loading=loading(row), outcome=outcome(row))
    ]


SELECTIONS = [
    ALL,
    Selection(),
    Selection(period=Period.HOUR),
    Selection(period=Period.WEEK, models=frozenset({"qwen3:0.6b", "nobody/has:this"})),
    Selection(period=Period.MONTH, tiers=frozenset({Tier.BALANCED, Tier.DEEP})),
    Selection(period=Period.EVERYTHING, loading=frozenset({Loading.COLD})),
    Selection(period=Period.EVERYTHING, loading=frozenset({Loading.WARM, Loading.NOT_REPORTED})),
    Selection(period=Period.EVERYTHING, outcomes=frozenset({Outcome.ANSWERED, Outcome.OPEN})),
    Selection(period=Period.EVERYTHING, outcomes=frozenset({Outcome.FAILED})),
    Selection(period=Period.EVERYTHING, loading=frozenset(Loading), outcomes=frozenset(Outcome), tiers=frozenset(Tier)),
]


def test_every_figure_is_that_of_the_raw_rows_selected(database: Database) -> None:
    rows = keep(database, believable("acme", 3000, until=T0, days=40))
    for selection in SELECTIONS:
        seen, mine = latency(database, selection), selected(rows, selection)
        answers = [row for row in mine if outcome(row) is Outcome.ANSWERED]
        failures = [row["error_code"] for row in mine if row["error_code"]]
        assert seen.counts.calls == len(mine)
        assert (seen.counts.answered, seen.counts.failed) == (len(answers), len(failures))
        assert seen.counts.by_error == {code: failures.count(code) for code in failures}
        assert list(seen.counts.by_error.values()) == sorted(seen.counts.by_error.values(), reverse=True)
        agrees(seen.measures.total, [single(row["total_ms"]) for row in answers])
        agrees(seen.measures.first_token, [single(row["first_chunk_ms"]) for row in answers])
        agrees(seen.measures.per_output_token, [per_output_token(row) for row in answers])
        for bucket in seen.over_time:
            within = [row for row in answers if bucket.start <= row["started_at"] < bucket.start + seen.bucket_width]
            agrees(bucket.measures.total, [single(row["total_ms"]) for row in within])
            agrees(bucket.measures.first_token, [single(row["first_chunk_ms"]) for row in within])
            agrees(bucket.measures.per_output_token, [per_output_token(row) for row in within])
        assert sum(bucket.measures.total.calls for bucket in seen.over_time) == len(answers)
        assert all(
            after.start - before.start == seen.bucket_width
            for before, after in zip(seen.over_time, seen.over_time[1:], strict=False)
        )


@hypothesis_settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.floats(0, 1e9, width=32), min_size=1, max_size=130))
def test_percentiles_are_nearest_rank_whatever_the_times(standing: Database, times: list[float]) -> None:
    org_id = f"drawn-{next(ORGANISATIONS)}"
    calls = [bare(org_id, number=number, started_at=T0 - timedelta(hours=1)) for number in range(len(times))]
    keep(standing, [ended(row, time, first_chunk_ms=time) for row, time in zip(calls, times, strict=True)], org_id)
    seen = latency(standing, org_id=org_id)
    agrees(seen.measures.total, times)
    agrees(seen.measures.first_token, times)
    assert seen.median_call is not None
    assert seen.median_call.total_ms == seen.measures.total.p50


@pytest.mark.parametrize(("calls", "has_p99"), [(99, False), (100, True)])
def test_the_99th_percentile_is_hidden_under_a_hundred_calls(database: Database, calls: int, has_p99: bool) -> None:
    began = T0 - timedelta(minutes=30)
    keep(database, [ended(bare("acme", number=one, started_at=began), 1.0 + one) for one in range(calls)])
    seen = latency(database, Selection(period=Period.HOUR))
    full = [bucket.measures.total for bucket in seen.over_time if bucket.measures.total.calls]
    assert [one.calls for one in full] == [calls]
    for found in (seen.measures.total, *full):
        assert (found.p99 is not None) is has_p99
    assert seen.measures.total.p50 == 50.0


def test_an_organisation_sees_no_call_of_another(database: Database) -> None:
    mine = keep(database, believable("acme", 40, until=T0, days=1, seed=1))
    before = latency(database, tokens_per_minute=8000)
    keep(database, believable("acme-corp", 300, until=T0, days=1, seed=2), "acme-corp")
    assert latency(database, tokens_per_minute=8000) == before
    assert before.counts.calls == len(mine)
    assert latency(database, org_id="nobody").last_at is None


def test_an_organisation_without_a_call_has_no_figure(database: Database) -> None:
    seen = latency(database, now=None)
    assert seen.last_at is None
    assert seen.counts.calls == 0
    assert seen.counts.failed_share is None
    assert seen.measures.total == Percentiles(calls=0)
    assert (seen.median_call, seen.block_cost, seen.prompts, seen.models) == (None, None, (), ())
    assert [bucket.measures.total.calls for bucket in seen.over_time] == [0]


def test_open_and_failed_calls_are_counted_and_enter_no_percentile(database: Database) -> None:
    began = T0 - timedelta(minutes=1)
    keep(
        database,
        [
            ended(bare("acme", number=1, started_at=began), 500.0),
            ended(bare("acme", number=2, started_at=began), 9.0, error_code="gateway.busy", attempts=0),
            bare("acme", number=3, started_at=began),
            bare("acme", number=4, started_at=T0 - timedelta(hours=1)),
        ],
    )
    seen = latency(database)
    assert (seen.counts.answered, seen.counts.failed, seen.counts.open, seen.counts.overdue) == (1, 1, 2, 1)
    assert seen.counts.failed_share == 0.5
    assert seen.measures.total == Percentiles(calls=1, p50=500.0, p95=500.0)
    assert seen.measures.first_token == Percentiles(calls=0)


def test_an_answer_of_which_nothing_is_reported_has_a_total_and_no_more(database: Database) -> None:
    row = ended(bare("acme", started_at=T0, provider="openai"), 1200.0, output_tokens=0, generation_ms=5.0)
    keep(database, [row])
    seen = latency(database)
    assert seen.measures.per_output_token.calls == 0  # no output token, no time of one
    assert seen.median_call is not None
    assert seen.median_call.call_id == row["call_id"]
    assert seen.median_call.parts == {
        "queue": None,
        "load": None,
        "prompt": None,
        "generation": 5.0,
        "the rest": 1195.0,
    }
    assert seen.prompts == ()


def test_the_median_call_is_the_newest_with_that_total_and_its_parts_make_it_up(database: Database) -> None:
    def call(number: int, total_ms: float, **parts: float) -> Row:
        return ended(bare("acme", number=number, started_at=T0 - timedelta(minutes=number)), total_ms, **parts)

    parts = {"queue_ms": 100.0, "load_ms": 20.5, "prompt_ms": 300.0, "generation_ms": 500.0}
    rows = keep(database, [call(1, 2000.0), call(2, 1000.1, **parts), call(3, 1000.1), call(4, 10.0)])
    median = latency(database).median_call
    assert median is not None
    assert median.call_id == rows[1]["call_id"]
    assert sum(time or 0.0 for time in median.parts.values()) == pytest.approx(1000.1)
    assert median.parts["the rest"] == pytest.approx(79.6, abs=0.01)


def test_parts_that_overlap_leave_no_rest_below_nothing(database: Database) -> None:
    keep(database, [ended(bare("acme", started_at=T0), 100.0, prompt_ms=90.0, generation_ms=90.0)])
    median = latency(database).median_call
    assert median is not None
    assert median.parts["the rest"] == 0.0


def test_the_newest_two_thousand_prompts_are_drawn(database: Database) -> None:
    rows = keep(database, believable("acme", 4000, until=T0, days=3))
    reported = [row for row in rows if row["finish_reason"] and row["prompt_ms"] is not None and row["prompt_tokens"]]
    newest = sorted(reported, key=lambda row: row["started_at"], reverse=True)[:MOST_POINTS]
    assert len(reported) > MOST_POINTS
    assert [one.started_at for one in latency(database).prompts] == [row["started_at"] for row in newest]


def prompt(*, tokens: int = 100, ms: float = 400.0, memory_tokens: int = 0, cached: bool | None = False) -> Prompt:
    return Prompt(
        started_at=T0,
        model="m",
        tokens=tokens,
        estimated_tokens=tokens,
        ms=ms,
        memory_tokens=memory_tokens,
        cached=cached,
    )


def test_what_a_block_costs_is_said_of_twenty_calls_and_not_of_fewer() -> None:
    enough = [prompt(memory_tokens=40)] * CALLS_FOR_A_COST
    cost = block_cost((*enough, prompt(ms=1.0, cached=True), prompt(ms=1.0, cached=None)))
    assert cost is not None
    assert (cost.ms_per_token, cost.block_tokens, cost.ms) == (4.0, 40, 160.0)
    assert (cost.uncached_prompts, cost.prompts_with_block) == (20, 20)
    assert block_cost(tuple(enough[1:])) is None
    assert block_cost((*enough[1:], prompt(memory_tokens=40, cached=True))) is None
    assert block_cost((*enough[1:], prompt())) is None


def test_headroom_counts_the_running_minute_and_the_busiest_ones(database: Database) -> None:
    def call(number: int, seconds_ago: float, tokens: int) -> Row:
        row = bare("acme", number=number, started_at=T0 - timedelta(seconds=seconds_ago))
        return ended(row, 1000.0, counted_tokens=tokens)

    keep(database, [call(1, 30, 700), call(2, 40, 800), call(3, 3600, 4000), call(4, 3601, 4000), call(5, 200, 50)])
    one_model = Selection(period=Period.DAY, models=frozenset({"another"}))
    headroom = latency(database, one_model, tokens_per_minute=8000).headroom
    assert (headroom.ceiling, headroom.counted_now, headroom.left_now) == (8000, 1500, 6500)
    busiest = {start: tokens for start, tokens in headroom.busiest.items() if tokens}
    assert busiest == {T0.replace(minute=0): 1500, T0.replace(hour=11, minute=0): 4000}
    assert latency(database, tokens_per_minute=1000).headroom.left_now == 0


def test_without_a_ceiling_there_is_no_headroom_to_tell_of(database: Database) -> None:
    keep(database, [bare("acme", started_at=T0)])
    headroom = latency(database).headroom
    assert (headroom.ceiling, headroom.left_now, headroom.busiest) == (None, None, {})
    assert headroom.counted_now == 2100


def test_models_of_the_period_are_named_whatever_is_selected(database: Database) -> None:
    keep(
        database,
        [
            bare("acme", number=1, started_at=T0, model="b"),
            bare("acme", number=2, started_at=T0, model="a"),
            bare("acme", number=3, started_at=T0 - timedelta(days=2), model="old"),
        ],
    )
    assert latency(database, Selection(models=frozenset({"b"}))).models == ("a", "b")


def test_a_hostile_name_of_a_model_is_a_value_and_nothing_more(database: Database) -> None:
    keep(database, [ended(bare("acme", started_at=T0), 5.0)])
    for hostile in ("' OR true --", "x'); DELETE FROM model_call; --", "%(org_id)s", "%s", ":model", "\\", "{}", "☃"):
        seen = latency(database, Selection(models=frozenset({hostile})))
        assert (seen.counts.calls, seen.measures.total.calls) == (0, 0)
    assert execute(database, "SELECT count(*) FROM model_call") == [(1,)]


def test_what_began_after_now_is_not_seen_yet(database: Database) -> None:
    keep(database, [ended(bare("acme", started_at=T0 + timedelta(seconds=1)), 5.0)])
    seen = latency(database)
    assert seen.counts.calls == 0
    assert seen.since == T0
    assert latency(database, now=T0 + timedelta(seconds=1)).counts.calls == 1


def test_asking_many_times_gets_the_same_answer(database: Database) -> None:
    keep(database, believable("acme", 500, until=T0, days=1))
    first = latency(database)
    assert all(latency(database) == first for _ in range(12))


def test_looking_writes_nothing(database: Database) -> None:
    keep(database, believable("acme", 50, until=T0, days=1))
    before = execute(database, "SELECT xmin::text, m::text FROM model_call AS m ORDER BY 2")
    latency(database)
    assert execute(database, "SELECT xmin::text, m::text FROM model_call AS m ORDER BY 2") == before


@given(st.timedeltas(timedelta(0), timedelta(days=700_000)), st.datetimes(datetime(1990, 1, 1), datetime(2990, 1, 1)))
def test_a_period_is_cut_into_few_stretches_that_cover_it(span: timedelta, until: datetime) -> None:
    width = bucket_width(span)
    now = until.replace(tzinfo=UTC)
    if span > now - datetime(2, 1, 1, tzinfo=UTC):
        return
    starts = bucket_starts(now - span, now, width=width)
    assert len(starts) <= MOST_BUCKETS + 2
    assert starts[0] <= now - span < starts[0] + width
    assert starts[-1] <= now < starts[-1] + width


def test_an_identifier_is_that_of_the_row(database: Database) -> None:
    row = ended(bare("acme", started_at=T0, run_id="r-7"), 5.0)
    keep(database, [row])
    median: Any = latency(database).median_call
    assert isinstance(median.call_id, UUID)
    assert (median.call_id, median.run_id, median.model) == (row["call_id"], "r-7", "qwen3:0.6b")
