"""Who is a member, in which role; a second officer's agreement; safeguards: their rules, and that nothing is undone."""

from __future__ import annotations

import getpass
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import psycopg
import pytest
from fakes import CANDIDATE
from psycopg import sql
from rows import emptied, execute, snapshot

from memory_core import ChangedMeanwhile, Identity, Refused, UnsafeRole
from memory_core.cli import main
from memory_core.config import Settings, settings
from memory_core.db import approvals, members
from memory_core.db.engine import engine_for, identity_transaction, organisation_transaction
from memory_core.membership import Members, memberships_of, standing_of
from memory_core.rights import Approval, HeavyAct, Safeguards
from memory_core.roles import Act, Role, Standing

if TYPE_CHECKING:
    from conftest import Database, OpenDesk

    Run = Callable[..., tuple[int, str, str]]

ISSUER = "https://login.example.org"
INES, BO, EVE = (Identity(issuer=ISSUER, subject=f"auth0|{number}") for number in (81, 82, 83))
ME = f"user:{getpass.getuser()}"
NOW = datetime.now(UTC)
FINGERPRINT = bytes(range(32))


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def here(database: Database) -> Settings:
    return settings(database_url=database.application.render_as_string(hide_password=False), memory_embedder="none")


@pytest.fixture
def acme(here: Settings) -> Members:
    return Members.open("acme", by="user:maria", settings=here)


