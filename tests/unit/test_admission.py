from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory_core import Kind, Origin, Refused, Subject
from memory_core.characters import has_surrogate, is_blank
from memory_core.errors import Refusal
from memory_core.rules.admission import MAX_TEXT, Admitted, Draft, admitted
from memory_core.rules.policy import PERSON_TYPES, Policy

NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)
CANDIDATE = Subject("candidate", "c-81")
JOB = Subject("job", "j-3")
OBSERVATION: Mapping[str, Any] = MappingProxyType(
    {
        "text": "Could start after a two-month notice period.",
        "kind": "observation",
        "origin": "inference",
        "author": "agent:screening",
        "run_id": "r-812",
        "subject": CANDIDATE,
    }
)
FIELDS = tuple(Draft.__dataclass_fields__)
any_text = st.text(alphabet=st.characters(exclude_categories=()), max_size=60)
# What JSON, a notebook or a careless caller may hand over in any field.
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | any_text
    | st.binary(max_size=8)
    | st.dates()
    | st.datetimes(timezones=st.none() | st.timezones())
    | st.sampled_from([*Kind, *Origin, CANDIDATE, JOB, Kind, object()]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=5,
)


def decided(policy: Policy | None = None, **changes: Any) -> Admitted | Refusal:
    return admitted(Draft(**{**OBSERVATION, **changes}), now=NOW, policy=policy or Policy())


def refusal(policy: Policy | None = None, **changes: Any) -> tuple[str, str]:
    answer = decided(policy, **changes)
    assert isinstance(answer, Refusal), answer
    return answer.rule, answer.field


def admission(policy: Policy | None = None, **changes: Any) -> Admitted:
    answer = decided(policy, **changes)
    assert isinstance(answer, Admitted), answer
    return answer


def drafted(item: dict[Any, Any]) -> Admitted | Refusal:
    try:
        draft = Draft.from_mapping(item)
    except Refused as refused:
        return refused.refusal
    return admitted(draft, now=NOW, policy=Policy())


def test_an_observation_about_a_named_person_is_admitted_as_it_was_given() -> None:
    answer = admission(source="msg-1,note/2")
    assert (answer.text, answer.kind, answer.origin) == (OBSERVATION["text"], Kind.OBSERVATION, Origin.INFERENCE)
    assert (answer.author, answer.run_id, answer.source) == ("agent:screening", "r-812", "msg-1,note/2")
    assert (answer.subject, answer.created_at, answer.expires_at) == (CANDIDATE, NOW, NOW + timedelta(days=90))
    assert not answer.expiry_was_asked


@pytest.mark.parametrize("kind", [Kind.OBSERVATION, "observation"])
@pytest.mark.parametrize("origin", [Origin.INFERENCE, "inference"])
def test_plain_words_serve_as_kind_and_origin(kind: str, origin: str) -> None:
    answer = admission(kind=kind, origin=origin)
    assert answer.kind is Kind.OBSERVATION
    assert answer.origin is Origin.INFERENCE


@pytest.mark.parametrize(
    "word", [None, "", "Fact", "facts", " fact", "fact\n", "opinion", b"fact", 1, True, ["fact"], Kind]
)
def test_an_unknown_kind_is_refused(word: object) -> None:
    assert refusal(kind=word) == ("kind_is_known", "kind")


@pytest.mark.parametrize("word", [None, "", "Person", "model", "person ", 0, object(), {"person"}])
def test_an_unknown_origin_is_refused(word: object) -> None:
    assert refusal(origin=word) == ("origin_is_known", "origin")


def test_an_observation_about_nobody_is_refused() -> None:
    assert refusal(subject=None) == ("observation_names_its_subject", "subject")


@pytest.mark.parametrize("subject", ["candidate c-81", {"type": "candidate", "id": "c-81"}, ("candidate", "c-81"), 81])
def test_a_subject_that_is_no_subject_is_refused(subject: object) -> None:
    assert refusal(subject=subject) == ("subject_is_a_subject", "subject")


@pytest.mark.parametrize("person_type", sorted(PERSON_TYPES))
def test_a_fact_about_a_person_is_refused(person_type: str) -> None:
    assert refusal(kind="fact", subject=Subject(person_type, "x-1")) == ("fact_is_not_about_a_person", "kind")


def test_the_person_types_are_those_of_the_design() -> None:
    named = {"candidate", "applicant", "employee", "recruiter", "interviewer", "referee", "contact"}
    assert named == PERSON_TYPES


