"""The last exchange of a thread on the screen: short, dim and safe."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest

from chorus_cli.log.rules.messages import Status
from chorus_cli.log.rules.threads import Exchange
from chorus_cli.terminal.screen.drawing import beginning, show_exchange
from chorus_cli.terminal.screen.output import Screen
from tests.terminal.screen.terminal_file import TerminalFile

AT = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)
WHOLE = Status.COMPLETE


@pytest.mark.parametrize(
    ("text", "rows", "more"),
    [
        ("", [], 0),
        ("one", ["one"], 0),
        ("one\n\n  two\n", ["one", "", "  two"], 0),
        ("one\ntwo\nthree\nfour", ["one", "two", "three"], 1),
        ("one\ntwo\nthree\n\nfive", ["one", "two", "three"], 2),
        ("a word too many\nfor three rows\nthen", ["a word too", "many", "for three"], 2),
        ("x" * 1_000_000 + "\nend", ["x" * 10] * 3, 2),
        ("\x1b[2J\x07", ["␛[2J␇"], 0),
    ],
)
def test_the_beginning_of_a_text_is_cut_to_rows(text: str, rows: list[str], more: int) -> None:
    assert beginning(text, 3, 10) == (rows, more)


@pytest.mark.usefixtures("_usual_size")
@pytest.mark.parametrize(
    ("exchange", "shown"),
    [
        (Exchange(AT, "Hello", "Hi", WHOLE), ["❯ Hello", "Hi"]),
        (Exchange(AT, "Hello", "", Status.INTERRUPTED), ["❯ Hello", "[interrupted]"]),
        (Exchange(AT, "Hello", "Hi", Status.FAILED), ["❯ Hello", "Hi", "[failed; /retry asks again]"]),
        (Exchange(AT, "Hello", "Hi", Status.STREAMING), ["❯ Hello", "Hi", "[still being written]"]),
        (Exchange(AT, "", "Only this", WHOLE), ["", "Only this"]),
        (Exchange(AT, "1\n2\n3\n4", "Hi", WHOLE), ["❯ 1", "2", "3 …", "Hi"]),
        (
            Exchange(AT, "Count", "\n".join(map(str, range(1, 13))), WHOLE),
            ["❯ Count", *map(str, range(1, 11)), "… 2 more lines; /thread history shows all"],
        ),
    ],
)
def test_question_and_reply_are_shown_with_the_time_and_the_state(exchange: Exchange, shown: list[str]) -> None:
    file = io.StringIO()
    show_exchange(exchange, Screen(file, {}))
    lines = file.getvalue().splitlines()
    assert [lines[0][len("Thu 2026-02-12 14:30 ") :], *lines[1:]] == shown


def test_it_is_dim() -> None:
    file = TerminalFile()
    show_exchange(Exchange(AT, "Hello", "Hi", WHOLE), Screen(file, {"TERM": "xterm"}))
    assert file.written.startswith("\x1b[2m")
