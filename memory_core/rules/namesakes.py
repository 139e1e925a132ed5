"""Which of many subjects some texts may name: found without indexing every name, and never too few of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from memory_core.model import Subject
from memory_core.rules.folding import LONGEST_WORD, folded_words, glued_words, plainly, umlauted
from memory_core.rules.mentions import ARTICLE, HONORIFICS, STOP, without_one_letter

_DIGITS = "0123456789"


def perhaps_named(subjects: Iterable[Subject], texts: Iterable[str]) -> list[Subject]:
    """Return every subject that `Names` with `in_part` finds in one of the texts, or in a piece of one, and some more.

    `Names` of these few says exactly what `Names` of all would, in a fraction of the time.
    """
    written = _Written(texts)
    return [subject for subject in subjects if written.may_name(subject)]


class _Written:
    """The words of texts, and all that a name's word may be which one of them is like."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._words: set[str] = set()
        self._pairs: set[str] = set()  # of characters of scripts without spaces
        for text in texts:
            words, unspaced = folded_words(text)
            self._words.update(words)
            self._pairs.update(unspaced[at : at + 2] for at in range(len(unspaced) - 1))
        self._alike = {form for word in self._words for form in _alike(word)}
        self._starts, self._ends = {word[:2] for word in self._words}, {word[-2:] for word in self._words}
        self._looked_up: dict[str, bool] = {}  # names have many words in common

    def may_name(self, subject: Subject) -> bool:
        return self._has_token(subject.id) or any(
            self._has_token(name)
            if len(name.split()) == 1 and ("@" in name or any(map(str.isdigit, name)))
            else self._has_name(name)
            for name in (subject.label, *subject.aliases)
            if name
        )

    def _has_token(self, token: str) -> bool:
        words, _ = folded_words(token)
        if not words:
            return False
        if self._words.issuperset(words) or self._is_like("".join(words)):
            return True
        if "@" not in token and any(map(str.isdigit, token)):
            return False
        return any(map(self._is_like, folded_words(token.partition("@")[0])[0]))

    def _has_name(self, name: str) -> bool:
        words, unspaced = folded_words(name)
        if unspaced and not self._pairs.isdisjoint(_pairs(plainly(name).split())):
            return True
        spellings = [name] if name.isascii() else [name, umlauted(name)]
        if len(spellings) > 1:
            words = [*words, *folded_words(spellings[1])[0]]
        telling = [word for word in words if len(word) > 1 and word not in STOP] or words
        if any(word in self._words or self._is_like(word) for word in telling):
            return True
        glued = {word for one in map(glued_words, spellings) for word in (*one, "".join(one))}
        return any(map(self._is_like, glued.difference(telling)))

    def _is_like(self, word: str) -> bool:
        known = self._looked_up.get(word)
        if known is None:
            known = self._looked_up[word] = len(word) >= 3 and self._has_like(word)
        return known

    def _has_like(self, word: str) -> bool:
        alike = self._alike
        if word in alike or word[:-1] in alike or word.removeprefix(ARTICLE) in alike:
            return True
        if len(word) < 5 or (word[:2] not in self._starts and word[-2:] not in self._ends):
            return False  # one slip leaves the first two letters of such a word as they are, or the last two
        return not alike.isdisjoint(without_one_letter(word))


def _alike(word: str) -> Iterator[str]:
    yield word
    yield word[:-1]
    for bare in (word.rstrip(_DIGITS), *(() if word.isascii() else (word[1:], word[2:]))):
        yield bare
        yield bare[:-1]
    if len(word) <= LONGEST_WORD:
        yield from (word[:end] for end in range(3, len(word)))
        yield from without_one_letter(word)


def _pairs(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        yield from (word[at : at + 2] for at in range(len(word) - 1))
        yield from (word[-1] + other[0] for other in words)
        yield from (character + honorific[0] for character in word for honorific in HONORIFICS)
