"""Four eyes: what is too heavy for one officer alone waits for another, who agrees to exactly that, once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any
from uuid import UUID, uuid4

import pytest
from conftest import Database, OpenDesk, OpenStore
from fakes import CANDIDATE, Clock, observation
from pressing import everything_interpreted, press, told
from rows import emptied, execute, snapshot
from streamlit.testing.v1 import AppTest

from memory_core import AwaitingSecond, MemoryStore, OnHold, Refused, Subject
from memory_core.approving import fingerprint_of
from memory_core.config import settings
from memory_core.db import approvals
from memory_core.db.engine import engine_for, organisation_transaction
from memory_core.errors import ChangedMeanwhile
from memory_core.membership import Members
from memory_core.privacy import PrivacyDesk
from memory_core.rights import Approval, HeavyAct, Measure
from memory_core.roles import Identity, Role

ROOT = Path(__file__).resolve().parents[2]
BEN = Subject("candidate", "c-82")
ISSUER = "https://login.example.org"
UNTOUCHED = ("approval", "trail", "organisation")


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(open_store: OpenStore, clock: Clock) -> MemoryStore:
    """Three memories about one candidate, two about another."""
    opened = open_store(clock=clock)
    opened.remember_many(observation(f"Said thing {number}.", run_id="r-1") for number in range(3))
    opened.remember_many(observation(f"Knows c-81 from job {number}.", subject=BEN) for number in range(2))
    return opened


@pytest.fixture
def ines(store: MemoryStore, open_desk: OpenDesk, clock: Clock) -> PrivacyDesk:
    desk = open_desk(clock=clock)
    desk.change_safeguards(replace(desk.safeguards(), four_eyes_over=2))
    return desk


@pytest.fixture
def omar(ines: PrivacyDesk, open_desk: OpenDesk, clock: Clock) -> PrivacyDesk:
    return open_desk(by="user:omar", clock=clock)


def erases(desk: PrivacyDesk, **options: Any) -> Any:
    return desk.erase(CANDIDATE, **{"reason": "erasure request of 3 November", **options})


def waits(act: Callable[[], object]) -> AwaitingSecond:
    with pytest.raises(AwaitingSecond) as awaiting:
        act()
    return awaiting.value


def only(desk: PrivacyDesk) -> Approval:
    (one,) = desk.waiting_for_second()
    return one


def trail_of(desk: PrivacyDesk, one: Approval) -> list[tuple[str, str]]:
    return [(line.by, line.act) for line in reversed(desk.trail(reference=str(one.approval_id)))]


def agreed(act: Callable[[], object], second: PrivacyDesk) -> None:
    """Ask for an act, and have another officer agree to it."""
    waits(act)
    second.decide(only(second).approval_id, True)


# Asking


def test_an_erasure_of_many_is_asked_for_and_nothing_else_is_done(
    ines: PrivacyDesk, database: Database, clock: Clock
) -> None:
    before = snapshot(database, without=UNTOUCHED)
    awaiting = waits(lambda: erases(ines))
    assert snapshot(database, without=UNTOUCHED) == before
    assert (awaiting.rule, awaiting.act, awaiting.declined) == ("four_eyes_agree", "erase", None)
    assert "asked for on 2026-11-02 09:00 UTC, open until 2026-11-09 09:00 UTC" in str(awaiting)
    one = only(ines)
    assert (one.act, one.subject, one.count, one.asked_by) == (HeavyAct.ERASE, CANDIDATE, 3, "user:ines")
    assert (one.reason, one.agreed) == ("erasure request of 3 November", None)
    assert trail_of(ines, one) == [("user:ines", "ask for a second officer")]
    clock.step(hours=1)
    assert waits(lambda: erases(ines)).since == awaiting.since  # it is asked for once
    assert only(ines) == one


@pytest.mark.parametrize(("over", "is_asked"), [(None, False), (0, True), (2, True), (3, False), (4, False)])
def test_it_is_asked_for_where_more_than_so_many_would_go(over: int | None, is_asked: bool, ines: PrivacyDesk) -> None:
    ines.change_safeguards(replace(ines.safeguards(), four_eyes_over=over))
    if is_asked:
        waits(lambda: erases(ines))
    else:
        assert erases(ines).count == 3


def test_what_is_erased_with_it_counts(ines: PrivacyDesk, store: MemoryStore) -> None:
    also = [one.memory_id for one in store.held(BEN).memories]
    ines.change_safeguards(replace(ines.safeguards(), four_eyes_over=4))
    waits(lambda: erases(ines, also=also))
    assert only(ines).count == 5
    assert erases(ines, also=also[:1]).others == tuple(also[:1])


def test_several_small_erasures_within_a_day_count_together(
    ines: PrivacyDesk, omar: PrivacyDesk, store: MemoryStore, clock: Clock
) -> None:
    theirs = [one.memory_id for one in store.held(CANDIDATE).memories]
    assert ines.erase(Subject("job", "j-1"), reason="asked", also=theirs[:1]).others
    clock.step(hours=23)
    assert ines.erase(Subject("job", "j-2"), reason="asked", also=theirs[1:2]).others
    waits(lambda: ines.erase(Subject("job", "j-3"), reason="asked", also=theirs[2:]))
    assert omar.erase(Subject("job", "j-3"), reason="asked", also=theirs[2:]).others  # who has erased none
    clock.step(hours=1, seconds=1)
    assert ines.erase(Subject("job", "j-4"), reason="asked", also=[store.held(BEN).memories[0].memory_id]).others


def test_what_was_agreed_to_does_not_count_as_done_alone(
    ines: PrivacyDesk, omar: PrivacyDesk, store: MemoryStore
) -> None:
    agreed(lambda: erases(ines), omar)
    assert erases(ines).count == 3
    assert ines.erase(BEN, reason="asked").count == 2


def test_a_correction_counts_and_waits(ines: PrivacyDesk, omar: PrivacyDesk, store: MemoryStore) -> None:
    first, second, third = store.held(CANDIDATE).memories
    for one in (first, second):
        ines.correct(one, f"Was wrong: {one.memory_id}.", author="user:zoe", reason="she said so")
    agreed(lambda: ines.correct(third, "Was wrong.", author="user:zoe", reason="she said so"), omar)
    waits(lambda: ines.correct(third, "Was wrong, too.", author="user:zoe", reason="she said so"))  # is another text
    assert store.held(CANDIDATE).memories
    assert ines.correct(third, "Was wrong.", author="user:zoe", reason="she said so").supersedes == third.memory_id


def test_of_two_erasures_at_once_each_counts_the_other(ines: PrivacyDesk, store: MemoryStore) -> None:
    ines.change_safeguards(replace(ines.safeguards(), four_eyes_over=3))
    ready = Barrier(2)

    def erase(subject: Subject) -> int:
        ready.wait()
        try:
            return ines.erase(subject, reason="asked").count
        except AwaitingSecond:
            return 0

    with ThreadPoolExecutor(2) as pool:
        gone = sorted(pool.map(erase, (CANDIDATE, BEN)))
    assert gone in ([0, 2], [0, 3])


@pytest.fixture
def officers(ines: PrivacyDesk, database: Database) -> Members:
    chosen = settings(database_url=database.application.render_as_string(hide_password=False), memory_embedder="none")
    members = Members.open("acme", by="user:root", settings=chosen)
    for name in ("ines", "omar"):
        members.add(Identity(issuer=ISSUER, subject=name), Role.DPO, name=f"user:{name}")
    members.add(Identity(issuer=ISSUER, subject="root"), Role.ADMIN, name="user:admin")
    return members


def test_an_agreement_ends_with_the_office_of_whoever_gave_it(
    ines: PrivacyDesk, omar: PrivacyDesk, officers: Members
) -> None:
    agreed(lambda: erases(ines), omar)
    officers.remove(Identity(issuer=ISSUER, subject="omar"))
    waits(lambda: erases(ines))
    officers.add(Identity(issuer=ISSUER, subject="omar"), Role.AUDITOR, name="user:omar")
    waits(lambda: erases(ines))
    officers.add(Identity(issuer=ISSUER, subject="omar"), Role.DPO, name="user:omar")
    assert erases(ines).count == 3


def test_somebody_with_a_second_name_is_no_second_officer(
    ines: PrivacyDesk, officers: Members, open_desk: OpenDesk, clock: Clock
) -> None:
    waits(lambda: erases(ines))
    herself = Identity(issuer=ISSUER, subject="ines")
    officers.remove(herself)
    officers.add(herself, Role.DPO, name="user:ines2")
    with pytest.raises(Refused) as refused:
        open_desk(by="user:ines2", clock=clock).decide(only(ines).approval_id, True)
    assert refused.value.rule == "second_officer_is_another"


def test_nothing_held_is_erased_without_anybody(ines: PrivacyDesk) -> None:
    ines.change_safeguards(replace(ines.safeguards(), four_eyes_over=0))
    assert ines.erase(Subject("candidate", "c-99"), reason="asked").count == 0


def test_the_stores_own_forget_is_no_way_around_it(ines: PrivacyDesk, omar: PrivacyDesk, store: MemoryStore) -> None:
    def forget() -> Any:
        return store.forget(CANDIDATE, by="user:ines", reason="asked")

    agreed(forget, omar)
    assert forget().count == 3


def test_what_a_rule_refuses_is_not_asked_for(ines: PrivacyDesk) -> None:
    hold = ines.hold("claim", subject=CANDIDATE, name="claim-7")
    for act, refused in (
        (lambda: erases(ines), OnHold),
        (lambda: ines.erase(BEN, reason="", expecting=2), Refused),
        (lambda: ines.erase(BEN, reason="asked", expecting=1), ChangedMeanwhile),
        (lambda: ines.lift(hold, reason=" "), Refused),
        (lambda: ines.package(BEN, release=True, expecting="another"), ChangedMeanwhile),
    ):
        with pytest.raises(refused):
            act()
    assert ines.waiting_for_second() == []


def test_two_presses_of_one_button_ask_once(ines: PrivacyDesk) -> None:
    together = Barrier(2)

    def press_it() -> AwaitingSecond:
        together.wait()
        return waits(lambda: erases(ines))

    with ThreadPoolExecutor(2) as pool:
        first, second = [pool.submit(press_it) for _ in range(2)]
        assert first.result().since == second.result().since
    assert only(ines).agreed is None


# Agreeing


def test_what_another_officer_agreed_to_is_done_once(ines: PrivacyDesk, omar: PrivacyDesk, database: Database) -> None:
    agreed(lambda: erases(ines, suppress=True), omar)
    one = only(ines)
    assert (one.decided_by, one.agreed, one.used_at) == ("user:omar", True, None)
    erasure = erases(ines, suppress=True)
    assert (erasure.count, erasure.by) == (3, "user:ines")
    assert ines.waiting_for_second() == []
    assert trail_of(ines, one) == [("user:ines", "ask for a second officer"), ("user:omar", "agree as second officer")]
    assert execute(database, "SELECT used_at = %s FROM approval", (erasure.at,)) == [(True,)]


def test_an_agreement_cannot_be_used_twice(ines: PrivacyDesk, omar: PrivacyDesk, store: MemoryStore) -> None:
    def lift(one: Measure) -> Measure:
        return ines.lift(one, reason="over")

    hold = ines.hold("claim", subject=CANDIDATE, name="claim-7")
    agreed(lambda: lift(hold), omar)
    assert lift(hold).lifted_by == "user:ines"
    again = ines.hold("claim", subject=CANDIDATE, name="claim-7")
    waits(lambda: lift(again))


def test_only_one_of_two_at_once_uses_an_agreement_up(
    ines: PrivacyDesk, omar: PrivacyDesk, database: Database, clock: Clock
) -> None:
    agreed(lambda: erases(ines), omar)
    one, engine = only(ines), engine_for(database.application)
    together = Barrier(2)

    def use() -> bool:
        together.wait()
        with organisation_transaction(engine, "acme") as connection:
            return approvals.use(connection, "acme", one.approval_id, now=clock())

    with ThreadPoolExecutor(2) as pool:
        assert sorted(task.result() for task in [pool.submit(use) for _ in range(2)]) == [False, True]


@pytest.mark.parametrize("other", ["a memory more", "a memory less", "also", "suppress", "reference", "officer"])
def test_anything_else_needs_another_agreement(
    other: str, ines: PrivacyDesk, omar: PrivacyDesk, store: MemoryStore, open_desk: OpenDesk, clock: Clock
) -> None:
    ines.change_safeguards(replace(ines.safeguards(), four_eyes_over=1))
    agreed(lambda: erases(ines), omar)
    desk, options = ines, {}
    if other == "a memory more":
        store.remember(**observation("Said another thing."))
    elif other == "a memory less":
        store.remember(**observation("Said another thing."))
        ines.correct(store.held(CANDIDATE).memories[0], "Said thing 0, twice.", author="user:zoe", reason="wrong")
    elif other == "also":
        options = {"also": [store.held(BEN).memories[0].memory_id]}
    elif other == "suppress":
        options = {"suppress": True}
    elif other == "reference":
        request = ines.register.register(
            "erasure", asked_by="Zoë", channel="e-mail", received_on=ines.today(), subject=CANDIDATE
        )
        ines.register.confirm_identity(request, "known in person")
        options = {"reference": request.reference}
    else:
        desk = open_desk(by="user:uma", clock=clock)
    waits(lambda: erases(desk, **options))
    assert len(ines.waiting_for_second()) == 2
    assert store.held(CANDIDATE).with_text >= 3


def test_another_reason_is_the_same_act(ines: PrivacyDesk, omar: PrivacyDesk) -> None:
    agreed(lambda: erases(ines), omar)
    assert erases(ines, reason="the same, in other words").count == 3


def test_whoever_asked_cannot_decide(ines: PrivacyDesk, omar: PrivacyDesk) -> None:
    waits(lambda: erases(ines))
    one = only(ines)
    for yes in (True, False):
        with pytest.raises(Refused) as refused:
            ines.decide(one.approval_id, yes)
        assert (refused.value.rule, refused.value.field) == ("second_officer_is_another", "by")
    assert only(omar) == one
    assert trail_of(ines, one) == [("user:ines", "ask for a second officer")]


def test_a_decision_stands_and_what_is_none_is_refused(
    ines: PrivacyDesk, omar: PrivacyDesk, open_desk: OpenDesk
) -> None:
    waits(lambda: erases(ines))
    one = only(ines)
    for wrong in (None, "yes", 1):
        with pytest.raises(Refused, match="a_decision_is_yes_or_no"):
            omar.decide(one.approval_id, wrong)  # type: ignore[arg-type]
    for nothing in (uuid4(), "x", None):
        with pytest.raises(Refused, match="approval_exists"):
            omar.decide(nothing, True)  # type: ignore[arg-type]
    with pytest.raises(Refused, match="approval_exists"):
        open_desk("globex", by="user:omar").decide(one.approval_id, True)
    assert omar.decide(one.approval_id, False).agreed is False
    with pytest.raises(ChangedMeanwhile, match=r"was decided by user:omar already"):
        omar.decide(one.approval_id, True)


def test_what_was_declined_says_by_whom_and_may_be_asked_for_again(
    ines: PrivacyDesk, omar: PrivacyDesk, store: MemoryStore, clock: Clock
) -> None:
    waits(lambda: erases(ines))
    first = only(ines)
    omar.decide(first.approval_id, False)
    assert only(ines).agreed is False
    assert trail_of(ines, first)[-1] == ("user:omar", "decline as second officer")
    clock.step(hours=2)
    awaiting = waits(lambda: erases(ines))
    assert awaiting.declined == "user:omar on 2026-11-02 09:00 UTC"
    assert "declined by user:omar on 2026-11-02 09:00 UTC, and now asked for anew" in str(awaiting)
    second = only(ines)  # what was declined is not shown beside what waits
    assert second.approval_id != first.approval_id
    assert waits(lambda: erases(ines)).declined is None
    omar.decide(second.approval_id, True)
    assert erases(ines).count == 3
    assert ines.waiting_for_second() == []


def test_after_seven_days_nobody_agrees_and_nothing_is_done_on_it(
    ines: PrivacyDesk, omar: PrivacyDesk, clock: Clock
) -> None:
    waits(lambda: erases(ines))
    one = only(ines)
    clock.step(days=7)
    assert ines.waiting_for_second() == []
    with pytest.raises(ChangedMeanwhile, match="is not open any more"):
        omar.decide(one.approval_id, True)
    agreed(lambda: erases(ines), omar)
    clock.step(days=6, hours=23)
    assert only(ines).agreed is True
    clock.step(hours=1)
    assert waits(lambda: erases(ines)).since == "2026-11-16 09:00 UTC"


def test_where_it_is_not_asked_for_any_more_the_act_is_done_at_once(ines: PrivacyDesk) -> None:
    waits(lambda: erases(ines))
    ines.change_safeguards(replace(ines.safeguards(), four_eyes_over=None))
    assert erases(ines).count == 3


# Holds and packages


def test_lifting_a_hold_waits_and_lifting_anything_else_does_not(
    ines: PrivacyDesk, omar: PrivacyDesk, store: MemoryStore
) -> None:
    ines.change_safeguards(replace(ines.safeguards(), four_eyes_over=1000))
    hold = ines.hold("claim", subject=CANDIDATE, name="claim-7")
    restriction = ines.restrict("contested", subject=CANDIDATE)
    suppression = ines.suppress("objected", subject=CANDIDATE)
    ines.lift(restriction, reason="settled", person_told=True)
    ines.lift(suppression, reason="withdrawn")
    waits(lambda: ines.lift(hold, reason="settled"))
    one = only(omar)
    assert (one.act, one.subject, one.count, one.reason) == (HeavyAct.LIFT, CANDIDATE, 3, "settled")
    assert {memory.hold for memory in store.held(CANDIDATE).memories} == {"claim-7"}
    omar.decide(one.approval_id, True)
    assert not ines.lift(hold, reason="settled").stands
    assert {memory.hold for memory in store.held(CANDIDATE).memories} == {None}


def test_a_package_waits_to_be_handed_out_and_not_to_be_looked_at(
    ines: PrivacyDesk, omar: PrivacyDesk, store: MemoryStore
) -> None:
    looked = ines.package(CANDIDATE)
    assert ines.waiting_for_second() == []
    left_out = {looked.items[0].memory.memory_id: "names somebody else"}

    def release(reasons: dict[UUID, str]) -> Any:
        return ines.package(CANDIDATE, release=True, expecting=looked.readable, left_out=reasons)

    agreed(lambda: release(left_out), omar)
    one = only(ines)
    assert (one.act, one.count, one.reason) == (HeavyAct.RELEASE, 3, "for no request")
    waits(lambda: release({}))
    waits(lambda: release(dict.fromkeys(left_out, "for another reason")))
    assert [line.act for line in ines.trail(subject=CANDIDATE)].count("export") == 0
    assert release(left_out).readable == looked.readable
    assert [line.act for line in ines.trail(subject=CANDIDATE)].count("export") == 1


def test_a_fingerprint_is_of_everything_in_one_order() -> None:
    done = {"subject": ["candidate", "c-81"], "memories": ["1", "2"], "suppress": False}
    one = fingerprint_of(HeavyAct.ERASE, done)
    assert len(one) == 32
    assert one == fingerprint_of(HeavyAct.ERASE, dict(reversed(done.items())))
    assert one != fingerprint_of(HeavyAct.LIFT, done)
    assert one != fingerprint_of(HeavyAct.ERASE, {**done, "memories": ["12"]})


# The pages


@pytest.fixture
def page(database: Database, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], AppTest]:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("DATABASE_URL", database.application.render_as_string(hide_password=False))
    monkeypatch.setenv("MEMORY_ORG", "acme")
    monkeypatch.setenv("MEMORY_EMBEDDER", "none")

    def opened(name: str) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        at = at.run() if name == "app.py" else at.switch_page(f"pages/{name}").run()
        assert not at.exception
        return at

    return opened


@pytest.fixture
def now_ines(open_store: OpenStore, open_desk: OpenDesk) -> PrivacyDesk:
    """By the database's own clock, as the pages are."""
    open_store().remember_many(observation(f"Said thing {number}.") for number in range(3))
    desk = open_desk()
    desk.change_safeguards(replace(desk.safeguards(), four_eyes_over=0))
    return desk