def refused(act: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(Refused) as caught:
        act()
    return caught.value.rule, caught.value.field


def lines(database: Database) -> list[tuple[Any, ...]]:
    return execute(database, "SELECT by, act, reference, count, reason FROM trail ORDER BY number")


# Adding and removing


def test_a_member_is_what_was_added_until_it_is_removed(acme: Members, here: Settings) -> None:
    assert standing_of("acme", INES, settings=here) is None
    added = acme.add(INES, "dpo", name="user:ines", email="ines@example.org")
    assert (added.identity, added.role, added.name, added.email) == (INES, Role.DPO, "user:ines", "ines@example.org")
    assert (added.added_by, added.removed_at, added.removed_by) == ("user:maria", None, None)
    assert acme.listed() == [added]
    assert standing_of("acme", INES, settings=here) == Standing(name="user:ines", roles=frozenset({Role.DPO}))
    acme.add(INES, Role.ADMIN, name="user:ines")
    both = standing_of("acme", INES, settings=here)
    assert both == Standing(name="user:ines", roles=frozenset({Role.DPO, Role.ADMIN}))
    assert both.may(Act.FORGET)
    assert acme.remove(INES, "dpo") == {Role.DPO}
    assert standing_of("acme", INES, settings=here) == Standing(name="user:ines", roles=frozenset({Role.ADMIN}))
    assert acme.remove(INES) == {Role.ADMIN}
    assert standing_of("acme", INES, settings=here) is None
    assert acme.listed() == []
    was = acme.listed(with_removed=True)
    assert [(one.role, one.removed_by) for one in was] == [(Role.DPO, "user:maria"), (Role.ADMIN, "user:maria")]
    assert all(one.removed_at and one.removed_at >= one.added_at for one in was)


def test_the_roles_of_one_identity_are_removed_together_where_none_is_named(acme: Members) -> None:
    for role in Role:
        acme.add(INES, role, name="user:ines")
    assert acme.remove(INES) == set(Role)
    assert acme.listed() == []


def test_each_change_is_a_line_of_the_trail_without_the_address_and_a_look_is_none(
    acme: Members, database: Database
) -> None:
    acme.add(INES, "admin", name="user:ines", email="ines@example.org")
    acme.add(INES, "dpo", name="user:ines", email="ines@example.org")
    acme.listed()
    acme.listed(with_removed=True)
    acme.remove(INES)
    assert lines(database) == [
        ("user:maria", "add member", INES.short, 1, "user:ines as admin"),
        ("user:maria", "add member", INES.short, 1, "user:ines as dpo"),
        ("user:maria", "remove member", INES.short, 2, "user:ines as admin, dpo"),
    ]


def test_a_removed_role_may_be_given_again(acme: Members, here: Settings) -> None:
    for _ in range(2):
        acme.add(INES, "dpo", name="user:ines")
        acme.remove(INES, "dpo")
    acme.add(INES, "dpo", name="user:ines")
    assert standing_of("acme", INES, settings=here) == Standing(name="user:ines", roles=frozenset({Role.DPO}))
    assert len(acme.listed(with_removed=True)) == 3


# What is refused


@pytest.mark.parametrize(
    ("change", "rule", "field"),
    [
        *(({"role": role}, "role_is_known", "role") for role in ("owner", "DPO", "", None, 7)),
        *(({"name": name}, "identifier_shape", "name") for name in ("user:ínes", "user: ines", "user:ines\n", 7)),
        *(({"name": name}, "identifier_is_given", "name") for name in ("", None)),
        *(({"name": name}, "name_is_a_users", "name") for name in ("ines", "agent:screening", "user:", "xuser:ines")),
        *(
            ({"email": email}, "email_is_one_address", "email")
            for email in (
                *(
                    "",
                    "ines",
                    "@",
                    "ines@",
                    "@example.org",
                    "a@b@c",
                    "a b@c",
                    "a@c\n",
                    "a\x00@c",
                    "a\u202e@c",
                    "a\ud800@c",
                ),
                *("x" * 251 + "@abc", 7),
            )
        ),
    ],
)
def test_what_names_no_role_no_person_or_no_address_is_refused(
    acme: Members, database: Database, change: dict[str, Any], rule: str, field: str
) -> None:
    before = snapshot(database)
    given: dict[str, Any] = {"role": "dpo", "name": "user:ines", "email": None, **change}
    assert refused(lambda: acme.add(INES, given.pop("role"), **given)) == (rule, field)
    assert snapshot(database) == before


def test_addresses_are_looked_at_loosely(acme: Members) -> None:
    for role, email in zip(Role, ("é@ü.example", "x" * 250 + "@abc", "a+b@c", None), strict=True):
        assert acme.add(INES, role, name="user:ines", email=email).email == email


def test_a_name_belongs_to_one_identity_alone_also_when_that_is_removed(
    acme: Members, here: Settings, database: Database
) -> None:
    acme.add(INES, "dpo", name="user:ines")
    assert refused(lambda: acme.add(BO, "admin", name="user:ines")) == ("name_is_one_persons", "name")
    acme.remove(INES)
    assert refused(lambda: acme.add(BO, "admin", name="user:ines")) == ("name_is_one_persons", "name")
    another = Identity(
        issuer="https://elsewhere.example.org", subject=INES.subject
    )  # the same subject is not the same person
    assert refused(lambda: acme.add(another, "dpo", name="user:ines")) == ("name_is_one_persons", "name")
    assert [name for (name,) in execute(database, "SELECT name FROM member")] == ["user:ines"]
    Members.open("globex", by="user:maria", settings=here).add(BO, "admin", name="user:ines")  # where it is nobody's


def test_an_identity_has_one_name(acme: Members) -> None:
    acme.add(INES, "dpo", name="user:ines")
    assert refused(lambda: acme.add(INES, "admin", name="user:ines.s")) == ("identity_has_one_name", "name")
    acme.remove(INES)
    assert acme.add(INES, "dpo", name="user:ines.s").name == "user:ines.s"
    assert refused(lambda: acme.add(BO, "dpo", name="user:ines")) == ("name_is_one_persons", "name")


def test_no_admin_adds_a_role_to_themselves(acme: Members, here: Settings) -> None:
    acme.add(INES, Role.ADMIN, name="user:ines")
    for by, name in (("user:ines", "user:ines"), ("user:bo", "user:bo")):
        own = Members.open("acme", by=by, settings=here)
        with pytest.raises(Refused) as refused:
            own.add(INES if by == "user:ines" else BO, Role.DPO, name=name)
        assert refused.value.rule == "nobody_adds_to_their_own_roles"
    assert acme.add(INES, Role.DPO, name="user:ines").role is Role.DPO


def test_what_stands_is_not_added_and_what_does_not_is_not_removed(acme: Members, database: Database) -> None:
    acme.add(INES, "dpo", name="user:ines")
    acme.add(BO, "admin", name="user:bo")
    before = snapshot(database)
    assert refused(lambda: acme.add(INES, "dpo", name="user:ines")) == ("member_is_there", "role")
    assert refused(lambda: acme.remove(INES, "admin")) == ("member_exists", "identity")
    assert refused(lambda: acme.remove(EVE)) == ("member_exists", "identity")
    assert refused(lambda: acme.remove(INES, "owner")) == ("role_is_known", "role")
    assert snapshot(database) == before


def test_the_last_admin_stays_while_anybody_else_is_a_member(acme: Members, database: Database) -> None:
    last = ("somebody_can_add_members", "role")
    acme.add(INES, "admin", name="user:ines")
    acme.add(INES, "dpo", name="user:ines")
    assert refused(lambda: acme.remove(INES, "admin")) == last  # they would be a member whom nobody could remove
    acme.add(BO, "auditor", name="user:bo")
    before = snapshot(database)
    for role in (None, "admin"):
        assert refused(lambda role=role: acme.remove(INES, role)) == last
    assert snapshot(database) == before
    acme.add(BO, "admin", name="user:bo")
    acme.remove(INES, "admin")
    assert refused(lambda: acme.remove(BO, "admin")) == last
    acme.remove(INES)
    assert acme.remove(BO) == {Role.AUDITOR, Role.ADMIN}  # nobody else is left
    assert acme.listed() == []


def test_members_are_opened_for_an_organisation_and_by_somebody(here: Settings) -> None:
    assert refused(lambda: Members.open("a b", by="user:maria", settings=here)) == ("identifier_shape", "org_id")
    assert refused(lambda: Members.open("acme", by="", settings=here)) == ("identifier_is_given", "by")
    for org_id in ("", "a b", "acme\x00", "acme'--", None):
        assert standing_of(org_id, INES, settings=here) is None  # type: ignore[arg-type]


# At once


def at_once(*acts: Callable[[], object]) -> list[str | None]:
    """Do all at one moment; return the rule by which each was refused, None for those that were done."""
    gate = threading.Barrier(len(acts))

    def done(act: Callable[[], object]) -> str | None:
        gate.wait()
        try:
            act()
        except Refused as error:
            return error.rule
        return None

    with ThreadPoolExecutor(len(acts)) as pool:
        return sorted(pool.map(done, acts), key=str)


def test_of_two_identities_that_take_one_name_at_once_one_has_it(acme: Members, database: Database) -> None:
    for number in range(8):
        name = f"user:ines-{number}"
        both = [Identity(issuer=ISSUER, subject=f"{number}-{one}") for one in range(2)]
        adds = [lambda one=one, name=name: acme.add(one, "dpo", name=name) for one in both]
        assert at_once(*adds) == [None, "name_is_one_persons"]
    assert execute(database, "SELECT count(*), count(DISTINCT name) FROM member") == [(8, 8)]
    assert execute(database, "SELECT count(*) FROM trail") == [(8,)]


def test_one_role_added_twice_at_once_stands_once(acme: Members, database: Database) -> None:
    outcomes = at_once(*[lambda: acme.add(INES, "dpo", name="user:ines")] * 4)
    assert outcomes == [None, *["member_is_there"] * 3]
    assert execute(database, "SELECT count(*) FROM member") == [(1,)]


def test_of_two_admins_who_remove_each_other_at_once_one_stays(acme: Members, database: Database) -> None:
    acme.add(EVE, "auditor", name="user:eve")
    acme.add(INES, "admin", name="user:ines")
    acme.add(BO, "admin", name="user:bo")
    outcomes = at_once(lambda: acme.remove(INES), lambda: acme.remove(BO))
    assert outcomes == [None, "somebody_can_add_members"]
    assert execute(database, "SELECT count(*) FROM member WHERE role = 'admin' AND removed_at IS NULL") == [(1,)]


# Across organisations


@pytest.fixture
def two(here: Settings) -> Settings:
    """Let Ines be a member of two organisations, was of a third; Bo of two."""
    for org_id, roles in {"acme": ("dpo", "admin"), "globex": ("engineer",), "initech": ("auditor",)}.items():
        opened = Members.open(org_id, by="user:maria", settings=here)
        for role in roles:
            opened.add(INES, role, name=f"user:ines.{org_id}")
    opened.remove(INES)
    for org_id in ("acme", "umbrella"):
        Members.open(org_id, by="user:maria", settings=here).add(BO, "dpo", name="user:bo")
    return here


def test_an_identity_finds_what_it_is_in_each_organisation_where_it_is_a_member(two: Settings) -> None:
    assert memberships_of(INES, settings=two) == {
        "acme": Standing(name="user:ines.acme", roles=frozenset({Role.DPO, Role.ADMIN})),
        "globex": Standing(name="user:ines.globex", roles=frozenset({Role.ENGINEER})),
    }
    assert memberships_of(BO, settings=two).keys() == {"acme", "umbrella"}
    assert memberships_of(EVE, settings=two) == {}
    assert memberships_of(Identity(issuer=INES.subject, subject=INES.issuer), settings=two) == {}


def test_a_removed_role_is_gone_at_the_next_look(two: Settings) -> None:
    acme = Members.open("acme", by="user:maria", settings=two)
    acme.add(EVE, "admin", name="user:eve")
    acme.remove(INES, "admin")
    assert memberships_of(INES, settings=two)["acme"].roles == {Role.DPO}
    acme.remove(INES)
    assert memberships_of(INES, settings=two).keys() == {"globex"}
    assert standing_of("acme", INES, settings=two) is None


def seen(database: Database, *named: str) -> list[tuple[str, bytes, Any]]:
    """Return the members that the application's role sees with these settings."""
    with database.connect(database.application) as connection:
        for one in named:
            connection.execute(one)  # type: ignore[arg-type]
        return connection.execute("SELECT org_id, identity, removed_at FROM member").fetchall()


@pytest.mark.parametrize(
    "identity",
    [
        *("", " ", "%", "null", "0", "zz", "\\x", "*", "'; --", "00" * 32, EVE.digest.hex(), INES.digest.hex()[:-1]),
        *(INES.digest.hex().upper(), "\\x" + INES.digest.hex(), INES.subject, INES.issuer, INES.short),
        f"{INES.digest.hex()},{BO.digest.hex()}",
    ],
)
def test_an_identity_that_is_empty_nobodys_or_none_sees_nothing(
    two: Settings, database: Database, identity: str
) -> None:
    assert two
    named = sql.SQL("SET LOCAL memory.identity = {}").format(sql.Literal(identity)).as_string(None)
    assert seen(database, named) == []
    assert seen(database, "SET LOCAL memory.org_id = ''", named) == []
    assert seen(database) == []


def test_an_identity_sees_its_own_standing_rows_and_no_other(two: Settings, database: Database) -> None:
    assert two
    rows = seen(database, "SET LOCAL memory.org_id = ''", f"SET LOCAL memory.identity = '{INES.digest.hex()}'")
    assert sorted(org_id for org_id, _, _ in rows) == ["acme", "acme", "globex"]
    assert {identity for _, identity, _ in rows} == {INES.digest}
    assert {removed for _, _, removed in rows} == {None}


def test_an_identity_reads_and_nothing_more_and_reads_members_alone(two: Settings, database: Database) -> None:
    before = snapshot(database)
    engine = engine_for(database.application)
    with identity_transaction(engine, INES) as connection:
        assert members.memberships(connection, BO) == {}
        assert members.listed(connection, "umbrella") == []
        assert members.remove(connection, "acme", INES, by="user:ines", at=NOW) == frozenset()
        for table in ("approval", "memory", "organisation_setting", "trail"):
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one() == 0
    with pytest.raises(UnsafeRole), identity_transaction(engine, INES) as connection:
        members.add(
            connection,
            "acme",
            **{"member_id": uuid4(), "identity": INES, "role": Role.ENGINEER, "name": "user:ines.acme", "email": None},
            by="user:ines",
            at=NOW,
        )
    assert snapshot(database) == before
    with engine.connect() as connection:  # it goes back to the pool without its identity
        assert connection.exec_driver_sql("SELECT current_setting('memory.identity', true)").scalar() in (None, "")
        assert connection.exec_driver_sql("SELECT count(*) FROM member").scalar_one() == 0


# Nothing is undone


@pytest.fixture(params=["application", "owner"])
def by_hand(request: pytest.FixtureRequest, database: Database) -> Iterator[psycopg.Connection[Any]]:
    with database.connect(getattr(database, request.param)) as connection:
        connection.execute("SET LOCAL memory.org_id = 'acme'")
        yield connection


def changed(connection: psycopg.Connection[Any], statement: str) -> int | None:
    """Return how many rows a statement changes; None where a policy refuses what they would be."""
    with connection.transaction(force_rollback=True):
        try:
            return connection.execute(statement).rowcount  # type: ignore[arg-type]
        except psycopg.errors.InsufficientPrivilege as error:
            if "row-level security" not in str(error):
                raise
            return None


def test_nobody_takes_a_removal_back(acme: Members, by_hand: psycopg.Connection[Any]) -> None:
    acme.add(INES, "dpo", name="user:ines")
    acme.add(BO, "dpo", name="user:bo")
    acme.remove(INES)
    for column, value in (("removed_at", "NULL"), ("removed_by", "NULL"), ("removed_by", "'user:bo'")):
        assert changed(by_hand, f"UPDATE member SET {column} = {value} WHERE name = 'user:ines'") == 0
    assert changed(by_hand, "UPDATE member SET removed_at = NULL, removed_by = NULL WHERE removed_at IS NOT NULL") == 0
    assert changed(by_hand, "UPDATE member SET removed_at = now(), removed_by = 'user:maria'") == 1  # who stands


def asked(database: Database, **change: Any) -> Approval:
    with organisation_transaction(engine_for(database.application), "acme") as connection:
        return approvals.ask(
            connection,
            "acme",
            **{
                **{
                    "approval_id": uuid4(),
                    "act": "erase",
                    "fingerprint": FINGERPRINT,
                    "subject": CANDIDATE,
                    "count": 12,
                },
                **{"reason": "asked to", "by": "user:ines", "at": NOW, "expires_at": NOW + timedelta(days=1), **change},
            },
        )


def decided(
    database: Database, approval_id: UUID, *, by: str = "user:bo", agreed: bool = True, now: datetime = NOW
) -> bool:
    with organisation_transaction(engine_for(database.application), "acme") as connection:
        return approvals.decide(connection, "acme", approval_id, by=by, agreed=agreed, now=now)


def used(database: Database, approval_id: UUID, *, now: datetime = NOW) -> bool:
    with organisation_transaction(engine_for(database.application), "acme") as connection:
        return approvals.use(connection, "acme", approval_id, now=now)


@pytest.fixture
def entered(database: Database) -> Database:
    """Return a database whose list has the organisation."""
    execute(database, "INSERT INTO organisation VALUES ('acme')")
    return database


def test_an_approval_is_asked_for_decided_once_and_used_once(entered: Database) -> None:
    approval = asked(entered)
    assert approval.waits(now=NOW)
    assert not approval.is_usable(now=NOW)
    assert not used(entered, approval.approval_id)
    assert decided(entered, approval.approval_id)
    assert not decided(entered, approval.approval_id, by="user:eve", agreed=False)
    with organisation_transaction(engine_for(entered.application), "acme") as connection:
        agreed = approvals.with_id(connection, "acme", approval.approval_id)
    assert agreed == replace(approval, decided_by="user:bo", decided_at=NOW, agreed=True)
    assert agreed.is_usable(now=NOW)
    assert not agreed.waits(now=NOW)
    assert not agreed.is_usable(now=agreed.expires_at)
    assert used(entered, approval.approval_id)
    assert not used(entered, approval.approval_id)
    with organisation_transaction(engine_for(entered.application), "acme") as connection:
        done = approvals.with_id(connection, "acme", approval.approval_id)
    assert done == replace(agreed, used_at=NOW)
    assert not done.is_usable(now=NOW)


def test_what_was_not_agreed_to_is_never_used(entered: Database) -> None:
    approval = asked(entered)
    assert decided(entered, approval.approval_id, agreed=False)
    assert not decided(entered, approval.approval_id)
    assert not used(entered, approval.approval_id)


def test_after_its_time_nobody_agrees_to_it_and_nothing_is_done_on_it(entered: Database) -> None:
    late, agreed = asked(entered), asked(entered)
    assert decided(entered, agreed.approval_id)
    for after in (late.expires_at, late.expires_at + timedelta(seconds=1)):
        assert not late.waits(now=after)
        assert not decided(entered, late.approval_id, now=after)
        assert not used(entered, agreed.approval_id, now=after)
        with organisation_transaction(engine_for(entered.application), "acme") as connection:
            assert approvals.unexpired(connection, "acme", now=after) == []
    assert used(entered, agreed.approval_id, now=agreed.expires_at - timedelta(microseconds=1))


def test_whoever_asked_does_not_decide(entered: Database) -> None:
    approval = asked(entered)
    for agreed in (True, False):
        with pytest.raises(Refused, match="somebody_else_decides"):
            decided(entered, approval.approval_id, by="user:ines", agreed=agreed)
    assert decided(entered, approval.approval_id)


def test_what_was_asked_is_of_exactly_that_act_last_first_and_what_waits_is_oldest_first(entered: Database) -> None:
    first, second = asked(entered), asked(entered, at=NOW + timedelta(seconds=1))
    lifting = asked(entered, act=HeavyAct.LIFT, subject=None, count=None, at=NOW + timedelta(seconds=2))
    other = asked(entered, fingerprint=bytes(32), at=NOW + timedelta(seconds=3))
    with organisation_transaction(engine_for(entered.application), "acme") as connection:
        for act, expected in ((HeavyAct.ERASE, [second, first]), (HeavyAct.LIFT, [lifting]), (HeavyAct.RELEASE, [])):
            assert approvals.asked(connection, "acme", act, FINGERPRINT, by="user:ines") == expected
        assert approvals.asked(connection, "acme", HeavyAct.ERASE, FINGERPRINT, by="user:bo") == []
        assert approvals.unexpired(connection, "acme", now=NOW) == [first, second, lifting, other]


def test_one_agreement_wanted_by_many_at_once_is_used_once(entered: Database) -> None:
    approval = asked(entered)
    assert decided(entered, approval.approval_id)
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda _: used(entered, approval.approval_id), range(4)))
    assert sorted(outcomes) == [False, False, False, True]


