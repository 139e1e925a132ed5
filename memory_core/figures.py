"""What recorded calls to a chat model come to: times, counts, and what is left under the ceiling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID


@dataclass(frozen=True, kw_only=True)
class Percentiles:
    """Nearest-rank percentiles in milliseconds: each is the time of one call. None: of no call, p99 also of too few."""

    calls: int  # of which this time was reported
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


@dataclass(frozen=True, kw_only=True)
class Measures:
    """The percentiles of answered calls."""

    total: Percentiles
    first_token: Percentiles
    per_output_token: Percentiles


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """A stretch of time, and the calls that began in it."""

    start: datetime
    measures: Measures


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many calls are selected, by what became of them."""

    answered: int
    failed: int
    open: int
    overdue: int  # of the open ones: their deadline is past, so their process was killed
    by_error: Mapping[str, int]  # most frequent first

    @property
    def calls(self) -> int:
        """Return how many there are in all."""
        return self.answered + self.failed + self.open

    @property
    def failed_share(self) -> float | None:
        """Return how much of what ended failed, from 0 to 1; None when nothing ended."""
        ended = self.answered + self.failed
        return self.failed / ended if ended else None


@dataclass(frozen=True, kw_only=True)
class MedianCall:
    """One real call whose total is the median; None where a part was not reported."""

    call_id: UUID
    run_id: str
    model: str
    started_at: datetime
    total_ms: float
    queue_ms: float | None
    load_ms: float | None
    prompt_ms: float | None
    generation_ms: float | None

    @property
    def parts(self) -> dict[str, float | None]:
        """Return the parts of the call in their order; the last is what none of the reported ones explains."""
        reported = {
            "queue": self.queue_ms,
            "load": self.load_ms,
            "prompt": self.prompt_ms,
            "generation": self.generation_ms,
        }
        return reported | {"the rest": max(0.0, self.total_ms - sum(filter(None, reported.values())))}


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """The prompt of one call: how large it was, and how long the model took to read it."""

    started_at: datetime
    model: str
    tokens: int
    estimated_tokens: int  # by our own count, as the memory blocks are counted
    ms: float
    memory_tokens: int  # of memory blocks within it, by our own count
    cached: bool | None  # the server had most of it; None is not reported


@dataclass(frozen=True, kw_only=True)
class BlockCost:
    """What a memory block costs in time to read the prompt: two medians, multiplied."""

    ms_per_token: float
    uncached_prompts: int  # from which that is
    block_tokens: int
    prompts_with_block: int  # from which that is

    @property
    def ms(self) -> float:
        """Return the cost of the block."""
        return self.ms_per_token * self.block_tokens


@dataclass(frozen=True, kw_only=True)
class Headroom:
    """What is left under the ceiling of tokens a minute, for the whole organisation."""

    ceiling: int | None  # None: none is kept
    counted_now: int
    busiest: Mapping[datetime, int]  # tokens of the busiest minute in each stretch of time; empty without a ceiling

    @property
    def left_now(self) -> int | None:
        """Return how many tokens still fit, at least 0."""
        return None if self.ceiling is None else max(0, self.ceiling - self.counted_now)


@dataclass(frozen=True, kw_only=True)
class Latency:
    """What the recorded calls of an organisation say, as a selection of them."""

    at: datetime
    since: datetime  # where the period begins
    last_at: datetime | None  # of all recorded calls; None: there is none
    models: tuple[str, ...]  # called in the period, whatever is selected
    counts: Counts
    measures: Measures
    bucket_width: timedelta
    over_time: tuple[Bucket, ...]  # without a gap
    median_call: MedianCall | None
    prompts: tuple[Prompt, ...]  # the newest, newest first
    block_cost: BlockCost | None  # None: of too few calls
    headroom: Headroom
