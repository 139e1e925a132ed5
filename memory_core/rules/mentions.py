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
from html import unescape
from itertools import chain

from rapidfuzz.distance import OSA

from memory_core.model import Subject
from memory_core.rights import Mention
from memory_core.rules.naming import folded

_TITLE_WORDS = "dr prof professor mr mrs ms miss mx sir herr frau fraulein mme mlle monsieur madame sig"
# Particles, what stands before or after an @, and English words that look like a short name with an s.
_STOP_WORDS = """
van von vom zum zur der den des del della delle dos das les ter ten bin bint ibn abu umm and und the junior senior
info jobs mail contact office admin hello team com org net this thus does less
"""
_TITLES = frozenset(_TITLE_WORDS.split())
_STOP = _TITLES | frozenset(_STOP_WORDS.split())  # name nobody by themselves
_HONORIFICS = ("先生", "女士", "小姐", "老师", "さん", "様", "氏", "씨", "님")  # as folded by _plain
_PREFIXES = {"ARABIC": "وفبلك", "HEBREW": "והבלמשכ"}  # and, so, in, to, as; and, the, in, to, from, that, as
_ARTICLE = "ال"
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
# Thai, Lao; Burmese; Hangul letters; Khmer; kana to Hangul; Han and what is compatible with it.
_UNSPACED_RANGES = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u31ff\u3400-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED = re.compile(f"[{_UNSPACED_RANGES}]+")
_LETTER = rf"[^\W_{_UNSPACED_RANGES}]"
_INITIAL = re.compile(rf"(?!\d){_LETTER}")
_RUNS_ON_BEFORE = re.compile(rf"{_LETTER}[-.+@]?\Z")
_RUNS_ON_AFTER = re.compile(rf"{_LETTER}|@|[-_.,]\d")
_ADDRESS_RUNS_ON_BEFORE = re.compile(rf"{_LETTER}[-._+@]?\Z")
_ADDRESS_RUNS_ON_AFTER = re.compile(rf"[-.]?{_LETTER}")
_MOST_TURNED = 6  # words; a longer name is looked for in its own order only
_LONGEST_WORD = 40  # letters; what is longer is no inflected name
_KEPT_WORDS = 200_000  # of those that were met, at most


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
        self._stems: defaultdict[str, set[str]] = defaultdict(set)
        self._slips: defaultdict[str, set[str]] = defaultdict(set)  # without one letter -> the words
        self._dull: set[str] = set()  # words that are like none of the names'
        self._plain = _Plain()
        for subject in known:
            for name in (subject.label, *subject.aliases):
                if name:
                    self._add(subject, name, typed=False)
            self._add_token(subject, subject.id, typed=False)
            for name in also:
                self._add(subject, name, typed=True)

    def in_text(self, text: str) -> tuple[Mention, ...]:
        """Return the names in a text, each subject's once: whole ones first, then by the order they were given in."""
        words, unspaced = _words(text, self._plain)
        whole: set[int] = set()
        part: set[int] = set()
        if not self._sequences.after.keys().isdisjoint(words):
            spelled = ""
            for place, token in self._standing(words):
                spelled = spelled or (_spelled(text) if token else "")
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
            elif len(self._dull) < _KEPT_WORDS:
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
        if word in _STOP:
            return set()
        found = {*self._parts.get(word, ()), *self._parts.get(word.rstrip("0123456789"), ())}
        if len(word) > _LONGEST_WORD or _UNSPACED.match(word):
            return found
        for known in chain.from_iterable(self._stems.get(word[:end], ()) for end in range(3, len(word))):
            if len(word) <= len(known) + (3 if word.startswith(known) else 2):
                found |= self._parts[known]
        if not word.isalpha():
            return found
        for known in chain.from_iterable(self._slips.get(form, ()) for form in _without_one_letter(word)):
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
        elif _UNSPACED.search(_plain(name)):
            self._add_unspaced(subject, name, typed=typed)
        else:
            self._add_words(subject, name, typed=typed)

    def _add_words(self, subject: Subject, name: str, *, typed: bool) -> None:
        words, _ = _words(name)
        if not words:
            return
        place = self._place(subject, name, words)
        if typed or len("".join(words)) >= 3:
            for spelling in _spellings(name):
                for order in _orders(spelling):
                    self._sequences.add(order, place, None)
        for word in {*words, *chain.from_iterable(_glued(one) for one in (name, _umlauted(name)))}:
            self._add_part(word, place)
        if len("".join(words)) >= 6:
            self._add_part("".join(words), place)

    def _add_unspaced(self, subject: Subject, name: str, *, typed: bool) -> None:
        plain = _plain(name).split()
        place = self._place(subject, name, plain)
        if typed or len("".join(plain)) >= 2:
            for order in _orders(tuple(plain)):
                form = "".join(order)
                self._unspaced[form[:2]].add((form, place, True))
        if not self._in_part:
            return
        parts = {word for word in plain if len(plain) > 1 and _UNSPACED.fullmatch(word)}
        surnames = {word for word in parts if len(word) == 1}
        if len(plain) == 1 and 2 <= len(plain[0]) <= 4:  # most likely a surname of one or two characters comes first
            parts |= {plain[0][:2], plain[0][1 if len(plain[0]) == 3 else 2 :]}
            surnames.add(plain[0][0])
        for form in {*parts, *(surname + honorific for surname in surnames for honorific in _HONORIFICS)}:
            if len(form) >= 2:
                self._unspaced[form[:2]].add((form, place, False))
        for word in plain:
            if not _UNSPACED.search(word):
                self._add_part(word, place)

    def _add_token(self, subject: Subject, token: str, *, typed: bool) -> None:
        words, unspaced = _words(token)
        if not words:
            return
        place = self._place(subject, token, words)
        spelled, glued = _spelled(token).strip(), "".join(words)
        if not typed and (len(spelled) < 3 or (glued.isdigit() and len(glued) < 7)):
            if before := _words(subject.type)[0]:
                self._sequences.add((*before, *words), place, None)
            if self._in_part and len(glued) >= 5:
                self._parts[glued].add(place)
            return
        self._sequences.add(tuple(words), place, spelled)
        if not self._in_part:
            return
        if len(glued) >= 3 and not unspaced:
            self._parts[glued].add(place)
        for word in _words(token.partition("@")[0])[0] if not any(map(str.isdigit, glued)) or "@" in token else ():
            self._add_part(word, place)

    def _add_part(self, word: str, place: int) -> None:
        if not self._in_part or word in _STOP or sum(map(str.isalpha, word)) < 3:
            return
        for form in (word, f"{word}s", *_prefixed(word)):
            self._parts[form].add(place)
        if not word.isalpha():
            return
        if len(word) >= 5:
            self._stems[word].add(word)
            for form in _without_one_letter(word):
                self._slips[form].add(word)
        if len(word) >= (6 if word.isascii() else 4):
            self._stems[word[:-1]].add(word)


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


