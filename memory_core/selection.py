"""Which recorded calls are looked at, as the address of a page says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from memory_core.config import Tier
from memory_core.identifiers import identifier_refusal

MOST_MODELS = 50  # in one address
MOST_COMPLAINTS = 5
LONGEST_COMPLAINT = 160


class Period(StrEnum):
    """How far back the calls began."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"
    EVERYTHING = "everything"

    @property
    def label(self) -> str:
        """Return the period in words."""
        return _LABELS[self]

    def since(self, now: datetime) -> datetime | None:
        """Return when the period begins; None is with the first call."""
        span = _SPANS[self]
        return None if span is None else now - span


_LABELS = {
    Period.HOUR: "last hour",
    Period.DAY: "24 hours",
    Period.WEEK: "7 days",
    Period.MONTH: "30 days",
    Period.EVERYTHING: "everything",
}
_SPANS = {
    Period.HOUR: timedelta(hours=1),
    Period.DAY: timedelta(hours=24),
    Period.WEEK: timedelta(days=7),
    Period.MONTH: timedelta(days=30),
    Period.EVERYTHING: None,
}


class Loading(StrEnum):
    """Whether the model had to be loaded first."""

    COLD = "cold"
    WARM = "warm"
    NOT_REPORTED = "not-reported"


class Outcome(StrEnum):
    """What became of a call."""

    ANSWERED = "answered"
    FAILED = "failed"
    OPEN = "open"  # running, or its process was killed


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which calls to look at; what names nothing selects all."""

    period: Period = Period.DAY
    models: frozenset[str] = field(default_factory=frozenset)
    tiers: frozenset[Tier] = field(default_factory=frozenset)
    loading: frozenset[Loading] = field(default_factory=frozenset)
    outcomes: frozenset[Outcome] = field(default_factory=frozenset)

    def takes(self, *, model: str, tier: Tier, loading: Loading, outcome: Outcome) -> bool:
        """Say whether a call of this kind is selected, whenever it began."""
        return (
            (not self.models or model in self.models)
            and (not self.tiers or tier in self.tiers)
            and (not self.loading or loading in self.loading)
            and (not self.outcomes or outcome in self.outcomes)
        )

    def address(self) -> dict[str, list[str]]:
        """Write the selection as query parameters; what is as usual is left out."""
        written: dict[str, list[str]] = {} if self.period is Period.DAY else {"period": [self.period.value]}
        for name, chosen in (
            ("model", self.models),
            ("tier", self.tiers),
            ("loading", self.loading),
            ("outcome", self.outcomes),
        ):
            if chosen:
                written[name] = sorted(str(one) for one in chosen)
        return written


@dataclass(frozen=True, kw_only=True)
class Read:
    """A selection as read from an address, and what of the address was ignored."""

    selection: Selection
    ignored: tuple[str, ...] = ()


def read_address(parameters: Mapping[str, Sequence[str]]) -> Read:
    """Read a selection from query parameters; whatever is unknown is ignored and reported, and never an error."""
    ignored: list[str] = []

    def known(name: str, values: type[Period | Tier | Loading | Outcome]) -> list[str]:
        found = []
        for text in parameters.get(name, ()):
            if text in list(values):
                found.append(text)
            else:
                ignored.append(f"{name}={text}")
        return found

    periods = known("period", Period)
    ignored += [f"period={text}" for text in periods[1:]]
    models: list[str] = []
    for text in dict.fromkeys(parameters.get("model", ())):
        fits = identifier_refusal(text, field="model") is None and len(models) < MOST_MODELS
        (models if fits else ignored).append(text if fits else f"model={text}")
    selection = Selection(
        period=Period(periods[0]) if periods else Period.DAY,
        models=frozenset(models),
        tiers=frozenset(map(Tier, known("tier", Tier))),
        loading=frozenset(map(Loading, known("loading", Loading))),
        outcomes=frozenset(map(Outcome, known("outcome", Outcome))),
    )
    names = ("period", "model", "tier", "loading", "outcome")
    ignored += [f"{name}={text}" for name, texts in parameters.items() if name not in names for text in texts or [""]]
    return Read(selection=selection, ignored=_in_short(ignored))


def _in_short(complaints: list[str]) -> tuple[str, ...]:
    shown = [
        one if len(one) <= LONGEST_COMPLAINT else f"{one[:LONGEST_COMPLAINT]}…" for one in complaints[:MOST_COMPLAINTS]
    ]
    more = len(complaints) - len(shown)
    return (*shown, *([f"and {more:,} more"] if more else []))
