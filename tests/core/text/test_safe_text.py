"""Untrusted text: controls are shown, hidden characters removed, counted or revealed, surrogates joined or replaced."""

from __future__ import annotations

import re
import sys
import unicodedata
from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.text.code_points import PLAIN, cleaned_input, join_surrogates
from chorus_cli.core.text.safe_text import (
    DECODED_LENGTH,
    MARKS_PER_BASE,
    SafeTextStream,
    hidden_warning,
    may_hide,
    revealed,
    safe_line,
    safe_text,
)
from tests.amount import examples, is_thorough
from tests.core.text.hostile_text import (
    ACUTE,
    CANCEL,
    ENGLAND,
    ESCAPE,
    FLAG,
    ZWJ,
    ZWNJ,
    any_character,
    fed,
    hidden_in,
    hostile_texts,
    tags,
)

# The planes 4 to 13 are empty but for the noncharacters at their ends: the usual run takes a sample of the rest.
EMPTY, FILLED = range(0x40000, 0xE0000), (*range(0x40000), *range(0xE0000, sys.maxunicode + 1))


def code_points() -> list[str]:
    empty = EMPTY if is_thorough() else [point for point in EMPTY if point % 251 == 0 or point & 0xFFFE == 0xFFFE]
    return [*map(chr, (*FILLED, *empty))]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        *(("one\ntwo\tthree", "one\ntwo\tthree"), ("one\r\ntwo", "one\ntwo"), ("one\rtwo", "one\u240dtwo")),
        *(("one\r\r\ntwo", "one\u240d\ntwo"), ("one\r", "one\u240d"), ("a\x85b\u2028c\u2029d", "a\nb\nc\nd")),
        ("\x00\x07\x08\x0b\x0c\x0e\x0f\x1f", "\u2400\u2407\u2408\u240b\u240c\u240e\u240f\u241f"),
        ("\x1b]52;c;Y3VybA==\x07", "\u241b]52;c;Y3VybA==\u2407"),
        *(("a\x7fb", "a\u2421b"), ("\x9b31m\x80\x9f", "<9B>31m<80><9F>")),
        ("\u202epip\u202c \u2066x\u2069", "<U+202E>pip<U+202C> <U+2066>x<U+2069>"),
        ("\ufdd0\ufdef\ufff9\ufffb", "<U+FDD0><U+FDEF><U+FFF9><U+FFFB>"),
        *(("\uffff\U0010fffe", "<U+FFFF><U+10FFFE>"), ("\ud83d\ude00", "\U0001f600"), ("\ud83d", "\ufffd")),
        ("\ude00\ud83dx\ud83d\ud83d\ude00", "\ufffd\ufffdx\ufffd\U0001f600"),
    ],
)
def test_what_a_terminal_would_obey_becomes_visible_and_nothing_counts_as_hidden(raw: str, shown: str) -> None:
    assert (safe_text(raw), hidden_in(raw)) == (shown, 0)