@pytest.mark.parametrize("subject", [None, JOB, Subject("client", "k-1"), Subject("team", "t-1")])
def test_a_fact_needs_no_subject_and_may_be_about_what_is_no_person(subject: Subject | None) -> None:
    assert admission(kind="fact", subject=subject).subject == subject


@pytest.mark.parametrize("subject", [CANDIDATE, JOB])
def test_an_observation_may_be_about_any_subject(subject: Subject) -> None:
    assert admission(subject=subject).subject == subject


def test_a_fact_about_a_type_that_the_organisation_calls_a_person_is_refused() -> None:
    policy = Policy(added_person_types=frozenset({"alumnus"}))
    about = Subject("alumnus", "a-1")
    assert refusal(policy, kind="fact", subject=about) == ("fact_is_not_about_a_person", "kind")
    assert admission(kind="fact", subject=about).subject == about


@pytest.mark.parametrize(
    ("origin", "author", "is_admitted"),
    [
        (origin, author, author.startswith(prefix) and author != prefix)
        for origin, prefix in (("person", "user:"), ("inference", "agent:"))
        for author in ("user:maria", "agent:screening", "user:", "agent:", "maria", "User:maria", "xuser:maria")
    ],
)
def test_a_person_states_and_an_agent_infers(origin: str, author: str, is_admitted: bool) -> None:
    if is_admitted:
        assert admission(origin=origin, author=author).author == author
    else:
        assert refusal(origin=origin, author=author) == ("author_matches_origin", "author")


@pytest.mark.parametrize("field", ["author", "run_id"])
@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_author_or_run_is_refused(field: str, value: object) -> None:
    assert refusal(**{field: value}) == ("identifier_is_given", field)


BAD_IDENTIFIERS = ("agent:a\n", "agent: a", "agent:a%", " agent:a", "agent:" + "a" * 123, "agent:é", "agent:a\x00", 7)


@pytest.mark.parametrize("field", ["author", "run_id", "source"])
@pytest.mark.parametrize("value", BAD_IDENTIFIERS)
def test_an_identifier_that_could_carry_text_is_refused(field: str, value: object) -> None:
    assert refusal(**{field: value}) == ("identifier_shape", field)


@pytest.mark.parametrize("text", [None, 5, b"bytes", ["text"], True])
def test_what_is_no_text_is_refused(text: object) -> None:
    assert refusal(text=text) == ("text_is_text", "text")


@pytest.mark.parametrize(
    "text", ["", " ", "\n\t ", "\u200b", "\u00a0\u2060", "\ufeff", "\u3164", "\u2800", "\u00ad\u200d"]
)
def test_text_of_which_nothing_can_be_seen_is_refused(text: str) -> None:
    assert refusal(text=text) == ("text_is_not_blank", "text")


@pytest.mark.parametrize("text", ["a\x00b", "\x00" * 3 + "a", "a\ud800b", "\udfff"])
def test_text_that_cannot_be_stored_is_refused(text: str) -> None:
    assert refusal(text=text) == ("text_is_storable", "text")


@pytest.mark.parametrize("character", ["a", "é", "漢", "😀"])
def test_text_may_have_two_thousand_characters_and_not_one_more(character: str) -> None:
    assert admission(text=character * 2000).text == character * 2000
    assert refusal(text=character * 2001) == ("text_length", "text")


@given(any_text | any_text.map(lambda text: text * 50))
def test_text_is_admitted_untouched_exactly_if_it_can_be_seen_stored_and_is_short(text: str) -> None:
    answer = decided(text=text)
    may = not is_blank(text) and "\x00" not in text and not has_surrogate(text) and len(text) <= MAX_TEXT
    if may:
        assert isinstance(answer, Admitted)
        assert answer.text == text
    else:
        assert isinstance(answer, Refusal)
        assert answer.field == "text"


def test_a_creation_in_the_future_is_refused_also_by_a_microsecond_and_from_another_zone() -> None:
    soon = NOW + timedelta(microseconds=1)
    for created_at in (soon, soon.astimezone(timezone(timedelta(hours=-11))), NOW + timedelta(days=400)):
        assert refusal(created_at=created_at) == ("created_at_is_not_in_the_future", "created_at")
    assert admission(created_at=NOW.astimezone(timezone(timedelta(hours=14)))).created_at == NOW


