"""The store: remember, recall, held, forget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from sqlalchemy import URL, Connection, Engine

from memory_core.backlog import Embedded, Progress, embed_backlog, repin
from memory_core.characters import has_surrogate
from memory_core.config import Settings
from memory_core.config import settings as read_settings
from memory_core.db import agent_runs, database, held, organisations, trail
from memory_core.db.engine import organisation_transaction, transaction
from memory_core.embedders import BATCH_LIMIT_S, Embedder
from memory_core.embedding import Choice, Unserved, by_name, configured, given
from memory_core.erasing import erase
from memory_core.errors import MemoryCoreError, Refusal, Refused
from memory_core.finding import found_subjects
from memory_core.identifiers import identifier_refusal
from memory_core.leaving import Leaving, what_may_leave
from memory_core.model import (
    Block,
    Erasure,
    FoundSubject,
    Held,
    Kind,
    Memory,
    Origin,
    Overview,
    Purpose,
    Ranking,
    Recall,
    Subject,
    subject_of,
)
from memory_core.overview import in_figures
from memory_core.prompt.fence import DrawBoundary, random_boundary
from memory_core.recalling import Recaller
from memory_core.restoring import RestoreWatch
from memory_core.rules.admission import Draft
from memory_core.rules.request import recall_request
from memory_core.showing import shown_again
from memory_core.writing import write

WRITE_EMBEDDING_LIMIT_S = 2.0  # a single write waits no longer for its vector; the backlog makes it later


UNNAMED = "unnamed"  # who looks, where the caller does not say


class FromSettings:
    """The default of `MemoryStore.open(embedder=…)`: what MEMORY_EMBEDDER says."""


class MemoryStore:
    """One organisation's memories. Thread-safe; open one with `MemoryStore.open`."""

    def __init__(
        self,
        org_id: str,
        engine: Engine,
        *,
        choose: Choice,
        settings: Settings,
        clock: Callable[[], datetime] | None = None,
        draw_boundary: DrawBoundary = random_boundary,
    ) -> None:
        refused = identifier_refusal(org_id, field="org_id")
        if refused:
            raise Refused(refused)
        self.org_id = org_id
        self._engine = engine
        self._choose = choose
        self._settings = settings
        self._clock = clock
        self._watch = RestoreWatch(org_id, settings.ledger_folder)
        self._recaller = Recaller(
            engine,
            org_id,
            choose=choose,
            clock=clock,
            draw_boundary=draw_boundary,
            watch=self._watch,
        )

    @classmethod
    def open(
        cls,
        org_id: str,
        *,
        database_url: str | URL | None = None,
        embedder: Embedder | type[FromSettings] | None = FromSettings,
        clock: Callable[[], datetime] | None = None,
        settings: Settings | None = None,
        draw_boundary: DrawBoundary = random_boundary,
    ) -> MemoryStore:
        """Open an organisation's store on the embedded database, DATABASE_URL or `database_url`.

        `embedder=None` means none. `clock` returns an aware datetime; without one the database's clock decides.
        Raises `Refused` for an organisation that is no identifier, else a `DatabaseError`, `EmbeddedServerError` or
        `SettingsError` with what to do.
        """
        refused = identifier_refusal(org_id, field="org_id")
        if refused:
            raise Refused(refused)
        settings = settings or read_settings()
        engine = database.usable_engine(settings, database_url=database_url)
        if embedder is FromSettings:
            choose = configured(settings)
        elif isinstance(embedder, type):
            raise Refused(
                Refusal(rule="embedder_is_an_object", field="embedder", reason="is a class; give an object of it")
            )
        else:
            choose = given(embedder)
        return cls(org_id, engine, choose=choose, settings=settings, clock=clock, draw_boundary=draw_boundary)

    @staticmethod
    def organisations(*, settings: Settings | None = None) -> list[str]:
        """Return the ids of every organisation in the database."""
        with transaction(database.usable_engine(settings or read_settings())) as connection:
            return organisations.listed(connection)

    def close(self) -> None:
        """Let go of the store; the process's connections stay for the next one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Writing

    def remember(
        self,
        text: str,
        *,
        kind: Kind | str,
        origin: Origin | str,
        author: str,
        run_id: str,
        subject: Subject | None = None,
        source: str | None = None,
        created_at: datetime | None = None,
        expires_at: datetime | None = None,
        commit_if: Callable[[], bool] | None = None,
    ) -> Memory:
        """Store one memory and return it; an exact repeat refreshes the memory it repeats.

        `commit_if` is asked at the very end, by a run under way. Where it says no, or something that the run was shown or wrote
        is erased, swept or restricted by then, nothing is stored, and that is `Refused`.
        Raises `Refused` naming the rule and the field. Without an embedder it is stored all the same, and embedded later.
        """
        draft = Draft(
            text=text,
            kind=kind,
            origin=origin,
            author=author,
            run_id=run_id,
            subject=subject,
            source=source,
            created_at=created_at,
            expires_at=expires_at,
        )
        (stored,) = self._embedded(
            self._write([draft], bulk=False, commit_if=commit_if), limit_s=WRITE_EMBEDDING_LIMIT_S
        )
        return stored

    def remember_many(
        self, items: Iterable[Draft | Mapping[str, Any]], *, progress: Progress | None = None
    ) -> list[Memory]:
        """Store many memories, all or none, and return one per item in order.

        Each item is a `Draft` or a mapping of `remember`'s arguments, text included. Raises `Refused` with the `position`
        of the first item that may not be stored. `progress` is told of the embedding: done, of how many.
        """
        if not isinstance(items, Iterable) or isinstance(items, str | bytes | Mapping):
            raise Refused(Refusal(rule="items_are_many", field="items", reason="must be a list of mappings or drafts"))
        drafts = [_draft(item, position) for position, item in enumerate(items)]
        return self._embedded(self._write(drafts, bulk=True), limit_s=BATCH_LIMIT_S, progress=progress)

    def embed(
        self, *, model: str | None = None, among: Sequence[UUID] | None = None, progress: Progress | None = None
    ) -> Embedded:
        """Embed every live memory, or each of `among`, that has no vector by the organisation's model.

        With `model` (`minilm` or `ollama:<model>`) change to that model first. Raises an `EmbedderError`, `Refused` for a name
        that is no model, or a `DatabaseError`; what was embedded by then stays.
        """
        with organisation_transaction(self._engine, self.org_id) as connection:
            self._watch.require_sound_as_far_as_known(connection)
        choose = self._choose
        if model is not None:
            embedder = by_name(model, self._settings) if isinstance(model, str) else Unserved(reason="no name")
            if isinstance(embedder, Unserved):
                reason = f"{str(model)[:128]!r} is no embedder; use minilm or ollama:<model>"
                raise Refused(Refusal(rule="model_is_known", field="model", reason=reason))
            repin(self._engine, self.org_id, embedder)
            choose = given(embedder)
        return embed_backlog(self._engine, self.org_id, choose, clock=self._clock, among=among, progress=progress)

    def _write(self, drafts: list[Draft], *, bulk: bool, commit_if: Callable[[], bool] | None = None) -> list[Memory]:
        def refused(position: int, refusal: Refusal) -> None:
            raise Refused(refusal, position=position if bulk else None)

        with organisation_transaction(self._engine, self.org_id) as connection:
            self._watch.require_sound_as_far_as_known(
                connection
            )  # it may be about somebody whose erasure this database does not know
            stored = write(connection, self.org_id, drafts, clock=self._clock, refused=refused).memories
            if commit_if is not None:
                self._require_wanted(connection, drafts, commit_if)
            return stored

    def _require_wanted(self, connection: Connection, drafts: list[Draft], commit_if: Callable[[], bool]) -> None:
        # Under the lock that an erasure waits for, and on the connection that has it: another one might have to be waited for.
        runs = {str(draft.run_id) for draft in drafts}
        if not commit_if() or any(agent_runs.withdrawn(connection, self.org_id, run_id) for run_id in runs):
            reason = "was not kept: the call is over, or something it was shown was erased"
            raise Refused(Refusal(rule="somebody_waits_for_it", field="memory", reason=reason))

    def _embedded(self, stored: list[Memory], *, limit_s: float, progress: Progress | None = None) -> list[Memory]:
        waiting = {memory.memory_id for memory in stored if memory.embedding_model is None}
        if not waiting or self._choose.is_none:
            return stored
        try:
            embedded = embed_backlog(
                self._engine,
                self.org_id,
                self._choose,
                clock=self._clock,
                among=sorted(waiting),
                limit_s=limit_s,
                progress=progress,
            )
        except MemoryCoreError:
            # Nothing is lost: `embed` makes the vectors later, and every recall says how many are missing.
            return stored
        if embedded.count < len(waiting):  # some were erased meanwhile
            return stored
        return [
            replace(memory, embedding_model=embedded.model) if memory.memory_id in waiting else memory
            for memory in stored
        ]

    # Reading

    def recall(
        self,
        query: str,
        *,
        run_id: str,
        limit: int = 5,
        token_budget: int | None = None,
        kinds: Iterable[Kind | str] | None = None,
        subject: Subject | None = None,
        ranking: Ranking | str | None = None,
        purpose: Purpose | str = Purpose.RUN,
        by: str | None = None,
        because: str | None = None,
    ) -> Recall:
        """Fetch the few memories worth showing now, as the block a model sees, and record what was shown.

        `limit` is 1 to 50; `token_budget` bounds the whole block in estimated tokens. `by` and `because` say of a preview
        who looks and why. Never waits more than two seconds for an embedder: then it is recency, and says so. Raises
        `Refused` or a `DatabaseError`.
        """
        request = recall_request(
            query,
            run_id=run_id,
            limit=limit,
            token_budget=token_budget,
            kinds=kinds,
            subject=subject,
            ranking=ranking,
            purpose=purpose,
            by=by,
            because=because,
        )
        if isinstance(request, Refusal):
            raise Refused(request)
        return self._recaller.recall(request)

    def shown(self, recall_id: UUID, *, by: str = UNNAMED) -> Block | None:
        """Return the block that a recall showed, rebuilt from its disclosures; None where it showed none.

        The look is a line of the trail: `by` is who looks. The text is exactly what was shown while its memories have their
        text; what was erased since stands as that.
        """
        folder, clock = self._settings.ledger_folder, self._clock
        return shown_again(self._engine, self.org_id, recall_id, by=by, folder=folder, clock=clock)

    def may_leave(self) -> Leaving:
        """Return which memories may be sent to the configured model now, which may be outside the private network."""
        return what_may_leave(self._engine, self.org_id, self._settings)

    def withdrawn(self, run_id: str, *, written: Sequence[UUID] = (), kinds: Iterable[Kind | str] | None = None) -> int:
        """Count the memories that a run was shown, or wrote, that may be shown to it no more, each once.

        Those have been erased, swept or restricted since; or it was shown them, and they are of none of the `kinds` that it may
        be shown now, which are all of them unless given.
        """
        if refused := identifier_refusal(run_id, field="run_id"):
            raise Refused(refused)
        left = tuple(Kind if kinds is None else (Kind(str(kind)) for kind in kinds))
        with organisation_transaction(self._engine, self.org_id) as connection:
            return agent_runs.withdrawn(connection, self.org_id, run_id, written=written, kinds=left)

    def held(self, subject: Subject, *, by: str = UNNAMED) -> Held:
        """Return everything held about a subject, with no page limit, and everybody it was shown to.

        The look is a line of the trail: `by` is who looks.
        """
        if refused := identifier_refusal(by, field="by"):
            raise Refused(refused)
        about, now = subject_of(subject), self._clock() if self._clock else None
        with organisation_transaction(self._engine, self.org_id) as connection:
            at, known, found = held.held(connection, self.org_id, about, now=now)
            trail.record(connection, self.org_id, by=by, act="look", subject=about, count=len(found), now=now)
        return Held(subject=known, at=at, memories=tuple(found))

    def find_subjects(self, typed: str, *, limit: int = 50) -> list[FoundSubject]:
        """Return the subjects that answer what was typed, an exact id first; also those of whom only tombstones are left."""
        if not isinstance(typed, str):
            raise Refused(Refusal(rule="name_is_text", field="typed", reason="must be a string"))
        wanted = typed.strip()[:200]
        if not wanted or "\x00" in wanted or has_surrogate(wanted):
            return []
        with organisation_transaction(self._engine, self.org_id) as connection:
            return found_subjects(connection, self.org_id, wanted, limit=limit)

    def overview(self) -> Overview:
        """Return in figures what the organisation holds now."""
        with organisation_transaction(self._engine, self.org_id) as connection:
            return in_figures(connection, self.org_id, now=self._now(connection))

    # Erasing

    def forget(self, subject: Subject, *, by: str, reason: str) -> Erasure:
        """Erase what is held about a subject, leaving tombstones; nothing held is 0 and no error.

        Raises `OnHold` naming each hold if any of its memories is on hold: then all are left.
        """
        return erase(
            self._engine,
            self.org_id,
            subject_of(subject),
            by=by,
            reason=reason,
            folder=self._settings.ledger_folder,
            clock=self._clock,
        )

    def _now(self, connection: Connection) -> datetime:
        return self._clock() if self._clock else organisations.moment(connection)


def _draft(item: object, position: int) -> Draft:
    if isinstance(item, Draft):
        return item
    if not isinstance(item, Mapping):
        reason = f"must be a mapping of a memory's fields, not a {type(item).__name__}"
        raise Refused(Refusal(rule="item_is_a_mapping", field="item", reason=reason), position=position)
    try:
        return Draft.from_mapping(item)
    except Refused as refused:
        raise Refused(refused.refusal, position=position) from None
