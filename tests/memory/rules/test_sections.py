"""Markdown's fences, and the split of a document at its headings: nothing is lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.memory.rules.capture import fences, outside_fences, sections

LINES = [
    "# Title",
    "## Part",
    "#hashtag",
    "    # indented code",
    "text",
    "more text",
    "===",
    "---",
    "- item",
    "> quote",
    "```python",
    "```",
    "~~~",
    "````markdown",
    "````",
    "",
    "  ",
    "\r",
]
documents = st.lists(st.sampled_from(LINES), max_size=30).map("\n".join)


@pytest.mark.parametrize(
    ("document", "parts"),
    [
        ("", []),
        ("\n \n", []),
        ("no heading at all\n", ["no heading at all"]),
        ("intro\n\n# A\ntext\n\n## B\nmore\n", ["intro", "# A\ntext", "## B\nmore"]),
        ("# A\n## B", ["# A", "## B"]),
        ("A\n===\ntext\n\nB\n---\nmore", ["A\n===\ntext", "B\n---\nmore"]),
        ("one\n\na long\nheading\n===\ntext", ["one", "a long\nheading\n===\ntext"]),
        ("para\n\n---\n\nnext", ["para\n\n---\n\nnext"]),
        ("- item\n---\ntext", ["- item\n---\ntext"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |", ["| a | b |\n|---|---|\n| 1 | 2 |"]),
        ("```sh\n# a comment\n```\n# A", ["```sh\n# a comment\n```", "# A"]),
        ("~~~\n# no\n```\n# no\n~~~\n# A", ["~~~\n# no\n```\n# no\n~~~", "# A"]),
        ("# A\n```\n# never closed", ["# A\n```\n# never closed"]),
        ("    # code\n#hashtag\n####### seven", ["    # code\n#hashtag\n####### seven"]),
        ("---\ntitle: x\n---\n# A", ["---\ntitle: x\n---", "# A"]),
        ("# A\r\n\r\ntext\r\n# B\r\n", ["# A\r\n\r\ntext", "# B"]),
    ],
)
def test_a_document_is_split_at_its_headings(document: str, parts: list[str]) -> None:
    assert sections(document) == parts


@given(documents)
def test_nothing_is_lost_but_blank_lines(document: str) -> None:
    def lines(text: str) -> list[str]:
        return [line for line in text.split("\n") if line.strip()]

    parts = sections(document)
    assert [line for part in parts for line in lines(part)] == [line.strip("\r") for line in lines(document)]
    assert all(part in document and part.strip() for part in parts)


@given(st.text(st.sampled_from("#=- `~a\n"), max_size=60))
def test_the_characters_of_any_text_stay_in_order(document: str) -> None:
    assert re.sub(r"\s", "", "".join(sections(document))) == re.sub(r"\s", "", document)


@pytest.mark.parametrize(
    ("document", "lengths"),
    [
        ("# A\n\n" + "x" * 60_000 + "\n\n" + "y" * 60_000, [60_005, 60_000]),
        ("# A\r\n\r\n" + "x" * 60_000 + "\r\n\r\n" + "y" * 60_000, [60_007, 60_000]),
        ("# A\n" + ("z" * 999 + "\n") * 250, [99_003, 99_999, 50_999]),
        ("w" * 250_000, [100_000, 100_000, 50_000]),
    ],
)
def test_a_section_that_is_too_long_for_an_item_is_split(document: str, lengths: list[int]) -> None:
    parts = sections(document)
    assert [len(part) for part in parts] == lengths
    assert "".join("".join(parts).split()) == "".join(document.split())


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("```\na\n```", ["a\n"]),
        ("say\n```python title\na\n```\nand\n~~~\nb\n~~~\n", ["a\n", "b\n"]),
        ("````\n```\na\n```\n````", ["```\na\n```\n"]),
        ("1. x\n     ```py\n     a\n     ```\n", ["     a\n"]),
        ("```markdown\n# T\n```py\na\n```\nend\n```\nafter", ["# T\n```py\na\n```\nend\n"]),
        ("```markdown\n```py\na\n```\nafter", ["```py\na\n"]),
        ("```py\n```js\na\n```", ["```js\na\n"]),
        ("```one line```\ntext", []),
        ("```\n```", [""]),
        ("text `` ` `` and ``\n``", []),
        ("    main()\n    ~~~~^^\n~~~^\n    ~~~~~~", []),
    ],
)
def test_fences_are_found_with_their_content(text: str, contents: list[str]) -> None:
    found = fences(text)
    assert [text[fence.content_start : fence.content_end] for fence in found] == contents
    assert all(fence.is_closed for fence in found)


@pytest.mark.parametrize("text", ["```", "```py\na", "a\n~~~\n```\n", "````\na\n```", "```\na\n``` x"])
def test_a_fence_that_is_never_closed_reaches_to_the_end(text: str) -> None:
    assert [(fence.is_closed, fence.end) for fence in fences(text)] == [(False, len(text))]


@given(documents)
def test_fences_and_the_stretches_between_them_are_the_text(text: str) -> None:
    found = fences(text)
    stretches = sorted([*outside_fences(text, found), *((fence.start, fence.end) for fence in found)])
    assert "".join(text[start:end] for start, end in stretches) == text
    assert all(fence.start <= fence.content_start <= fence.content_end <= fence.end for fence in found)


@pytest.mark.parametrize(
    "text",
    [
        "```markdown\n" * 80_000,
        "```markdown\n```python\n```\n" * 40_000,
        "`" * 1_000_000,
        "~~~\n" * 100_000,
        " " * 1_000_000,
        "\n" * 1_000_000,
        "a\n" * 200_000,
        "# a\n" * 100_000,
        "a\n-\n" * 100_000,
        "---\n" * 100_000,
        "- " * 500_000 + "x",
        "---" + " " * 1_000_000 + "x",
    ],
)
def test_long_and_hostile_texts_are_read_in_linear_time(text: str) -> None:
    assert "".join("".join(sections(text)).split()) == "".join(text.split())
