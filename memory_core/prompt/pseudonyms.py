"""Persons under pseudonyms, as an engineer is shown memories where real names are not needed."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from memory_core.model import Kind, Memory, Subject
from memory_core.rights import Mention
from memory_core.rules.folding import UNSPACED_RANGES, folded_words
from memory_core.rules.mentions import STOP, Names
from memory_core.rules.namesakes import perhaps_named

Stems = Callable[[Sequence[str]], Sequence[frozenset[str]]]
UNCLEAR = "person-unclear"  # somebody who is known, and which of several is not said
LEAST_KEY = 16  # bytes
NAMES_AT_ONCE = 500
DIGITS = 8  # of a pseudonym: with 10,000 persons two in a hundred sessions have one that means two of them
_TOKEN = re.compile(rf"[{UNSPACED_RANGES}]+|[^\s{UNSPACED_RANGES}]+")
_BEFORE = re.compile(r"""["'“‘«„(\[{<*_#/–—-]*""")
_AFTER = re.compile(r"""(?:['’]s)?["'”’»)\]}>*_/.,:;!?…–—-]*\Z""")
_JOINING = frozenset({"", ","})  # what may stand between two words of one name, beside a space
_PSEUDONYM = re.compile(rf"\bperson-[0-9a-f]{{{DIGITS}}}\b")
_REPLACED = re.compile(rf"\bperson-(?:[0-9a-f]{{{DIGITS}}}|unclear)\b")
_SAME = re.compile(rf"{UNCLEAR}(?:[\s,]+{UNCLEAR})+")
_WORD = re.compile(r"\w+")
_ENDINGS = frozenset(
    {"", "s", "es", "ies", "ed", "er", "ers", "ing", "ings", "ly", "ment", "ments", "ness", "ful", "ish"}
)
_REPEATED = re.compile(r"(person-[0-9a-z]+)(?:[\s,]+\1)+(?![0-9a-z-])")


@dataclass(kw_only=True)
class _Found:
    """A piece of a text that names somebody: from, to, and whom it may be."""

    start: int
    end: int
    subjects: frozenset[Subject]


