"""Import and export: all of a file or nothing of it, each bad line by its number and its rule."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from conftest import SHARED, Database, connect
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy import URL, Engine

from memory_core import HeldMemory, Memory, MemoryStore, Subject
from memory_core.characters import is_blank
from memory_core.config import settings
from memory_core.db import embedded
from memory_core.db.engine import engine_for
from memory_core.errors import LineRefused, Refused
from memory_core.interchange import (
    MAX_LINE_BYTES,
    Fault,
    Imported,
    Line,
    export_lines,
    import_lines,
    left_out,
    read_lines,
)

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
TURNS = SHARED / "data" / "locomo" / "locomo-turns.dev.jsonl"
TABLES = ("organisation", "organisation_setting", "memory", "directory", "recall", "disclosure", "erasure")
ABOUT = Subject("candidate", "c-81")
Clock = Callable[[], datetime]


def at(moment: datetime) -> Clock:
    return lambda: moment


@pytest.fixture(scope="module")
def superuser(standing: Database) -> URL:
    """One migrated database, in which every test has an organisation of its own."""
    return standing.superuser


class Desk:
    """Organisations of one test's own, in a database that others use as well."""

    def __init__(self, application: URL, superuser: URL) -> None:
        self.org_id = uuid4().hex
        self.application = application
        self.superuser = superuser

    @property
    def engine(self) -> Engine:
        return engine_for(self.application)

    def store(self, org_id: str | None = None, *, clock: Clock | None = None) -> MemoryStore:
        chosen = settings(memory_embedder="none")
        return MemoryStore.open(
            org_id or self.org_id, database_url=self.application, embedder=None, settings=chosen, clock=clock
        )

    def load(self, file: bytes, *, org_id: str | None = None, clock: Clock | None = None, **options: Any) -> Imported:
        return import_lines(self.engine, read_lines(io.BytesIO(file), org_id=org_id), clock=clock or at(NOW), **options)

    def dump(self, org_id: str | None = None, *, clock: Clock | None = None) -> list[str]:
        return list(export_lines(self.engine, org_id or self.org_id, clock=clock or at(NOW)))

    def counts(self) -> dict[str, int]:
        """All rows of all organisations."""
        with connect(self.superuser) as connection:
            return {
                table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # type: ignore[index]
                for table in TABLES
            }

    def texts(self, org_id: str | None = None) -> list[str]:
        query = "SELECT text FROM memory WHERE org_id = %s AND text IS NOT NULL ORDER BY text"
        with connect(self.superuser) as connection:
            return [text for (text,) in connection.execute(query, (org_id or self.org_id,))]

    def change(self, assignment: str, memory: Memory) -> None:
        with connect(self.superuser) as connection:
            connection.execute(f"UPDATE memory SET {assignment} WHERE memory_id = %s", (memory.memory_id,))


@pytest.fixture
def desk(cluster: embedded.Cluster, superuser: URL) -> Desk:
    return Desk(cluster.application.set(database=superuser.database), superuser)


def fields(desk: Desk, **other: Any) -> dict[str, Any]:
    own = {
        "org_id": desk.org_id,
        "kind": "observation",
        "subject": {"type": "candidate", "id": "c-81", "label": "Ana Pérez", "aliases": ["ana@example.org"]},
        "text": "Could start in March.",
        "origin": "inference",
        "author": "agent:screening",
        "run_id": "r-812",
        "source": "m-1,m-2",
        "created_at": "2026-11-02T10:00:00+01:00",
        "expires_at": "2027-01-02T10:00:00Z",
    }
    return {name: value for name, value in (own | other).items() if value is not ...}


def line(desk: Desk, **other: Any) -> bytes:
    return json.dumps(fields(desk, **other), ensure_ascii=False).encode() + b"\n"


def numbered(desk: Desk, count: int) -> list[bytes]:
    return [line(desk, text=f"Note {number} of the day.") for number in range(1, count + 1)]


# Good lines


