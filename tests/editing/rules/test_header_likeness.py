"""Lines that look like the beginning of a message and are none: what counts as such a line."""

from __future__ import annotations

import pytest

from chorus_cli.core.errors import HeaderLikeError
from chorus_cli.editing.rules.format import END_LINE, Block, header_likeness, parse, render
from chorus_cli.log.rules.messages import Role

NOON = "2025-01-18 12:00:00"
is_header_like = header_likeness(["Human", "Frodo", "Frodo (tool)"])

LIKE = (
    "[20x5-01-18 22:15:03] Human: hello",
    "2025-01-18 22:15:03] Human: hello",
    "2025-01-18 22:15:03 Human: hello",
    " [2025-01-18 22:15:03] Human: hello",
    "[[2025-01-18 22:15:03] Human: hello",
    "(2025-01-18 22:15:03) Human: hello",
    "[202-01-18 22:15:03] Human: hello",
    "[2025/01/18 22:15:03] Humn: hello",
    "[20255-01-18 22:15:03] hello",
    "[2025 01 18 22.15.03] Human: hello",
    "]2025-01-18 22:15:03[ frodo : hello",
    "2025-01-18 Frodo (tool): x",
    "22:15 Frodo: hello",
)
UNLIKE = (
    "",
    "hello",
    "Human: hello",
    "Frodo: *adjusts pack*",
    "(laughs) Frodo: hello",
    "2025-01-18 22:15:03 ERROR: disk full",
    "2025-01-18 22:15:03,123 INFO root: Human: came in",
    "[18/Jan/2025:22:15:03 +0000] GET /",
    "[link](https://example.org/2025-01-18)",
    "[1]: https://example.org",
    "- 12:30 lunch with Frodo: bring bread",
    "On 2025-01-18 at 22:15 Human: hello",
    "At ten Human: hello",
    "2025 was a good year for Frodo: he came home",
    "> [2025-01-18 22:15:03] Human: quoted",
    " " * 1_000_000,
    "[" * 1_000_000,
    "1-" * 1_000_000 + ":",
)


@pytest.mark.parametrize("line", LIKE)
def test_a_date_and_time_that_is_nearly_a_header_looks_like_one(line: str) -> None:
    assert is_header_like(line)


@pytest.mark.parametrize("line", UNLIKE, ids=lambda line: line[:40])
def test_what_stands_in_ordinary_texts_does_not(line: str) -> None:
    assert not is_header_like(line)


@pytest.mark.parametrize("line", LIKE)
def test_such_a_line_is_refused_by_its_number_unless_it_is_said_to_be_text(line: str) -> None:
    text = f"---\n[{NOON}] Human: a\n\n{line}\n{END_LINE}"
    with pytest.raises(HeaderLikeError, match=r"^Line 4: this looks like the beginning of a message, but is none; "):
        parse(text, "Frodo")
    assert parse(text, "Frodo", header_like_is_text=True).blocks == (Block(Role.USER, NOON, f"a\n\n{line}", 2),)


@pytest.mark.parametrize("line", LIKE)
def test_in_a_message_that_was_laid_out_such_a_line_is_known_as_text(line: str) -> None:
    body = f"a\n{line}\n\\{line}"
    assert parse(render("Frodo", [], [Block(Role.USER, NOON, body)]), "Frodo").blocks[0].body == body


@pytest.mark.parametrize(
    ("more", "told"), [(1, " (nor is 1 more line like it);"), (2, " (nor are 2 more lines like it);")]
)
def test_of_several_such_lines_the_first_is_named_and_the_others_are_counted(more: int, told: str) -> None:
    text = "\n".join(["---", f"[{NOON}] Human: a", *LIKE[:1] * (more + 1), END_LINE])
    with pytest.raises(HeaderLikeError, match="Line 3: ") as caught:
        parse(text, "Frodo")
    assert told in str(caught.value)
