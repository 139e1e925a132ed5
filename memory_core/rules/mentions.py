"""Which known subjects a text names.

Words are compared folded, as in `naming`; what is looked for:

- Whole: the words of a name next to each other in the given order, turned round ("Okafor, Zoë") or with one initial in
  between ("Zoë M. Okafor"), a title left out or not, ü also as ue. Fewer than three letters in all are no name.
- Whole: an e-mail or an identifier in any case, with nothing running on before or after it: c-81, not abc-81 or c-811.
  One of one or two characters, or a number of up to six digits, only with the type before it: "candidate 7".
- In part: a single word of three letters or more that is no title or particle, also with an ending, a prefix (Arabic,
  Hebrew) or, from five letters, one slip; the words of a name run together; an identifier written in another way.
- Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese have no space around a name: it may stand anywhere in the text,
  and two characters are a name.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from rapidfuzz.distance import OSA

from memory_core.model import Subject
from memory_core.rights import Mention
from memory_core.rules.folding import (
    KEPT_WORDS,
    LONGEST_WORD,
    UNSPACED,
    UNSPACED_RANGES,
    KeptWords,
    folded_words,
    glued_words,
    plainly,
    spelled_out,
    umlauted,
)

_TITLE_WORDS = "dr prof professor mr mrs ms miss mx sir herr frau fraulein mme mlle monsieur madame sig"
# Particles, what stands before or after an @, and English words that look like a short name with an s.
_STOP_WORDS = """
van von vom zum zur der den des del della delle dos das les ter ten bin bint ibn abu umm and und the junior senior
info jobs mail contact office admin hello team com org net this thus does less
"""
_TITLES = frozenset(_TITLE_WORDS.split())
STOP = _TITLES | frozenset(_STOP_WORDS.split())  # name nobody by themselves
HONORIFICS = ("先生", "女士", "小姐", "老师", "さん", "様", "氏", "씨", "님")  # as folded by plainly
_PREFIXES = {"ARABIC": "وفبلك", "HEBREW": "והבלמשכ"}  # and, so, in, to, as; and, the, in, to, from, that, as
ARTICLE = "ال"
_LETTER = rf"[^\W_{UNSPACED_RANGES}]"
_INITIAL = re.compile(rf"(?!\d){_LETTER}")
_RUNS_ON_BEFORE = re.compile(rf"{_LETTER}[-.+@]?\Z")
_RUNS_ON_AFTER = re.compile(rf"{_LETTER}|@|[-_.,]\d")
_ADDRESS_RUNS_ON_BEFORE = re.compile(rf"{_LETTER}[-._+@]?\Z")
_ADDRESS_RUNS_ON_AFTER = re.compile(rf"[-.]?{_LETTER}")
_MOST_TURNED = 6  # words; a longer name is looked for in its own order only


class Names:
    """The names of some subjects, to be looked for in texts; with `in_part` also single words of them.

    Also looks for `also`, further names of the one subject given, however short they are; raises ValueError for them
    if there is not exactly one.
    """

    def __init__(self, subjects: Iterable[Subject], *, also: Sequence[str] = (), in_part: bool = False) -> None:
        known = list(dict.fromkeys(subjects))
        if also and len(known) != 1:
            raise ValueError(f"further names are those of one subject, not of {len(known)}")
        self._in_part = in_part
        self._mentions: list[tuple[Mention, Mention]] = []  # whole, in part; by place
        self._places: dict[tuple[Subject, str], int] = {}
        self._sequences = _Node()
        self._unspaced: defaultdict[str, set[tuple[str, int, bool]]] = defaultdict(set)  # by the first two characters
        self._parts: defaultdict[str, set[int]] = defaultdict(set)
        self._part_words: set[str] = set()  # the words of which there are parts
        self._stems: defaultdict[str, list[str]] = defaultdict(list)
        self._slips: defaultdict[str, list[str]] = defaultdict(list)  # without one letter -> the words
        self._dull: set[str] = set()  # words that are like none of the names'
        self._plain = KeptWords()
        for subject in known:
            for name in (subject.label, *subject.aliases):
                if name:
                    self._add(subject, name, typed=False)
            self._add_token(subject, subject.id, typed=False)
            for name in also:
                self._add(subject, name, typed=True)

    def in_text(self, text: str) -> tuple[Mention, ...]:
        """Return the names in a text, each subject's once: whole ones first, then by the order they were given in."""
        words, unspaced = folded_words(text, self._plain)
        whole: set[int] = set()
        part: set[int] = set()
        if not self._sequences.after.keys().isdisjoint(words):
            spelled = ""
            for place, token in self._standing(words):
                spelled = spelled or (spelled_out(text) if token else "")
                (whole if token is None or _stands(token, spelled) else part).add(place)
        for at in range(len(unspaced) if self._unspaced else 0):
            for start in (unspaced[at], unspaced[at : at + 2]):
                for form, place, is_whole in self._unspaced.get(start, ()):
                    if unspaced.startswith(form, at):
                        (whole if is_whole else part).add(place)
        if not self._in_part:
            return tuple(self._mentions[place][0] for place in sorted(whole))
        for word in set(words) - self._dull:
            if like := self._like(word):
                part |= like
            elif len(self._dull) < KEPT_WORDS:
                self._dull.add(word)
        return tuple(
            chain(
                (self._mentions[place][0] for place in sorted(whole)),
                (self._mentions[place][1] for place in sorted(part - whole)),
            )
        )

    def _standing(self, words: list[str]) -> Iterator[tuple[int, str | None]]:
        for at, word in enumerate(words):
            node = self._sequences.after.get(word)
            if node:
                yield from node.ends_in(words, at + 1)

    def _like(self, word: str) -> set[int]:
        if word in STOP:
            return set()
        found = {*self._parts.get(word, ()), *self._parts.get(word.rstrip("0123456789"), ())}
        if len(word) > LONGEST_WORD or UNSPACED.match(word):
            return found
        for known in chain.from_iterable(self._stems.get(word[:end], ()) for end in range(3, len(word))):
            if len(word) <= len(known) + (3 if word.startswith(known) else 2):
                found |= self._parts[known]
        if not word.isalpha():
            return found
        for known in chain.from_iterable(self._slips.get(form, ()) for form in without_one_letter(word)):
            if OSA.distance(word, known, score_cutoff=1) <= 1:
                found |= self._parts[known]
        return found

    def _place(self, subject: Subject, name: str, words: Sequence[str]) -> int:
        place = self._places.setdefault((subject, " ".join(words)), len(self._mentions))
        if place == len(self._mentions):
            whole, part = (Mention(subject=subject, name=name, whole=is_whole) for is_whole in (True, False))
            self._mentions.append((whole, part))
        return place

    def _add(self, subject: Subject, name: str, *, typed: bool) -> None:
        if len(name.split()) == 1 and ("@" in name or any(character.isdigit() for character in name)):
            self._add_token(subject, name, typed=typed)
        elif UNSPACED.search(plainly(name)):
            self._add_unspaced(subject, name, typed=typed)
        else:
            self._add_words(subject, name, typed=typed)

    def _add_words(self, subject: Subject, name: str, *, typed: bool) -> None:
        words, _ = folded_words(name)
        if not words:
            return
        place = self._place(subject, name, words)
        if typed or len("".join(words)) >= 3:
            for spelling in _spellings(name):
                for order in _orders(spelling):
                    self._sequences.add(order, place, None)
        for word in {*words, *chain.from_iterable(map(glued_words, _written(name)))}:
            self._add_part(word, place)
        if len("".join(words)) >= 6:
            self._add_part("".join(words), place)

    def _add_unspaced(self, subject: Subject, name: str, *, typed: bool) -> None:
        plain = plainly(name).split()
        place = self._place(subject, name, plain)
        if typed or len("".join(plain)) >= 2:
            for order in _orders(tuple(plain)):
                form = "".join(order)
                self._unspaced[form[:2]].add((form, place, True))
        if not self._in_part:
            return
        parts = {word for word in plain if len(plain) > 1 and UNSPACED.fullmatch(word)}
        surnames = {word for word in parts if len(word) == 1}
        if len(plain) == 1 and 2 <= len(plain[0]) <= 4:  # most likely a surname of one or two characters comes first
            parts |= {plain[0][:2], plain[0][1 if len(plain[0]) == 3 else 2 :]}
            surnames.add(plain[0][0])
        for form in {*parts, *(surname + honorific for surname in surnames for honorific in HONORIFICS)}:
            if len(form) >= 2:
                self._unspaced[form[:2]].add((form, place, False))
        for word in plain:
            if not UNSPACED.search(word):
                self._add_part(word, place)

    def _add_token(self, subject: Subject, token: str, *, typed: bool) -> None:
        words, unspaced = folded_words(token)
        if not words:
            return
        place = self._place(subject, token, words)
        spelled, glued = spelled_out(token).strip(), "".join(words)
        if not typed and (len(spelled) < 3 or (glued.isdigit() and len(glued) < 7)):
            if before := folded_words(subject.type)[0]:
                self._sequences.add((*before, *words), place, None)
            if self._in_part and len(glued) >= 5:
                self._parts[glued].add(place)
            return
        self._sequences.add(tuple(words), place, spelled)
        if not self._in_part:
            return
        if len(glued) >= 3 and not unspaced:
            self._parts[glued].add(place)
        if "@" in token or not any(map(str.isdigit, glued)):
            for word in folded_words(token.partition("@")[0])[0]:
                self._add_part(word, place)

    def _add_part(self, word: str, place: int) -> None:
        if not self._in_part or word in STOP or sum(map(str.isalpha, word)) < 3:
            return
        is_new = word not in self._part_words
        self._part_words.add(word)
        for form in (word, f"{word}s", *_prefixed(word)):
            self._parts[form].add(place)
        if not (is_new and word.isalpha()):
            return
        if len(word) >= 5:
            self._stems[word].append(word)
            for form in dict.fromkeys(without_one_letter(word)):
                self._slips[form].append(word)
        if len(word) >= (6 if word.isascii() else 4):
            self._stems[word[:-1]].append(word)


