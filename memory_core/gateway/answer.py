"""An answer gathered piece by piece, with the moments that its record keeps."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from memory_core.calls import COLD_LOAD_MS, FinishReason
from memory_core.gateway.conversation import Chunk, ChunkKind, Ending, Piece, ToolCall
from memory_core.gateway.thinking import ThinkingTags
from memory_core.gateway.tool_calls import ToolCallPieces, calls_in_text


@dataclass
class Answer:
    """What came of an answer so far."""

    offered: Collection[str]  # the names of the tools
    first_chunk_ms: float | None = None
    first_answer_ms: float | None = None
    ending: Ending | None = None
    ended_ms: float | None = None
    piece_count: int = 0
    _said: dict[ChunkKind, list[str]] = field(default_factory=lambda: {kind: [] for kind in ChunkKind})
    _calls: ToolCallPieces = field(default_factory=ToolCallPieces)
    _tags: ThinkingTags = field(default_factory=ThinkingTags)

    def take(self, item: Piece | Ending, *, at_ms: float) -> Iterator[Chunk]:
        """Take what came at a moment of the call, and yield what of it can be handed on."""
        if isinstance(item, Ending):
            self.ending, self.ended_ms = item, at_ms
            for chunk in self._tags.rest():
                yield self._handed_on(chunk, at_ms)
            return
        if item.is_empty:
            return
        self.piece_count += 1
        if self.first_chunk_ms is None:
            self.first_chunk_ms = at_ms
        if item.thinking:
            yield self._handed_on(Chunk(kind=ChunkKind.THINKING, text=item.thinking), at_ms)
        for piece in item.tool_calls:
            self._answering(at_ms)
            self._calls.add(piece)
        if item.content:
            for chunk in self._tags.parted(item.content):
                yield self._handed_on(chunk, at_ms)

    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls that it asks for, also where they are written as text."""
        return self._calls.calls(self.offered) or calls_in_text(self.said(ChunkKind.ANSWER), self.offered)

    def said(self, kind: ChunkKind) -> str:
        """Return all that was said of a kind."""
        return "".join(self._said[kind])

    def finish_reason(self, calls: tuple[ToolCall, ...]) -> FinishReason:
        """Return why it ended; Ollama says stop also where it asks for tools."""
        reason = self.ending.finish_reason if self.ending else FinishReason.OTHER
        return FinishReason.TOOL_CALLS if calls and reason is not FinishReason.LENGTH else reason

    def was_cold(self) -> bool | None:
        """Say whether the model had to be loaded first, where the server reports its load time."""
        load_ms = self.ending.load_ms if self.ending else None
        return None if load_ms is None else load_ms >= COLD_LOAD_MS

    def _handed_on(self, chunk: Chunk, at_ms: float) -> Chunk:
        if chunk.kind is ChunkKind.ANSWER:
            self._answering(at_ms)
        self._said[chunk.kind].append(chunk.text)
        return chunk

    def _answering(self, at_ms: float) -> None:
        if self.first_answer_ms is None:
            self.first_answer_ms = at_ms