def test_nobody_decides_again_or_uses_again(
    entered: Database, by_hand: psycopg.Connection[Any], subtests: pytest.Subtests
) -> None:
    waits, no, yes, done = (asked(entered).approval_id for _ in range(4))
    for one in (no, yes, done):
        assert decided(entered, one, agreed=one != no)
    assert used(entered, done)
    again = {
        "undecided": "decided_by = NULL, decided_at = NULL, agreed = NULL",
        "the other way": "agreed = NOT agreed",
        "agreed": "decided_by = 'user:eve', decided_at = now(), agreed = true",
        "by another": "decided_by = 'user:eve'",
        "at another time": "decided_at = decided_at + interval '1 second'",
        "used and by another": "used_at = now(), decided_by = 'user:eve'",
    }
    for what, values in again.items():
        with subtests.test(what):
            for one in (no, done):
                assert changed(by_hand, f"UPDATE approval SET {values} WHERE approval_id = '{one}'") == 0
            assert changed(by_hand, f"UPDATE approval SET {values} WHERE approval_id = '{yes}'") is None
    for values in ("used_at = NULL", "used_at = now()"):
        assert changed(by_hand, f"UPDATE approval SET {values} WHERE approval_id = '{done}'") == 0
    assert changed(by_hand, f"UPDATE approval SET used_at = now() WHERE approval_id = '{yes}'") == 1
    assert changed(by_hand, f"UPDATE approval SET {again['agreed']} WHERE approval_id = '{waits}'") == 1