def texts(at: AppTest) -> str:
    return "\n".join(text.value for text in at.text)


def test_the_requests_page_shows_exactly_what_would_be_done_and_takes_the_decision(
    page: Callable[[str], AppTest], now_ines: PrivacyDesk
) -> None:
    waits(lambda: erases(now_ines, reason="*asked* on <b>3 November</b>"))
    assert any("1 act waits" in one.value for one in page("app.py").warning)
    at = page("2_Requests.py")
    assert "**Erase 3 memories** · waits for a decision" in [one.value for one in at.markdown]
    assert "About candidate c-81. Asked for by user:ines on 2" in texts(at)
    assert "*asked* on <b>3 November</b>" in told(at)
    assert "<b>3 November" not in everything_interpreted(at)
    at = press(press(at, "Agree …"), "Not now")
    assert only(now_ines).agreed is None
    at = press(press(at, "Agree …"), "Yes, I agree")
    assert "Agreed" in at.success[0].value
    one = only(now_ines)
    assert (one.agreed, one.decided_by) == (True, "user:local")
    assert "Agreed to by user:local" in texts(at)
    assert not [button for button in at.button if button.label in ("Agree …", "Decline …")]
    assert erases(now_ines).count == 3


def test_an_officer_may_decline_on_the_page(page: Callable[[str], AppTest], now_ines: PrivacyDesk) -> None:
    waits(lambda: erases(now_ines))
    at = press(press(page("2_Requests.py"), "Decline …"), "Yes, I decline")
    assert "Declined" in at.success[0].value
    assert only(now_ines).agreed is False


