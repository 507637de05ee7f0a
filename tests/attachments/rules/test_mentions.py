"""Files that a message names by an at sign."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.attachments.rules.mentions import (
    begun_mention,
    dropped_path,
    escaped,
    mention_of,
    mentions,
    missing_files,
)

FILES = {"photo.png", "my photo.png", "a/b.txt", "what?", "it's.txt", "~/notes.md", 'a"b.txt', "e.g."}


NO_MENTIONS = ("ada@photo.png is an address", "@ada said so", "@", "@@photo.png", r"\@photo.png", '@"my photo')


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("look at @photo.png please", ("photo.png",)),
        ("@photo.png", ("photo.png",)),
        ("what is @photo.png?", ("photo.png",)),
        ("is it (@photo.png)?", ("photo.png",)),
        ("(see @a/b.txt), and @photo.png!", ("a/b.txt", "photo.png")),
        ("read @what? then", ("what?",)),
        ("see @e.g.", ("e.g.",)),
        ('@"my photo.png" and more', ("my photo.png",)),
        ("@'my photo.png'", ("my photo.png",)),
        (r"@my\ photo.png", ("my photo.png",)),
        ("@~/notes.md", ("~/notes.md",)),
        ("@photo.png @photo.png", ("photo.png",)),
        ("first\n@photo.png", ("photo.png",)),
        *((each, ()) for each in NO_MENTIONS),
    ],
)
def test_a_word_that_names_a_file_is_a_mention(text: str, paths: tuple[str, ...]) -> None:
    assert mentions(text, FILES.__contains__).paths == paths


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("what is @photo.png?", "what is @photo.png?"),
        (r"\@photo.png is text", "@photo.png is text"),
        (r"C:\@x and a\@b", r"C:\@x and a\@b"),
    ],
)
def test_a_mention_stays_in_the_text_and_an_escaped_at_sign_loses_its_backslash(typed: str, sent: str) -> None:
    assert mentions(typed, FILES.__contains__).text == sent


NO_PATHS = (
    *("how do I install @angular/core and @types/node?", "@org/team use @media/print", "@what? @photo.png!"),
    *("@ada said so @3pm, @gmail.com", r"\@/nope.png and ada@nope.png", "@app.route('/nope') @Input({x:'/'})"),
)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("see @/nope.png, please", ("/nope.png",)),
        ("(@nope.PDF)?", ("nope.PDF",)),
        ("@./nope and @./a/b.txt and @./nope.", ("./nope", "./a/b.txt")),
        ("@../nope, @~/nope and @a/nope.png", ("../nope", "~/nope", "a/nope.png")),
        ("@\"my nope.txt\" or @'your nope.txt'", ("my nope.txt", "your nope.txt")),
        *((each, ()) for each in NO_PATHS),
    ],
)
def test_a_word_that_looks_like_the_path_of_no_file_is_found(text: str, paths: tuple[str, ...]) -> None:
    assert missing_files(text, FILES.__contains__) == paths


@pytest.mark.parametrize(
    ("text", "typed", "paths"),
    [
        ("see @photo.png", [], ()),
        ("see @photo.png", [4], ("photo.png",)),
        ("@a/b.txt and x @photo.png y", [0], ("a/b.txt",)),
        ("@photo.png and x @photo.png y", [17], ("photo.png",)),
        ('@"a @photo.png', [0], ()),
        ("(@photo.png)", [], ()),
    ],
)
def test_only_a_mention_whose_at_sign_was_typed_attaches(text: str, typed: list[int], paths: tuple[str, ...]) -> None:
    assert mentions(escaped(text, typed), FILES.__contains__) == (text, paths)


@given(st.text(st.sampled_from("a@ ('\"\n.")))
def test_an_escaped_text_is_sent_as_it_was_and_attaches_nothing(text: str) -> None:
    assert mentions(escaped(text), lambda _path: True) == (text, ())


@given(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1))
def test_any_path_can_be_mentioned(path: str) -> None:
    if '"' in path and path[-1] in ".,;:!?)]}'\"\\":
        return
    assert mentions(f"see {mention_of(path)} please", path.__eq__).paths == (path,)


@given(st.text())
def test_no_text_is_too_odd(text: str) -> None:
    assert mentions(text, lambda _path: False).paths == ()
    missing_files(text, lambda _path: False)
    begun_mention(text)
    dropped_path(text)


@pytest.mark.parametrize("text", ["@" + "." * 9_000, "@" + "." * 400_000, "@a..." * 20_000, "@a... " * 20_000])
def test_few_files_are_looked_for_however_long_a_text_is(text: str) -> None:
    asked: list[str] = []

    def is_file(path: str) -> bool:
        asked.append(path)
        return False

    mentions(text, is_file)
    assert len(asked) <= 17 * text.count(" @") + 17


@pytest.mark.parametrize(
    ("before_cursor", "path"),
    [
        *(("look at @pho", "pho"), ("@", ""), ('@"my ph', "my ph"), (r"@my\ ph", "my ph")),
        *(("ada@pho", None), ("@photo and", None), (r"\@pho", None)),
    ],
)
def test_a_mention_that_is_being_typed_can_be_completed(before_cursor: str, path: str | None) -> None:
    begun = begun_mention(before_cursor)
    assert (begun.path if begun else None) == path


@pytest.mark.parametrize(
    ("pasted", "path"),
    [
        ("/home/ada/photo.png", "/home/ada/photo.png"),
        ("'/home/ada/my photo.png' ", "/home/ada/my photo.png"),
        (r"/home/ada/my\ photo.png", "/home/ada/my photo.png"),
        ("file:///home/ada/my%20photo.png", "/home/ada/my photo.png"),
        ("~/photo.png\n", "~/photo.png"),
        *((words, None) for words in ("/one\n/two", "photo.png", "some words", "", "'")),
    ],
)
def test_a_pasted_path_is_found_in_each_way_that_terminals_write_it(pasted: str, path: str | None) -> None:
    assert dropped_path(pasted) == path
