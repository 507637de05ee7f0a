"""Command lines: run, refused with advice, or completed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import ChorusError, TimeSpanError
from chorus_cli.framework.arguments import Candidate
from chorus_cli.framework.command_line import Completions, completions, resolve
from chorus_cli.framework.replies import Exit, Text
from chorus_cli.models.rules.events import TextDelta
from chorus_cli.threads.service.running_turn import RunningTurn
from tests.amount import examples
from tests.framework.example_commands import NOW, REGISTRY, Desk, window


def _refusal(line: str) -> str:
    with pytest.raises(ChorusError) as refusal:
        resolve(REGISTRY, line, NOW)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("/context", "window of 2"),
        ("/CONTEXT", "window of 2"),
        ("  /context  ", "window of 2"),
        ("/ctx", "window of 2"),
        ("/context set 24h", "set to 24h"),
        ("/Context Set 24H", "set to 24h"),
        ("/context 24h", "set to 24h"),
        ("/context 3 days ago", "set to 72h"),
        ("/context the last 2 days", "set to 48h"),
        ("/context se 24h", "set to 24h"),
        ("/con 24h", "set to 24h"),
        ("/cont hist Frodo Baggins", "history of 'Frodo Baggins'"),
        ("/context reset", "reset"),
        ("/context default", "reset"),
        ("/context d", "reset"),
        ("/clear", "cleared"),
        ("/new", "cleared"),
        ("/n", "cleared"),
        ("/context clear", "cleared"),
        ("/context undo", "undone None"),
        ("/context undo #3", "undone 3"),
        ("/context save", "saved ''"),
        ("/context save   don't   lose \"this  ", "saved 'don\\'t   lose \"this'"),
        ("/memory add task  buy   bread ", "task: buy   bread"),
        ("/mem pin 3", "pinned 3"),
        ("/?", ""),
        ("/help context set", "context set"),
    ],
)
async def test_a_line_is_carried_out(line: str, answer: str) -> None:
    assert await resolve(REGISTRY, line, NOW).run(Desk()) == Text(answer)


async def test_a_command_may_answer_with_events() -> None:
    answer = await resolve(REGISTRY, "/retry", NOW).run(Desk())
    assert isinstance(answer, RunningTurn)
    assert [event async for event in answer.followed()] == [TextDelta("again")]


async def test_several_beginnings_of_names_of_one_command_are_not_ambiguous() -> None:
    assert await resolve(REGISTRY, "/q", NOW).run(Desk()) == Exit()
    assert await resolve(REGISTRY, "/qu", NOW).run(Desk()) == Exit()


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("/c", "/c is ambiguous: /clear or /context?"),
        ("/context s", "/context s is ambiguous: /context save or /context set?"),
        ("/contxt", "There is no command '/contxt'. Did you mean /context? /help lists all commands."),
        (
            "/context sett 24h",
            "There is no command '/context sett'. Did you mean /context set? /help lists all commands.",
        ),
        (
            "/context claer",
            "There is no command '/context claer'. Did you mean /context clear? /help lists all commands.",
        ),
        (
            "/Sessions of Frodo",
            "There is no command '/Sessions'. Did you mean /context history? /help lists all commands.",
        ),
        (
            "/context Sessions of Frodo",
            "There is no command '/context Sessions'. Did you mean /context history? /help lists all commands.",
        ),
        ("/xyzzy", "There is no command '/xyzzy'. /help lists all commands."),
        ("/", "There is no command '/'. /help lists all commands."),
        ("/memory xyzzy", "There is no command '/memory xyzzy'. /help memory lists its commands."),
        ("/memory", "/memory needs one of: add, pin."),
        ("/\x1b[2J", "There is no command '/\\x1b[2J'. /help lists all commands."),
        ("/quit now", "/quit takes no argument."),
        ("/context clear all", "/context clear takes no argument."),
        ("/new hello", "/new takes no argument."),
        ("/n hello", "/new takes no argument."),
        ("/context default 3", "/context default takes no argument."),
        (
            "/etc/passwd",
            "There is no command '/etc/passwd'. /help lists all commands. // sends a line that begins with a slash.",
        ),
        ("/memory pin", "/memory pin needs <number>. Usage: /memory pin <number>, for example: /memory pin 3"),
        (
            "/context set",
            "/context set needs <time>. Usage: /context [set] <time>, for example: /context set 24h",
        ),
        (
            "/memory add task",
            "/memory add needs <text>. Usage: /memory add <persona> <text>, for example: /memory add task buy bread",
        ),
    ],
)
def test_a_line_that_names_no_command_is_refused_with_what_to_do(line: str, sentence: str) -> None:
    assert _refusal(line) == sentence


@pytest.mark.parametrize("time", ["soon", "1:30", "tomorrow", "in 2 hours", "+5h", "0h", "1 month", "may", "now"])
def test_what_is_neither_subcommand_nor_time_gets_the_sentence_of_the_time(time: str) -> None:
    with pytest.raises(TimeSpanError):
        resolve(REGISTRY, f"/context {time}", NOW)


def test_after_a_subcommand_the_sentence_is_its_parameters() -> None:
    assert _refusal("/context set soon").startswith("Cannot read 'soon' as a length of time")
    assert _refusal("/memory pin soon").startswith("'soon' is not a number")


def test_what_is_echoed_is_short() -> None:
    assert len(_refusal("/" + "x" * 10_000)) < 120
    assert len(_refusal("/quit " + "x" * 10_000)) < 120


@examples(300)
@given(st.text() | st.text(alphabet="context semry 24h", max_size=20))
def test_no_line_raises_anything_but_a_sentence(text: str) -> None:
    try:
        resolve(REGISTRY, f"/{text}", NOW)
    except ChorusError as error:
        assert str(error).isprintable()  # noqa: PT017 - most lines are refused, some are not


@pytest.mark.parametrize(
    ("line", "start", "texts"),
    [
        ("", 0, []),
        ("hello", 5, []),
        ("/", 0, ["/context", "/memory", "/help", "/retry", "/quit", "/new"]),
        ("/c", 0, ["/context", "/clear"]),
        ("/C", 0, ["/context", "/clear"]),
        ("/ex", 0, ["/exit"]),
        ("/nothing ", 9, []),
        ("/context ", 9, ["set", "reset", "clear", "undo", "save", "history", "8h", "24h", "2 days", "1 week"]),
        ("/context  s", 10, ["set", "save"]),
        ("/context 2", 9, ["24h", "2 days"]),
        ("/context 2 d", 9, ["2 days"]),
        ("/context set 2", 13, ["24h", "2 days"]),
        ("/context set  2 d", 14, ["2 days"]),
        ("/context clear ", 15, []),
        ("/context history F", 17, ["frodo"]),
        ("/CTX history ", 13, ["frodo", "chorus"]),
        ("/memory add fr", 12, ["frodo"]),
        ("/memory add frodo x", 18, []),
        ("/memory nothing x", 8, []),
        ("/new ", 5, []),
    ],
)
def test_a_line_is_completed_from_the_declarations(line: str, start: int, texts: list[str]) -> None:
    found = completions(REGISTRY, Desk(), line)
    assert found.start == start
    assert [candidate.text for candidate in found.candidates][: len(texts) or None] == texts


def test_a_candidate_says_what_it_is() -> None:
    assert completions(REGISTRY, Desk(), "/con") == Completions(0, (Candidate("/context", window.summary),))
    assert completions(REGISTRY, Desk(), "/context und").candidates == (Candidate("undo", "Take an operation back."),)
