"""The block of the first memories is the block that a recall of so many would have shown."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.model import Kind, Memory, Origin, RecallMode, State
from memory_core.prompt.block import memory_block, rebuilt_block
from memory_core.prompt.shorter import further, memory_lines, shortened

T0 = datetime(2026, 11, 2, 9, 30, tzinfo=UTC)
TEXTS = [
    "Mondays.",
    'count="9" omitted="3">',
    "a\nb\r\u2028c",
    "</memories>",
    "x" * 500,
    "Zoë 日本 🎈",
    "[2] stated by user:x",
]


def memory(text: str | None = "Mondays.", **changes: object) -> Memory:
    fields: dict[str, object] = {
        "memory_id": UUID(int=81),
        "org_id": "acme",
        "kind": Kind.FACT,
        "subject": None,
        "text": text,
        "origin": Origin.PERSON,
        "author": "user:maria",
        "run_id": "r-640",
        "source": None,
        "created_at": T0,
        "expires_at": T0,
        "state": State.LIVE,
        "seen_count": 1,
        "last_seen_at": T0,
        "last_seen_run_id": "r-640",
        "embedding_model": None,
        "restricted_at": None,
        "hold": None,
        "forgotten_at": None,
        "forgotten_by": None,
        "forgotten_reason": None,
        "swept_at": None,
    }
    return Memory(**(fields | changes))  # type: ignore[arg-type]


@given(
    st.lists(st.one_of(st.sampled_from(TEXTS), st.text(min_size=1, max_size=60)), min_size=1, max_size=8),
    st.one_of(st.none(), st.sampled_from(["asked for", 'count="7" omitted="1">', "no embedder is configured"])),
    st.data(),
)
def test_the_first_of_a_block_are_what_a_smaller_recall_shows(
    texts: list[str], reason: str | None, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, len(texts)))
    mode = RecallMode.RECENCY if reason else RecallMode.SEMANTIC

    def block(of: list[str]) -> object:
        memories = [memory(text) for text in of]
        return memory_block(
            memories, mode=mode, reason=reason, token_budget=None, draw_boundary=lambda: "9f2c61d0"
        ).block

    assert shortened(block(texts), count) == block(texts[:count])  # type: ignore[arg-type]


def test_what_the_budget_left_out_is_not_left_out_of_the_first_ones() -> None:
    memories = [memory("Mondays."), memory("Tuesdays.")]
    whole = rebuilt_block(memories, boundary="9f2c61d0", mode=RecallMode.SEMANTIC, reason=None, omitted=2)
    assert whole.text.startswith('<memories boundary="9f2c61d0" count="2" mode="semantic" omitted="2">')
    first = shortened(whole, 1)
    assert first.text.startswith('<memories boundary="9f2c61d0" count="1" mode="semantic">\n')
    assert (first.omitted, first.tokens < whole.tokens) == (0, True)


def test_what_each_memory_adds_comes_to_the_whole() -> None:
    memories = [memory("Mondays."), memory("Tuesdays, and never before ten."), memory(None, forgotten_at=T0)]
    whole = rebuilt_block(memories, boundary="9f2c61d0", mode=RecallMode.SEMANTIC, reason=None, omitted=0)
    rows = further(whole)
    assert [row.line for row in rows] == memory_lines(whole)
    assert rows[2].line == "[3] erased on 2026-11-02"
    assert [row.value for row in rows] == ['"Mondays."', '"Tuesdays, and never before ten."', "erased on 2026-11-02"]
    assert sum(row.tokens for row in rows) == rows[-1].in_all == whole.tokens
    assert rows[0].tokens > rows[1].tokens > rows[2].tokens > 0


@pytest.mark.parametrize("count", [0, -1, 2])
def test_a_block_has_no_more_first_memories_than_it_has(count: int) -> None:
    whole = rebuilt_block([memory()], boundary="b", mode=RecallMode.SEMANTIC, reason=None, omitted=0)
    with pytest.raises(ValueError, match="has 1 memories"):
        shortened(whole, count)
