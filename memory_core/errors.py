"""Every error this package raises, as one tree.

MemoryCoreError
├── Refused                    a rule said no; nothing was stored
│   ├── LineRefused            … to a line of a file
│   ├── OnHold                 a legal hold keeps the subject's memories
│   ├── ChangedMeanwhile       somebody else was first; look again
│   ├── Forbidden              whoever asks has no role that may do it
│   ├── NotOffered             nobody may call it through a workplace
│   └── AwaitingSecond         a second officer has to agree first
├── SettingsError              an environment variable cannot be used as it is
├── DatabaseError              the database cannot serve
│   ├── DatabaseUnavailable    down, or the connection was lost             (retryable)
│   ├── DatabaseBusy           deadlock, lock timeout or serialisation      (retryable)
│   ├── DatabaseReadOnly       a standby, or switched to read only
│   ├── NotMigrated            its schema is at another revision
│   ├── NoVectorExtension      pgvector is missing or too old
│   ├── UnsafeRole             the role is not fit to be the application's
│   └── Restored               it was restored from a backup, and what was erased since is back
├── LedgerUnusable             the ledger outside the database cannot be read or written
├── EmbeddedServerError        the embedded PostgreSQL cannot be started
├── EmbedderError              no vector could be made
│   ├── EmbedderUnavailable    unreachable, or failing on its side          (retryable)
│   ├── EmbedderTimeout        no answer within the time limit              (retryable)
│   └── BadVector              a vector of the wrong length, or not finite
└── GatewayError               no answer from the chat model; `code` is what its record says
    ├── ModelNotConfigured     gateway.not_configured: MODEL_API_KEY is empty
    ├── InvalidRequest         gateway.invalid_request: the same request will never be served
    ├── Unauthorized           gateway.unauthorized: the key is not accepted
    ├── NotNow                 trying again can help                        (retryable)
    │   ├── RateLimited        gateway.rate_limited: too many tokens or requests
    │   ├── ModelBusy          gateway.busy: the queue is full
    │   └── ModelUnavailable   gateway.unavailable: unreachable, failing, or cut short
    ├── DeadlineExceeded       gateway.deadline: not whole within the time allowed
    └── CallCancelled          gateway.cancelled: the caller gave up

`retryable` says whether trying the same call again can help.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path


class MemoryCoreError(Exception):
    """Something this package could not do."""

    retryable = False


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A rule's no: the rule's name, the field it is about, and one line that says what to do."""

    rule: str
    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason} (rule {self.rule})"


class Refused(MemoryCoreError):
    """A rule said no; nothing was stored.

    `position` is the place in a bulk call (from 0), or None for a single act.
    """

    def __init__(self, refusal: Refusal, *, position: int | None = None) -> None:
        self.refusal = refusal
        self.rule = refusal.rule
        self.field = refusal.field
        self.reason = refusal.reason
        self.position = position
        where = "" if position is None else f"item {position + 1}: "
        super().__init__(f"{where}{refusal}")


class LineRefused(Refused):
    """A rule said no to a line of a file; `line` counts from 1, `others` says how many more lines are bad."""

    def __init__(self, refusal: Refusal, *, line: int, others: int = 0) -> None:
        super().__init__(refusal)
        self.line = line
        self.others = others

    def __str__(self) -> str:
        more = f"; {self.others} more bad line{'s' if self.others > 1 else ''}" if self.others else ""
        return f"line {self.line}: {self.refusal}{more}; nothing was stored"


class OnHold(Refused):
    """A legal hold keeps the subject's memories; `holds` names each one."""

    def __init__(self, holds: tuple[str, ...]) -> None:
        self.holds = holds
        super().__init__(
            Refusal(
                rule="nothing_on_hold_is_forgotten",
                field="subject",
                reason=f"on hold by {', '.join(holds)}: nothing was forgotten. Lift the hold first.",
            )
        )


class ChangedMeanwhile(Refused):
    """Somebody else changed it since it was looked at; nothing was done."""

    def __init__(self, *, field: str, reason: str) -> None:
        super().__init__(Refusal(rule="it_is_as_it_was_looked_at", field=field, reason=reason))


class Forbidden(Refused):
    """Whoever asks is no member of the organisation, or has no role that may do this; nothing was done or shown.

    `barred` are roles of theirs that may not, whatever else they are.
    """

    def __init__(self, act: str, *, needed: tuple[str, ...] = (), barred: tuple[str, ...] = ()) -> None:
        self.act = act
        self.needed = needed
        who = f"the role {' or '.join(needed)}" if needed else "a membership"
        reason = f"to {act} needs {who} in this organisation; an admin of it can add you"
        if barred:
            reason = (
                f"to {act} is not for whoever is {' or '.join(barred)}, whatever else they are; somebody else has to"
            )
        super().__init__(Refusal(rule="act_is_for_its_roles", field="role", reason=reason))


