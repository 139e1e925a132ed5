"""Which memories may leave the private network, to a model or an embedder outside it: the one place that decides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine

from memory_core.config import Settings
from memory_core.db import safeguards
from memory_core.db.engine import organisation_transaction
from memory_core.model import Kind
from memory_core.rights import Safeguards


@dataclass(frozen=True, kw_only=True)
class Leaving:
    """Whether what a model is sent leaves the private network, and who has let observations leave with it."""

    model_is_outside: bool
    allowed_by: str | None = None  # None: nobody has
    allowed_at: datetime | None = None

    @property
    def observations_stay(self) -> bool:
        """Say whether what is remembered about persons stands in no block that the model is sent."""
        return self.model_is_outside and self.allowed_by is None

    def kinds_that_may_leave(self, wanted: Iterable[Kind | str] | None = None) -> tuple[Kind, ...]:
        """Return which of some kinds, or of all, may stand in a block that the model is sent."""
        asked = set(Kind) if wanted is None else {Kind(str(kind)) for kind in wanted}
        return tuple(
            kind for kind in Kind if kind in asked and not (self.observations_stay and kind is Kind.OBSERVATION)
        )


EVERYTHING_MAY_BE_SENT = Leaving(model_is_outside=False)


def leaving_of(chosen: Safeguards, *, model_is_outside: bool) -> Leaving:
    """Return what an organisation's safeguards let leave."""
    if not chosen.observations_leave:
        return Leaving(model_is_outside=model_is_outside)
    by, at = chosen.observations_leave_by, chosen.observations_leave_at
    return Leaving(model_is_outside=model_is_outside, allowed_by=by, allowed_at=at)


def what_may_leave(engine: Engine, org_id: str, settings: Settings) -> Leaving:
    """Return what may be sent to the configured model now; raises a `DatabaseError`."""
    return to_outside(engine, org_id) if settings.model_is_outside else EVERYTHING_MAY_BE_SENT


def to_outside(engine: Engine, org_id: str) -> Leaving:
    """Return what may be sent to a model, or an embedder, that is outside; raises a `DatabaseError`."""
    with organisation_transaction(engine, org_id) as connection:
        return leaving_of(safeguards.safeguards(connection, org_id), model_is_outside=True)