def test_every_field_of_a_line_is_stored(desk: Desk) -> None:
    done = desk.load(line(desk))
    (stored,) = done.organisations[desk.org_id].memories
    held = desk.store(clock=at(NOW)).held(ABOUT)
    (memory,) = held.memories
    assert stored.memory_id == memory.memory_id
    assert (memory.kind, memory.origin, memory.author) == ("observation", "inference", "agent:screening")
    assert (memory.text, memory.run_id, memory.source) == ("Could start in March.", "r-812", "m-1,m-2")
    assert memory.created_at == datetime(2026, 11, 2, 9, tzinfo=UTC)
    assert memory.expires_at == datetime(2027, 1, 2, 10, tzinfo=UTC)
    assert (held.subject.label, held.subject.aliases) == ("Ana Pérez", ("ana@example.org",))


def test_a_line_needs_no_more_than_what_the_rules_need(desk: Desk) -> None:
    bare = fields(desk, source=..., created_at=..., expires_at=..., subject={"type": "candidate", "id": "c-81"})
    (memory,) = desk.load(json.dumps(bare).encode()).organisations[desk.org_id].memories
    assert (memory.created_at, memory.expires_at - memory.created_at) == (NOW, timedelta(days=90))
    fact = fields(desk, kind="fact", subject=None, source=None, created_at=None, expires_at=None)
    (memory,) = desk.load(json.dumps(fact).encode()).organisations[desk.org_id].memories
    assert (memory.subject, memory.source) == (None, None)


@pytest.mark.parametrize(
    "around",
    [
        lambda one: b"\xef\xbb\xbf" + one,
        lambda one: one.rstrip(b"\n"),
        lambda one: one.replace(b"\n", b"\r\n"),
        lambda one: b"\n\n  \t\n" + one + b"\n \n",
        lambda one: b"  " + one.rstrip(b"\n") + b"  \n",
        lambda one: json.dumps(json.loads(one), ensure_ascii=True).encode(),
    ],
    ids=["a byte order mark", "no newline at the end", "CRLF", "blank lines", "white space around", "escapes"],
)
def test_what_editors_do_to_a_file_is_no_fault(around: Callable[[bytes], bytes], desk: Desk) -> None:
    done = desk.load(around(line(desk, text="Größe 🙂\u2028 5²")))
    assert done.faults == ()
    assert desk.texts() == ["Größe 🙂\u2028 5²"]


def test_a_blank_line_is_passed_over_and_counted(desk: Desk) -> None:
    read = list(read_lines(io.BytesIO(b"\n" + line(desk) + b"\n\n" + line(desk)), org_id=None))
    assert [one.number for one in read] == [2, 5]


def test_progress_is_told_of_every_line(desk: Desk) -> None:
    told: list[int] = []
    file = io.BytesIO(line(desk) + b"\n" + b"broken\n" + line(desk))
    list(read_lines(file, org_id=None, progress=told.append))
    assert told == [1, 2, 3, 4]


