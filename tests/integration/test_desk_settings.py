from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from threading import Barrier
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from fakes import Clock, HashedWords, observe
from rows import emptied, execute, rows, snapshot, traces

from memory_core import Refused
from memory_core.backlog import repin
from memory_core.db.engine import engine_for
from memory_core.embedders import Guarded
from memory_core.errors import ChangedMeanwhile
from memory_core.privacy import PrivacyDesk
from memory_core.rights import DeskSettings, StandingAnswers

if TYPE_CHECKING:
    from conftest import Database, OpenDesk, OpenStore

ANSWERS = tuple(field.name for field in fields(StandingAnswers))
EVERYTHING = DeskSettings(
    answers=StandingAnswers(**{name: f"Answer7f3a to {name}" for name in ANSWERS}),
    jurisdiction="GB-ENG",
    time_zone="Europe/London",
    tombstone_days=730,
)


@pytest.fixture
def database(standing: Database) -> Database:
    return emptied(standing)


@pytest.fixture
def desk(open_desk: OpenDesk) -> PrivacyDesk:
    return open_desk(clock=Clock())


def answered(**answers: Any) -> DeskSettings:
    return DeskSettings(answers=StandingAnswers(**answers))


def trail(database: Database) -> list[tuple[Any, ...]]:
    return execute(database, "SELECT by, act, reason FROM trail ORDER BY org_id, number")


# What is set


def test_where_nothing_was_set_the_products_own_settings_hold(desk: PrivacyDesk, database: Database) -> None:
    assert desk.settings() == DeskSettings()
    assert desk.settings().answers.unanswered == ANSWERS
    assert (desk.settings().time_zone, desk.settings().tombstone_days) == ("UTC", 1095)
    assert trail(database) == []


def test_what_was_set_is_what_is_read_and_one_version_further(desk: PrivacyDesk, open_desk: OpenDesk) -> None:
    after = desk.change_settings(EVERYTHING)
    assert after == replace(EVERYTHING, version=1)
    assert desk.settings() == open_desk(by="user:omar").settings() == after
    assert after.answers.unanswered == ()
    again = desk.change_settings(replace(after, tombstone_days=365))
    assert again == replace(EVERYTHING, tombstone_days=365, version=2)


def test_what_is_left_out_is_unset_again(desk: PrivacyDesk) -> None:
    desk.change_settings(EVERYTHING)
    after = desk.change_settings(DeskSettings(version=1))
    assert after == DeskSettings(version=2)


@pytest.mark.parametrize(
    "new",
    [
        answered(controller="a" * 4000),
        answered(controller="😀" * 4000),
        answered(purposes="a"),
        answered(purposes="'; DROP TABLE memory; --\n=1+1 {x} %s :y"),
        answered(**dict.fromkeys(ANSWERS, "a" * 4000)),
        DeskSettings(tombstone_days=365),
        DeskSettings(tombstone_days=3650),
        DeskSettings(jurisdiction="DE"),
        DeskSettings(jurisdiction="DE-BY"),
        DeskSettings(jurisdiction="IE", time_zone="Europe/Dublin"),
        DeskSettings(time_zone="America/Argentina/ComodRivadavia"),
        DeskSettings(time_zone="Etc/GMT+12"),
    ],
)
def test_the_longest_and_the_oddest_that_may_be_set_are_kept_as_they_are(desk: PrivacyDesk, new: DeskSettings) -> None:
    assert desk.change_settings(new) == replace(new, version=1)


def test_no_other_organisation_is_touched(desk: PrivacyDesk, open_desk: OpenDesk, database: Database) -> None:
    other = open_desk("acme-corp")
    other.change_settings(answered(controller="Acme Corporation"))
    kept = rows(database, "organisation_setting", "org_id = 'acme-corp'")
    assert desk.settings() == DeskSettings()
    desk.change_settings(EVERYTHING)
    assert rows(database, "organisation_setting", "org_id = 'acme-corp'") == kept
    assert other.settings() == replace(answered(controller="Acme Corporation"), version=1)


# What is refused


