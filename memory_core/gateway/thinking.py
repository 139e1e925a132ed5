"""Thinking that a model writes into its answer, told apart from the answer."""

from __future__ import annotations

from collections.abc import Iterator

from memory_core.gateway.conversation import Chunk, ChunkKind

OPENS = "<think>"
CLOSES = "</think>"


class ThinkingTags:
    """Parts an answer that begins with ``<think>…</think>``, however it is cut into pieces.

    A tag anywhere but at the very beginning is text: the model may be asked about one.
    """

    def __init__(self) -> None:
        self._kind: ChunkKind | None = None  # None until the beginning is read
        self._kept = ""  # what may be the beginning of a tag
        self._is_after_thinking = False

    def parted(self, text: str) -> Iterator[Chunk]:
        """Yield what is certain of the next piece."""
        self._kept += text
        if self._kind is None:
            beginning = self._kept.lstrip()
            if OPENS.startswith(beginning):  # too little to tell, nothing at all included
                if beginning != OPENS:
                    return
                self._kept, self._kind = "", ChunkKind.THINKING
            elif beginning.startswith(OPENS):
                self._kept, self._kind = beginning.removeprefix(OPENS), ChunkKind.THINKING
            else:
                self._kind = ChunkKind.ANSWER
        if self._kind is ChunkKind.THINKING:
            thought, tag, rest = self._kept.partition(CLOSES)
            if tag:
                self._kind, self._kept, self._is_after_thinking = ChunkKind.ANSWER, rest, True
            else:
                sure = len(thought) - _overlap(thought, CLOSES)
                thought, self._kept = thought[:sure], thought[sure:]
            if thought:
                yield Chunk(kind=ChunkKind.THINKING, text=thought)
        if self._kind is ChunkKind.ANSWER:
            yield from self._answer()

    def rest(self) -> Iterator[Chunk]:
        """Yield what was kept back, once the answer is over."""
        if self._kept and not (self._is_after_thinking and not self._kept.strip()):
            yield Chunk(kind=self._kind or ChunkKind.ANSWER, text=self._kept)
        self._kept = ""

    def _answer(self) -> Iterator[Chunk]:
        answer = self._kept
        if self._is_after_thinking:  # the blank lines between a thought and its answer belong to neither
            answer = answer.lstrip()
            if not answer:
                return
            self._is_after_thinking = False
        self._kept = ""
        if answer:
            yield Chunk(kind=ChunkKind.ANSWER, text=answer)


def _overlap(text: str, tag: str) -> int:
    """Return how long an end of the text is the beginning of the tag."""
    return next((length for length in range(min(len(text), len(tag) - 1), 0, -1) if text.endswith(tag[:length])), 0)