def test_a_file_is_read_line_by_line_and_not_at_once(desk: Desk) -> None:
    class Endless(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise AssertionError("read as a whole")

    lines = read_lines(Endless(line(desk) * 3), org_id=None)
    assert isinstance(next(lines), Line)


# Bad lines

RULES: dict[str, tuple[Callable[[Desk], bytes], str, str]] = {
    "no JSON": (lambda desk: b"{broken\n", "line_is_json", "line"),
    "cut short": (lambda desk: line(desk)[:40] + b"\n", "line_is_json", "line"),
    "two objects": (lambda desk: line(desk).strip() + line(desk), "line_is_json", "line"),
    "a list": (lambda desk: b"[" + line(desk).strip() + b"]\n", "line_is_json", "line"),
    "a string": (lambda desk: b'"org_id"\n', "line_is_json", "line"),
    "a number": (lambda desk: b"1\n", "line_is_json", "line"),
    "null": (lambda desk: b"null\n", "line_is_json", "line"),
    "an empty object": (lambda desk: b"{}\n", "identifier_is_given", "org_id"),
    "a byte order mark inside": (lambda desk: b"\xef\xbb\xbf" + line(desk), "line_is_json", "line"),
    "Latin-1": (lambda desk: line(desk, text="Grüße").replace("ü".encode(), b"\xfc"), "line_is_utf8", "line"),
    "UTF-16": (lambda desk: "{}".encode("utf-16"), "line_is_utf8", "line"),
    "a surrogate in UTF-8": (lambda desk: line(desk, text="X").replace(b"X", b"\xed\xa0\x80"), "line_is_utf8", "line"),
    "NaN": (lambda desk: line(desk, source="X").replace(b'"X"', b"NaN"), "line_is_json", "line"),
    "Infinity": (lambda desk: line(desk, source="X").replace(b'"X"', b"-Infinity"), "line_is_json", "line"),
    "deep lists": (lambda desk: b"[" * 100_000 + b"\n", "line_is_json", "line"),
    "deep objects": (lambda desk: b'{"a":' * 100_000 + b"\n", "line_is_json", "line"),
    "deep and closed": (
        lambda desk: line(desk, source="X").replace(b'"X"', b"[" * 100_000 + b"]" * 100_000),
        "line_is_json",
        "line",
    ),
    "a number of 10,000 digits": (
        lambda desk: line(desk, source="X").replace(b'"X"', b"9" * 10_000),
        "line_is_json",
        "line",
    ),
    "a line of 2 MB": (lambda desk: line(desk, text="x" * (2 << 20)), "line_length", "line"),
    "a field twice": (
        lambda desk: line(desk).replace(b'"kind"', b'"kind": "fact", "kind"'),
        "field_is_given_once",
        "line",
    ),
    "a subject's field twice": (
        lambda desk: line(desk).replace(b'"type"', b'"type": "job", "type"'),
        "field_is_given_once",
        "line",
    ),
    "an unknown field": (lambda desk: line(desk, sorce="m-1"), "field_is_known", "sorce"),
    "a row's own field": (lambda desk: line(desk, memory_id=str(uuid4())), "field_is_known", "memory_id"),
    "a subject's unknown field": (
        lambda desk: line(desk, subject={"type": "job", "id": "j", "name": "x"}),
        "field_is_known",
        "subject.name",
    ),
    "no org_id": (lambda desk: line(desk, org_id=...), "identifier_is_given", "org_id"),
    "org_id null": (lambda desk: line(desk, org_id=None), "identifier_is_given", "org_id"),
    "org_id empty": (lambda desk: line(desk, org_id=""), "identifier_is_given", "org_id"),
    "org_id with a newline": (lambda desk: line(desk, org_id="acme\n"), "identifier_shape", "org_id"),
    "org_id with percent": (lambda desk: line(desk, org_id="acme%"), "identifier_shape", "org_id"),
    "org_id a number": (lambda desk: line(desk, org_id=5), "identifier_shape", "org_id"),
    "org_id a list": (lambda desk: line(desk, org_id=["acme"]), "identifier_shape", "org_id"),
    "no text": (lambda desk: line(desk, text=...), "text_is_text", "text"),
    "text a list": (lambda desk: line(desk, text=["x"]), "text_is_text", "text"),
    "text blank": (lambda desk: line(desk, text=" \u200b\t"), "text_is_not_blank", "text"),
    "text too long": (lambda desk: line(desk, text="é" * 2001), "text_length", "text"),
    "NUL": (lambda desk: line(desk, text="a\x00b"), "text_is_storable", "text"),
    "a lone surrogate": (
        lambda desk: line(desk, text="X").replace(b'"X"', b'"\\ud800"'),
        "text_is_storable",
        "text",
    ),
    "a lone surrogate in a label": (
        lambda desk: line(desk).replace("Ana Pérez".encode(), b"\\udfff"),
        "name_is_storable",
        "subject.label",
    ),
    "NUL in an alias": (
        lambda desk: line(desk, subject={"type": "candidate", "id": "c", "aliases": ["a\x00"]}),
        "name_is_storable",
        "subject.aliases",
    ),
    "a label that is blank": (
        lambda desk: line(desk, subject={"type": "candidate", "id": "c", "label": " "}),
        "name_is_not_blank",
        "subject.label",
    ),
    "no kind": (lambda desk: line(desk, kind=...), "kind_is_known", "kind"),
    "an unknown kind": (lambda desk: line(desk, kind="rumour"), "kind_is_known", "kind"),
    "a kind that is a list": (lambda desk: line(desk, kind=["fact"]), "kind_is_known", "kind"),
    "an unknown origin": (lambda desk: line(desk, origin="hearsay"), "origin_is_known", "origin"),
    "a person who infers": (lambda desk: line(desk, author="user:maria"), "author_matches_origin", "author"),
    "no author": (lambda desk: line(desk, author=...), "identifier_is_given", "author"),
    "no run": (lambda desk: line(desk, run_id=...), "identifier_is_given", "run_id"),
    "a run with a newline": (lambda desk: line(desk, run_id="r-1\n"), "identifier_shape", "run_id"),
    "a source with a space": (lambda desk: line(desk, source="m-1, m-2"), "identifier_shape", "source"),
    "an observation about nobody": (
        lambda desk: line(desk, subject=...),
        "observation_names_its_subject",
        "subject",
    ),
    "a fact about a person": (lambda desk: line(desk, kind="fact"), "fact_is_not_about_a_person", "kind"),
    "subject as a string": (lambda desk: line(desk, subject="candidate c-81"), "subject_is_a_subject", "subject"),
    "subject as a list": (lambda desk: line(desk, subject=["candidate", "c-81"]), "subject_is_a_subject", "subject"),
    "subject without id": (
        lambda desk: line(desk, subject={"type": "candidate"}),
        "identifier_is_given",
        "subject.id",
    ),
    "subject id a number": (
        lambda desk: line(desk, subject={"type": "candidate", "id": 81}),
        "identifier_shape",
        "subject.id",
    ),
    "aliases as a string": (
        lambda desk: line(desk, subject={"type": "candidate", "id": "c", "aliases": "Ana"}),
        "aliases_are_a_list",
        "subject.aliases",
    ),
    "aliases as an object": (
        lambda desk: line(desk, subject={"type": "candidate", "id": "c", "aliases": {"a": 1}}),
        "aliases_are_a_list",
        "subject.aliases",
    ),
    "51 aliases": (
        lambda desk: line(desk, subject={"type": "candidate", "id": "c", "aliases": [str(n) for n in range(51)]}),
        "alias_count",
        "subject.aliases",
    ),
    "no zone": (lambda desk: line(desk, created_at="2026-11-02T10:00:00"), "instant_has_a_zone", "created_at"),
    "a date without a time": (lambda desk: line(desk, created_at="2026-11-02"), "instant_has_a_zone", "created_at"),
    "no date": (lambda desk: line(desk, created_at="yesterday"), "instant_is_a_time", "created_at"),
    "an empty date": (lambda desk: line(desk, created_at=""), "instant_is_a_time", "created_at"),
    "a date that does not exist": (
        lambda desk: line(desk, created_at="2026-02-30T10:00:00Z"),
        "instant_is_a_time",
        "created_at",
    ),
    "seconds since 1970": (lambda desk: line(desk, created_at=1_796_037_548), "instant_is_a_time", "created_at"),
    "before the year 1": (
        lambda desk: line(desk, created_at="0001-01-01T00:00:00+23:59"),
        "instant_is_a_time",
        "created_at",
    ),
    "the future": (
        lambda desk: line(desk, created_at="2026-11-30T12:00:01Z"),
        "created_at_is_not_in_the_future",
        "created_at",
    ),
    "expired": (lambda desk: line(desk, expires_at="2026-11-30T12:00:00Z"), "expiry_is_not_past", "expires_at"),
    "expired by default": (
        lambda desk: line(desk, created_at="2026-01-01T00:00:00Z", expires_at=...),
        "expiry_is_not_past",
        "expires_at",
    ),
    "too distant": (lambda desk: line(desk, expires_at="2028-11-02T10:00:00Z"), "expiry_within_maximum", "expires_at"),
    "an expiry without a zone": (
        lambda desk: line(desk, expires_at="2027-01-01T00:00:00"),
        "instant_has_a_zone",
        "expires_at",
    ),
}


@pytest.mark.parametrize("what", RULES)
def test_a_bad_line_is_refused_by_its_number_and_its_rule_and_nothing_is_stored(what: str, desk: Desk) -> None:
    make, rule, field = RULES[what]
    bad = make(desk)
    file = b"".join(numbered(desk, 2)) + (bad if bad.endswith(b"\n") else bad + b"\n") + line(desk, text="Last.")
    before = desk.counts()
    with pytest.raises(LineRefused) as refused:
        desk.load(file)
    assert (refused.value.line, refused.value.rule, refused.value.field) == (3, rule, field)
    said = str(refused.value)
    assert said.startswith("line 3: ")
    assert rule in said
    assert said.endswith("nothing was stored")
    assert said.isprintable()
    assert len(said) < 400
    assert desk.counts() == before


@pytest.mark.parametrize("what", RULES)
def test_a_bad_line_is_left_out_where_that_is_asked_for(what: str, desk: Desk) -> None:
    make, rule, _ = RULES[what]
    bad = make(desk)
    file = b"".join(numbered(desk, 2)) + (bad if bad.endswith(b"\n") else bad + b"\n") + line(desk, text="Last.")
    done = desk.load(file, skip_bad=True)
    assert [(fault.number, fault.refusal.rule) for fault in done.faults] == [(3, rule)]
    assert done.organisations[desk.org_id].stored == 3
    assert desk.texts() == ["Last.", "Note 1 of the day.", "Note 2 of the day."]


@pytest.mark.parametrize(
    "name",
    ["\ud800", "a\nb", "a\x1b[2Jb", "a\u202eb", "a\u2028b", "\x00", "x" * 5000],
    ids=["surrogate", "newline", "escape", "override", "separator", "NUL", "long"],
)
@pytest.mark.parametrize("where", ["memory", "subject"])
def test_a_field_of_any_name_is_refused_in_one_line_that_can_be_printed(where: str, name: str, desk: Desk) -> None:
    odd = {name: 1} if where == "memory" else {"subject": {"type": "candidate", "id": "c-81", name: 1}}
    with pytest.raises(LineRefused) as refused:
        desk.load(json.dumps(fields(desk, **odd)).encode())
    assert refused.value.rule == "field_is_known"
    said = str(refused.value)
    assert said.encode().decode() == said
    assert said.isprintable()
    assert len(said) < 400


def test_a_file_whose_500th_line_is_broken_stores_nothing(desk: Desk) -> None:
    lines = numbered(desk, 1000)
    lines[499] = b'{"org_id": "acme", "kind": \n'
    before = desk.counts()
    with pytest.raises(LineRefused, match=r"^line 500: ") as refused:
        desk.load(b"".join(lines))
    assert (refused.value.line, refused.value.others) == (500, 0)
    assert desk.counts() == before


def test_the_first_bad_line_is_named_and_the_others_are_counted(desk: Desk) -> None:
    lines = numbered(desk, 10)
    lines[3] = line(desk, kind="rumour")  # found last, since the rules are asked after the whole file was read
    lines[6] = b"broken\n"
    lines[8] = line(desk, author="user:maria")
    with pytest.raises(LineRefused, match="2 more bad lines") as refused:
        desk.load(b"".join(lines))
    assert (refused.value.line, refused.value.rule, refused.value.others) == (4, "kind_is_known", 2)

    done = desk.load(b"".join(lines), skip_bad=True)
    assert [fault.number for fault in done.faults] == [4, 7, 9]
    assert len(desk.texts()) == 7


def test_a_file_of_bad_lines_only_stores_nothing_also_where_they_are_left_out(desk: Desk) -> None:
    before = desk.counts()
    file = b"broken\n" + line(desk, kind="rumour")
    with pytest.raises(LineRefused, match="1 more bad line;"):
        desk.load(file)
    assert desk.counts() == before
    assert len(desk.load(file, skip_bad=True).faults) == 2
    assert desk.counts()["memory"] == before["memory"]


@pytest.mark.parametrize("file", [b"", b"\n", b" \n\t\n\r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
@pytest.mark.parametrize("skip_bad", [False, True])
def test_a_file_without_a_memory_is_refused(file: bytes, skip_bad: bool, desk: Desk) -> None:
    before = desk.counts()
    with pytest.raises(Refused) as refused:
        desk.load(file, skip_bad=skip_bad)
    assert (refused.value.rule, refused.value.field) == ("file_has_memories", "file")
    assert desk.counts() == before


def test_lines_after_one_that_is_too_long_keep_their_numbers(desk: Desk) -> None:
    for size in (MAX_LINE_BYTES, MAX_LINE_BYTES + 1, 2 * MAX_LINE_BYTES, 2 * MAX_LINE_BYTES + 1, 3 * MAX_LINE_BYTES):
        file = line(desk) + b"x" * size + b"\n" + line(desk) + b"\n" + b"y" * size
        read = list(read_lines(io.BytesIO(file), org_id=None))
        assert [(one.number, isinstance(one, Fault)) for one in read] == [(1, False), (2, True), (3, False), (5, True)]


# Organisations


def test_several_organisations_of_one_file_are_one_transaction(desk: Desk) -> None:
    one, two, three = (f"{desk.org_id}-{number}" for number in (1, 2, 3))
    good = [line(desk, org_id=org_id, text=f"Of {org_id}.") for org_id in (two, one, three, one)]
    before = desk.counts()
    with pytest.raises(LineRefused, match=r"^line 5: "):
        desk.load(b"".join(good) + line(desk, org_id=three, kind="rumour"))
    assert desk.counts() == before

    done = desk.load(b"".join(good))
    assert {org_id: (written.stored, written.refreshed) for org_id, written in done.organisations.items()} == {
        one: (1, 1),
        two: (1, 0),
        three: (1, 0),
    }
    for org_id in (one, two, three):
        assert desk.texts(org_id) == [f"Of {org_id}."]


def test_an_import_dedupes_against_no_other_organisation(desk: Desk) -> None:
    other = f"{desk.org_id}-corp"
    desk.load(line(desk))
    done = desk.load(line(desk, org_id=other))
    assert (done.organisations[other].stored, done.organisations[other].refreshed) == (1, 0)
    assert desk.texts() == desk.texts(other) == ["Could start in March."]


def test_an_organisation_that_is_asked_for_replaces_every_lines_own(desk: Desk) -> None:
    other = f"{desk.org_id}-other"
    owners = [desk.org_id, ..., None, "two words", "acme\n", 5]
    file = b"".join(line(desk, org_id=owner, text=f"Note {n}.") for n, owner in enumerate(owners))
    done = desk.load(file, org_id=other)
    assert set(done.organisations) == {other}
    assert len(desk.texts(other)) == len(owners)
    assert desk.texts() == []


def test_an_organisation_that_is_asked_for_is_an_identifier(desk: Desk) -> None:
    with pytest.raises(LineRefused) as refused:
        desk.load(line(desk), org_id="acme\n")
    assert (refused.value.rule, refused.value.field) == ("identifier_shape", "org_id")


# Repeats


def test_importing_a_file_twice_refreshes_and_counts(desk: Desk) -> None:
    file = b"".join(numbered(desk, 40)) + line(desk, text="Note 1 of the day.")
    first = desk.load(file).organisations[desk.org_id]
    assert (first.stored, first.refreshed) == (40, 1)
    again = desk.load(file).organisations[desk.org_id]
    assert (again.stored, again.refreshed) == (0, 41)
    assert len(desk.texts()) == 40
    assert {memory.memory_id for memory in again.memories} == {memory.memory_id for memory in first.memories}
    held = {memory.text: memory.seen_count for memory in desk.store(clock=at(NOW)).held(ABOUT).memories}
    assert held["Note 1 of the day."] == 4
    assert held["Note 2 of the day."] == 2


def test_what_only_looks_alike_is_no_repeat(desk: Desk) -> None:
    alike = [
        {},
        {"author": "agent:interviewing"},
        {"origin": "person", "author": "user:maria"},
        {"subject": {"type": "candidate", "id": "c-82"}},
        {"subject": {"type": "applicant", "id": "c-81"}},
        {"text": "could start in March."},
        {"text": "Could start in March. "},
    ]
    done = desk.load(b"".join(line(desk, **other) for other in alike)).organisations[desk.org_id]
    assert (done.stored, done.refreshed) == (len(alike), 0)


def test_labels_that_contradict_each_other_in_one_file_are_all_kept(desk: Desk) -> None:
    for_one = [
        line(desk, text=f"Note {n}.", subject={"type": "candidate", "id": "c-81", "label": f"Ana {n}"})
        for n in range(51)
    ]
    desk.load(b"".join(for_one))
    subject = desk.store(clock=at(NOW)).held(ABOUT).subject
    assert {subject.label, *subject.aliases} == {f"Ana {n}" for n in range(51)}


def test_a_line_with_one_name_too_many_for_its_subject_is_refused_by_its_number(desk: Desk) -> None:
    for_one = [
        line(desk, text=f"Note {n}.", subject={"type": "candidate", "id": "c-81", "label": f"Ana {n}"})
        for n in range(52)
    ]
    before = desk.counts()
    with pytest.raises(LineRefused, match=r"^line 52: ") as refused:
        desk.load(b"".join(for_one))
    assert refused.value.rule == "alias_count"
    assert desk.counts() == before


# Export


def test_an_export_names_every_field_of_the_import_format_in_order(desk: Desk) -> None:
    desk.load(line(desk))
    (exported,) = desk.dump()
    assert json.loads(exported) == {
        **fields(desk),
        "created_at": "2026-11-02T09:00:00+00:00",
        "expires_at": "2027-01-02T10:00:00+00:00",
    }
    assert list(json.loads(exported)) == [
        *("org_id", "kind", "subject", "text", "origin", "author", "run_id", "source", "created_at", "expires_at")
    ]
    assert "Pérez" in exported


def test_what_is_restricted_expired_or_forgotten_is_not_exported(desk: Desk) -> None:
    store = desk.store(clock=at(NOW))
    about = {"kind": "observation", "origin": "inference", "author": "agent:screening", "run_id": "r-1"}
    store.remember("Live.", subject=Subject("candidate", "c-1"), **about)
    restricted = store.remember("Restricted.", subject=Subject("candidate", "c-2"), **about)
    store.remember("Expired.", subject=Subject("candidate", "c-3"), expires_at=NOW + timedelta(hours=1), **about)
    store.remember("Forgotten.", subject=Subject("candidate", "c-4", "Somebody Forgotten"), **about)
    swept = store.remember("Swept.", subject=Subject("candidate", "c-5"), **about)
    store.forget(Subject("candidate", "c-4"), by="user:ines", reason="erasure request")
    desk.change("restricted_at = now()", restricted)
    desk.change("swept_at = now(), text = NULL, text_sha256 = NULL", swept)

    later = at(NOW + timedelta(hours=1))
    exported = desk.dump(clock=later)
    assert [json.loads(one)["text"] for one in exported] == ["Live."]
    assert "Forgotten" not in "".join(exported)
    counts = desk.store(clock=later).overview().counts
    assert left_out(counts) == {"restricted": 1, "expired": 1, "forgotten": 1, "swept": 1}


def test_an_export_has_no_other_organisations_memories(desk: Desk) -> None:
    desk.load(line(desk, org_id=f"{desk.org_id}-corp") + line(desk, org_id=desk.org_id[:-1]))
    assert desk.dump() == []


def test_an_export_is_oldest_first(desk: Desk) -> None:
    days = (3, 1, 2)
    desk.load(b"".join(line(desk, text=f"{day}.", created_at=f"2026-11-0{day}T00:00:00Z") for day in days))
    assert [json.loads(one)["text"] for one in desk.dump()] == ["1.", "2.", "3."]


def test_an_export_that_is_not_read_to_its_end_leaves_the_store_usable(desk: Desk) -> None:
    desk.load(b"".join(numbered(desk, 20)))
    lines = export_lines(desk.engine, desk.org_id, clock=at(NOW))
    next(lines)
    lines.close()
    assert len(desk.dump()) == 20


def test_an_export_is_on_record_with_who_and_how_many_before_its_first_line_leaves(desk: Desk) -> None:
    desk.load(b"".join(numbered(desk, 3)))
    with connect(desk.superuser) as connection:
        kept = "SELECT at, by, act, count, subject_id FROM trail WHERE org_id = %s ORDER BY number"
        lines = export_lines(desk.engine, desk.org_id, by="user:ines", clock=at(NOW))
        assert connection.execute(kept, (desk.org_id,)).fetchall() == []
        next(lines)
        lines.close()
        by_somebody = (NOW, "user:ines", "export all", 3, None)
        assert connection.execute(kept, (desk.org_id,)).fetchall() == [by_somebody]
        connection.rollback()
        desk.dump()
        unnamed = (NOW, "unnamed", "export all", 3, None)
        assert connection.execute(kept, (desk.org_id,)).fetchall() == [by_somebody, unnamed]


def carried(memory: HeldMemory) -> tuple[Any, ...]:
    return (
        memory.kind,
        memory.subject,
        memory.subject.label if memory.subject else None,
        memory.subject.aliases if memory.subject else (),
        memory.text,
        memory.origin,
        memory.author,
        memory.run_id,
        memory.source,
        memory.created_at,
        memory.expires_at,
    )


def moved(desk: Desk, subject: Subject, *, clock: Clock) -> None:
    """Export, import into another organisation, and find there what was here."""
    other = uuid4().hex
    file = "".join(f"{one}\n" for one in desk.dump(clock=clock)).encode()
    done = desk.load(file, org_id=other, clock=clock)
    here = desk.store(clock=clock).held(subject).memories
    there = desk.store(other, clock=clock).held(subject).memories
    assert [carried(memory) for memory in there] == [carried(memory) for memory in here]
    assert done.faults == ()
    assert done.organisations[other].stored == len(file.splitlines())


def test_what_is_exported_is_the_same_after_its_import_into_another_organisation(desk: Desk) -> None:
    desk.load(b"".join(numbered(desk, 10)) + line(desk, source=..., created_at=..., expires_at=..., text="Bare."))
    moved(desk, ABOUT, clock=at(NOW))


def test_what_was_refreshed_beyond_the_maximum_after_its_creation_can_be_moved_as_well(desk: Desk) -> None:
    for days in range(0, 400, 50):
        moment = NOW + timedelta(days=days)
        desk.load(line(desk, created_at=moment.isoformat(), expires_at=...), clock=at(moment))
    moved(desk, ABOUT, clock=at(NOW + timedelta(days=360)))


NAMES = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), min_size=1, max_size=40
).filter(lambda name: not is_blank(name))
TEXTS = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), min_size=1, max_size=200
).filter(lambda text: not is_blank(text))