@pytest.mark.parametrize(
    "character",
    list(
        "\u200b\u200e\u200f\u061c\u2060\ufeff\u00ad\u034f\u115f\u1160\u3164\uffa0\u2061\u2064\u2065\u206a\u206f\u17b4"
        "\u180b\u180e\ufff0\ufff8\ufe00\ufe0d\U0001bca0\U0001d173\U000e0001\U000e0100\U000e01ef\U000e0fff"
    ),
)
def test_what_is_never_seen_is_hidden_and_counted(character: str) -> None:
    raw = f"\U0001f600{character}a{character}"
    assert (safe_text(raw), hidden_in(raw)) == ("\U0001f600a", 2)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        *((f"a{ZWJ}b", "ab"), (f"{ZWJ}\U0001f469", "\U0001f469"), (f"\U0001f469{ZWJ}", "\U0001f469")),
        (f"\U0001f469{ZWJ}a", "\U0001f469a"),
        (f"\U0001f469{ZWJ}\U0001f467{ZWJ}{ZWJ}\U0001f466", f"\U0001f469{ZWJ}\U0001f467{ZWJ}\U0001f466"),
        (f"\U0001f469{ZWJ}\u200b\U0001f467", f"\U0001f469{ZWJ}\U0001f467"),
        (f"a{ZWNJ}b", "ab"),
        (f"\u0628{ZWNJ}{ZWNJ}\u06cc", f"\u0628{ZWNJ}\u06cc"),
        (f"\u0628 {ZWNJ}\u06cc", "\u0628 \u06cc"),
        (f"\u0628{ZWJ}{ZWNJ}\u06cc", f"\u0628{ZWNJ}\u06cc"),
        *(("\u2764\ufe0f\ufe0f", "\u2764\ufe0f"), ("\ufe0fa", "a"), ("a \ufe0fb", "a b")),
        (f"\u0628{ZWNJ}\ufe0f\u06cc", f"\u0628{ZWNJ}\u06cc"),
        *((FLAG + tags("g") + CANCEL, FLAG), (FLAG + tags("gbengla") + CANCEL, FLAG), (FLAG + tags("gbeng"), FLAG)),
        (tags("gbeng") + CANCEL, ""),
        ("e" + ACUTE * (MARKS_PER_BASE + 5) + "x", "e" + ACUTE * MARKS_PER_BASE + "x"),
        ("e" + (ACUTE * 20 + "\u200b") * 3, "e" + ACUTE * MARKS_PER_BASE),
        ("e" + ACUTE * MARKS_PER_BASE + "\ufe0f" + ACUTE, "e" + ACUTE * MARKS_PER_BASE),
        (f"\u0628{ACUTE * 20}{ZWNJ}{ACUTE * 20}", f"\u0628{ACUTE * 20}{ZWNJ}{ACUTE * 10}"),
    ],
)
def test_joiners_selectors_tags_and_marks_without_work_are_hidden_and_counted(raw: str, shown: str) -> None:
    assert (safe_text(raw), hidden_in(raw)) == (shown, len(raw) - len(shown))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"\U0001f468{ZWJ}\U0001f469{ZWJ}\U0001f467{ZWJ}\U0001f466", id="family"),
        pytest.param(f"\u2764\ufe0f{ZWJ}\U0001f525", id="heart on fire: the joiner follows a selector"),
        pytest.param(f"\U0001f469\U0001f3fd{ZWJ}\U0001f680", id="astronaut with a skin tone"),
        pytest.param(f"{FLAG}{ZWJ}\u2620\ufe0f", id="pirate flag"),
        pytest.param(f"\U0001f3f3\ufe0f{ZWJ}\U0001f308", id="rainbow flag"),
        pytest.param(ENGLAND + ENGLAND, id="flags of England"),
        pytest.param("\U0001f1e9\U0001f1ea", id="flag of Germany"),
        pytest.param("1\ufe0f\u20e3", id="keycap"),
        pytest.param(f"\u0645\u06cc{ZWNJ}\u062e\u0648\u0627\u0647\u0645", id="Persian word with a non-joiner"),
        pytest.param(f"\u0645\u06cc\u064e{ZWNJ}\u062e", id="Persian with a vowel sign before the non-joiner"),
        pytest.param(f"\u0915\u094d{ZWJ}\u0937", id="Devanagari half form"),
        pytest.param(f"\u0915\u094d{ZWNJ}\u0937", id="Devanagari visible virama"),
        pytest.param(f"\u09b0{ZWJ}\u09cd\u09af", id="Bengali ya-phalaa: the joiner stands before a mark"),
        pytest.param("\u0e1c\u0e39\u0e49\u0e43\u0e0a\u0e49", id="Thai"),
        pytest.param("Gr\u00f6\u00dfe \u2014 \u201cja\u201d \u2192 \u2500\u2502 \u4f60\u597d", id="letters and signs"),
        pytest.param("e\u0301\u0323", id="decomposed letter"),
        pytest.param(f"e{ACUTE * MARKS_PER_BASE}o{ACUTE * MARKS_PER_BASE}", id="two bases with all the marks allowed"),
        pytest.param("\ue0b0", id="private use, as in prompt fonts"),
    ],
)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert (safe_text(text), hidden_in(text)) == (text, 0)


def test_no_single_code_point_leaves_anything_that_a_terminal_obeys_or_that_cannot_be_encoded() -> None:
    shown = safe_text(" ".join(code_points()))
    shown.encode()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b-\u200f]", shown)


def test_every_format_character_that_is_kept_can_be_seen() -> None:
    kept = {
        character
        for character in code_points()
        if unicodedata.category(character) == "Cf" and safe_text(character) == character
    }
    assert {unicodedata.name(character).split()[0] for character in kept} <= {
        "ARABIC",  # number signs, end of ayah
        "SYRIAC",  # abbreviation mark
        "KAITHI",  # number signs
        "EGYPTIAN",  # hieroglyph joiners, drawn by fonts
    }


def test_plain_characters_are_neither_marks_nor_controls() -> None:
    plain = re.findall(f"[{PLAIN}]", "".join(code_points()))
    categories = {unicodedata.category(character) for character in plain if character not in "\n\t"}
    assert not categories & {"Mn", "Mc", "Me", "Cc", "Cf", "Cs", "Zl", "Zp"}


