"""The block of the first memories of another block."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from memory_core.model import Block
from memory_core.prompt.block import PREAMBLE
from memory_core.prompt.tokens import estimated_tokens

COUNT = re.compile(r'(?<= count=")[0-9]+')  # the last attribute before the mode, all of them ours
OMITTED = re.compile(r' omitted="[0-9]+">$')


@dataclass(frozen=True, kw_only=True)
class Further:
    """One memory of a block, and what the block takes with it."""

    line: str  # as it stands in the block
    tokens: int  # that it adds
    in_all: int  # of the block of the memories up to it

    @property
    def value(self) -> str:
        """Return the text as the block quotes it, or what became of it."""
        label, quote, value = self.line.partition(' "')  # no label has a quote in it
        return f'"{value}' if quote else label.partition("] ")[2]


def memory_lines(block: Block) -> list[str]:
    """Return a block's lines of memories, in their places."""
    return block.text.split("\n")[1 + len(PREAMBLE) : -1]  # no value has a line feed in it


def shortened(block: Block, count: int) -> Block:
    """Return the block that shows the first memories of a block only, and leaves out none of those.

    Raises ValueError where the block does not have as many, or none is asked for.
    """
    lines = memory_lines(block)
    if not 1 <= count <= len(lines):
        raise ValueError(f"the block has {len(lines)} memories, so it has no first {count}")
    opening, *rest = block.text.split("\n")
    opening = OMITTED.sub(">", COUNT.sub(str(count), opening, count=1))
    text = "\n".join([opening, *rest[: len(PREAMBLE)], *lines[:count], rest[-1]])
    observations = min(block.observations, count)  # at most; which of them are some is not known here
    return replace(block, text=text, tokens=estimated_tokens(text), omitted=0, observations=observations)


def further(block: Block) -> list[Further]:
    """Return what each memory of a block adds to it, in their places; the first one adds what is around them as well."""
    rows, before = [], 0
    for count, line in enumerate(memory_lines(block), start=1):
        in_all = shortened(block, count).tokens
        rows.append(Further(line=line, tokens=in_all - before, in_all=in_all))
        before = in_all
    return rows
