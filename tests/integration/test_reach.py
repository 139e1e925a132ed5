from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import date, timedelta
from threading import Barrier
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from fakes import CANDIDATE, JOB, Clock, HashedWords, fact, observation, observe
from rows import emptied, execute, rows, snapshot, traces

from memory_core import Memory, MemoryStore, OnHold, Refused, State, Subject
from memory_core.access_json import machine_readable
from memory_core.certifying import fingerprint
from memory_core.db.engine import engine_for
from memory_core.errors import ChangedMeanwhile
from memory_core.privacy import PrivacyDesk
from memory_core.reaching import NAMES_IN_PART, NAMES_THEM, WRITTEN_AFTER
from memory_core.rights import MeasureKind, Reach, RightsRequest, StandingAnswers
from memory_core.sweeping import sweep

if TYPE_CHECKING:
    from conftest import Database, OpenDesk, OpenStore

ZOE = Subject("candidate", "c-81", "Zoë Okafor", ("zoe@example.org",))
MARIA = Subject("candidate", "c-82", "Maria Lindqvist")
THIRD = Subject("candidate", "c-83", "Tomasz Wiśniewski")


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(open_store: OpenStore, clock: Clock) -> MemoryStore:
    return open_store(clock=clock, embedder=HashedWords())


@pytest.fixture
def desk(open_desk: OpenDesk, clock: Clock) -> PrivacyDesk:
    return open_desk(clock=clock)


def found(reach: Reach) -> dict[str | None, tuple[str, ...]]:
    return {one.memory.text: one.because for one in reach.others}


# What an erasure would not reach by itself


def test_memories_and_facts_that_name_the_subject_are_found_in_full_and_in_part(
    store: MemoryStore, desk: PrivacyDesk
) -> None:
    observe(store, "Could start in May.", subject=ZOE)
    whole = {
        "Was interviewed together with Zoë Okafor.",
        "Sat beside Okafor, Zoe.",
        "Shares a flat with ZOE OKAFOR!",
        "Forwards mail to zoe@example.org.",
    }
    for text in whole:
        observe(store, text, subject=MARIA)
    store.remember(**fact("Zoë Okafor must not be called before noon.", subject=JOB))
    store.remember(**fact("Ask zoe@example.org about the badge."))
    observe(store, "Was taken round by Okafor.", subject=MARIA)
    observe(store, "Likes zoetropes.", subject=MARIA)
    observe(store, "Prefers mornings.", subject=THIRD)
    reach = desk.reach(CANDIDATE)
    names = found(reach)
    assert {text for text, because in names.items() if because == (NAMES_THEM,)} == whole | {
        "Zoë Okafor must not be called before noon.",
        "Ask zoe@example.org about the badge.",
    }
    assert {text for text, because in names.items() if because == (NAMES_IN_PART,)} == {"Was taken round by Okafor."}
    assert len(names) == 7
    assert [one.because for one in reach.others][-1] == (NAMES_IN_PART,)  # the surest come first
    assert (reach.subject.label, reach.with_text, reach.tombstones, reach.holds) == ("Zoë Okafor", 1, 0, ())


def test_the_id_and_what_else_the_subject_is_called_are_looked_for_too(store: MemoryStore, desk: PrivacyDesk) -> None:
    observe(store, "Could start in May.", subject=ZOE)
    observe(store, "Applied in the week of c-81.", subject=MARIA)
    observe(store, "Applied in the week of c-810.", subject=MARIA)
    observe(store, "Plays chess with Zuzanna Nowak.", subject=MARIA)
    assert [*found(desk.reach(CANDIDATE))] == ["Applied in the week of c-81."]
    also_called = found(desk.reach(CANDIDATE, also_called=["Zuzanna Nowak", "  "]))
    assert also_called.keys() == {"Applied in the week of c-81.", "Plays chess with Zuzanna Nowak."}