@pytest.mark.parametrize("field", ["created_at", "expires_at"])
def test_a_time_without_a_zone_is_refused(field: str) -> None:
    assert refusal(**{field: datetime(2026, 11, 1)}) == ("instant_has_a_zone", field)


@pytest.mark.parametrize("field", ["created_at", "expires_at"])
@pytest.mark.parametrize("value", ["2026-11-01T00:00:00Z", 0, 1.5, date(2026, 11, 1), True])
def test_what_is_no_time_is_refused(field: str, value: object) -> None:
    assert refusal(**{field: value}) == ("instant_is_a_time", field)


@pytest.mark.parametrize("expires_at", [NOW, NOW - timedelta(microseconds=1), datetime(1, 1, 1, tzinfo=UTC)])
def test_an_expiry_that_is_past_is_refused(expires_at: datetime) -> None:
    assert refusal(expires_at=expires_at) == ("expiry_is_not_past", "expires_at")


def test_an_old_memory_whose_default_expiry_is_past_is_refused() -> None:
    assert refusal(created_at=NOW - timedelta(days=90)) == ("expiry_is_not_past", "expires_at")
    assert admission(created_at=NOW - timedelta(days=90) + timedelta(microseconds=1)).expires_at > NOW


def test_an_expiry_may_be_the_maximum_after_creation_and_not_a_microsecond_more() -> None:
    created_at = NOW - timedelta(days=10)
    latest = created_at + timedelta(days=365)
    answer = admission(created_at=created_at, expires_at=latest)
    assert answer.expires_at == latest
    assert answer.expiry_was_asked
    too_late = {"created_at": created_at, "expires_at": latest + timedelta(microseconds=1)}
    assert refusal(**too_late) == ("expiry_within_maximum", "expires_at")


@given(st.integers(1, 3650))
def test_the_organisations_own_maximum_decides(maximum_days: int) -> None:
    policy = Policy(maximum_days=maximum_days)
    latest = NOW + timedelta(days=maximum_days)
    assert admission(policy, expires_at=latest).expires_at == latest
    late = latest + timedelta(seconds=1)
    assert refusal(policy, expires_at=late) == ("expiry_within_maximum", "expires_at")
    assert admission(policy).expires_at == NOW + timedelta(days=min(90, maximum_days))


def test_days_are_counted_in_elapsed_time_and_not_on_a_wall_clock_that_is_put_back() -> None:
    amsterdam = ZoneInfo("Europe/Amsterdam")  # winter time began on 25 October 2026
    created_at = datetime(2026, 10, 1, 12, tzinfo=amsterdam)
    elapsed = admission(created_at=created_at).expires_at.astimezone(UTC) - created_at.astimezone(UTC)
    assert elapsed == timedelta(days=90)
    latest = (created_at.astimezone(UTC) + timedelta(days=45)).astimezone(amsterdam)
    policy = Policy(maximum_days=45)
    assert admission(policy, created_at=created_at, expires_at=latest).expires_at == latest
    late = (latest.astimezone(UTC) + timedelta(microseconds=1)).astimezone(amsterdam)
    assert refusal(policy, created_at=created_at, expires_at=late) == ("expiry_within_maximum", "expires_at")


def test_an_expiry_counts_from_when_it_was_last_seen() -> None:
    seen_again = {"created_at": NOW - timedelta(days=400), "last_seen_at": NOW - timedelta(days=10)}
    answer = admission(**seen_again)
    assert (answer.created_at, answer.last_seen_at) == (NOW - timedelta(days=400), NOW - timedelta(days=10))
    assert answer.expires_at == NOW + timedelta(days=80)
    latest = NOW + timedelta(days=355)
    assert admission(**seen_again, expires_at=latest).expires_at == latest
    too_late = latest + timedelta(microseconds=1)
    assert refusal(**seen_again, expires_at=too_late) == ("expiry_within_maximum", "expires_at")
    assert admission().last_seen_at == NOW


