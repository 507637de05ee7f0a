"""What is captured of messages, output and documents, and above all what is not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.limits import CAPTURED_MESSAGE
from chorus_cli.memory.rules.capture import Captured, captured, fences, outside_fences, sections
from chorus_cli.memory.rules.items import ItemType
from tests.memory.rules.printed_reports import ERRORS, GCC, MOCHA, NODE, PYTEST, PYTHON, RESULTS, TALK, UNITTEST

CODE, ERROR, TEST_RESULT = ItemType.CODE, ItemType.ERROR, ItemType.TEST_RESULT
BLOCK = "def f():\n    x = 1\n    return x"
REPORTS = [*((ERROR, each) for each in ERRORS), *((TEST_RESULT, each) for each in RESULTS)]
reports = pytest.mark.parametrize(("item_type", "report"), REPORTS)


@reports
def test_a_report_is_found_in_a_message(item_type: ItemType, report: str) -> None:
    item = Captured(item_type, report.strip())
    assert captured(report) == [item]
    assert captured(f"Look at this:\n\n{report}\n\nIs it bad?") == [item]
    assert captured(f"Look\n{report}\n".replace("\n", "\r\n")) == [item]


@reports
def test_a_report_is_found_in_output(item_type: ItemType, report: str) -> None:
    assert captured(f"$ make\nbuilding …\n{report}\n\n$ ", is_output=True) == [Captured(item_type, report.strip())]


@reports
def test_a_fence_with_a_report_is_one_item(item_type: ItemType, report: str) -> None:
    assert captured(f"Here:\n```console\n$ make\n{report}\n\ndone\n```\n") == [
        Captured(item_type, f"$ make\n{report}\n\ndone")
    ]


def test_an_error_with_a_result_in_a_fence_or_errors_side_by_side_are_one() -> None:
    assert captured(f"```\n{PYTHON}\n\n{UNITTEST}\n```") == [Captured(ERROR, f"{PYTHON}\n\n{UNITTEST}")]
    assert captured(f"{GCC}\n\n\n{GCC}\n") == [Captured(ERROR, f"{GCC}\n\n\n{GCC}")]


@pytest.mark.parametrize("talk", TALK)
def test_an_ordinary_talk_captures_nothing(talk: str) -> None:
    assert captured(talk) == []
    assert captured(f"Well,\n{talk}\nis it not?") == []


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        (f"```python\n{BLOCK}\n```", [BLOCK]),
        (f"Text\n~~~py title=x\n{BLOCK}\n~~~\ntext", [BLOCK]),
        (f"- item\n\n    ```\n    a\n    b\n    c\n    ```\n```\n{BLOCK}\n```", ["a\n    b\n    c", BLOCK]),
        ("````\n```py\na\n```\n````", ["```py\na\n```"]),
        (f"```md\n# T\n```py\n{BLOCK}\n```\nend\n```", [f"# T\n```py\n{BLOCK}\n```\nend"]),
        (f"```\n{BLOCK}\n```\nagain\n```py\n\n{BLOCK}\n\n```", [BLOCK]),
        (f"```\n{BLOCK}\n```\nand\n```\n{BLOCK}", [BLOCK]),
        ("```\n" + "x\n" * 50_000 + "```", ["x\n" * 49_999 + "x"]),
        ("```\n" + "x\n" * 50_001 + "```", []),
    ],
)
def test_fenced_code_of_three_lines_is_captured(text: str, contents: list[str]) -> None:
    assert captured(text) == [Captured(CODE, content) for content in contents]


def test_items_come_in_their_order_and_equal_content_once() -> None:
    text = f"{PYTHON}\n\ntext\n```\n{BLOCK}\n```\n{PYTEST}\ntext\n{NODE}\n```\n{PYTHON}\n```\nand\n\n{MOCHA}\n"
    expected = [(ERROR, PYTHON), (CODE, BLOCK), (TEST_RESULT, PYTEST), (ERROR, NODE), (TEST_RESULT, MOCHA.strip())]
    assert captured(text) == [Captured(*each) for each in expected]


@pytest.mark.parametrize(
    ("line", "item_type"),
    [
        ("3 failed, 5 passed in 0.2s", TEST_RESULT),
        ("./main.go:5:2: undefined: x", ERROR),
        ("collect2: error: ld returned 1 exit status", ERROR),
    ],
)
def test_lines_that_a_person_may_write_are_believed_of_output_only(line: str, item_type: ItemType) -> None:
    assert captured(line) == []
    assert captured(line, is_output=True) == [Captured(item_type, line)]


def test_output_has_no_colours_and_an_open_fence_hides_nothing() -> None:
    text = f"```\n\x1b[31mmain.c:1:2: \x1b[0;1merror: \x1b[mno\n{BLOCK}"
    assert captured(text, is_output=True) == [Captured(ERROR, "main.c:1:2: error: no")]
    assert captured(text) == []


PIECES = st.sampled_from([*ERRORS, *RESULTS, *TALK, BLOCK, "```", "~~~", "````md", "", "  ", "prose", "\u2028"])


@given(st.lists(PIECES, max_size=12).map("\n".join), st.booleans())
def test_every_item_is_a_piece_of_the_text(text: str, is_output: bool) -> None:  # noqa: FBT001 - a generated value
    found = captured(text, is_output=is_output)
    assert all(each.content in text and each.content == each.content.strip() != "" for each in found)
    assert len({each.content for each in found}) == len(found)


HOSTILE = [
    "x" * 1_000_000,
    "\n" * 1_000_000,
    " " * 1_000_000,
    "a.b" * 300_000,
    "a.b:1" * 200_000,
    "a\n" * 500_000,
    "=" * 1_000_000,
    "== 1 passed" * 90_000,
    "== " + "1 passed, " * 100_000,
    "Error\n" * 160_000,
    "Error" * 200_000,
    "a.c:1:1: error: x\n" * 55_000,
    "Traceback (most recent call last):\n" * 28_000,
    'Traceback (most recent call last):\n  File "\n' + "  x\n" * 250_000,
    'Traceback (most recent call last):\n  File "\n' * 22_000,
    '  File "a", line 1\n' * 50_000,
    "".join(f"{' ' * depth}Traceback (most recent call last):\n" for depth in range(1_300)),
    "panic: x\n" * 110_000,
    "panic: x\ngoroutine 1 [\n\n" * 40_000,
    "failures:\n" * 100_000,
    "failures:\n" + " x\n" * 330_000,
    "Test Suites: x\n" * 66_000,
    "=== short test summary info ===\n" * 31_000,
    "Tests:" + " 1 a," * 200_000,
    "error: x\n" * 110_000,
    "XError\n" + "    at x (a:1:1)\n" * 60_000,
    "```\n" * 250_000,
    "```md\n```py\n```\n" * 60_000,
    "./" * 500_000,
    "at " * 330_000,
]


@pytest.mark.parametrize("length", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("text", HOSTILE)
def test_a_megabyte_of_hostile_text_is_read_in_linear_time(text: str, length: int) -> None:
    for is_output in (False, True):
        assert all(len(each.content) <= 100_000 for each in captured(text[:length], is_output=is_output))


def test_a_message_over_the_limit_is_not_searched() -> None:
    report = f"{ERRORS[0]}\n"
    filled = "a" * (CAPTURED_MESSAGE.most - len(report) - 2)
    assert captured(f"{filled}\n\n{report}") == [Captured(ERROR, report.strip())]
    assert captured(f"{filled}a\n\n{report}") == []


LINES = ["# Title", "## Part", "#hashtag", "    # code", "text", "more text", "===", "---", "- item", "> quote"]
LINES += ["```python", "```", "~~~", "````markdown", "````", "", "  ", "\r"]
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