@hypothesis_settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS, label=st.none() | NAMES, aliases=st.lists(NAMES, max_size=5), source=st.sampled_from([None, "a,b"]))
def test_any_text_and_any_name_survives_export_and_import(
    desk: Desk, text: str, label: str | None, aliases: list[str], source: str | None
) -> None:
    here = Desk(desk.application, desk.superuser)
    subject = Subject("candidate", "c-81", label, aliases)
    stored = here.store(clock=at(NOW)).remember(
        text,
        kind="observation",
        subject=subject,
        origin="person",
        author="user:maria",
        run_id="r-1",
        source=source,
    )
    assert stored.text == text
    known = here.store(clock=at(NOW)).held(subject).subject
    assert {known.label, *known.aliases} - {None} == {label, *aliases} - {None}
    moved(here, subject, clock=at(NOW))


# The whole of LoCoMo


@pytest.mark.skipif(not TURNS.exists(), reason=f"{TURNS} is not here")
def test_all_turns_of_locomo_are_loaded_into_their_six_organisations(desk: Desk) -> None:
    with Path(TURNS).open("rb") as file:
        done = import_lines(desk.engine, read_lines(file, org_id=None))
    assert len(done.organisations) == 6
    assert sum(len(written.memories) for written in done.organisations.values()) == 3435
    assert done.faults == ()
    store = desk.store("locomo-26")
    recall = store.recall("When did Caroline go to the support group?", run_id="r-1")
    assert (recall.mode, recall.reason) == ("recency", "no embedder is configured")
    assert len(recall.memories) == 5
    assert recall.unembedded == done.organisations["locomo-26"].stored
