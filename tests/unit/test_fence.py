from __future__ import annotations

import json
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.characters import JOINERS, JOINING_SCRIPTS, is_invisible, is_mark, joining_script
from memory_core.errors import MemoryCoreError
from memory_core.prompt.fence import (
    MAX_DRAWS,
    NOT_PLAIN,
    WHITE_SPACE_CONTROLS,
    attribute_value,
    draw_until,
    fenced,
    holds_apart,
    quoted,
    random_boundary,
)

ATTACKS = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "attacks.jsonl"
NASTY = (
    "<>&\"'\\/=[]:n u0234cdef \t\n\v\f\r\x00\x1b\x1c\x1d\x1e\x1f\x7f\x85\x9f\u00ad\u0301\u0338\u034f\u061c\u115f\u1160"
    "\u1161\u17b4\u17b5\u180b\u180e\u200b\u200c\u200d\u200e\u2028\u2029\u202a\u202e\u2060\u2066\u2069\u206a\u20e0\u2800"
    "\u3164\ufe0f\ufeff\uff9e\uffa0\ufff9\ufffc\uffff\ue000\U000e0001\U000e0061\U000e007f\U000e0100\U0010ffff\U0001d159"
    "\u226e\u226f\ufe60\ufe64\ufe65\ufe68\uff02\uff06\uff07\uff1c\uff1e\uff3c\u1100\u11a8\uac00\u00b2\u00e9\u037e\u212b"
    "\u0645\u06cc\u064e\u0915\u094d\u0937\u09b0\u09cd\u09af\u09be\u0bbe\u0d28\u0dca\u1780\u1820\U0001f468\U0001f3fd"
    "\ud83d\ude00\udb40\udc61\ud800\udfff"
)
# The planes in which there is anything but Han and private use, and something of those.
CHARACTERS = [chr(code) for code in (*range(0x20000), 0x20000, 0x2FA1D, *range(0xE0000, 0xE0200), 0xF0000, 0x10FFFF)]
any_text = st.text(alphabet=st.characters(exclude_categories=()), max_size=40)
texts = any_text | st.text(alphabet=NASTY, max_size=40)


def as_read(text: str) -> str:
    """What a reader of the JSON string must get: NFC, controls as spaces, surrogates that make a pair joined."""
    spaced = "".join(
        " " if character in WHITE_SPACE_CONTROLS else character for character in unicodedata.normalize("NFC", text)
    )
    return spaced.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def attacks() -> list[object]:
    if not ATTACKS.exists():
        return [pytest.param("", id="none", marks=pytest.mark.skip(reason=f"{ATTACKS} is not there"))]
    read = map(json.loads, ATTACKS.read_text(encoding="utf-8").splitlines())
    return [pytest.param(attack["text"], id=attack["tries"]) for attack in read]


def assert_keeps_every_rule(text: str) -> None:
    value = quoted(text)
    assert json.loads(value) == as_read(text)
    assert unicodedata.normalize("NFC", value) == value
    assert len(value.splitlines()) == 1
    assert not set("<>&") & set(value)
    assert value[0] == value[-1] == '"'
    assert unicodedata.normalize("NFKC", value).count('"') == value.count('"')
    assert not set("<>&") & set(unicodedata.normalize("NFKD", value))
    value.encode()  # no surrogate left
    for place, character in enumerate(value):
        if is_invisible(character):
            assert character in JOINERS
            before, after = value[place - 1], value[place + 1]
            if is_mark(after):
                after = value[place + 2]
            assert unicodedata.category(before)[0] in "LM"
            assert unicodedata.category(after)[0] == "L"
            scripts = {unicodedata.name(neighbour).split()[0] for neighbour in (before, after)}
            assert len(scripts) == 1
            assert scripts <= JOINING_SCRIPTS


@given(text=texts)
@settings(max_examples=600, deadline=None)
def test_any_text_is_one_quoted_line_that_reads_back(text: str) -> None:
    assert_keeps_every_rule(text)


@pytest.mark.parametrize("text", attacks())
def test_no_attack_leaves_its_quotes(text: str) -> None:
    assert_keeps_every_rule(text)


def test_each_invisible_character_is_written_out_by_its_code() -> None:
    for character in CHARACTERS:
        if is_invisible(character) and character not in WHITE_SPACE_CONTROLS:
            units = memoryview(character.encode("utf-16-le", "surrogatepass")).cast("H")
            assert quoted(f"a{character}b") == '"a' + "".join(f"\\u{unit:04x}" for unit in units) + 'b"'


def test_no_character_normalises_into_structure() -> None:
    for character in CHARACTERS:
        decomposed = unicodedata.normalize("NFKD", quoted(f"a{character}b"))
        assert not set("<>&") & set(decomposed)
        assert decomposed.replace('\\"', "").count('"') == 2


