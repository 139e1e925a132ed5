"""Who may do what: every call that the workbench can make, for every role, in one's own organisation and in another."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from conftest import Database, OpenStore
from fakes import observe
from rows import emptied, execute
from streamlit.testing.v1 import AppTest

from memory_core import Subject
from memory_core.config import settings
from memory_core.errors import Forbidden, MemoryCoreError, NotOffered, Refusal, Refused
from memory_core.evals import results
from memory_core.latency import latency, recorded_prompts
from memory_core.membership import Members
from memory_core.previewing import preview, shown_to
from memory_core.privacy import PrivacyDesk
from memory_core.register import Register
from memory_core.roles import LOCAL, MAY, Act, Identity, Role
from memory_core.store import MemoryStore
from memory_core.tracing import agents_on_record, found_runs, trace
from memory_core.workplace import DESK, FUNCTIONS, MEMBERS, REGISTER, STORE, Refusals, Workplace, record_refusal

ROOT = Path(__file__).resolve().parents[2]
ISSUER = "https://login.example.org"
MARKER = "Zanzibarmarker could start in May."
NOT_OFFERED = {
    MemoryStore: {
        *("remember", "remember_many", "embed", "may_leave", "withdrawn", "open", "organisations", "close"),
        *("recall", "shown"),  # the workbench previews, and that keeps to pseudonyms
    },
    PrivacyDesk: {"open"},
    Register: set(),
    Members: {"open"},
}
WHO = {role: Identity(issuer=ISSUER, subject=role.value) for role in Role}
KEY = bytes(range(32))
NOBODY = Identity(issuer=ISSUER, subject="nobody")
# By hand, so that the table in the product is compared with what was decided.
EXPECTED = {
    Role.DPO: {
        Act.OVERVIEW,
        Act.LOOK,
        Act.FORGET,
        Act.MEASURE,
        Act.CORRECT,
        Act.RELEASE,
        Act.READ_REGISTER,
        Act.WORK_REGISTER,
        Act.READ_TRAIL,
        Act.DECIDE,
        Act.READ_RUNS,
        Act.READ_SETTINGS,
        Act.CHANGE_SETTINGS,
    },
    Role.ENGINEER: {Act.OVERVIEW, Act.PREVIEW, Act.READ_RUNS, Act.READ_LATENCY, Act.READ_EVALS},
    Role.AUDITOR: {Act.OVERVIEW, Act.READ_REGISTER, Act.READ_TRAIL, Act.READ_SETTINGS, Act.READ_MEMBERS},
    Role.ADMIN: {
        Act.OVERVIEW,
        Act.READ_SETTINGS,
        Act.CHANGE_SETTINGS,
        Act.CHANGE_SAFEGUARDS,
        Act.READ_MEMBERS,
        Act.CHANGE_MEMBERS,
    },
}
PAGES = {
    "app.py": set(Role),
    "pages/1_Subjects.py": {Role.DPO},
    "pages/2_Requests.py": {Role.DPO, Role.AUDITOR},
    "pages/3_Recall.py": {Role.ENGINEER},
    "pages/4_Runs.py": {Role.DPO, Role.ENGINEER},
    "pages/5_Latency.py": {Role.ENGINEER},
    "pages/6_Evals.py": {Role.ENGINEER},
    "pages/7_Settings.py": {Role.DPO, Role.AUDITOR, Role.ADMIN},
    "pages/8_Members.py": {Role.AUDITOR, Role.ADMIN},
}


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def chosen(database: Database) -> Any:
    return settings(
        memory_embedder="none",
        database_url=database.application.render_as_string(hide_password=False),
        memory_org="acme",
    )


@pytest.fixture
def acme(open_store: OpenStore, chosen: Any) -> MemoryStore:
    """An organisation with one memory and a member of each role; another has one memory and nobody."""
    members = Members.open("acme", by="user:root", settings=chosen)
    for role in Role:
        members.add(WHO[role], role, name=f"user:{role}")
    observe(open_store("globex"), MARKER, subject=Subject("candidate", "c-1"), run_id="r-globex")
    store = open_store("acme")
    observe(store, MARKER, subject=Subject("candidate", "c-81"), run_id="r-1")
    return store


def public_calls(of: type) -> set[str]:
    return {name for name, one in inspect.getmembers(of) if callable(one) and not name.startswith("_")} - {"register"}


@pytest.mark.parametrize(
    ("of", "table"), [(MemoryStore, STORE), (PrivacyDesk, DESK), (Register, REGISTER), (Members, MEMBERS)]
)
def test_every_public_call_is_an_act_or_is_not_offered(of: type, table: dict[str, Any]) -> None:
    assert public_calls(of) | ({"register"} if of is Register else set()) == set(table) | NOT_OFFERED[of]


def test_each_role_may_what_was_decided() -> None:
    assert {role: {act for act in Act if role in MAY[act]} for role in Role} == EXPECTED
    assert set(MAY) == set(Act)
    assert all(LOCAL.may(act) for act in Act)


def test_no_officer_loosens_what_binds_officers_also_as_an_admin(acme: MemoryStore, chosen: Any) -> None:
    Members.open("acme", by="user:root", settings=chosen).add(WHO[Role.DPO], Role.ADMIN, name="user:dpo")
    work = Workplace("acme", WHO[Role.DPO], settings=chosen)
    assert work.may(Act.CHANGE_SETTINGS)
    assert not work.may(Act.CHANGE_SAFEGUARDS)
    desk = work.desk()
    with pytest.raises(Forbidden, match="not for whoever is dpo, whatever else they are"):
        desk.change_safeguards(replace(desk.safeguards(), four_eyes_over=None))


def calls_of(work: Workplace) -> list[tuple[str, Act, Callable[[], object]]]:
    """Return every call of every table with its act, each made without arguments: whoever may make it fails at that."""
    made: list[tuple[str, Act, Callable[[], object]]] = []
    for name, act in STORE.items():
        made.append((f"store.{name}", act, lambda name=name: getattr(work.store(), name)()))
    for name, act in DESK.items():
        if name == "package":
            made += [
                ("desk.package", Act.LOOK, lambda: work.desk().package()),
                ("desk.package release", Act.RELEASE, lambda: work.desk().package(release=True)),
            ]
        else:
            made.append((f"desk.{name}", act, lambda name=name: getattr(work.desk(), name)()))
    for name, act in REGISTER.items():
        made.append((f"register.{name}", act, lambda name=name: getattr(work.desk().register, name)()))
    for name, act in MEMBERS.items():
        made.append((f"members.{name}", act, lambda name=name: getattr(work.members(), name)()))
    for function in (
        results.evaluation,
        results.evaluations,
        results.results,
        results.transcript,
        results.pass_shares,
        latency,
        recorded_prompts,
        agents_on_record,
        found_runs,
        trace,
        preview,
        shown_to,
    ):
        act = FUNCTIONS[f"{function.__module__}.{function.__qualname__}"]
        key = {"key": KEY} if "key" in inspect.signature(function).parameters else {}
        made.append((function.__qualname__, act, lambda function=function, key=key: work.call(function, **key)))
    return made


def was_forbidden(call: Callable[[], object]) -> bool:
    try:
        call()
    except Forbidden:
        return True
    except TypeError:  # it was let in, and missed its arguments
        return False
    return False


@pytest.mark.parametrize("role", list(Role))
def test_every_call_is_let_in_for_its_roles_and_no_other(role: Role, acme: MemoryStore, chosen: Any) -> None:
    work = Workplace("acme", WHO[role], settings=chosen)
    found = {name: not was_forbidden(call) for name, _, call in calls_of(work)}
    assert found == {name: act in EXPECTED[role] for name, act, _ in calls_of(work)}


@pytest.mark.parametrize("who", [*WHO.values(), NOBODY], ids=lambda one: one.subject)
def test_nobody_calls_anything_in_an_organisation_of_which_they_are_no_member(
    who: Identity, acme: MemoryStore, chosen: Any
) -> None:
    for org_id in ("globex", "nowhere", *(["acme"] if who == NOBODY else [])):
        work = Workplace(org_id, who, settings=chosen)
        assert work.standing() is None
        assert all(was_forbidden(call) for _, _, call in calls_of(work))


def test_the_same_subject_of_another_issuer_is_somebody_else(acme: MemoryStore, chosen: Any) -> None:
    other = Identity(issuer="https://evil.example.org", subject=Role.DPO.value)
    assert Workplace("acme", other, settings=chosen).standing() is None


def test_a_role_that_was_removed_a_moment_ago_is_gone_also_for_an_open_desk(acme: MemoryStore, chosen: Any) -> None:
    desk = Workplace("acme", WHO[Role.DPO], settings=chosen).desk()
    assert desk.held(Subject("candidate", "c-81")).memories
    Members.open("acme", by="user:admin", settings=chosen).remove(WHO[Role.DPO])
    for call in (lambda: desk.held(Subject("candidate", "c-81")), desk.register.every, desk.trail):
        with pytest.raises(Forbidden):
            call()


def test_whoever_signed_out_or_whose_session_is_over_does_nothing_with_what_is_still_open(
    acme: MemoryStore, chosen: Any
) -> None:
    now: list[Identity | Refusal] = [WHO[Role.DPO]]
    work = Workplace("acme", WHO[Role.DPO], settings=chosen, still=lambda: now[0])
    desk, store = work.desk(), work.store()
    assert desk.held(Subject("candidate", "c-81")).memories
    for found in (Refusal(rule="session_is_not_over", field="sign-in", reason="you signed out"), WHO[Role.ENGINEER]):
        now[0] = found
        for call in (
            lambda: desk.held(Subject("candidate", "c-81")),
            lambda: store.find_subjects("c-81"),
            work.standing,
        ):
            with pytest.raises(Refused):
                call()


def test_what_is_refused_is_one_line_of_the_trail_however_often_it_is_tried(
    acme: MemoryStore, chosen: Any, database: Database
) -> None:
    at = [0.0]
    refusals = Refusals(monotonic=lambda: at[0])
    for who in (WHO[Role.ENGINEER], NOBODY):
        work = Workplace("acme", who, settings=chosen, refusals=refusals)
        for _ in range(3):
            with pytest.raises(Forbidden):
                work.store().find_subjects("c-81")
    lines = [("acme", "user:engineer", "look at a subject"), ("acme", NOBODY.short, "look at a subject")]
    refused = "SELECT org_id, by, reason FROM trail WHERE act = 'refused' ORDER BY number"
    assert execute(database, refused) == lines
    at[0] = 61.0
    with pytest.raises(Forbidden):
        work.store().find_subjects("c-81")
    assert execute(database, refused) == [*lines, lines[1]]
    with pytest.raises(Forbidden):
        Workplace("nowhere", NOBODY, settings=chosen).require(Act.LOOK)
    assert execute(database, "SELECT 1 FROM organisation WHERE org_id = 'nowhere'") == []


def test_what_is_not_in_the_table_cannot_be_reached_through_a_workplace(acme: MemoryStore, chosen: Any) -> None:
    work = Workplace("acme", WHO[Role.DPO], settings=chosen)
    for reach in (
        lambda: work.store().remember("x"),
        lambda: work.store()._engine,
        lambda: work.desk()._store,
        lambda: setattr(work.store(), "org_id", "globex"),
        lambda: work.call(Members.open),
    ):
        with pytest.raises(NotOffered):
            reach()
    assert work.store().org_id == "acme"


def test_nobody_acts_or_looks_in_anothers_name(acme: MemoryStore, chosen: Any, database: Database) -> None:
    subject = Subject("candidate", "c-81")
    officer = Workplace("acme", WHO[Role.DPO], settings=chosen)
    officer.store().held(subject, by="user:somebody")
    officer.store().forget(subject, by="user:somebody", reason="asked")
    engineer = Workplace("acme", WHO[Role.ENGINEER], settings=chosen)
    engineer.call(preview, "start", run_id="p-1", by="user:somebody", because="testing", key=KEY)
    assert execute(database, "SELECT DISTINCT by FROM trail WHERE act IN ('look', 'forget')") == [("user:dpo",)]
    assert execute(database, "SELECT DISTINCT by FROM recall") == [("user:engineer",)]


def test_who_may_not_look_at_subjects_is_shown_nothing_without_a_key_for_pseudonyms(
    acme: MemoryStore, chosen: Any
) -> None:
    with pytest.raises(NotOffered, match="without a key"):
        Workplace("acme", WHO[Role.ENGINEER], settings=chosen).call(trace, "r-1")
    assert Workplace("acme", WHO[Role.DPO], settings=chosen).call(trace, "r-1").written


def test_what_was_opened_under_another_name_is_used_no_more(acme: MemoryStore, chosen: Any) -> None:
    work = Workplace("acme", WHO[Role.DPO], settings=chosen)
    desk = work.desk()
    members = Members.open("acme", by="user:root", settings=chosen)
    members.remove(WHO[Role.DPO])
    members.add(WHO[Role.DPO], Role.DPO, name="user:dpo2")
    for call in (lambda: desk.held(Subject("candidate", "c-81")), desk.register.every):
        with pytest.raises(Refused, match="open it again"):
            call()
    assert work.desk().held(Subject("candidate", "c-81")).memories


def test_nobody_says_when_they_did_it(acme: MemoryStore, chosen: Any) -> None:
    with pytest.raises(NotOffered, match="another time"):
        Workplace("acme", WHO[Role.DPO], settings=chosen).call(
            trace, "r-1", clock=lambda: datetime(2020, 1, 1, tzinfo=UTC)
        )


def test_a_refusal_that_could_not_be_put_on_record_is_put_there_the_next_time(
    acme: MemoryStore, chosen: Any, database: Database
) -> None:
    refusals = Refusals()
    down = settings(database_url="postgresql://memory_app@127.0.0.1:1/none", memory_embedder="none")
    with pytest.raises(MemoryCoreError):
        record_refusal("acme", NOBODY, "look at a subject", settings=down, refusals=refusals)
    for _ in range(2):
        record_refusal("acme", NOBODY, "look at a subject", settings=chosen, refusals=refusals)
    assert execute(database, "SELECT by FROM trail WHERE act = 'refused'") == [(NOBODY.short,)]


# Through the pages


@pytest.fixture
def page(database: Database, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("DATABASE_URL", database.application.render_as_string(hide_password=False))
    monkeypatch.setenv("MEMORY_ORG", "acme")
    monkeypatch.setenv("MEMORY_EMBEDDER", "none")

    def run(name: str, who: Identity | None, *, org: str | None = None, **claims: object) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        at.secrets["auth"] = {
            "redirect_uri": "http://127.0.0.1:8501/oauth2callback",
            "cookie_secret": "only-for-tests-only-for-tests-only",
            "client_id": "workbench",
            "client_secret": "of-the-tests-of-the-tests-of-the-tests",
            "server_metadata_url": f"{ISSUER}/.well-known/openid-configuration",
        }
        given: dict[str, object] = {}
        if who is not None:
            now = datetime.now(UTC).timestamp()
            given = {"iss": who.issuer, "sub": who.subject, "aud": "workbench", "iat": now}
        at.user = {"is_logged_in": who is not None, **given, **claims}
        if org is not None:
            at.query_params["org"] = org
        return at.run() if name == "app.py" else at.switch_page(name).run()

    return run


def everything_said(at: AppTest) -> str:
    return " ".join(
        str(getattr(one, "value", "")) + str(getattr(one, "label", "")) for one in chain(at.main, at.sidebar)
    )


@pytest.mark.parametrize("name", PAGES)
def test_each_page_opens_for_its_roles_and_no_other(name: str, acme: MemoryStore, page: Callable[..., AppTest]) -> None:
    for role in Role:
        at = page(name, WHO[role])
        assert not at.exception, (role, at.exception)
        assert bool(at.title) is (role in PAGES[name]), role
        if role not in PAGES[name]:
            assert "needs the role" in at.code[0].value
            assert MARKER not in everything_said(at)


@pytest.mark.parametrize("name", PAGES)
def test_without_a_session_a_page_offers_to_sign_in_and_nothing_else(
    name: str, acme: MemoryStore, page: Callable[..., AppTest]
) -> None:
    at = page(name, None)
    assert [one.label for one in at.button] == ["Sign in"]
    assert "acme" not in everything_said(at)
    assert "c-81" not in everything_said(at)


@pytest.mark.parametrize("where", ["in the address", "in an open session"])
def test_whoever_is_no_member_anywhere_and_asks_for_an_organisation_is_on_record(
    where: str, acme: MemoryStore, page: Callable[..., AppTest], database: Database, chosen: Any
) -> None:
    gone = Identity(issuer=ISSUER, subject=f"gone {where}")
    members = Members.open("acme", by="user:root", settings=chosen)
    members.add(gone, Role.DPO, name=f"user:gone-{len(where)}")
    if where == "in the address":
        members.remove(gone)
        at = page("pages/1_Subjects.py", gone, org="acme")
    else:
        at = page("pages/1_Subjects.py", gone)
        members.remove(gone)
        at.run()
    assert "no member of any organisation here" in at.error[0].value
    assert MARKER not in everything_said(at)
    refused = "SELECT reason FROM trail WHERE act = 'refused' AND by = %s"
    with database.connect() as connection:
        assert connection.execute(refused, (gone.short,)).fetchall() == [(Act.OVERVIEW.value,)]


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"email": "a@example.org"}, "not verified"),
        ({"email": "a@example.org", "email_verified": "true"}, "not verified"),
        ({"iat": 0}, "more than 8 hours ago"),
        ({"iat": "soon"}, "did not say when"),
        ({"iat": 1e300}, "did not say when"),
        ({"iat": 4102444800}, "ahead of ours"),
        ({"aud": "another"}, "somebody else's application"),
        ({"aud": ["another"], "azp": "workbench"}, "somebody else's application"),
        ({"iss": None}, "did not say who"),
        ({"sub": ""}, "did not say who"),
        ({"sub": "<b>x</b>\x00"}, "did not say who"),
    ],
)
def test_claims_that_do_not_say_who_somebody_is_now_let_nobody_in(
    claims: dict[str, object], said: str, acme: MemoryStore, page: Callable[..., AppTest]
) -> None:
    at = page("pages/1_Subjects.py", WHO[Role.DPO], **claims)
    assert said in at.error[0].value
    assert [one.label for one in at.button] == ["Sign in again"]


def test_somebody_without_a_membership_is_told_whom_to_ask_and_what_to_say(
    acme: MemoryStore, page: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_CONTACT", "the help desk, extension 12")
    markup = Identity(issuer=ISSUER, subject="![](https://evil.example.org/x.png) **no**")
    at = page("pages/1_Subjects.py", markup)
    assert "no member of any organisation" in at.error[0].value
    assert "the help desk, extension 12" in at.text[0].value
    assert at.code[0].value == f"issuer   {ISSUER}\nsubject  {markup.subject}"
    assert not at.title
    assert "acme" not in everything_said(at)


@pytest.mark.parametrize("org", ["globex", "nowhere", "../acme", "acme'--", "%"])
def test_an_organisation_in_the_address_that_is_not_ones_own_shows_nothing(
    org: str, acme: MemoryStore, page: Callable[..., AppTest]
) -> None:
    at = page("pages/1_Subjects.py", WHO[Role.DPO], org=org)
    assert "no member" in at.error[0].value
    assert not at.title
    assert not at.selectbox
