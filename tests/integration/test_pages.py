"""The pages as Streamlit runs them, without a browser."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from conftest import Database, OpenDesk, OpenStore
from fakes import HashedWords
from pressing import MARKUP, everything_interpreted, press, segment, told
from rows import execute
from streamlit.testing.v1 import AppTest

from memory_core import Memory, Refused, Subject
from memory_core.rights import MeasureKind, StandingAnswers
from pages import refused_because
from pages.desk.picker import digest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "app.py", *sorted((ROOT / "pages").glob("[0-9]*.py"))]
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]
ZOE = Subject("candidate", "c-81")


@pytest.fixture
def page(database: Database, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], AppTest]:
    """Run a page on this test's database, with no embedder."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("DATABASE_URL", database.application.render_as_string(hide_password=False))
    monkeypatch.setenv("MEMORY_ORG", "acme")
    monkeypatch.setenv("MEMORY_EMBEDDER", "none")

    def run(name: str) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        return at.run() if name == "app.py" else at.switch_page(name).run()

    return run


def remember(open_store: OpenStore, text: str = MARKUP, subject: str = "c-81", label: str | None = None) -> Memory:
    return open_store().remember(
        text,
        kind="observation",
        origin="inference",
        author="agent:screening",
        run_id="r-1",
        subject=Subject("candidate", subject, label=label),
    )


def test_an_empty_organisation_says_how_to_fill_it(page: Callable[[str], AppTest]) -> None:
    at = page("app.py")
    assert not at.exception
    assert "Nothing is held" in at.info[0].value
    assert "python -m memory_core import FILE --org acme" in at.code[0].value


def test_home_counts_what_is_held_and_what_is_due(page: Callable[[str], AppTest], open_store: OpenStore) -> None:
    remember(open_store, "one")
    open_store().remember(
        "Two days left.",
        kind="fact",
        origin="person",
        author="user:maria",
        run_id="r-2",
        expires_at=datetime.now(UTC) + timedelta(days=2),
    )
    at = page("app.py")
    assert not at.exception
    figures = {metric.label: metric.value for metric in at.metric}
    assert figures["Live memories"] == "2"
    assert figures["In 7 / 30 days"] == "1 / 1"
    assert figures["No embedding"] == "2"
    assert "python -m memory_core embed --org acme" in [code.value for code in at.code]