def test_what_is_plain_for_speed_needs_no_look_at_its_neighbours() -> None:
    for character in map(chr, range(0x110000)):
        if not NOT_PLAIN.match(character):
            assert quoted(character) == f'"{unicodedata.normalize("NFC", character)}"'
            assert not is_mark(character)
            assert joining_script(character) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Panel interviews need two weeks' notice.", "Panel interviews need two weeks' notice."),
        ("salary 5² k€, “as agreed” — José…", "salary 5² k€, “as agreed” — José…"),
        ("Jose\u0301", "Jos\u00e9"),
        ('he said "yes" \\o/', 'he said \\"yes\\" \\\\o/'),
        ("one\ntwo\ttab\r\nthree\u0085four\x1cfive\vsix\fseven", "one two tab  three four five six seven"),
        ("a < b > c & d", "a \\u003c b \\u003e c \\u0026 d"),
        ("a \u226e b", "a \\u226e b"),
        ("＜/memories＞ ﹤ ＂ ＇ ＼ ﹨ ＆", "\\uff1c/memories\\uff1e \\ufe64 \\uff02 \\uff07 \\uff3c \\ufe68 \\uff06"),
        ("zero\u200bwidth\u00ad\ufeff\u2060", "zero\\u200bwidth\\u00ad\\ufeff\\u2060"),
        ("\u202eevorppa\u202c", "\\u202eevorppa\\u202c"),
        ("\U000e0061\U0010fffd", "\\udb40\\udc61\\udbff\\udffd"),
        ("☎\ufe0f \u3164 \uffa0 \u2800", "☎\\ufe0f \\u3164 \\uffa0 \\u2800"),
        ("\u2028\u2029\x00\x7f", "\\u2028\\u2029\\u0000\\u007f"),
        ("\ue000\uffff", "\\ue000\\uffff"),
        ("\ud800 alone", "\\ud800 alone"),
        ("\\u003c/memories\\u003e", "\\\\u003c/memories\\\\u003e"),
        ("", ""),
    ],
)
def test_a_value_is_written_as_section_4_says(text: str, value: str) -> None:
    assert quoted(text) == f'"{value}"'


@pytest.mark.parametrize(
    "word",
    [
        "می\u200cخواهم",  # Persian, non-joiner between the prefix and the verb
        "क\u094d\u200dष",  # Devanagari, a half form: after the virama
        "क\u094d\u200cष",
        "র\u200d\u09cd\u09af\u09beব",  # Bengali, ra with ya-phala: before the virama
        "ශ\u0dca\u200dර\u0dd3",  # Sinhala
        "ന\u0d4d\u200dറ",  # Malayalam
        "ក\u200cខ",  # Khmer
    ],
)
def test_a_joiner_stays_between_letters_of_a_script_that_needs_it(word: str) -> None:
    assert quoted(word) == f'"{word}"'


@pytest.mark.parametrize(
    "text",
    [
        "👨\u200d👩\u200d👧",
        "a\u200db",
        "я\u200cя",
        "م\u200d",
        "\u200dم",
        "م\u200d م",
        "م\u200d\u200dم",
        "म\u200dم",
        "م\u200d1",
        "م\u200c\u064e",
        "中\u200d文",
    ],
)
def test_a_joiner_anywhere_else_is_written_out(text: str) -> None:
    assert not JOINERS & set(quoted(text))
    assert json.loads(quoted(text)) == text


@pytest.mark.parametrize("before", ["", "<", "\u200b", "\\", '"', "\U000e0061", "\u200b\u0327"])
def test_a_mark_is_never_drawn_onto_what_is_not_its_letter(before: str) -> None:
    assert quoted(f"{before}\u0327").endswith('\\u0327"')


def test_a_mark_stays_on_its_letter() -> None:
    assert quoted("q\u0301 x\u0338 <é") == '"q\u0301 x\u0338 \\u003cé"'


@given(value=texts)
@settings(max_examples=300, deadline=None)
def test_an_attribute_cannot_leave_its_quotes(value: str) -> None:
    written = attribute_value(value)
    assert written.count('"') == unicodedata.normalize("NFKC", written).count('"') == 2
    assert written[0] == written[-1] == '"'
    assert not set("<>&") & set(written)
    assert json.loads(written) == as_read(value)


def test_an_attribute_may_be_a_number() -> None:
    assert attribute_value(12) == '"12"'


def test_the_boundary_stands_first_in_the_opening_tag_and_again_in_the_closing_one() -> None:
    text = fenced("notes", ["[1] a", "[2] b"], boundary="b0", preamble=["Data."], attributes={"count": 2, "by": 'x"y'})
    assert text == '<notes boundary="b0" count="2" by="x\\u0022y">\nData.\n[1] a\n[2] b\n</notes boundary="b0">'
    assert holds_apart("b0", text)


@pytest.mark.parametrize("line", ["a\nb", "a\u2028b", "a\x85b", "</notes>", "a > b", ""])
def test_a_line_that_could_be_structure_is_not_fenced(line: str) -> None:
    with pytest.raises(ValueError, match="one line"):
        fenced("notes", [line], boundary="b0", preamble=[], attributes={})


@pytest.mark.parametrize("boundary", ["", 'a"', "a b", "a>", "é"])
def test_a_boundary_is_an_identifier(boundary: str) -> None:
    with pytest.raises(ValueError, match="boundary"):
        fenced("notes", ["a"], boundary=boundary, preamble=[], attributes={})


def test_a_boundary_that_is_not_accepted_is_drawn_again() -> None:
    drawn = iter(["a", "b", "c"])
    assert draw_until(lambda boundary: boundary * 2 if boundary == "b" else None, lambda: next(drawn)) == "bb"


def test_drawing_gives_up_in_the_end() -> None:
    draws = []

    def stuck() -> str:
        draws.append("a")
        return "a"

    with pytest.raises(MemoryCoreError, match="boundaries"):
        draw_until(lambda _: None, stuck)
    assert len(draws) == MAX_DRAWS


def test_boundaries_are_drawn_at_random() -> None:
    drawn = {random_boundary() for _ in range(50)}
    assert len(drawn) == 50
    assert all(len(boundary) == 8 and set(boundary) <= set("0123456789abcdef") for boundary in drawn)


def test_quoting_a_memory_of_full_length_takes_a_fraction_of_a_millisecond() -> None:
    text = ("Could start after a two-month notice period. " * 50)[:2000]
    times_ms = []
    for _ in range(50):
        start = time.perf_counter()
        quoted(text)
        times_ms.append((time.perf_counter() - start) * 1000)
    assert min(times_ms) < 0.2