# Safeguards


def test_safeguards_are_what_the_product_has_until_somebody_changes_them(
    open_desk: OpenDesk, database: Database
) -> None:
    desk = open_desk()
    before = desk.safeguards()
    assert before == Safeguards()
    assert (before.preview_pseudonyms, before.four_eyes_over, before.observations_leave) == (False, None, False)
    assert desk.change_safeguards(before) == before
    assert lines(database) == []
    after = desk.change_safeguards(replace(before, preview_pseudonyms=True, four_eyes_over=0))
    assert after == Safeguards(preview_pseudonyms=True, four_eyes_over=0, version=1) == desk.safeguards()
    assert lines(database) == [
        (desk.by, "change safeguards", None, None, "preview_pseudonyms, four_eyes_over"),
    ]


def test_who_lets_observations_leave_and_when_is_the_acts_own(open_desk: OpenDesk, database: Database) -> None:
    ines, bo = open_desk(by="user:ines"), open_desk(by="user:bo")
    claimed = replace(ines.safeguards(), observations_leave_by="user:eve", observations_leave_at=NOW)
    assert ines.change_safeguards(claimed) == Safeguards()  # nothing of it is anybody's to say
    leaves = ines.change_safeguards(replace(claimed, observations_leave=True))
    assert leaves.observations_leave_by == "user:ines"
    assert leaves.observations_leave_at is not None
    assert leaves.observations_leave_at != NOW
    other = bo.change_safeguards(replace(leaves, four_eyes_over=7, observations_leave_by="user:bo"))
    assert other == replace(leaves, four_eyes_over=7, version=2)
    stays = bo.change_safeguards(replace(other, observations_leave=False))
    assert (stays.observations_leave, stays.observations_leave_by, stays.observations_leave_at) == (False, None, None)
    assert [(by, reason) for by, _, _, _, reason in lines(database)] == [
        ("user:ines", "observations may leave"),
        ("user:bo", "four_eyes_over"),
        ("user:bo", "observations stay"),
    ]


