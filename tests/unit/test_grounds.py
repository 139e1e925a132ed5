"""A decision about a person rests on what a person recorded: never on a memory alone, never on an agent's own words."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.prompt import block
from memory_core.rules.grounds import NO_DECISION_SENTENCE, Ground, grounds_refusal

MEMORY, RECORD, OWN_WORDS = Ground.MEMORY, Ground.RECORD, Ground.OWN_WORDS
GROUNDS = st.lists(st.sampled_from(Ground), max_size=8)
NO_RECORD = st.lists(st.sampled_from([MEMORY, OWN_WORDS]), max_size=8)


def rule(*grounds: Ground) -> str | None:
    refused = grounds_refusal(grounds)
    return refused.rule if refused else None


@pytest.mark.parametrize(
    ("grounds", "refused_by"),
    [
        ([RECORD], None),
        ([RECORD, RECORD], None),
        ([MEMORY, RECORD], None),
        ([OWN_WORDS, RECORD], None),
        ([MEMORY, OWN_WORDS, RECORD], None),
        ([MEMORY], "a_memory_is_no_ground_on_its_own"),
        ([MEMORY, MEMORY], "a_memory_is_no_ground_on_its_own"),
        ([OWN_WORDS, MEMORY], "a_memory_is_no_ground_on_its_own"),
        ([OWN_WORDS], "a_ground_is_a_persons_record"),
        ([], "a_decision_has_grounds"),
    ],
)
def test_a_decision_needs_one_ground_that_a_person_recorded(grounds: list[Ground], refused_by: str | None) -> None:
    assert rule(*grounds) == refused_by


def test_the_refusal_of_a_memory_alone_says_the_sentence_of_every_block_and_what_to_do() -> None:
    refused = grounds_refusal([MEMORY])
    assert refused is not None
    assert NO_DECISION_SENTENCE == block.NO_DECISION_SENTENCE
    assert refused.reason.startswith(f"{NO_DECISION_SENTENCE} Name a note or feedback by a person")
    assert refused.field == "grounds"


@pytest.mark.parametrize("grounds", [[MEMORY], [OWN_WORDS], []])
def test_every_refusal_says_what_would_be_a_ground(grounds: list[Ground]) -> None:
    refused = grounds_refusal(grounds)
    assert refused is not None
    assert "a note or feedback by a person, or an interview that was held" in refused.reason


@given(grounds=GROUNDS)
def test_a_decision_is_let_through_exactly_where_a_person_recorded_something(grounds: list[Ground]) -> None:
    assert (rule(*grounds) is None) == (RECORD in grounds)


@given(grounds=NO_RECORD, memories=st.integers(1, 5))
def test_no_number_of_memories_makes_a_ground(grounds: list[Ground], memories: int) -> None:
    assert rule(*grounds, *[MEMORY] * memories) == "a_memory_is_no_ground_on_its_own"


@given(grounds=GROUNDS, draw=st.randoms())
def test_the_order_of_the_grounds_decides_nothing(grounds: list[Ground], draw: Random) -> None:
    turned = list(grounds)
    draw.shuffle(turned)
    assert rule(*turned) == rule(*grounds)