def test_a_memory_was_last_seen_neither_before_it_was_created_nor_in_the_future() -> None:
    yesterday, long_ago = NOW - timedelta(days=1), NOW - timedelta(days=2)
    before = {"created_at": yesterday, "last_seen_at": long_ago}
    assert refusal(**before) == ("seen_since_it_was_created", "last_seen_at")
    assert refusal(last_seen_at=yesterday) == ("seen_since_it_was_created", "last_seen_at")
    assert refusal(last_seen_at=NOW + timedelta(microseconds=1))[1] == "last_seen_at"
    assert refusal(last_seen_at=datetime(2026, 11, 1)) == ("instant_has_a_zone", "last_seen_at")
    assert admission(created_at=yesterday, last_seen_at=yesterday).last_seen_at == yesterday


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), anything))
def test_whatever_is_asked_is_admitted_or_refused_in_one_line_that_names_rule_and_field(
    changes: dict[str, Any],
) -> None:
    answer = decided(**changes)
    if isinstance(answer, Refusal):
        assert answer.field in FIELDS
        assert answer.rule.isidentifier()
        assert len(str(answer).splitlines()) == 1
        assert answer.field in str(answer)
        assert answer.rule in str(answer)
    else:
        assert answer.expires_at > NOW >= answer.created_at


@given(any_text, any_text)
def test_a_refusal_does_not_repeat_what_was_refused(before: str, after: str) -> None:
    for field in FIELDS:
        answer = decided(**{field: f"{before}Marker7f3a{after}"})
        if isinstance(answer, Refusal):
            assert "Marker7f3a" not in str(answer)


def test_a_mapping_becomes_a_draft_with_its_subject() -> None:
    about = {"type": "candidate", "id": "c-81", "label": "Zoë", "aliases": ["Zoe"]}
    subject = Draft.from_mapping({**OBSERVATION, "subject": about}).subject
    assert subject == CANDIDATE
    assert isinstance(subject, Subject)
    assert (subject.label, subject.aliases) == ("Zoë", ("Zoe",))


@pytest.mark.parametrize("aliases", [None, [], ()])
def test_a_mapping_may_leave_out_label_and_aliases(aliases: object) -> None:
    about = {"type": "candidate", "id": "c-81", "label": None, "aliases": aliases}
    subject = Draft.from_mapping({**OBSERVATION, "subject": about}).subject
    assert isinstance(subject, Subject)
    assert (subject.label, subject.aliases) == (None, ())


@pytest.mark.parametrize("name", ["txt", "org_id", "Text", "expires", "", "subject.id", "memory_id"])
def test_a_misspelt_field_is_refused_and_not_dropped(name: str) -> None:
    with pytest.raises(Refused) as caught:
        Draft.from_mapping({**OBSERVATION, name: "x"})
    assert (caught.value.rule, caught.value.field) == ("field_is_known", name)


def test_a_misspelt_field_of_a_subject_is_refused_and_not_dropped() -> None:
    with pytest.raises(Refused) as caught:
        Draft.from_mapping({**OBSERVATION, "subject": {"type": "candidate", "id": "c-81", "name": "Zoë"}})
    assert (caught.value.rule, caught.value.field) == ("field_is_known", "subject.name")


@pytest.mark.parametrize(
    ("about", "rule", "field"),
    [
        ({}, "identifier_is_given", "subject.type"),
        ({"type": "candidate"}, "identifier_is_given", "subject.id"),
        ({"type": "candidate", "id": "c-81\n"}, "identifier_shape", "subject.id"),
        ({"type": "candidate", "id": 81}, "identifier_shape", "subject.id"),
        ({"type": "candidate", "id": "c-81", "label": " "}, "name_is_not_blank", "subject.label"),
        ({"type": "candidate", "id": "c-81", "aliases": "Zoë"}, "aliases_are_a_list", "subject.aliases"),
        ({"type": "candidate", "id": "c-81", "aliases": [["Zoë"]]}, "name_is_text", "subject.aliases"),
    ],
)
def test_a_mapping_that_is_no_subject_is_refused(about: dict[str, Any], rule: str, field: str) -> None:
    with pytest.raises(Refused) as caught:
        Draft.from_mapping({**OBSERVATION, "subject": about})
    assert (caught.value.rule, caught.value.field) == (rule, field)


@settings(deadline=None)
@given(st.dictionaries(any_text | st.integers() | st.sampled_from(FIELDS), anything, max_size=4))
@example({"te\nxt": "x"})
@example({"subject": {"type": "candidate", "id": "c-81", "la\nbel": "Zoë"}})
def test_any_mapping_becomes_a_draft_or_is_refused_in_one_line(item: dict[Any, Any]) -> None:
    answer = drafted(item)
    assert isinstance(answer, Refusal | Admitted)
    if isinstance(answer, Refusal):
        assert len(str(answer).splitlines()) == 1