@examples(300)
@given(text=hostile_texts, cuts=st.lists(st.integers(0, 60), max_size=8))
def test_the_result_does_not_depend_on_where_the_chunks_end(text: str, cuts: list[int]) -> None:
    bounds = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    pieces, pieces_stream = fed([text[start:end] for start, end in pairwise(bounds)])
    characters, characters_stream = fed(list(text))
    whole, whole_stream = fed([text])
    assert pieces == characters == whole == safe_text(text)
    streams = (pieces_stream, characters_stream, whole_stream)
    assert len({(stream.hidden_count, stream.decoded_tags) for stream in streams}) == 1


@examples(300)
@given(hostile_texts)
def test_safe_text_is_safe_already(text: str) -> None:
    once = safe_text(text)
    assert (safe_text(once), hidden_in(once)) == (once, 0)


@examples(300)
@given(hostile_texts)
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    shown = safe_text(text)
    shown.encode()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", shown)


@examples(300)
@given(hostile_texts)
def test_no_printable_ascii_is_lost_or_added_but_for_names_of_code_points(text: str) -> None:
    shown = iter(safe_text(text))
    assert all(character in shown for character in re.findall(r"[ -~]", text))
    unnamed = re.sub(r"[\x80-\x9f\u202a-\u202e\u2066-\u2069\ufdd0-\ufdef\ufff9-\ufffb]", "", text)
    unnamed = "".join(character for character in unnamed if ord(character) & 0xFFFE != 0xFFFE)
    assert re.findall(r"[ -~]", safe_text(unnamed)) == re.findall(r"[ -~]", unnamed)


@examples(300)
@given(hostile_texts)
def test_no_base_carries_more_marks_than_the_limit(text: str) -> None:
    visible = re.sub(f"[{ZWJ}{ZWNJ}]", "", safe_text(text))
    runs = groupby(visible, key=lambda character: unicodedata.category(character).startswith("M"))
    assert all(len(list(run)) <= MARKS_PER_BASE for is_mark, run in runs if is_mark)


@given(st.text(st.sampled_from("abc XYZ.,!\n\t\u00e4\u03b1\u0416\u4f60\U0001f600")))
def test_ordinary_text_is_returned_as_it_is(text: str) -> None:
    assert SafeTextStream().feed(text) == text


def test_an_escape_split_over_chunks_becomes_visible() -> None:
    stream = SafeTextStream()
    assert [stream.feed(ESCAPE), stream.feed("["), stream.feed("2J"), stream.close()] == ["\u241b", "[", "2J", ""]


def test_text_before_an_undecided_tail_is_shown_at_once() -> None:
    stream = SafeTextStream()
    assert stream.feed("done\r") == "done"
    assert stream.feed("\nnext") == "\nnext"


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        ("Frodo", "Frodo"),
        ("a\nb\tc", "a b c"),
        ("a\r\n\n\tb", "a b"),
        *(("a\u2028b\x85c", "a b c"), ("\x1b]0;title\x07", "\u241b]0;title\u2407")),
        ("invoice\u202efdp.exe", "invoice<U+202E>fdp.exe"),
    ],
)
def test_a_safe_line_is_one_line(raw: str, line: str) -> None:
    assert safe_line(raw) == line


@pytest.mark.parametrize(
    ("raw", "warning"),
    [
        *(("nothing hidden here", None), ("\x1b[31m is visible", None)),
        ("one\u200b", "1 hidden character in this reply"),
        ("two\u200b\ufeff", "2 hidden characters in this reply"),
        (
            "x" + tags("ignore all ") + "y" + tags("of it"),
            '16 hidden characters in this reply (decoded: "ignore all of it")',
        ),
        (FLAG + tags("a") + CANCEL, '2 hidden characters in this reply (decoded: "a")'),
        (tags("a" * 500), f'500 hidden characters in this reply (decoded: "{"a" * DECODED_LENGTH}...")'),
    ],
)
def test_the_warning_counts_and_decodes(raw: str, warning: str | None) -> None:
    assert hidden_warning(fed([raw])[1]) == warning


def test_the_warning_names_another_place() -> None:
    assert hidden_warning(fed(["\u200b"])[1], "your message") == "1 hidden character in your message"


def surrogate_halves(text: str) -> list[str]:
    encoded = text.encode("utf-16-le")
    return [encoded[start : start + 2].decode("utf-16-le", "surrogatepass") for start in range(0, len(encoded), 2)]


def test_tags_sent_as_surrogate_halves_are_decoded() -> None:
    shown, stream = fed(surrogate_halves(tags("ls")))
    assert (shown, stream.hidden_count, stream.decoded_tags) == ("", 2, "ls")