def test_what_a_run_wrote_after_it_was_shown_the_subjects_memories_is_found(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock
) -> None:
    observe(store, "Could start in May.", subject=ZOE, run_id="r-0")
    observe(store, "Written before.", subject=MARIA, run_id="r-shown")
    observe(store, "Seen again.", subject=MARIA, run_id="r-0")
    clock.step(minutes=1)
    assert store.recall("May?", run_id="r-shown").memories
    store.recall("May?", run_id="r-preview", purpose="preview")
    store.recall("May?", run_id="r-others", subject=MARIA)
    clock.step(minutes=1)
    observe(store, "Written after.", subject=MARIA, run_id="r-shown")
    observe(store, "Seen again.", subject=MARIA, run_id="r-shown")
    store.remember(**fact("A fact written after.", run_id="r-shown"))
    observe(store, "Written after a preview.", subject=MARIA, run_id="r-preview")
    observe(store, "Written after others were shown.", subject=MARIA, run_id="r-others")
    observe(store, "About her own.", subject=ZOE, run_id="r-shown")
    reach = desk.reach(CANDIDATE)
    assert found(reach) == dict.fromkeys(("Written after.", "Seen again.", "A fact written after."), (WRITTEN_AFTER,))
    assert reach.runs == ("r-shown",)
    assert reach.with_text == 2


def test_a_name_in_what_was_written_beside_a_memory_of_another_is_found(store: MemoryStore, desk: PrivacyDesk) -> None:
    observe(store, "Could start in May.", subject=ZOE)
    disputed = observe(store, "Prefers mornings.", subject=MARIA)
    wrong = observe(store, "Knows Rust.", subject=MARIA)
    observe(store, "Likes tea.", subject=MARIA)
    desk.dispute(disputed, "That was Zoë Okafor, not me.")
    desk.correct(wrong, "Knows Python.", author="user:maria", reason="mixed up with Zoë Okafor")
    assert found(desk.reach(CANDIDATE)) == dict.fromkeys(("Prefers mornings.", "Knows Python."), (NAMES_THEM,))


def test_both_reasons_are_given_and_the_names_that_were_found(store: MemoryStore, desk: PrivacyDesk) -> None:
    observe(store, "Could start in May.", subject=ZOE)
    store.recall("May?", run_id="r-shown")
    observe(store, "Zoë Okafor again, zoe@example.org.", subject=MARIA, run_id="r-shown")
    (one,) = desk.reach(CANDIDATE).others
    assert one.because == (NAMES_THEM, WRITTEN_AFTER)
    assert {*one.names} >= {"Zoë Okafor", "zoe@example.org"}


def test_what_has_no_text_any_more_and_other_organisations_are_not_found(
    store: MemoryStore, desk: PrivacyDesk, open_store: OpenStore, clock: Clock
) -> None:
    observe(store, "Could start in May.", subject=ZOE)
    observe(store, "Zoë Okafor was there.", subject=THIRD)
    observe(open_store("acme-corp", clock=clock), "Zoë Okafor was there.", subject=MARIA)
    desk.erase(THIRD, reason="asked to")
    assert desk.reach(CANDIDATE).others == ()


def test_what_is_restricted_expired_or_on_hold_is_found_too(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock
) -> None:
    observe(store, "Could start in May.", subject=ZOE)
    restricted = observe(store, "Zoë Okafor, restricted.", subject=MARIA)
    on_hold = observe(store, "Zoë Okafor, on hold.", subject=MARIA)
    desk.restrict("contested", memory_id=restricted.memory_id)
    desk.hold("court case", memory_id=on_hold.memory_id, name="claim-7")
    clock.step(days=91)
    assert len(desk.reach(CANDIDATE).others) == 2


def test_subjects_of_like_names_are_named_and_others_are_not(store: MemoryStore, desk: PrivacyDesk) -> None:
    for subject in (
        ZOE,
        MARIA,
        Subject("candidate", "c-90", "Zoe Okafor"),
        Subject("applicant", "a-1", "Okafor, Zoë"),
        Subject("candidate", "c-91", "Someone Else", ("Zoë Okafor",)),
    ):
        observe(store, "Could start in May.", subject=subject)
    reach = desk.reach(CANDIDATE)
    assert {str(one) for one in reach.alike} == {"candidate c-90", "applicant a-1", "candidate c-91"}
    assert desk.reach(MARIA).alike == ()