# Letters by category that are drawn as nothing, or as ' and `.
_DRAWN = {0x115F: "", 0x1160: "", **dict.fromkeys(range(0x2B9, 0x2C0), " ")}


class _Folding(dict[int, str]):
    """A table for `str.translate` that folds characters as `folded` does, each worked out when it is first met.

    Folding looks at one character at a time, so a table does the same in a fraction of the time.
    """

    def __init__(self, *, keeps_marks: bool) -> None:
        self._keeps_marks = keeps_marks

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = piece = self._folded(character)
        return piece

    def _folded(self, character: str) -> str:
        if character in "\u3164\uffa0":  # letters by category, drawn as a space
            return " "
        piece = folded(f"x{character}x")[1:-1].translate(_DRAWN)
        if not self._keeps_marks:
            return piece.replace("@", " ")
        if piece != " ":
            return piece
        if unicodedata.category(character) == "Pd" or character == "\u2212":
            return "-"
        plain = unicodedata.normalize("NFKD", character)
        return plain if plain.isascii() and plain.isprintable() else " "


_PLAIN = _Folding(keeps_marks=False)
_SPELLED = _Folding(keeps_marks=True)


class _Plain(dict[str, str]):
    """Words as they were written -> folded, kept for as long as the names are, since most words come again."""

    def __missing__(self, written: str) -> str:
        plain = _translated(written, _PLAIN)
        if len(self) < _KEPT_WORDS and len(written) <= _LONGEST_WORD:
            self[written] = plain
        return plain


def _translated(text: str, table: _Folding) -> str:
    text = text.translate(table)
    return text if text.isascii() else unicodedata.normalize("NFC", text)  # Hangul: syllables, not letters


def _plain(text: str, kept: _Plain | None = None) -> str:
    text = unescape(text) if "&" in text else text
    if kept is None or text.isascii():  # ASCII alone is translated many times faster than what has anything else
        return _translated(text, _PLAIN)
    return " ".join(map(kept.__getitem__, text.split()))


def _spelled(text: str) -> str:
    """Fold a text and leave its punctuation."""
    return _translated(unescape(text) if "&" in text else text, _SPELLED)


def _words(text: str, kept: _Plain | None = None) -> tuple[list[str], str]:
    """Return the folded words, and without any space what of them is in a script that has none, or ""."""
    plain = _plain(text, kept)
    if plain.isascii() or not _UNSPACED.search(plain):
        return plain.split(), ""
    return _UNSPACED.sub(r" \g<0> ", plain).split(), "".join(plain.split())


def _umlauted(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold().translate(_UMLAUTS)


def _glued(name: str) -> tuple[str, ...]:
    """Return the words of a name with nothing in them: obrien."""
    return tuple(word for part in name.split() if (word := "".join(_words(part)[0])))


def _spellings(name: str) -> set[tuple[str, ...]]:
    spellings = {tuple(_words(name)[0]), _glued(name), tuple(_words(_umlauted(name))[0]), _glued(_umlauted(name))}
    for words in tuple(spellings):
        untitled = tuple(word for word in words if word not in _TITLES)
        shorter = (*untitled[:1], *(word for word in untitled[1:-1] if len(word) > 1), *untitled[1:][-1:])
        spellings |= {fewer for fewer in (untitled, shorter) if len(fewer) >= 2 and len("".join(fewer)) >= 3}
    return spellings


def _orders(words: tuple[str, ...]) -> set[tuple[str, ...]]:
    if len(words) > _MOST_TURNED:
        return {words}
    return {words, words[::-1], *(words[at:] + words[:at] for at in range(1, len(words)))}


def _without_one_letter(word: str) -> Iterator[str]:
    if len(word) >= 4:
        yield word
        for at in range(len(word)):
            yield word[:at] + word[at + 1 :]


def _prefixed(word: str) -> Iterator[str]:
    script = unicodedata.name(word[0], "").partition(" ")[0]
    yield from (prefix + word for prefix in _PREFIXES.get(script, ""))
    if script == "ARABIC":
        bare = word.removeprefix(_ARTICLE)
        if len(bare) >= 3:
            yield from (bare, _ARTICLE + bare, f"لل{bare}")


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