def test_whoever_asked_sees_their_own_waiting_and_cannot_decide(
    page: Callable[[str], AppTest], now_ines: PrivacyDesk, open_desk: OpenDesk
) -> None:
    waits(lambda: erases(open_desk(by="user:local")))
    at = page("2_Requests.py")
    assert "**Erase 3 memories** · waits for somebody else, since you asked" in [one.value for one in at.markdown]
    assert not [button for button in at.button if button.label in ("Agree …", "Decline …")]


def test_an_erasure_on_the_page_waits_and_says_what_happens_next(
    page: Callable[[str], AppTest], now_ines: PrivacyDesk
) -> None:
    at = page("1_Subjects.py")
    at.text_input(key="search").set_value("c-81").run()
    at.session_state["section candidate c-81"] = "Erase"
    at.run()
    press(at, "Look for what belongs to it")
    next(button for button in at.button if button.label.startswith("Forget 3")).click().run()
    at.text_area[-1].set_value("asked")
    at.text_input[-1].set_value("c-81").run()
    next(button for button in at.button if button.label == "Forget").click().run()
    assert not at.exception
    assert not at.error
    assert "another data protection officer has to agree first" in at.info[-1].value
    assert "do exactly the same here again" in texts(at)
    assert only(now_ines).asked_by == "user:local"