def test_a_reach_counts_what_goes_and_names_holds_and_changes_nothing_but_the_trail(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    store.remember_many(observation(f"sentence {number}", subject=ZOE) for number in range(4))
    desk.erase(CANDIDATE, reason="asked to")
    mine = store.remember_many(observation(f"anew {number}", subject=ZOE) for number in range(3))
    observe(store, "Zoë Okafor was there.", subject=MARIA)
    desk.hold("court case", memory_id=mine[0].memory_id, name="claim-7")
    before = snapshot(database, without=("trail",))
    reach = desk.reach(CANDIDATE)
    assert (reach.with_text, reach.tombstones, reach.holds, reach.at) == (3, 4, ("claim-7",), clock.now)
    assert snapshot(database, without=("trail",)) == before
    line = desk.trail(limit=1)[0]
    assert (line.act, line.subject, line.count, line.by) == ("look before erasing", CANDIDATE, 1, "user:ines")


def test_a_reach_over_thousands_says_how_far_it_is(open_store: OpenStore, desk: PrivacyDesk, clock: Clock) -> None:
    open_store(clock=clock).remember_many(observation(f"sentence {number}", subject=MARIA) for number in range(2100))
    told: list[int] = []
    assert desk.reach(CANDIDATE, progress=told.append).others == ()
    assert told == [1000, 2000]


# Erasing with it


def three_others(store: MemoryStore, desk: PrivacyDesk) -> tuple[list[Memory], Reach]:
    observe(store, "Mine4b7e.", subject=ZOE)
    others = [
        observe(store, "With4b7e Zoë Okafor.", subject=MARIA),
        observe(store, "After4b7e Zoë Okafor.", subject=THIRD),
        store.remember(**fact("Fact4b7e about Zoë Okafor.")),
    ]
    observe(store, "Kept.", subject=THIRD)
    return others, desk.reach(CANDIDATE)


@pytest.mark.parametrize("number", [0, 1, 3])
def test_what_was_chosen_is_erased_with_the_subject_and_nothing_else(
    store: MemoryStore, desk: PrivacyDesk, database: Database, number: int
) -> None:
    others, reach = three_others(store, desk)
    assert {one.memory.memory_id for one in reach.others} == {one.memory_id for one in others}
    chosen, left = others[:number], others[number:]
    kept = [rows(database, "memory", f"memory_id = '{one.memory_id}'") for one in left]
    also = [one.memory_id for one in chosen]
    erasure = desk.erase(CANDIDATE, reason="asked to", expecting=reach.with_text, also=[*also, *also])
    assert (erasure.count, set(erasure.others)) == (1, set(also))
    assert [rows(database, "memory", f"memory_id = '{one.memory_id}'") for one in left] == kept
    assert traces(database, "Mine4b7e") == []
    words = ("With4b7e", "After4b7e", "Fact4b7e")
    assert [bool(traces(database, word)) for word in words] == [place >= number for place in range(3)]
    directory = {one for (one,) in execute(database, "SELECT subject_id FROM directory")}
    assert directory == ({"c-82", "c-83"} if number == 0 else {"c-83"})  # Maria's last text went
    certificate = desk.certificate(erasure.erasure_id)
    assert set(certificate.about_others) == set(also)
    statement = "SELECT memory_count, (SELECT count(*) FROM memory WHERE erasure_id = e.erasure_id) FROM erasure AS e"
    assert execute(database, statement) == [(1 + number, 1 + number)]
    line = desk.trail(reference=str(erasure.erasure_id))[0]
    assert line.count == 1 + number


def test_an_erasure_of_more_or_fewer_than_were_looked_at_erases_nothing(
    store: MemoryStore, desk: PrivacyDesk, database: Database
) -> None:
    others, reach = three_others(store, desk)
    observe(store, "Written meanwhile.", subject=ZOE)
    before = snapshot(database)
    for expecting in (reach.with_text, 0, 3):
        with pytest.raises(ChangedMeanwhile) as caught:
            desk.erase(CANDIDATE, reason="asked to", expecting=expecting, also=[others[0].memory_id])
        assert caught.value.field == "subject"
        assert "2 memories" in str(caught.value)
    assert snapshot(database) == before
    assert desk.erase(CANDIDATE, reason="asked to", expecting=2).count == 2


def test_what_cannot_be_erased_with_it_keeps_everything(
    store: MemoryStore, desk: PrivacyDesk, database: Database, open_store: OpenStore, subtests: pytest.Subtests
) -> None:
    others, _ = three_others(store, desk)
    mine = store.held(CANDIDATE).memories[0]
    empty = observe(store, "Gone.", subject=JOB, kind="fact", origin="person", author="user:maria")
    desk.erase(JOB, reason="asked to")
    elsewhere = observe(open_store("acme-corp"), "Elsewhere.", subject=MARIA)
    desk.hold("court case", memory_id=others[1].memory_id, name="claim-9")
    cases: dict[str, tuple[UUID, type[Refused], str]] = {
        "the subject's own": (mine.memory_id, Refused, "others_are_about_others"),
        "unknown": (uuid4(), ChangedMeanwhile, "it_is_as_it_was_looked_at"),
        "empty already": (empty.memory_id, ChangedMeanwhile, "it_is_as_it_was_looked_at"),
        "of another organisation": (elsewhere.memory_id, ChangedMeanwhile, "it_is_as_it_was_looked_at"),
        "on hold": (others[1].memory_id, OnHold, "nothing_on_hold_is_forgotten"),
    }
    before = snapshot(database)
    for name, (memory_id, kind, rule) in cases.items():
        with subtests.test(name):
            with pytest.raises(kind) as caught:
                desk.erase(CANDIDATE, reason="asked to", also=[others[0].memory_id, memory_id])
            assert caught.value.rule == rule
            assert snapshot(database) == before
    with pytest.raises(OnHold, match="claim-9"):
        desk.erase(CANDIDATE, reason="asked to", also=[others[1].memory_id])


def test_what_was_chosen_is_a_list_of_identifiers_and_what_is_expected_a_number(
    store: MemoryStore, desk: PrivacyDesk, database: Database
) -> None:
    others, _ = three_others(store, desk)
    chosen = others[0].memory_id
    before = snapshot(database)
    no_lists: list[Any] = [(one for one in [chosen]), [str(chosen)], str(chosen), {chosen}, chosen, [others[0]], [None]]
    for also in no_lists:
        with pytest.raises(Refused) as caught:
            desk.erase(CANDIDATE, reason="asked to", also=also)
        assert (caught.value.rule, caught.value.field) == ("others_are_identifiers", "also")
    no_numbers: list[Any] = ["1", 1.0, True, b"1", [1]]
    for expecting in no_numbers:
        with pytest.raises(Refused) as caught:
            desk.erase(CANDIDATE, reason="asked to", expecting=expecting)
        assert (caught.value.rule, caught.value.field) == ("expected_count_is_a_number", "expecting")
    assert snapshot(database) == before
    assert desk.erase(CANDIDATE, reason="asked to", also=(chosen,), expecting=1).others == (chosen,)


# What proves it


def test_an_erasure_of_hundreds_leaves_the_others_byte_for_byte_and_is_certified_as_it_was(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    store.remember_many(
        [
            *(observation(f"Of Zoë {number}", subject=ZOE) for number in range(250)),
            *(observation(f"Of Maria {number}", subject=MARIA) for number in range(250)),
            *(observation(f"Of the third {number}", subject=THIRD) for number in range(100)),
            *(fact(f"A fact {number}") for number in range(20)),
        ]
    )
    store.recall("Of Zoë?", run_id="r-2", limit=50)
    written_by_it = ("trail", "ledger", "erasure")

    def others() -> dict[str, list[str]]:
        return {
            "memory": rows(database, "memory", "subject_id IS DISTINCT FROM 'c-81'"),
            "directory": rows(database, "directory", "subject_id <> 'c-81'"),
            **snapshot(database, without=(*written_by_it, "memory", "directory")),
        }

    before = others()
    assert len(before["memory"]) == 370
    erasure = desk.erase(CANDIDATE, reason="asked to", expecting=250)
    assert others() == before
    statement = "SELECT memory_id FROM memory WHERE erasure_id = %s ORDER BY memory_id"
    by_sql = [one for (one,) in execute(database, statement, (erasure.erasure_id,))]
    certificate = desk.certificate(erasure.erasure_id)
    assert [*certificate.about_subject] == by_sql
    assert len(by_sql) == 250
    assert set(by_sql) == set(erasure.memory_ids)
    ((number, trail_number, trail_hash),) = execute(database, "SELECT number, trail_number, trail_hash FROM ledger")
    assert (certificate.ledger_number, certificate.trail_number) == (number, trail_number)
    assert certificate.trail_hash == bytes(trail_hash).hex()
    assert (certificate.org_id, certificate.at, certificate.by) == ("acme", clock.now, "user:ines")
    assert (certificate.about_others, certificate.purged, certificate.suppressed) == ((), 0, False)
    assert certificate.request_reference is None


def test_ten_thousand_memories_are_held_handed_out_and_erased_to_the_last_and_the_others_stay_to_the_byte(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    observe(store, "Of Zoë.", subject=ZOE)
    observe(store, "Of Maria.", subject=MARIA)
    columns = """
        org_id, memory_id, kind, subject_type, subject_id, text, text_sha256, origin, author, run_id, created_at, expires_at,
        last_seen_at, last_seen_run_id
    """
    copied = columns.replace("memory_id,", "gen_random_uuid(),").replace(" text,", " text || ' ' || n,")
    copied = copied.replace("text_sha256", "sha256(convert_to(text || ' ' || n, 'UTF8'))")
    execute(database, f"INSERT INTO memory ({columns}) SELECT {copied} FROM memory, generate_series(2, 10000) AS n")
    of_zoe = "SELECT count(*), count(text) FROM memory WHERE subject_id = 'c-81'"
    others = rows(database, "memory", "subject_id = 'c-82'")
    assert execute(database, of_zoe) == [(10_000, 10_000)]
    held = desk.held(CANDIDATE)
    assert (len(held.memories), held.with_text) == (10_000, 10_000)
    assert len(machine_readable(desk.package(CANDIDATE))["items"]) == 10_000
    erasure = desk.erase(CANDIDATE, reason="asked to", expecting=10_000)
    assert (erasure.count, erasure.ledger_is_outside) == (10_000, True)
    assert execute(database, of_zoe) == [(10_000, 0)]
    assert len(desk.certificate(erasure.erasure_id).about_subject) == 10_000
    assert rows(database, "memory", "subject_id = 'c-82'") == others
    assert desk.held(CANDIDATE).with_text == 0


def test_of_two_officers_who_erase_one_subject_at_once_one_wins_and_the_other_is_told(
    store: MemoryStore, open_desk: OpenDesk, clock: Clock, database: Database
) -> None:
    for turn in range(5):
        store.remember_many([observation(f"Of Zoë {turn} {number}", subject=ZOE) for number in range(3)])
        start = Barrier(2)

        def erase(by: str, start: Barrier = start) -> object:
            desk = open_desk(by=by, clock=clock)
            start.wait()
            try:
                return desk.erase(CANDIDATE, reason="asked to", expecting=3).count
            except ChangedMeanwhile as told:
                return told.field

        with ThreadPoolExecutor(2) as officers:
            done = sorted(map(str, officers.map(erase, ["user:ines", "user:omar"])))
        assert done == ["3", "subject"]
        assert execute(database, "SELECT count(*) FROM erasure") == [(turn + 1,)]


def test_a_certificate_has_no_text_no_name_and_not_the_subjects_id(
    store: MemoryStore, desk: PrivacyDesk, database: Database
) -> None:
    subject = Subject("candidate", "Id4b7e", "Label4b7e", ("Alias4b7e",))
    observe(store, "Text4b7e.", subject=subject)
    beside = observe(store, "Beside4b7e.", subject=Subject("candidate", "Other4b7e", "OtherLabel4b7e"))
    erasure = desk.erase(subject, reason="Reason4b7e", also=[beside.memory_id])
    whole = str(asdict(desk.certificate(erasure.erasure_id)))
    words = ("Id", "Label", "Alias", "Text", "Beside", "Other", "Reason")
    assert [word for word in words if f"{word}4b7e" in whole] == []


def test_a_fingerprint_is_the_salts_and_differs_by_erasure(
    store: MemoryStore, desk: PrivacyDesk, database: Database
) -> None:
    ids = [desk.erase(subject, reason="asked to").erasure_id for subject in (CANDIDATE, CANDIDATE, MARIA)]
    salts = dict(execute(database, "SELECT erasure_id, salt FROM erasure"))
    prints = [desk.certificate(one).subject_fingerprint for one in ids]
    assert len(set(prints)) == 3
    assert prints[0] == fingerprint(bytes(salts[ids[0]]), CANDIDATE)
    assert prints[0] != fingerprint(bytes(salts[ids[1]]), CANDIDATE)
    assert prints[2] == fingerprint(bytes(salts[ids[2]]), MARIA) != fingerprint(bytes(salts[ids[2]]), CANDIDATE)


def test_a_certificate_still_counts_when_its_tombstones_are_gone(
    store: MemoryStore, desk: PrivacyDesk, database: Database, clock: Clock
) -> None:
    store.remember_many(observation(f"sentence {number}", subject=ZOE) for number in range(5))
    beside = observe(store, "Zoë Okafor was there.", subject=MARIA)
    erasure = desk.erase(CANDIDATE, reason="asked to", also=[beside.memory_id])
    whole = desk.certificate(erasure.erasure_id)
    execute(
        database,
        "UPDATE memory SET created_at = created_at - interval '5 years', expires_at = expires_at - interval '5 years', "
        "forgotten_at = forgotten_at - interval '4 years' WHERE memory_id <> ALL(%s)",
        ([*erasure.memory_ids[:2]],),
    )
    assert sweep(engine_for(database.application), "acme", by="user:ines", clock=clock).purged == 4
    after = desk.certificate(erasure.erasure_id)
    assert set(after.about_subject) == {*erasure.memory_ids[:2]}
    assert (after.about_others, after.purged) == ((), 4)
    assert replace(after, about_subject=whole.about_subject, about_others=whole.about_others, purged=0) == whole


def test_a_certificate_names_the_request_and_whether_new_memories_were_stopped_at_the_moment_of_the_erasure(
    store: MemoryStore, desk: PrivacyDesk, clock: Clock
) -> None:
    observe(store, "Could start in May.", subject=ZOE)
    asked = {"asked_by": "Zoë", "channel": "letter", "received_on": date(2026, 11, 1), "subject": CANDIDATE}
    request = desk.register.confirm_identity(desk.register.register("erasure", **asked), "known in person")
    without = desk.erase(CANDIDATE, reason="asked to", reference=request.reference)
    clock.step(minutes=1)
    stopped = desk.erase(CANDIDATE, reason="asked to", reference=request.reference, suppress=True)
    assert desk.certificate(stopped.erasure_id).request_reference == request.reference
    assert desk.certificate(stopped.erasure_id).suppressed
    assert not desk.certificate(without.erasure_id).suppressed
    before = desk.erase(MARIA, reason="asked to")
    clock.step(minutes=1)
    suppression = desk.suppress("objected", subject=MARIA)
    clock.step(minutes=1)
    meanwhile = desk.erase(MARIA, reason="asked to")
    clock.step(minutes=1)
    desk.lift(suppression, reason="withdrew the objection")
    clock.step(minutes=1)
    after = desk.erase(MARIA, reason="asked to")
    of_maria = (before, meanwhile, after)
    assert [desk.certificate(one.erasure_id).suppressed for one in of_maria] == [False, True, False]
    with pytest.raises(Refused) as caught:
        observe(store, "Applied anew.", subject=ZOE)
    assert caught.value.rule == "nothing_new_about_a_suppressed_subject"
    with pytest.raises(Refused) as caught:
        desk.erase(MARIA, reason="asked to", reference=request.reference)
    assert caught.value.rule == "request_is_about_the_subject"


def test_an_erasure_that_is_not_on_record_has_no_certificate(
    desk: PrivacyDesk, open_desk: OpenDesk, clock: Clock
) -> None:
    elsewhere = open_desk("acme-corp", clock=clock).erase(CANDIDATE, reason="asked to")
    anything: list[Any] = [uuid4(), elsewhere.erasure_id, str(elsewhere.erasure_id), None]
    for erasure_id in anything:
        with pytest.raises(Refused) as caught:
            desk.certificate(erasure_id)
        assert caught.value.rule == "erasure_exists"


# The access package


def test_a_package_has_everything_whatever_its_state(store: MemoryStore, desk: PrivacyDesk, clock: Clock) -> None:
    forgotten = observe(store, "Forgotten.", subject=ZOE)
    desk.erase(CANDIDATE, reason="asked to")
    for text in ("Live.", "Restricted.", "Expired."):
        expires_at = clock.now + (timedelta(hours=1) if text == "Expired." else timedelta(days=60))
        memory = observe(store, text, subject=ZOE, expires_at=expires_at)
        if text == "Restricted.":
            desk.restrict("contested", memory_id=memory.memory_id)
    store.recall("live?", run_id="r-2")
    observe(store, "Of somebody else.", subject=MARIA)
    clock.step(hours=2)
    package = desk.package(CANDIDATE)
    states = {one.memory.text: one.memory.state for one in package.items}
    assert states == {
        None: State.FORGOTTEN,
        "Live.": State.LIVE,
        "Restricted.": State.RESTRICTED,
        "Expired.": State.EXPIRED,
    }
    assert [one.memory.memory_id for one in package.items][-1] == forgotten.memory_id
    shown = {one.memory.text: [at.run_id for at in one.memory.disclosures] for one in package.items}
    assert shown["Live."] == ["r-2"]
    assert shown["Restricted."] == []
    assert [one.kind for one in package.measures] == [MeasureKind.RESTRICTION]
    assert (package.subject.label, package.at, package.by) == ("Zoë Okafor", clock.now, "user:ines")


def test_other_known_persons_in_a_text_or_a_dispute_are_flagged(store: MemoryStore, desk: PrivacyDesk) -> None:
    with_maria = observe(store, "Was interviewed with Maria Lindqvist by Zoë Okafor.", subject=ZOE)
    disputed = observe(store, "Prefers mornings.", subject=ZOE)
    plain = observe(store, "Applied for Acme Forge.", subject=ZOE)
    observe(store, "Could start in May.", subject=MARIA)
    observe(store, "Could start in May.", subject=THIRD)
    store.remember(**fact("Is open.", subject=Subject("job", "j-3", "Acme Forge")))  # a job is no person
    desk.dispute(disputed, "Tomasz Wiśniewski said that, not I.")
    mentions = {one.memory.memory_id: {*(at.subject for at in one.mentions)} for one in desk.package(CANDIDATE).items}
    assert mentions == {with_maria.memory_id: {MARIA}, disputed.memory_id: {THIRD}, plain.memory_id: set()}


def test_other_known_persons_in_the_reason_of_a_correction_are_flagged(store: MemoryStore, desk: PrivacyDesk) -> None:
    observe(store, "Could start in May.", subject=MARIA)
    wrong = observe(store, "Knows Rust.", subject=ZOE)
    right = desk.correct(wrong, "Knows Python.", author="user:zoe", reason="mixed up with Maria Lindqvist")
    mentions = {one.memory.memory_id: one.mentions for one in desk.package(CANDIDATE).items}
    assert [one.subject for one in mentions[right.memory_id]] == [MARIA]
    assert mentions[wrong.memory_id] == ()


def test_what_is_left_out_says_why_and_is_the_subjects(
    store: MemoryStore, desk: PrivacyDesk, database: Database, subtests: pytest.Subtests
) -> None:
    mine = observe(store, "With Maria Lindqvist.", subject=ZOE)
    other = observe(store, "Could start in May.", subject=MARIA)
    before = snapshot(database)
    wrong: list[tuple[dict[Any, Any], str]] = [
        ({mine.memory_id: ""}, "reason_is_given"),
        ({mine.memory_id: " \u200b"}, "reason_is_given"),
        ({mine.memory_id: None}, "reason_is_given"),
        ({mine.memory_id: "a" * 501}, "reason_length"),
        ({other.memory_id: "names others"}, "left_out_is_of_the_subject"),
        ({uuid4(): "names others"}, "left_out_is_of_the_subject"),
    ]
    for left_out, rule in wrong:
        with subtests.test(rule):
            with pytest.raises(Refused) as caught:
                desk.package(CANDIDATE, left_out=left_out, release=True)
            assert caught.value.rule == rule
    assert snapshot(database) == before
    (item,) = desk.package(CANDIDATE, left_out={mine.memory_id: "rights of another person"}).items
    assert item.left_out == "rights of another person"


def test_a_package_that_is_handed_out_is_on_record_as_an_export(
    store: MemoryStore, desk: PrivacyDesk, database: Database
) -> None:
    observe(store, "Could start in May.", subject=ZOE)
    asked = {"asked_by": "Zoë", "channel": "letter", "received_on": date(2026, 11, 1), "subject": CANDIDATE}
    request = desk.register.confirm_identity(desk.register.register("access", **asked), "known in person")
    answers = StandingAnswers(controller="Acme Hiring Ltd")
    desk.change_settings(replace(desk.settings(), answers=answers, jurisdiction="DE", tombstone_days=400))
    before = snapshot(database, without=("trail",))
    desk.package(CANDIDATE, reference=request.reference)
    package = desk.package(CANDIDATE, reference=request.reference, release=True)
    assert snapshot(database, without=("trail",)) == before
    acts = [(one.act, one.reference, one.count, one.subject) for one in desk.trail(limit=2)]
    assert acts == [(act, request.reference, 1, CANDIDATE) for act in ("export", "look at package")]
    assert (package.reference, package.answers, package.tombstone_days) == (request.reference, answers, 400)
    assert (package.law, [one.reference for one in package.requests]) == ("EU GDPR", [request.reference])
    with pytest.raises(Refused) as caught:
        desk.package(MARIA, reference=request.reference)
    assert caught.value.rule == "request_is_about_the_subject"
    with pytest.raises(Refused) as caught:
        desk.package(CANDIDATE, reference="R-2026-9999")
    assert caught.value.rule == "request_exists"


def test_nothing_is_handed_out_for_a_request_before_it_is_sure_who_asks_nor_after_it_was_closed_without_an_answer(
    store: MemoryStore, desk: PrivacyDesk, database: Database, subtests: pytest.Subtests
) -> None:
    observe(store, "Could start in May.", subject=ZOE)
    register = desk.register

    def entered() -> RightsRequest:
        asked = {"asked_by": "Zoë", "channel": "letter", "received_on": date(2026, 11, 1), "subject": CANDIDATE}
        return register.register("access", **asked)

    def confirmed() -> RightsRequest:
        return register.confirm_identity(entered(), "known in person")

    def closed() -> RightsRequest:
        return register.withdraw(confirmed(), "changed their mind")

    def turned_down() -> RightsRequest:
        return register.refuse(confirmed(), ground="excessive", note="the tenth", complaint_told=True)

    not_answered = "nothing_is_done_for_what_was_not_answered"
    cases: list[tuple[Callable[[], RightsRequest], str]] = [
        (entered, "acted_on_after_identity"),
        (closed, not_answered),
        (turned_down, not_answered),
    ]
    for make, rule in cases:
        with subtests.test(make.__name__):
            request = make()
            before = snapshot(database)
            with pytest.raises(Refused) as caught:
                desk.package(CANDIDATE, reference=request.reference, release=True)
            assert caught.value.rule == rule
            assert snapshot(database) == before
            if request.status.is_open:
                assert desk.package(CANDIDATE, reference=request.reference).items  # to look at it is no handing out
                register.withdraw(request, "changed their mind")
            else:
                with pytest.raises(Refused) as caught:
                    desk.package(CANDIDATE, reference=request.reference)
                assert caught.value.rule == rule
                assert snapshot(database) == before
    answered = register.answer(confirmed(), "sent by post")
    desk.package(CANDIDATE, reference=answered.reference, release=True)
    assert desk.trail(limit=1)[0].act == "export"


def test_each_item_that_is_left_out_of_an_export_is_a_line_of_the_trail_with_its_reason(
    store: MemoryStore, desk: PrivacyDesk
) -> None:
    kept, *others = [observe(store, f"Said {number}.", subject=ZOE) for number in range(3)]
    left_out = {one.memory_id: f"rights of another, {number}" for number, one in enumerate(others)}
    desk.package(CANDIDATE, left_out=left_out)  # to look at it leaves nothing out
    assert [one.act for one in desk.trail()] == ["look at package"]
    package = desk.package(CANDIDATE, left_out=left_out, release=True)
    export, *lines = desk.trail()[:-1]
    assert (export.act, export.count) == ("export", 3)
    assert {(one.act, one.subject, one.reference, one.reason) for one in lines} == {
        ("left out of export", CANDIDATE, str(memory_id), reason) for memory_id, reason in left_out.items()
    }
    assert len(lines) == 2
    assert [one.memory for one in package.items if one.left_out is None] == [
        one.memory for one in package.items if one.memory.memory_id == kept.memory_id
    ]
    assert desk.verify_trail().broken is None
