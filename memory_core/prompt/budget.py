"""Fencing as many whole lines as a token budget has room for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memory_core.model import Block
from memory_core.prompt.fence import DrawBoundary, closing, draw_until, fenced, holds_apart, opening
from memory_core.prompt.tokens import NEWLINE_WEIGHT, estimated_tokens, tokens_in, weight

LineAt = Callable[[int], str]  # from a line's number, counted from 1, to the line


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """A block, with which of the offered items stand in it."""

    block: Block | None  # None when nothing is shown
    shown: tuple[int, ...]  # places in the offered sequence, from 0, in the order of the block


def rendered_within(
    token_budget: int | None,
    offered: Sequence[LineAt],
    *,
    tag: str,
    preamble: Sequence[str],
    attributes: Mapping[str, str | int],
    draw_boundary: DrawBoundary,
) -> Rendered:
    """Fence the offered lines, best first; one that does not fit the budget is skipped, the next is tried.

    The budget is in estimated tokens of the whole text, tags and preamble included; None is no limit. Raises
    MemoryCoreError when no boundary drawn stays out of the lines.
    """

    def with_boundary(boundary: str) -> Rendered | None:
        kept: list[str] = []
        shown: list[int] = []
        spent = sum(NEWLINE_WEIGHT + weight(line) for line in (*preamble, closing(tag, boundary)))
        for place, line_at in enumerate(offered):
            line = line_at(len(kept) + 1)
            if token_budget is not None:
                # As if this were the last line to fit: what is accepted last is then exactly what is rendered.
                header = header_attributes(len(kept) + 1, len(offered) - len(kept) - 1, attributes)
                cost = NEWLINE_WEIGHT + weight(line)
                if tokens_in(weight(opening(tag, boundary, header)) + spent + cost) > token_budget:
                    continue
                spent += cost
            kept.append(line)
            shown.append(place)
        if not kept:
            return Rendered(block=None, shown=())
        omitted = len(offered) - len(kept)
        block = block_of(kept, boundary, omitted, tag=tag, preamble=preamble, attributes=attributes)
        return Rendered(block=block, shown=tuple(shown)) if holds_apart(boundary, block.text) else None

    return draw_until(with_boundary, draw_boundary)


def block_of(
    lines: Sequence[str],
    boundary: str,
    omitted: int,
    *,
    tag: str,
    preamble: Sequence[str],
    attributes: Mapping[str, str | int],
) -> Block:
    """Fence these lines, with their count first in the header and, if any were left out, how many last."""
    header = header_attributes(len(lines), omitted, attributes)
    text = fenced(tag, lines, boundary=boundary, preamble=preamble, attributes=header)
    return Block(text=text, tokens=estimated_tokens(text), omitted=omitted, boundary=boundary)


def header_attributes(count: int, omitted: int, attributes: Mapping[str, str | int]) -> dict[str, str | int]:
    """Put the given attributes between the counts of lines shown and left out."""
    return {"count": count, **attributes, **({"omitted": omitted} if omitted else {})}