def test_a_change_of_what_was_changed_meanwhile_is_not_made(open_desk: OpenDesk, database: Database) -> None:
    ines, bo = open_desk(by="user:ines"), open_desk(by="user:bo")
    looked_at, settings_then = ines.safeguards(), ines.settings()
    bo.change_safeguards(replace(looked_at, four_eyes_over=7))
    before = snapshot(database)
    with pytest.raises(ChangedMeanwhile, match="safeguards: were changed by user:bo"):
        ines.change_safeguards(replace(looked_at, observations_leave=True))
    with pytest.raises(ChangedMeanwhile, match="settings: were changed by user:bo"):
        ines.change_settings(replace(settings_then, tombstone_days=400))
    assert snapshot(database) == before
    ines.change_settings(replace(ines.settings(), tombstone_days=400))
    with pytest.raises(ChangedMeanwhile, match="by user:ines"):
        bo.change_safeguards(replace(looked_at, four_eyes_over=None, version=1))
    assert (ines.settings().tombstone_days, ines.safeguards().four_eyes_over) == (400, 7)


@pytest.mark.parametrize(
    ("change", "rule", "field"),
    [
        ({"preview_pseudonyms": "yes"}, "switch_is_on_or_off", "preview_pseudonyms"),
        ({"observations_leave": None}, "switch_is_on_or_off", "observations_leave"),
        ({"observations_leave": 1}, "switch_is_on_or_off", "observations_leave"),
        *(
            ({"four_eyes_over": over}, "four_eyes_count_from_zero", "four_eyes_over")
            for over in (-1, True, "7", 7.0, 2**31)
        ),
    ],
)
def test_what_is_no_safeguard_is_refused(
    open_desk: OpenDesk, database: Database, change: dict[str, Any], rule: str, field: str
) -> None:
    desk = open_desk()
    before = snapshot(database)
    assert refused(lambda: desk.change_safeguards(replace(desk.safeguards(), **change))) == (rule, field)
    assert snapshot(database) == before