def test_home_says_that_the_database_is_not_migrated_and_how_to_mend_it(
    page: Callable[[str], AppTest], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.connect(autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '000001'")
    at = page("app.py")
    assert not at.exception
    assert "python -m memory_core migrate" in at.code[0].value
    assert not at.metric


def test_a_bad_setting_is_one_line_on_the_page(page: Callable[[str], AppTest], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_EMBEDDER", "gpt")
    at = page("app.py")
    assert not at.exception
    assert at.code[0].value.startswith("MEMORY_EMBEDDER: ")


def test_production_without_a_sign_in_serves_nothing(
    page: Callable[[str], AppTest], monkeypatch: pytest.MonkeyPatch, open_store: OpenStore
) -> None:
    remember(open_store)
    monkeypatch.setenv("APP_ENV", "production")
    monkeypatch.setenv("MODEL_API_KEY", "k3y-of-nobody")
    for name in NAMES:
        at = page(name)
        assert not at.exception
        assert "production" in at.error[0].value
        assert "no sign-in" in at.error[0].value
        assert not at.metric
        assert not [*at.text_input, *at.text_area, *at.button, *at.dataframe]


def test_production_without_a_model_is_refused_by_its_setting(
    page: Callable[[str], AppTest], monkeypatch: pytest.MonkeyPatch, open_store: OpenStore
) -> None:
    remember(open_store)
    monkeypatch.setenv("APP_ENV", "production")
    monkeypatch.setenv("MODEL_API_KEY", "")
    for name in NAMES:
        at = page(name)
        assert not at.exception
        assert at.code[0].value.startswith("MODEL_API_KEY: ")
        assert not at.metric
        assert not [*at.text_input, *at.text_area, *at.button, *at.dataframe]


def test_a_subject_is_found_and_everything_held_is_shown(page: Callable[[str], AppTest], open_store: OpenStore) -> None:
    remember(open_store, label="**Zoë** ![x](https://evil.example/b.png)")
    at = page("pages/1_Subjects.py")
    at.text_input(key="search").set_value("zoe").run()
    assert not at.exception
    figures = {metric.label: metric.value for metric in at.metric}
    assert figures == {"Held": "1", "With text": "1", "Tombstones": "0", "Times shown": "0"}
    assert "evil.example" not in everything_interpreted(at)


def test_what_nobody_is_called_finds_nobody(page: Callable[[str], AppTest], open_store: OpenStore) -> None:
    remember(open_store)
    at = page("pages/1_Subjects.py")
    at.text_input(key="search").set_value("nobody at all").run()
    assert not at.exception
    assert "Nothing is held" in at.warning[0].value


def test_the_id_of_the_organisation_next_door_finds_nobody(
    page: Callable[[str], AppTest], open_store: OpenStore
) -> None:
    open_store("acme-corp").remember(
        "Theirs.",
        kind="observation",
        origin="inference",
        author="agent:screening",
        run_id="r-1",
        subject=Subject("candidate", "c-9"),
    )
    at = page("pages/1_Subjects.py")
    at.text_input(key="search").set_value("c-9").run()
    assert "Nothing is held" in at.warning[0].value


def test_a_preview_is_made_on_the_button_and_not_at_every_rerun(
    page: Callable[[str], AppTest], open_store: OpenStore, database: Database
) -> None:
    remember(open_store)
    at = page("pages/3_Recall.py")
    at.text_input[0].set_value("who is bold?")
    at.selectbox(key="preview purpose").set_value("testing recall")
    at.button[0].click().run()
    assert not at.exception
    blocks = [code.value for code in at.code if code.value.startswith("<memories")]
    assert len(blocks) == 2
    assert all('mode="recency"' in block for block in blocks)
    assert MARKUP.replace("<b>", "\\u003cb\\u003e").replace("</b>", "\\u003c/b\\u003e") in blocks[0]
    assert "evil.example" not in everything_interpreted(at)
    at.run()
    with database.connect() as connection:
        rows = connection.execute("SELECT purpose, count(*) FROM disclosure GROUP BY purpose").fetchall()
        assert rows == [("preview", 2)]


def test_semantic_stands_beside_recency(page: Callable[[str], AppTest], open_store: OpenStore) -> None:
    store = open_store(embedder=HashedWords())
    store.remember("Prefers mornings.", kind="fact", origin="person", author="user:maria", run_id="r-1")
    at = page("pages/3_Recall.py")
    at.text_input[0].set_value("mornings")
    at.selectbox(key="preview purpose").set_value("testing recall")
    at.button[0].click().run()
    assert [heading.value for heading in at.subheader] == ["Semantic", "Recency"]
    assert "no embedder is configured" in at.warning[0].value  # the settings of this page name none
    assert "asked for" in at.info[0].value


def test_asking_nothing_previews_nothing(page: Callable[[str], AppTest], database: Database) -> None:
    at = page("pages/3_Recall.py")
    at.button[0].click().run()
    assert not at.exception
    assert at.warning[0].value == "Ask something first."
    with database.connect() as connection:
        assert connection.execute("SELECT count(*) FROM recall").fetchone() == (0,)


# What is done about a subject


def opened(page: Callable[[str], AppTest], section: str) -> AppTest:
    """Open a section of what is held about c-81."""
    at = page("pages/1_Subjects.py")
    at.text_input(key="search").set_value("c-81").run()
    return segment(at, f"section {ZOE}", section)


def tick(at: AppTest, held: Sequence[Memory], row: int = 0) -> AppTest:
    selection = {"selection": {"rows": [row], "columns": [], "cells": []}}
    return segment(at, f"held acme {digest(str(one.memory_id) for one in held)}", selection)


def fill(at: AppTest, label: str, text: str) -> None:
    next(field for field in [*at.text_area, *at.text_input] if field.label == label).set_value(text)


def test_a_restriction_is_placed_and_lifted_only_with_the_answer_whether_the_person_was_told(
    page: Callable[[str], AppTest], open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store)
    desk = open_desk()
    at = opened(page, "Restrict, hold, suppress")
    press(at, "Restrict")
    assert "rule reason_is_given" in told(at)[-1]
    fill(at, "Reason", MARKUP)
    press(at, "Restrict")
    (placed,) = desk.measures(ZOE)
    assert (placed.kind, placed.stands, placed.reason) == (MeasureKind.RESTRICTION, True, MARKUP)
    assert at.success[0].value == "Placed."
    assert "Restricted since" in at.warning[0].value
    assert "evil.example" not in everything_interpreted(at)
    fill(at, "Why it is lifted", "Put right.")
    press(at, "Lift")
    assert "rule lifting_says_whether_the_person_was_told" in told(at)[-1]
    assert desk.measures(ZOE)[0].stands
    at.radio[0].set_value(True)
    press(at, "Lift")
    (lifted,) = desk.measures(ZOE)
    assert (lifted.stands, lifted.person_told, lifted.lifted_reason) == (False, True, "Put right.")


def test_a_hold_has_its_matter_and_a_suppression_stops_what_is_new(
    page: Callable[[str], AppTest], open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store)
    desk = open_desk()
    at = segment(opened(page, "Restrict, hold, suppress"), "measure kind", MeasureKind.HOLD)
    fill(at, "Matter", "case-7")
    fill(at, "Reason", "A claim.")
    press(at, "Put on hold")
    segment(at, "measure kind", MeasureKind.SUPPRESSION)
    fill(at, "Reason", "They objected.")
    press(at, "Stop new memories")
    assert {one.kind: one.reason for one in desk.measures(ZOE)} == {
        MeasureKind.HOLD: "A claim.",
        MeasureKind.SUPPRESSION: "They objected.",
    }
    assert "case-7" in {one.name for one in desk.measures(ZOE)}
    with pytest.raises(Refused):
        remember(open_store, "Something new.")
    segment(at, f"section {ZOE}", "Erase")
    press(at, "Look for what belongs to it")
    assert "A legal hold keeps these memories" in at.warning[-1].value
    assert not [button for button in at.button if button.label.startswith("Forget")]


def test_a_memory_is_corrected_under_its_row(
    page: Callable[[str], AppTest], open_store: OpenStore, open_desk: OpenDesk
) -> None:
    old = remember(open_store)
    at = tick(opened(page, "Held"), [old])
    assert MARKUP in told(at)
    segment(at, f"act {old.memory_id}", "Correct")
    fill(at, "What is right", "Prefers mornings.")
    fill(at, "Reason", "So she says.")
    press(at, "Correct")
    assert at.success[0].value == "Corrected."
    new = next(one for one in open_desk().held(ZOE).memories if one.text is not None)
    assert (new.text, new.supersedes, new.author) == ("Prefers mornings.", old.memory_id, "user:local")
    assert "evil.example" not in everything_interpreted(at)


def test_a_dispute_is_put_beside_a_memory_and_withdrawn_under_its_row(
    page: Callable[[str], AppTest], open_store: OpenStore, open_desk: OpenDesk
) -> None:
    one = remember(open_store, "Could start in May.")
    at = segment(tick(opened(page, "Held"), [one]), f"act {one.memory_id}", "Dispute")
    fill(at, "What the person says", MARKUP)
    press(at, "Put it beside the memory")
    assert open_desk().held(ZOE).memories[0].disputed == MARKUP
    tick(at, [one])
    assert MARKUP in told(at)
    assert "evil.example" not in everything_interpreted(at)
    segment(at, f"act {one.memory_id}", "Withdraw the dispute")
    fill(at, "Why it is withdrawn", "She saw the note.")
    press(at, "Withdraw the dispute")
    assert open_desk().held(ZOE).memories[0].disputed is None


def test_an_erasure_is_looked_for_and_confirmed_by_the_id(
    page: Callable[[str], AppTest], open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store, label="Zoë Okafor")
    other = remember(open_store, f"Zoë Okafor was there. {MARKUP}", "c-9")
    at = opened(page, "Erase")
    assert not [button for button in at.button if button.label.startswith("Forget")]
    press(at, "Look for what belongs to it")
    figures = {metric.label: metric.value for metric in at.metric}
    assert (figures["Would go"], figures["Name them"]) == ("1", "1")
    segment(at, f"preselected {ZOE}", "those that name them")
    next(box for box in at.checkbox if box.label.startswith("Also let nothing new")).check()
    press(at, "Forget 1 and what is ticked …")
    assert next(button for button in at.button if button.label == "Forget").disabled
    assert "Nothing new may be remembered" in everything_interpreted(at)
    fill(at, "Reason", "As asked.")
    fill(at, "Type the subject's id again to confirm", "c-8")
    at.run()
    assert next(button for button in at.button if button.label == "Forget").disabled
    fill(at, "Type the subject's id again to confirm", "c-81")
    at.run()
    assert "evil.example" not in everything_interpreted(at)
    next(button for button in at.button if button.label == "Forget").click().run()
    assert at.success[0].value == "Forgotten. The certificate is below."
    assert at.text_input(key="search").value == "candidate c-81"
    desk = open_desk()
    certificate = desk.certificate(desk.erasures(subject=ZOE)[0])
    assert (certificate.about_others, certificate.suppressed, certificate.by) == (
        (other.memory_id,),
        True,
        "user:local",
    )
    assert not [one for one in desk.held(ZOE).memories if one.text is not None]


def test_the_page_after_an_erasure_shows_its_certificate(
    page: Callable[[str], AppTest], open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store)
    at = press(opened(page, "Erase"), "Look for what belongs to it")
    press(at, "Forget 1 …")
    fill(at, "Reason", "As asked.")
    fill(at, "Type the subject's id again to confirm", "c-81")
    at.run()
    press(at, "Forget")
    assert [heading.value for heading in at.subheader].count("Certificate of the erasure") == 1
    assert str(open_desk().erasures(subject=ZOE)[0]) in str([frame.value for frame in at.dataframe])


def test_a_package_that_is_prepared_from_the_subject_is_an_export_whose_passphrase_is_kept_nowhere(
    page: Callable[[str], AppTest], open_store: OpenStore, open_desk: OpenDesk
) -> None:
    remember(open_store)
    at = opened(page, "Hand out")
    assert "This is for no request" in " ".join(warning.value for warning in at.warning)
    press(at, "Prepare the package")
    assert [len(part) for part in told(at)[-1].split("-")] == [5] * 5
    assert told(at)[-1] not in repr(at.session_state)
    assert "evil.example" not in everything_interpreted(at)
    assert open_desk().trail(limit=1)[0].act == "export"


# What the organisation answers, and the proof


def save(at: AppTest, **typed: str) -> AppTest:
    """Type into fields by the beginning of their labels, and save."""
    for label, text in typed.items():
        field = next(one for one in [*at.text_area, *at.text_input] if one.label.startswith(label.replace("_", " ")))
        field.set_value(text)
    return press(at, "Save")


def test_settings_are_saved_and_said_to_be_without_interpreting_an_answer(
    page: Callable[[str], AppTest], open_desk: OpenDesk
) -> None:
    at = page("pages/7_Settings.py")
    assert "9 of 9 standing answers missing" in at.warning[0].value
    save(at, Country="de-by", Time_zone="Europe/Berlin", Who_is_responsible=MARKUP)
    saved = open_desk().settings()
    assert (saved.jurisdiction, saved.time_zone, saved.answers.controller) == ("DE-BY", "Europe/Berlin", MARKUP)
    assert at.success[0].value.startswith("Saved.")
    assert "8 of 9 standing answers missing" in at.warning[0].value
    assert MARKUP in [area.value for area in at.text_area]
    assert "evil.example" not in everything_interpreted(at)
    save(at, Who_receives_them="Nobody else.")
    assert (open_desk().settings().version, open_desk().settings().answers.controller) == (saved.version + 1, MARKUP)


def test_a_country_that_is_not_known_is_told_and_nothing_is_saved(
    page: Callable[[str], AppTest], open_desk: OpenDesk
) -> None:
    before = open_desk().settings()
    at = save(page("pages/7_Settings.py"), Country="XX-1", Who_is_responsible="Acme Hiring Ltd")
    assert "Nothing was saved" in at.error[0].value
    assert "jurisdiction" in told(at)[0]
    assert open_desk().settings() == before
    assert "Acme Hiring Ltd" in [area.value for area in at.text_area]


@pytest.mark.parametrize("answer", ["controller", "recipients"])
def test_who_saves_over_what_somebody_else_has_saved_meanwhile_is_told(
    page: Callable[[str], AppTest], open_desk: OpenDesk, answer: str
) -> None:
    at = page("pages/7_Settings.py")
    desk = open_desk()
    theirs = StandingAnswers(**{answer: "Theirs."})
    set_by_them = desk.change_settings(replace(desk.settings(), answers=theirs))
    save(at, Who_is_responsible="Ours.")
    assert desk.settings() == set_by_them
    assert "Nothing was saved" in at.error[0].value
    assert "were changed by user:ines" in told(at)[0]


def test_what_is_typed_for_one_organisation_is_never_saved_for_another(
    page: Callable[[str], AppTest], open_desk: OpenDesk
) -> None:
    here, there = open_desk(), open_desk("beta")
    there.change_settings(replace(there.settings(), answers=StandingAnswers(controller="Beta Ltd")))
    here.change_settings(replace(here.settings(), answers=StandingAnswers(controller="Acme Ltd")))
    at = page("pages/7_Settings.py")
    next(one for one in at.text_area if one.label.startswith("Who is responsible")).set_value("Acme plc")
    at.selectbox[0].set_value("beta").run()
    assert "Acme" not in str([one.value for one in at.text_area])
    press(at, "Save")
    assert there.settings().answers.controller == "Beta Ltd"
    assert here.settings().answers.controller == "Acme Ltd"


def test_the_trail_is_checked_on_a_button_and_a_changed_line_is_told(
    page: Callable[[str], AppTest], open_store: OpenStore, open_desk: OpenDesk, database: Database
) -> None:
    remember(open_store)
    desk = open_desk()
    desk.restrict(MARKUP, subject=ZOE)
    at = press(page("pages/7_Settings.py"), "Check the trail")
    assert "lines hold" in at.success[0].value
    assert desk.verify_trail().head in told(at)
    assert str(desk.ledger().path) in told(at)
    assert "evil.example" not in everything_interpreted(at)
    execute(database, "UPDATE trail SET by = 'user:bo' WHERE number = 1")
    press(at, "Check the trail")
    assert at.error[0].value == "The trail does not hold."
    assert "line 1 was changed" in told(at)[0]


@pytest.mark.parametrize(
    ("address", "sign_in", "refused"),
    [
        ("127.0.0.1", False, False),
        ("localhost", False, False),
        ("::1", False, False),
        (None, False, True),  # Streamlit then listens everywhere
        ("", False, True),
        ("0.0.0.0", False, True),
        ("192.168.1.4", False, True),
        ("localhost.evil.example", False, True),
        ("0.0.0.0", True, False),
    ],
)
def test_without_a_sign_in_only_this_machine_is_served(address: str | None, sign_in: bool, refused: bool) -> None:
    assert (refused_because(address=address, has_sign_in=sign_in) is not None) is refused
    production = refused_because(address=address, has_sign_in=sign_in, is_production=True)
    assert (production is not None) is not sign_in


def _does_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]).isupper()
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_docstring or isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_first_thing_a_page_does_is_to_ask_the_gate(path: Path) -> None:
    tree = ast.parse(path.read_text())
    first = next(node for node in tree.body if not _does_nothing(node))
    assert isinstance(first, ast.Assign)
    assert ast.unparse(first.value).startswith("gate(")


@pytest.mark.parametrize("path", [*PAGES, ROOT / "pages" / "__init__.py"], ids=lambda path: path.name)
def test_a_page_builds_no_sql_and_interprets_no_text(path: Path) -> None:
    source = path.read_text()
    names = {
        name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom | ast.Import)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    assert not [name for name in names if name.startswith("memory_core.db")]
    for trap in ("unsafe_allow_html", "st.navigation", "cache_data", "st.write("):
        assert trap not in source