BAD: dict[str, list[Any]] = {
    "jurisdiction": [
        *("gb-eng", " GB", "GB\n", "UK", "US", "GB-XXX", "", "DE-Bayern", "ＤＥ", "GB-ENG-1", "D\x00", "\ud800"),
        *(5, b"DE", True),
    ],
    "time_zone": [
        *("", " ", "Europe/Nowhere", "UTC ", "Europe", "../../etc/passwd", "/usr/share/zoneinfo/UTC", "UTC\x00"),
        *("\ud800", "a" * 5000, "Mitteleuropäische Zeit", "zone.tab", None, 5),
    ],
    "tombstone_days": [364, 3651, 0, -1, 10**12, 365.5, "1095", None, True],
}


@pytest.mark.parametrize("field", BAD)
def test_a_place_a_zone_or_a_time_that_is_none_is_refused_by_its_name(
    desk: PrivacyDesk, database: Database, field: str
) -> None:
    stands = desk.change_settings(EVERYTHING)
    before = snapshot(database)
    for value in BAD[field]:
        with pytest.raises(Refused) as caught:
            desk.change_settings(replace(stands, **{field: value}))
        assert caught.value.field == field
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 400
    assert snapshot(database) == before


def test_a_time_zone_is_given_by_its_name_and_not_as_an_object(desk: PrivacyDesk, database: Database) -> None:
    before = snapshot(database)
    with pytest.raises(Refused) as caught:
        desk.change_settings(DeskSettings(time_zone=ZoneInfo("Europe/Dublin")))
    assert caught.value.field == "time_zone"
    assert snapshot(database) == before


@pytest.mark.parametrize("zone", ["localtime", "posixrules", "right/UTC"])
def test_a_zone_that_means_another_time_on_another_machine_is_refused(desk: PrivacyDesk, zone: str) -> None:
    with pytest.raises(Refused) as caught:
        desk.change_settings(DeskSettings(time_zone=zone))
    assert caught.value.field == "time_zone"


def test_a_place_in_another_spelling_is_refused_with_the_right_one(desk: PrivacyDesk) -> None:
    with pytest.raises(Refused, match="GB-ENG"):
        desk.change_settings(DeskSettings(jurisdiction="uk-eng"))


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_is_blank_too_long_or_no_text_is_refused_by_its_name(
    desk: PrivacyDesk, database: Database, name: str
) -> None:
    for answer in ("", " \n", "\u200b\u3164", "a\x00", "a\ud800", "a" * 4001, "😀" * 4001, 5, ["a"]):
        with pytest.raises(Refused) as caught:
            desk.change_settings(answered(**{name: answer}))
        assert caught.value.field == name
        assert caught.value.rule in ("answer_is_a_text", "answer_length")
        assert len(str(caught.value)) < 200
    assert rows(database, "organisation_setting") == trail(database) == []


# Who was first


def test_a_change_of_settings_that_others_have_changed_is_refused_and_nothing_is_saved(
    open_desk: OpenDesk, database: Database
) -> None:
    ines, omar = open_desk(by="user:ines"), open_desk(by="user:omar")
    seen = ines.settings()
    omar.change_settings(EVERYTHING)
    before = snapshot(database)
    for version in (seen.version, 2, -1):
        with pytest.raises(ChangedMeanwhile) as caught:
            ines.change_settings(replace(DeskSettings(time_zone="Asia/Tokyo"), version=version))
        assert caught.value.field == "settings"
        assert "nothing was saved" in str(caught.value)
        assert "Reload the page" in str(caught.value)
        assert snapshot(database) == before
    assert ines.change_settings(replace(ines.settings(), time_zone="Asia/Tokyo")).version == 2


def test_a_change_of_settings_that_never_were_is_refused(desk: PrivacyDesk, database: Database) -> None:
    with pytest.raises(ChangedMeanwhile):
        desk.change_settings(replace(EVERYTHING, version=7))
    assert rows(database, "organisation_setting") == trail(database) == []