class _Node:
    """A word of a sequence: what may come after it, and which names end with it."""

    __slots__ = ("after", "ends")

    def __init__(self) -> None:
        self.after: dict[str, _Node] = {}
        self.ends: dict[tuple[int, str | None], None] = {}  # place, and the token that must stand in the text as such

    def add(self, words: Sequence[str], place: int, token: str | None) -> None:
        node = self
        for word in words:
            node = node.after.setdefault(word, _Node())
        node.ends[place, token] = None

    def ends_in(self, words: list[str], at: int, *, initial: bool = False) -> Iterator[tuple[int, str | None]]:
        """Go on from a word; at most one initial is passed over, and none within a token."""
        for place, token in self.ends:
            if not (initial and token):
                yield place, token
        if at == len(words) or not self.after:
            return
        node = self.after.get(words[at])
        if node:
            yield from node.ends_in(words, at + 1, initial=initial)
        if not initial and at + 1 < len(words) and _INITIAL.fullmatch(words[at]):
            node = self.after.get(words[at + 1])
            if node:
                yield from node.ends_in(words, at + 2, initial=True)


def _written(name: str) -> tuple[str, ...]:
    """Return a name, and with umlauts as two letters where it may have any."""
    return (name,) if name.isascii() else (name, umlauted(name))