class Pseudonyms:
    """The pseudonyms of one session: the same person has the same one, with another key another.

    `persons` are all whom the organisation knows. `key` is random and the session's own: without it, nothing says who is
    meant, and it is kept nowhere else. Raises ValueError for a key of fewer than 16 bytes.
    """

    def __init__(self, persons: Iterable[Subject], key: bytes) -> None:
        if len(key) < LEAST_KEY:
            raise ValueError(f"a key has {LEAST_KEY} bytes or more")
        self._persons = list(persons)
        self._known = {one: one for one in self._persons}  # with their names, which a memory's subject may lack
        self._key = key

    def of(self, person: Subject) -> str:
        """Return a person's pseudonym."""
        digest = hmac.new(self._key, str(person).encode(), hashlib.sha256).hexdigest()
        return f"person-{digest[:DIGITS]}"

    def person(self, pseudonym: Subject) -> Subject | None:
        """Return who stands under a pseudonym as a subject's id; None for nobody."""
        return next((one for one in self._persons if self.of(one) == pseudonym.id and one.type == pseudonym.type), None)

    def knows(self, person: Subject) -> bool:
        """Say whether a subject is a known person, by type and id."""
        return person in self._known

    def text(self, text: str, *, about: Subject | None = None) -> str:
        """Return a text in which a pseudonym stands for each word, or run of words, that names a known person.

        Of several who may be meant it is whom the text is `about`, else it says that it is unclear.
        """
        return _Replacing(self, perhaps_named(self._persons, [text])).text(text, about)

    def question(self, text: str, *, stems: Stems) -> str:
        """Return what is to be searched for: persons by the pseudonyms that were typed, and nobody by a name.

        A name that was typed finds nothing, since what comes first would say whose it is: no word of one, however short,
        nor one that the search takes for it: `stems` says of some texts what it looks for in each.
        """
        replacing = _Replacing(self, perhaps_named(self._persons, [text]))
        typed = set(_PSEUDONYM.findall(text))
        meant = {name: one for one in self._persons if (name := self.of(one)) in typed} if typed else {}
        names = [name for one in self._persons for name in _names(one)]
        words = {word for name in names for word in folded_words(name)[0]}
        joined = [" ".join(names[at : at + NAMES_AT_ONCE]) for at in range(0, len(names), NAMES_AT_ONCE)]
        looked_for = frozenset[str]().union(*stems(joined)) if joined else frozenset[str]()
        asked_words = list(dict.fromkeys(_WORD.findall(text)))
        stem = dict(zip(asked_words, stems(asked_words), strict=True)) if asked_words else {}

        def is_a_names(word: str) -> bool:
            return not words.isdisjoint(folded_words(word)[0]) or not looked_for.isdisjoint(stem.get(word, ()))

        def without_names(piece: str) -> str:
            said = _REPLACED.sub("", replacing.text(piece, None))
            return _WORD.sub(lambda found: "" if is_a_names(found.group()) else found.group(), said)

        pieces, at = [], 0
        for found in _PSEUDONYM.finditer(text):
            person = meant.get(found.group())
            pieces += [without_names(text[at : found.start()]), (person.label or person.id) if person else ""]
            at = found.end()
        asked = "".join([*pieces, without_names(text[at:])])
        return asked if _WORD.search(asked) or not _WORD.search(text) else UNCLEAR

    def hidden(self, text: str) -> str:
        """Return a text that whoever sees it may have written: no name stands in it, and not whose it was.

        A pseudonym in its place would tell them.
        """
        return _SAME.sub(UNCLEAR, _REPLACED.sub(UNCLEAR, self.text(text)))

    def names_in(self, identifiers: Sequence[str]) -> list[str | None]:
        """Return for each identifier what stands in its place where it names somebody, in part too, else None."""
        names = Names(perhaps_named(self._persons, identifiers), in_part=True)
        return [UNCLEAR if names.in_text(one) else None for one in identifiers]

    def memories(self, memories: Sequence[Memory]) -> list[Memory]:
        """Return memories without a real name: of text, dispute, subject and identifiers; a source is left out."""
        strange = {one.subject for one in memories if one.kind is Kind.OBSERVATION} - self._known.keys() - {None}
        persons = [*self._persons, *(one for one in strange if one)]
        replacing = _Replacing(self, perhaps_named(persons, (text for one in memories for text in _written(one))))
        return [self._memory(one, replacing) for one in memories]

    def _memory(self, memory: Memory, replacing: _Replacing) -> Memory:
        about = memory.subject
        is_person = about is not None and (about in self._known or memory.kind is Kind.OBSERVATION)

        def text(written: str | None) -> str | None:
            return None if written is None else self._without_parts(replacing.text(written, about), about)

        return replace(
            memory,
            subject=about
            and Subject(about.type, self.of(about) if is_person else replacing.identifier(about.id, in_part=True)),
            source=None,
            author=replacing.identifier(memory.author),
            run_id=replacing.identifier(memory.run_id),
            last_seen_run_id=replacing.identifier(memory.last_seen_run_id),
            hold=memory.hold and replacing.identifier(memory.hold),
            forgotten_by=memory.forgotten_by and replacing.identifier(memory.forgotten_by),
            corrected_by=memory.corrected_by and replacing.identifier(memory.corrected_by),
            text=text(memory.text),
            dispute=text(memory.dispute),
            forgotten_reason=text(memory.forgotten_reason),
            correction_reason=text(memory.correction_reason),
        )

    def _without_parts(self, text: str, about: Subject | None) -> str:
        """Put the pseudonym also where a text about somebody has a part of their name that is too short to be looked for.

        As it is written in a name, and with a capital letter: "Li", and not "li" or "das".
        """
        person = self._known.get(about) if about else None
        if person is None or not (parts := _short_parts(person)):
            return text
        short = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, sorted(parts)))})(?!\w)")
        return _REPEATED.sub(r"\1", short.sub(self.of(person), text))


def _names(person: Subject) -> list[str]:
    return [name for name in (person.label, *person.aliases, person.id) if name]


def _short_parts(person: Subject) -> set[str]:
    """Return the words of a person's names that `Names` finds nobody by, as they may be written."""
    words = {word for name in (person.label, *person.aliases) if name for word in _WORD.findall(name)}
    short = {
        word
        for word in words
        if sum(map(str.isalpha, plain := "".join(folded_words(word)[0]))) < 3 or plain in STOP  # as `Names` folds it
    }
    return {form for word in short for form in (word, word.title(), word.upper()) if form[0].isupper()}


def _written(memory: Memory) -> list[str]:
    """Return all in a memory that people and models have written, identifiers too."""
    about = memory.subject.id if memory.subject else None
    written = (memory.words, memory.forgotten_reason, memory.author, memory.run_id, memory.last_seen_run_id)
    return [one for one in (*written, about, memory.hold, memory.forgotten_by, memory.corrected_by) if one]