# The command


@pytest.fixture
def run(database: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `member` on this test's database; returns exit status, standard output and standard error."""
    monkeypatch.setenv("DATABASE_URL", database.application.render_as_string(hide_password=False))
    monkeypatch.setenv("MEMORY_ORG", "acme")

    def command(*arguments: str) -> tuple[int, str, str]:
        try:
            status = main(["member", *arguments])
        except SystemExit as usage:
            status = int(usage.code or 0)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return command


WHO = ("--issuer", INES.issuer, "--subject", INES.subject)
ADDED = (*WHO, "--role", "admin", "--name", "user:ines")


def test_the_first_admin_is_added_listed_and_removed_by_the_command(
    run: Run, here: Settings, database: Database
) -> None:
    assert run("list") == (0, "acme has no members\n", "")
    assert run("add", *ADDED, "--email", "ines@example.org") == (0, "user:ines is admin of acme\n", "")
    assert standing_of("acme", INES, settings=here) == Standing(name="user:ines", roles=frozenset({Role.ADMIN}))
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    line = f"user:ines admin <ines@example.org>: {INES.subject} at {ISSUER}, added {day} by {ME}"
    assert run("list") == (0, f"{line}\n", "")
    assert run("remove", *WHO, "--by", "user:bo") == (0, "no longer admin of acme\n", "")
    assert run("list") == (0, "acme has no members\n", "")
    assert run("list", "--removed") == (0, f"{line}, removed {day} by user:bo\n", "")
    assert [(by, act) for by, act, *_ in lines(database)] == [(ME, "add member"), ("user:bo", "remove member")]


def test_a_program_may_read_the_answers(run: Run) -> None:
    status, out, _ = run("add", *ADDED, "--json", "--org", "globex", "--by", "user:maria")
    added = json.loads(out)
    assert status == 0
    assert {name: added[name] for name in ("org_id", "role", "name", "email", "added_by", "removed_at")} == {
        **{"org_id": "globex", "role": "admin", "name": "user:ines", "email": None},
        **{"added_by": "user:maria", "removed_at": None},
    }
    assert added["identity"] == {"issuer": INES.issuer, "subject": INES.subject}
    assert json.loads(run("list", "--json", "--org", "globex")[1]) == {"org_id": "globex", "members": [added]}
    assert json.loads(run("list", "--json")[1]) == {"org_id": "acme", "members": []}
    assert json.loads(run("remove", *WHO, "--role", "admin", "--json", "--org", "globex")[1]) == {
        "org_id": "globex",
        "identity": added["identity"],
        "removed": ["admin"],
    }


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["add", *WHO, "--role", "owner", "--name", "user:ines"], "role_is_known"),
        (["add", *WHO, "--role", "dpo", "--name", "ines"], "name_is_a_users"),
        (["add", *ADDED, "--email", "nobody"], "email_is_one_address"),
        (["add", *ADDED, "--by", "Maria S"], "identifier_shape"),
        (["add", *ADDED, "--org", "a b"], "identifier_shape"),
        (["add", *ADDED, "--org", ""], "identifier_is_given"),
        (["add", "--issuer", "", "--subject", "x", "--role", "dpo", "--name", "user:x"], "identity_is_whole"),
        (["remove", "--issuer", ISSUER, "--subject", "a\nb"], "identity_is_whole"),
        (["remove", *WHO], "member_exists"),
        (["remove", *WHO, "--role", "owner"], "role_is_known"),
    ],
)
def test_what_may_not_be_is_one_line_and_exits_with_one(
    run: Run, database: Database, arguments: list[str], rule: str
) -> None:
    before = snapshot(database)
    status, out, err = run(*arguments)
    assert (status, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert f"(rule {rule})" in err
    assert snapshot(database) == before


@pytest.mark.parametrize(
    "arguments",
    [[], ["nonsense"], ["add"], ["add", *WHO, "--role", "dpo"], ["add", "--subject", "x"], ["remove"], ["list", "x"]],
)
def test_a_usage_error_exits_with_two(run: Run, arguments: list[str]) -> None:
    assert run(*arguments)[0] == 2


@pytest.mark.parametrize("act", ["add", "list", "remove"])
def test_each_of_the_three_explains_itself(run: Run, act: str) -> None:
    status, out, _ = run(act, "--help")
    assert status == 0
    assert out.startswith("usage: python -m memory_core member ")
