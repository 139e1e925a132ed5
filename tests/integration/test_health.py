"""What is up, and what to type if it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Database, OpenStore
from fakes import HashedWords, fact

from memory_core import Subject
from memory_core.config import Settings, settings
from memory_core.health import Check, checks


def chosen(database: Database, **overrides: object) -> Settings:
    address = database.application.render_as_string(hide_password=False)
    return settings(database_url=address, **{"memory_embedder": "none"} | overrides)


def part(found: list[Check], name: str) -> Check:
    (check,) = [check for check in found if check.part == name]
    return check


def test_everything_in_order_has_nothing_to_mend(database: Database) -> None:
    found = checks(chosen(database, memory_embedder="minilm"), "acme")
    assert [check.part for check in found] == ["Database", "Role", "pgvector", "Migration", "Ledger", "Embedder"]
    assert all(check.ok and check.mend is None for check in found)


def test_a_ledger_that_cannot_be_written_is_said_with_what_mends_it(
    database: Database, open_store: OpenStore, tmp_path: Path
) -> None:
    blocked = tmp_path / "a file"
    blocked.touch()
    nothing = part(checks(chosen(database, memory_ledger=str(blocked)), "acme"), "Ledger")
    assert (nothing.ok, nothing.found) == (True, "nothing to keep yet")
    open_store().forget(Subject("candidate", "c-81"), by="user:ines", reason="asked to")
    check = part(checks(chosen(database, memory_ledger=str(blocked)), "acme"), "Ledger")
    assert not check.ok
    assert str(blocked) in check.found
    assert check.mend is not None
    assert "MEMORY_LEDGER" in check.mend
    mended = part(checks(chosen(database, memory_ledger=str(tmp_path / "ledgers")), "acme"), "Ledger")
    assert (mended.ok, mended.found) == (True, f"whole, in {tmp_path / 'ledgers'}")


def test_a_restored_database_is_said_with_the_command_that_erases_again(
    database: Database, open_store: OpenStore, tmp_path: Path
) -> None:
    here = chosen(database, memory_ledger=str(tmp_path / "the ledgers"))
    open_store().forget(Subject("candidate", "c-81"), by="user:ines", reason="asked to")
    assert part(checks(here, "acme"), "Ledger").ok  # and it is copied out there
    with database.connect(autocommit=True) as connection:
        connection.execute("DELETE FROM ledger")
    check = part(checks(here, "acme"), "Ledger")
    (ledger,) = (tmp_path / "the ledgers").glob("*.jsonl")
    assert not check.ok
    assert "1 of its entries" in check.found
    assert check.mend == f"python -m memory_core replay-erasures '{ledger}'"


def test_no_embedder_is_said_with_what_changes_it(database: Database) -> None:
    check = part(checks(chosen(database), "acme"), "Embedder")
    assert not check.ok
    assert check.mend is not None
    assert "python -m memory_core embed" in check.mend


def test_another_model_than_the_pinned_one_is_said(database: Database, open_store: OpenStore) -> None:
    open_store(embedder=HashedWords()).remember(**fact("Something."))
    check = part(checks(chosen(database, memory_embedder="minilm"), "acme"), "Embedder")
    assert not check.ok
    assert "words" in check.found
    assert check.mend is not None
    assert "embed --model minilm" in check.mend


def test_a_pinned_model_on_an_ollama_that_is_down_is_said(database: Database) -> None:
    with database.connect(autocommit=True) as connection:
        connection.execute("INSERT INTO organisation VALUES ('acme')")
        connection.execute(
            "INSERT INTO organisation_setting (org_id, embedding_model, embedding_dimensions)"
            " VALUES ('acme', 'ollama:nomic-embed-text', 768)"
        )
    check = part(checks(chosen(database, memory_embedder="auto", ollama_host="http://127.0.0.1:1"), "acme"), "Embedder")
    assert not check.ok
    assert check.mend == "ollama pull nomic-embed-text"


def test_an_unmigrated_database_is_said_with_the_command(database: Database) -> None:
    with database.connect(autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '000001'")
    check = part(checks(chosen(database), "acme"), "Migration")
    assert not check.ok
    assert check.mend == "python -m memory_core migrate"


@pytest.mark.parametrize("url", ["postgresql://nobody:s3cret@127.0.0.1:1/nothing"])
def test_a_database_that_is_down_is_said_without_its_password(url: str) -> None:
    (check,) = checks(settings(database_url=url), "acme")
    assert not check.ok
    assert "s3cret" not in check.found
    assert check.mend is not None