class _Replacing:
    """Puts pseudonyms into texts, for persons of whom these are all that may be named in them."""

    def __init__(self, pseudonyms: Pseudonyms, persons: Sequence[Subject]) -> None:
        self._pseudonyms = pseudonyms
        self._names = Names(persons, in_part=True)
        self._of_token: dict[str, frozenset[Subject]] = {}

    def identifier(self, identifier: str, *, in_part: bool = False) -> str:
        """Return an identifier with a pseudonym in its place if it has somebody's whole name or id in it, its kind kept.

        A part of a name is none, unless it is to count: a recruiter has the first name of many a candidate.
        """
        found = self._names.in_text(identifier)
        named = {one.subject for one in found if one.whole or _is_number(one)}
        named = named or {one.subject for one in found if in_part}
        if not named:
            return identifier
        kind, colon, _ = identifier.partition(":")
        prefix = f"{kind}:" if colon and kind in ("user", "agent") else ""
        return f"{prefix}{self._pseudonyms.of(named.pop()) if len(named) == 1 else UNCLEAR}"

    def text(self, text: str, about: Subject | None) -> str:
        """Return a text with pseudonyms in the place of names."""
        if not self._subjects(text):
            return text
        written, at = [], 0
        for found in [*self._all(text), None]:
            end = len(text) if found is None else found.start
            written.append(text[at:end])
            if found is not None:
                piece = text[found.start : found.end]
                before, after = _edges(piece)
                written.append(f"{piece[:before]}{self._named(piece, found.subjects, about)}{piece[after:]}")
                at = found.end
        return _REPEATED.sub(r"\1", "".join(written))

    def _named(self, piece: str, subjects: frozenset[Subject], about: Subject | None) -> str:
        if about is not None and about in subjects:
            return self._pseudonyms.of(about)
        if len(subjects) > 1:
            whole = frozenset(mention.subject for mention in self._names.in_text(piece) if mention.whole)
            subjects = subjects & whole
        return self._pseudonyms.of(next(iter(subjects))) if len(subjects) == 1 else UNCLEAR

    def _all(self, text: str) -> list[_Found]:
        """Return every piece that names somebody, in order; nothing between them names anybody."""
        tokens = list(_TOKEN.finditer(text))
        found = self._joined(text, [one for token in tokens if (one := self._in_token(token))])
        borders = [0, *(border for one in found for border in (one.start, one.end)), len(text)]
        for start, end in zip(borders[::2], borders[1::2], strict=True):
            found += self._between(text, [token for token in tokens if start <= token.start() and token.end() <= end])
        return sorted(found, key=lambda one: one.start)

    def _in_token(self, token: re.Match[str]) -> _Found | None:
        subjects = self._of_token.get(token.group())
        if subjects is None:
            subjects = self._of_token[token.group()] = self._subjects(token.group())
        return _Found(start=token.start(), end=token.end(), subjects=subjects) if subjects else None

    def _joined(self, text: str, found: Sequence[_Found]) -> list[_Found]:
        """Put words together that stand side by side and name the same person."""
        joined: list[_Found] = []
        for one in found:
            last = joined[-1] if joined else None
            same = last.subjects & one.subjects if last and self._may_join(text, last, one) else frozenset()
            if last and same:
                last.end, last.subjects = one.end, same
            else:
                joined.append(one)
        return joined

    def _may_join(self, text: str, last: _Found, one: _Found) -> bool:
        piece, following, gap = text[last.start : last.end], text[one.start : one.end], text[last.end : one.start]
        if piece[_edges(piece)[1] :] not in _JOINING or _edges(following)[0]:
            return False
        inside = gap.split()  # an initial, or a particle that is a part of the name
        names = {mention.name.casefold() for mention in self._names.in_text(piece)} if inside else set()
        return len(inside) <= 2 and all(
            len(word.rstrip(".")) == 1 or any(word.casefold() in name.split() for name in names) for word in inside
        )

    def _between(self, text: str, tokens: Sequence[re.Match[str]]) -> list[_Found]:
        """Return what names somebody only as several words together: short ones, or a type and a number."""
        found = []
        while tokens and self._names_somebody(text, tokens):
            least, most = 1, len(tokens)  # the fewest of the first ones that name somebody
            while least < most:
                middle = (least + most) // 2
                least, most = (least, middle) if self._names_somebody(text, tokens[:middle]) else (middle + 1, most)
            head, rest = tokens[:most], tokens[most:]
            first, last = 0, len(head) - 1  # the last of those with which it still does
            while first < last:
                middle = (first + last + 1) // 2
                first, last = (middle, last) if self._names_somebody(text, head[middle:]) else (first, middle - 1)
            window = head[first:]
            start, end = window[0].start(), window[-1].end()
            found.append(_Found(start=start, end=end, subjects=self._subjects(text[start:end])))
            tokens = rest
        return found

    def _names_somebody(self, text: str, tokens: Sequence[re.Match[str]]) -> bool:
        return bool(self._subjects(text[tokens[0].start() : tokens[-1].end()]))

    def _subjects(self, text: str) -> frozenset[Subject]:
        return frozenset(mention.subject for mention in self._names.in_text(text))


def _is_number(mention: Mention) -> bool:
    """Say whether it is an identifier with a digit in it that was found, wherever it stands: screening-c-81."""
    return mention.name == mention.subject.id and any(map(str.isdigit, mention.name))


def _edges(piece: str) -> tuple[int, int]:
    """Return where a piece's words begin and end, with the punctuation around them outside."""
    before, after = _BEFORE.match(piece), _AFTER.search(piece)
    return before.end() if before else 0, after.start() if after else len(piece)