def _spellings(name: str) -> set[tuple[str, ...]]:
    spellings = {form for one in _written(name) for form in (tuple(folded_words(one)[0]), glued_words(one))}
    for words in tuple(spellings):
        untitled = tuple(word for word in words if word not in _TITLES)
        shorter = (*untitled[:1], *(word for word in untitled[1:-1] if len(word) > 1), *untitled[1:][-1:])
        spellings |= {fewer for fewer in (untitled, shorter) if len(fewer) >= 2 and len("".join(fewer)) >= 3}
    return spellings


def _orders(words: tuple[str, ...]) -> set[tuple[str, ...]]:
    if len(words) > _MOST_TURNED:
        return {words}
    return {words, words[::-1], *(words[at:] + words[:at] for at in range(1, len(words)))}


def without_one_letter(word: str) -> Iterator[str]:
    """Yield a word of four letters or more, then all that one slip may leave of it."""
    if len(word) >= 4:
        yield word
        for at in range(len(word)):
            yield word[:at] + word[at + 1 :]


def _prefixed(word: str) -> Iterator[str]:
    if word.isascii():
        return
    script = unicodedata.name(word[0], "").partition(" ")[0]
    yield from (prefix + word for prefix in _PREFIXES.get(script, ""))
    if script == "ARABIC":
        bare = word.removeprefix(ARTICLE)
        if len(bare) >= 3:
            yield from (bare, ARTICLE + bare, f"لل{bare}")


def _stands(token: str, text: str) -> bool:
    before, after = (
        (_ADDRESS_RUNS_ON_BEFORE, _ADDRESS_RUNS_ON_AFTER) if "@" in token else (_RUNS_ON_BEFORE, _RUNS_ON_AFTER)
    )
    at = text.find(token)
    while at >= 0:
        if not before.search(text[max(0, at - 2) : at]) and not after.match(text, at + len(token)):
            return True
        at = text.find(token, at + 1)
    return False