def test_a_hold_and_a_package_wait_on_their_pages_too(page: Callable[[str], AppTest], now_ines: PrivacyDesk) -> None:
    now_ines.hold("claim", subject=CANDIDATE, name="claim-7")
    at = page("1_Subjects.py")
    at.text_input(key="search").set_value("c-81").run()
    at.session_state["section candidate c-81"] = "Restrict, hold, suppress"
    at.run()
    at.text_area[-1].set_value("settled")
    press(at, "Lift")
    assert "It stands yet" in at.info[-1].value
    at.session_state["section candidate c-81"] = "Hand out"
    at.run()
    press(at, "Prepare the package")
    assert "It was not prepared yet" in at.info[-1].value
    assert not any("Passphrase" in text.value for text in at.text)
    assert {one.act for one in now_ines.waiting_for_second()} == {HeavyAct.LIFT, HeavyAct.RELEASE}


def test_the_settings_say_what_each_safeguard_does_and_who_set_it(
    page: Callable[[str], AppTest], now_ines: PrivacyDesk
) -> None:
    at = page("7_Settings.py")
    assert "Without a sign-in there is one local user" in "\n".join(one.value for one in at.warning)
    assert texts(at).count("Last changed by user:ines on 2") == 1
    at.toggle(key="acme safeguards pseudonyms").set_value(True)
    at.toggle(key="acme safeguards four eyes").set_value(False)
    at.toggle(key="acme safeguards leave").set_value(True)
    press(at, "Save the safeguards")
    assert "Saved" in at.success[0].value
    chosen = now_ines.safeguards()
    assert (chosen.preview_pseudonyms, chosen.four_eyes_over) == (True, None)
    assert (chosen.observations_leave, chosen.observations_leave_by) == (True, "user:local")
    assert "Let leave by user:local, since 2" in texts(at)
    assert "Without a sign-in" not in "\n".join(one.value for one in at.warning)
    at.text_area[0].set_value("Acme Hiring Ltd")  # the answers beside it are a change of what is now set
    press(at, "Save")
    assert "Saved" in at.success[0].value
    assert now_ines.settings().answers.controller == "Acme Hiring Ltd"
    press(at, "Save the safeguards")
    assert not at.error


def test_a_safeguard_that_somebody_else_changed_meanwhile_is_not_overwritten(
    page: Callable[[str], AppTest], now_ines: PrivacyDesk
) -> None:
    at = page("7_Settings.py")
    now_ines.change_safeguards(replace(now_ines.safeguards(), four_eyes_over=50))
    at.toggle(key="acme safeguards four eyes").set_value(False)
    press(at, "Save the safeguards")
    assert "Nothing was saved." in at.error[0].value
    assert now_ines.safeguards().four_eyes_over == 50


def test_a_new_name_is_no_new_day(
    ines: PrivacyDesk, officers: Members, store: MemoryStore, open_desk: OpenDesk, clock: Clock
) -> None:
    assert ines.erase(BEN, reason="asked").count == 2
    herself = Identity(issuer=ISSUER, subject="ines")
    officers.remove(herself)
    officers.add(herself, Role.DPO, name="user:ines2")
    renamed = open_desk(by="user:ines2", clock=clock)
    theirs = [one.memory_id for one in store.held(CANDIDATE).memories]
    waits(lambda: renamed.erase(Subject("job", "j-1"), reason="asked", also=theirs[:1]))