def test_the_longest_flag_sent_as_surrogate_halves_is_kept() -> None:
    flag = FLAG + tags("gbengl") + CANCEL
    shown, stream = fed(surrogate_halves(flag + flag))
    assert (shown, stream.hidden_count) == (flag + flag, 0)


@pytest.mark.parametrize(
    ("raw", "joined"),
    [
        *(("plain \U0001f600", "plain \U0001f600"), ("\ud83d\ude00", "\U0001f600"), ("\ud83d \ude00", "\ufffd \ufffd")),
        ("\ud83d\ud83d\ude00\ude00", "\ufffd\U0001f600\ufffd"),
        ("bad byte \udcff", "bad byte \ufffd"),
    ],
)
def test_surrogate_pairs_are_joined_and_lone_ones_replaced(raw: str, joined: str) -> None:
    assert join_surrogates(raw) == joined


@examples(200)
@given(st.text(any_character))
def test_joined_text_can_be_encoded_and_keeps_what_could_be_already(text: str) -> None:
    joined = join_surrogates(text)
    joined.encode()
    assert re.sub("\ufffd|[^\0-\uffff]", "", joined) == re.sub("[\ud800-\udfff\ufffd]|[^\0-\uffff]", "", text)


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("as it is\n\x1b[31m\u202e\u200b", ("as it is\n\x1b[31m\u202e\u200b", False)),
        *(("a\r\nb\rc\n", ("a\nb\nc\n", False)), ("\ud83d\ude00", ("\U0001f600", False))),
        ("\udcff", ("\ufffd", True)),
        ("already \ufffd", ("already \ufffd", False)),
        ("nul\0here", ("nul\u2400here", True)),
        ("", ("", False)),
    ],
)
def test_input_is_cleaned_only_where_it_could_not_be_stored(raw: str, cleaned: tuple[str, bool]) -> None:
    assert cleaned_input(raw) == cleaned


@pytest.mark.parametrize(
    ("line", "signs"),
    [
        ("a\u202eb", ["a", "<U+202E>", "b"]),
        ("\u2066x\u2069", ["<U+2066>", "x", "<U+2069>"]),
        ("a\u200bb\u00adc", ["a", "<U+200B>", "b", "<U+00AD>", "c"]),
        (f"x{tags('hi')}", ["x", "<U+E0068>", "<U+E0069>"]),
        (ENGLAND, list(ENGLAND)),
        (f"{FLAG}{tags('g')}x", [FLAG, "<U+E0067>", "x"]),
        (f"a{ZWJ}b", ["a", "<U+200D>", "b"]),
        (f"\U0001f468{ZWJ}\u2764\ufe0f{ZWJ}\U0001f525", [*f"\U0001f468{ZWJ}\u2764\ufe0f{ZWJ}\U0001f525"]),
        (f"\U0001f468{ZWJ}x", ["\U0001f468", "<U+200D>", "x"]),
        (f"\U0001f468{ZWJ}{ZWJ}\U0001f525", ["\U0001f468", ZWJ, "<U+200D>", "\U0001f525"]),
        (f"\u0645\u06cc{ZWNJ}\u062e a{ZWNJ}", [*f"\u0645\u06cc{ZWNJ}\u062e a", "<U+200C>"]),
        ("\u2764\ufe0f\ufe0f", ["\u2764", "\ufe0f", "<U+FE0F>"]),
        ("a\u2028b", ["a", "<U+2028>", "b"]),
        ("\uffff\u200b", ["<U+FFFF>", "<U+200B>"]),
        ("\x1b[2J\x9b\x85\t\udcff\u202e", [*"\x1b[2J\x9b\x85\t\udcff", "<U+202E>"]),
        ("<U+202E>\u202e<U+202E>", [*"<U+202E>", "<U+202E>", *"<U+202E>"]),
        (f"a{ACUTE * 31}\u202eb", ["a", *ACUTE * 30, "<U+0301>", "<U+202E>", "b"]),
    ],
)
def test_what_hides_or_misleads_in_a_line_is_revealed(line: str, signs: list[str]) -> None:
    assert revealed(line) == signs
    assert may_hide(line)


@given(hostile_texts.map(join_surrogates))
def test_what_is_revealed_is_what_is_not_shown_as_it_is(text: str) -> None:
    line = re.sub(r"[\x00-\x1f\x7f-\x9f]", "", text)

    def shown(character: str, sign: str) -> str:
        if sign == character:
            return character
        assert sign == f"<U+{ord(character):04X}>"
        return "" if unicodedata.category(character).startswith("M") else safe_text(character)

    signs = revealed(line)
    assert "".join(map(shown, line, signs)) == safe_text(line)
    assert len(signs) == len(line)
    assert may_hide(line) or signs == list(line) or ACUTE in line