def test_of_two_who_change_the_settings_at_once_one_wins_and_the_other_is_told(
    open_desk: OpenDesk, database: Database
) -> None:
    desks = [open_desk(by=f"user:u{number}") for number in range(4)]
    for turn in range(6):  # in the first nothing was ever set
        seen = desks[0].settings()
        start = Barrier(len(desks))
        news = [replace(seen, answers=StandingAnswers(controller=f"{desk.by} {turn}")) for desk in desks]

        def change(desk: PrivacyDesk, new: DeskSettings, start: Barrier = start) -> DeskSettings | ChangedMeanwhile:
            start.wait()
            try:
                return desk.change_settings(new)
            except ChangedMeanwhile as late:
                return late

        with ThreadPoolExecutor(len(desks)) as threads:
            done = list(threads.map(change, desks, news))
        (winner,) = [one for one in done if isinstance(one, DeskSettings)]
        assert winner == desks[0].settings()
        assert winner.version == seen.version + 1 == turn + 1
        assert len(trail(database)) == turn + 1
        assert f"{trail(database)[-1][0]} {turn}" == winner.answers.controller
    assert desks[0].verify_trail().broken is None


# What is on record


def test_the_trail_says_which_settings_changed_and_never_to_what(desk: PrivacyDesk, database: Database) -> None:
    after = desk.change_settings(EVERYTHING)
    everything = ", ".join(("jurisdiction", "time_zone", "tombstone_days", *ANSWERS))
    assert trail(database) == [("user:ines", "change settings", everything)]
    after = desk.change_settings(replace(after, answers=replace(after.answers, officer="Other7f3a", transfers=None)))
    after = desk.change_settings(replace(after, jurisdiction=None))
    assert [reason for _, _, reason in trail(database)[1:]] == ["officer, transfers", "jurisdiction"]
    assert traces(database, "7f3a") == ["organisation_setting"]
    assert not any("GB-ENG" in line or "London" in line or "730" in line for line in rows(database, "trail"))
    assert [entry.at for entry in desk.trail()] == [Clock().now] * 3
    assert desk.verify_trail().broken is None


def test_a_save_that_changes_nothing_leaves_no_line(desk: PrivacyDesk, database: Database) -> None:
    after = desk.change_settings(EVERYTHING)
    again = desk.change_settings(after)
    assert replace(again, version=0) == replace(after, version=0)
    assert len(trail(database)) == 1


# What else an organisation has set

OTHERS = "added_person_types, maximum_days, embedding_model, embedding_dimensions"


def others(database: Database) -> list[tuple[Any, ...]]:
    return execute(database, f"SELECT {OTHERS} FROM organisation_setting WHERE org_id = 'acme'")


def test_the_embedding_model_and_the_organisations_own_limits_survive_a_change_of_the_desks(
    open_store: OpenStore, desk: PrivacyDesk, database: Database
) -> None:
    observe(open_store(embedder=HashedWords()), "Could start in May.")
    execute(database, "UPDATE organisation_setting SET added_person_types = '{volunteer}', maximum_days = 200")
    assert others(database) == [(["volunteer"], 200, "words", 64)]
    assert desk.settings() == DeskSettings()
    after = desk.change_settings(EVERYTHING)
    desk.change_settings(replace(after, jurisdiction="IE"))
    assert others(database) == [(["volunteer"], 200, "words", 64)]
    assert open_store(embedder=HashedWords()).recall("May?", run_id="r-2").mode == "semantic"


def test_the_desks_settings_survive_a_first_embedding_and_a_change_of_its_model(
    open_store: OpenStore, desk: PrivacyDesk, database: Database
) -> None:
    after = desk.change_settings(EVERYTHING)
    assert others(database) == [([], 365, None, None)]
    observe(open_store(embedder=HashedWords()), "Could start in May.")
    assert others(database) == [([], 365, "words", 64)]
    assert desk.settings() == after
    repin(engine_for(database.application), "acme", Guarded(HashedWords("other", 32)))
    assert others(database) == [([], 365, "other", 32)]
    assert desk.settings() == after
    assert desk.change_settings(replace(after, time_zone="UTC")).version == 2