class NotOffered(Refused):
    """What is asked for cannot be called through a workplace by anybody, or not so; nothing was done or shown."""

    def __init__(self, what: str) -> None:
        reason = f"{what} is nothing that a workplace offers; see the tables in memory_core/workplace.py"
        super().__init__(Refusal(rule="workplace_offers_it", field="call", reason=reason))


class AwaitingSecond(Refused):
    """A second data protection officer has to agree first; nothing was done but to ask for it."""

    def __init__(self, act: str, *, since: str, until: str, declined: str | None = None) -> None:
        self.act = act
        self.since = since
        self.until = until
        self.declined = declined  # by whom and when, where this was asked for before
        before = f"declined by {declined}, and now asked for anew" if declined else f"asked for on {since}"
        super().__init__(
            Refusal(
                rule="four_eyes_agree",
                field="second officer",
                reason=f"to {act} needs another data protection officer's agreement: {before}, open until "
                f"{until}. Do the same again once it is given",
            )
        )


class SettingsError(MemoryCoreError):
    """An environment variable cannot be used as it is."""


class DatabaseError(MemoryCoreError):
    """The database cannot serve."""


class DatabaseUnavailable(DatabaseError):
    """The database is down, or the connection to it was lost."""

    retryable = True


class DatabaseBusy(DatabaseError):
    """The database gave up on a lock, a deadlock or a serialisation conflict."""

    retryable = True


class DatabaseReadOnly(DatabaseError):
    """The database takes no writes, and every recall must record what it disclosed."""


class NotMigrated(DatabaseError):
    """The database's schema is at another revision than this code."""


class NoVectorExtension(DatabaseError):
    """pgvector is missing or older than 0.8.4."""


class UnsafeRole(DatabaseError):
    """The database role is not fit: it could bypass row level security, or lacks a right that the migration grants."""


class Restored(DatabaseError):
    """The database lacks what its ledger outside has: it was restored from a backup. Nothing is recalled from it.

    `missing` counts the entries, `ledger` is the file to replay.
    """

    def __init__(self, org_id: str, *, missing: int, ledger: Path) -> None:
        self.missing = missing
        self.ledger = ledger
        super().__init__(
            f"the database was restored from a backup: {missing} {'entry' if missing == 1 else 'entries'} of the ledger of "
            f"{org_id} {'is' if missing == 1 else 'are'} not in it, so erased memories may be back and nothing is recalled; "
            f"run: python -m memory_core replay-erasures {shlex.quote(str(ledger))}"
        )


class LedgerUnusable(MemoryCoreError):
    """The ledger outside the database cannot be read or written; what the database holds is not touched by that."""

    def __init__(self, ledger: Path, why: str) -> None:
        self.ledger = ledger
        super().__init__(f"the ledger {ledger} cannot be used: {why}; see MEMORY_LEDGER")


class EmbeddedServerError(MemoryCoreError):
    """The embedded PostgreSQL cannot be started."""


class EmbedderError(MemoryCoreError):
    """No vector could be made."""


class EmbedderUnavailable(EmbedderError):
    """The embedder is unreachable, or failed on its side."""

    retryable = True


class EmbedderTimeout(EmbedderError):
    """The embedder did not answer within its time limit."""

    retryable = True


class BadVector(EmbedderError):
    """The embedder answered with a vector of the wrong length, or one that is not finite."""


class GatewayError(MemoryCoreError):
    """The chat model gave no answer; `code` names the kind, as the call's record does."""

    code: str


class ModelNotConfigured(GatewayError):
    """No chat model is configured."""

    code = "gateway.not_configured"

    def __init__(self) -> None:
        super().__init__(
            "no chat model is configured: set MODEL_API_KEY (any non-empty text serves Ollama), then: "
            "python -m memory_core doctor"
        )


class InvalidRequest(GatewayError):
    """The request cannot be served as it is, now or later."""

    code = "gateway.invalid_request"


class Unauthorized(GatewayError):
    """The server does not accept MODEL_API_KEY, or does not let it use this model."""

    code = "gateway.unauthorized"


class NotNow(GatewayError):
    """Trying again can help; `retry_after_s` says when, in seconds, where that is known.

    `was_sent` is False where it is certain that nothing reached a server.
    """

    retryable = True

    def __init__(self, message: str, *, retry_after_s: float | None = None, was_sent: bool = True) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.was_sent = was_sent


class RateLimited(NotNow):
    """Too many tokens or requests for now."""

    code = "gateway.rate_limited"


class ModelBusy(NotNow):
    """As many calls wait for the model as may wait."""

    code = "gateway.busy"


class ModelUnavailable(NotNow):
    """The server cannot be reached, failed on its side, or ended its answer before the end."""

    code = "gateway.unavailable"


class DeadlineExceeded(GatewayError):
    """The answer was not whole within the time allowed, waiting included."""

    code = "gateway.deadline"


class CallCancelled(GatewayError):
    """The caller gave up on the call."""

    code = "gateway.cancelled"
