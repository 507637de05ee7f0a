from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chorus_cli.commands.arguments import Candidate
from chorus_cli.commands.command_line import Completions, completions, look_up, resolve
from chorus_cli.commands.parameters import COMMAND, NUMBER, TEXT, TIME
from chorus_cli.commands.registry import Command, CommandGroup, CommandRegistry
from chorus_cli.commands.replies import Exit, Message, Reply, Report, Table, plain
from chorus_cli.core.errors import ChorusError, CommandError, TimeSpanError
from chorus_cli.core.events import TextDelta
from chorus_cli.core.timespan import Span, format_span

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)


@dataclass
class Desk:
    """What the handlers below are given as their context."""

    personas: list[str] = field(default_factory=lambda: ["frodo", "chorus"])


def _personas(desk: Desk, _text: str) -> list[Candidate]:
    return [Candidate(name, "somebody") for name in desk.personas]


PERSONA = replace(TEXT, name="persona", complete=_personas)
DESCRIPTION = replace(TEXT, name="description", help="what the session was about")

window: CommandGroup[Desk] = CommandGroup("context", "The part of the conversation the model sees.", aliases=("ctx",))
saving: CommandGroup[Desk] = CommandGroup("context")
memory: CommandGroup[Desk] = CommandGroup("memory", "What is kept apart from messages.", aliases=("mem",))
everywhere: CommandGroup[Desk] = CommandGroup("", "Everywhere.")


@window.command("")
async def show(desk: Desk) -> Message:
    """Show the window.

    Examples:
        /context
    """
    return Message(f"window of {len(desk.personas)}")


@window.command("set", default=True)
async def set_window(_desk: Desk, time: Annotated[Span, TIME]) -> Reply:
    """Reach back a given length of time.

    A boundary that is nearer
    still binds.

    A second paragraph.

    Examples:
        /context set 24h
        /context 2 days

    Raises:
        ChorusError: never.
    """
    return Message(f"set to {format_span(time.seconds)}")


@window.command("reset", "default")
async def reset(_desk: Desk) -> Message:
    """Take the default again.

    Examples:
        /context reset
    """
    return Message("reset")


@window.command("clear", aliases=("new", "clear"))
async def clear(_desk: Desk) -> Message:
    """Begin a new conversation.

    Examples:
        /new
    """
    return Message("cleared")


@window.command("undo")
async def undo(_desk: Desk, number: Annotated[int | None, NUMBER] = None) -> Message:
    """Take an operation back.

    Examples:
        /context undo
        /context undo #3
    """
    return Message(f"undone {number}")


@saving.command("save")
async def save(_desk: Desk, description: Annotated[str, DESCRIPTION] = "") -> Message:
    """Save the view.

    Examples:
        /context save don't lose this
    """
    return Message(f"saved {description!r}")


@saving.command("history")
async def history(_desk: Desk, persona: Annotated[str, PERSONA] = "") -> Message:
    """List saved sessions.

    Examples:
        /context history
    """
    return Message(f"history of {persona!r}")


@memory.command("add")
async def add(_desk: Desk, kind: Annotated[str, PERSONA], text: Annotated[str, TEXT]) -> Message:
    """Keep a text.

    Examples:
        /memory add task buy bread
    """
    return Message(f"{kind}: {text}")


@memory.command("pin")
async def pin(_desk: Desk, number: Annotated[int, NUMBER]) -> Message:
    """Keep an item hot.

    Examples:
        /memory pin 3
    """
    return Message(f"pinned {number}")


@everywhere.command("help", "?")
async def help_command(_desk: Desk, command: Annotated[str, COMMAND] = "") -> Message:
    """Say what there is.

    Examples:
        /help context set
    """
    return Message(command)


@everywhere.command("retry")
async def retry(_desk: Desk) -> AsyncGenerator[TextDelta, None]:
    """Answer again.

    Examples:
        /retry
    """
    yield TextDelta("again")


@everywhere.command("quit", "exit", "q")
async def leave(_desk: Desk) -> Exit:
    """Leave.

    Examples:
        /quit
    """
    return Exit()


REGISTRY = CommandRegistry([window, memory, saving, everywhere])
COMMANDS = list(REGISTRY)


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
    assert await resolve(REGISTRY, line, NOW).run(Desk()) == Message(answer)


async def test_a_command_may_answer_with_events() -> None:
    answer = await resolve(REGISTRY, "/retry", NOW).run(Desk())
    assert isinstance(answer, AsyncGenerator)
    assert [event async for event in answer] == [TextDelta("again")]


async def test_several_beginnings_of_names_of_one_command_are_not_ambiguous() -> None:
    assert await resolve(REGISTRY, "/q", NOW).run(Desk()) == Exit()
    assert await resolve(REGISTRY, "/qu", NOW).run(Desk()) == Exit()


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("/c", "/c may be /clear or /context."),
        ("/context s", "/context s may be /context save or /context set."),
        ("/contxt", "There is no command '/contxt'. Did you mean /context? /help lists all commands."),
        (
            "/context sett 24h",
            "There is no command '/context sett'. Did you mean /context set? /help lists all commands.",
        ),
        (
            "/context claer",
            "There is no command '/context claer'. Did you mean /context clear? /help lists all commands.",
        ),
        ("/xyzzy", "There is no command '/xyzzy'. /help lists what there is."),
        ("/", "There is no command '/'. /help lists what there is."),
        ("/memory xyzzy", "There is no command '/memory xyzzy'. /help memory lists what there is."),
        ("/memory", "/memory needs one of: add, pin."),
        ("/\x1b[2J", "There is no command '/\\x1b[2J'. /help lists what there is."),
        ("/quit now", "/quit stands alone, but 'now' follows it. Usage: /quit"),
        ("/context clear all", "/context clear stands alone, but 'all' follows it. Usage: /context clear"),
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


@pytest.mark.parametrize("time", ["soon", "1:30", "tomorrow", "in 2 hours", "+5h", "0h", "1 month", "may 3", "now"])
def test_what_is_neither_subcommand_nor_time_gets_the_sentence_of_the_time(time: str) -> None:
    with pytest.raises(TimeSpanError):
        resolve(REGISTRY, f"/context {time}", NOW)


def test_after_a_subcommand_the_sentence_is_its_parameters() -> None:
    assert _refusal("/context set soon").startswith("Cannot read 'soon' as a length of time")
    assert _refusal("/memory pin soon").startswith("'soon' is not a number")


def test_what_is_echoed_is_short() -> None:
    assert len(_refusal("/" + "x" * 10_000)) < 120
    assert len(_refusal("/quit " + "x" * 10_000)) < 120


@settings(max_examples=300, deadline=None)
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


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.path)
def test_every_example_reads_as_the_command_it_illustrates(command: Command[Desk]) -> None:
    assert command.documentation.summary
    for example in command.documentation.examples:
        assert resolve(REGISTRY, example, NOW).command is command


@pytest.mark.parametrize(
    ("words", "usage"),
    [("context set", "/context [set] <time>"), ("/NEW", "/context clear"), ("mem a", "/memory add <persona> <text>")],
)
def test_help_finds_a_command_by_its_words(words: str, usage: str) -> None:
    found = look_up(REGISTRY, words)
    assert isinstance(found, Command)
    assert found.usage == usage


def test_help_for_a_command_says_everything_about_it() -> None:
    assert look_up(REGISTRY, "context set").help_text == (
        "/context [set] <time>\n"
        "<time>: how far back: 24h, 2 days, 1h30, half an hour, 3 days ago, yesterday, monday 9am\n\n"
        "Reach back a given length of time.\n\n"
        "A boundary that is nearer still binds.\n\n"
        "A second paragraph.\n\n"
        "Examples:\n  /context set 24h\n  /context 2 days"
    )
    assert "Also: /new, /clear" in look_up(REGISTRY, "context clear").help_text


def test_help_for_a_group_lists_its_commands() -> None:
    assert look_up(REGISTRY, "memory").help_text == (
        "What is kept apart from messages.\n\n"
        "/memory add <persona> <text>: Keep a text.\n"
        "/memory pin <number>: Keep an item hot."
    )


@pytest.mark.parametrize("words", ["context sett", "contxt", "memory xyzzy", "c"])
def test_help_for_what_there_is_not_is_refused(words: str) -> None:
    with pytest.raises(CommandError, match=r"There is no command|may be"):
        look_up(REGISTRY, words)


def test_the_menu_has_a_table_for_each_group_and_a_line_for_each_command() -> None:
    menu = REGISTRY.menu()
    assert [part.title for part in menu.parts if isinstance(part, Table)] == [
        "The part of the conversation the model sees.",
        "What is kept apart from messages.",
        "Everywhere.",
    ]
    assert "/context reset               Take the default again. Also /context default.\n" in plain(menu)
    assert plain(menu).endswith("/quit            Leave. Also /exit, /q.")


def test_the_markdown_table_has_a_row_for_each_command() -> None:
    rows = REGISTRY.markdown_table().splitlines()
    assert rows[:3] == ["| command | what it does |", "|---|---|", "| `/context` | Show the window. |"]
    assert "| `/context clear` | Begin a new conversation. Also `/new`, `/clear`. |" in rows
    assert len(rows) == 2 + len(COMMANDS)


async def _documented(_desk: Desk) -> Message:
    """Do it.

    Examples:
        /it
    """
    return Message("done")


async def _second(_desk: Desk, _time: Annotated[Span, TIME]) -> Message:
    """Do it with a time.

    Examples:
        /it 2h
    """
    return Message("done")


async def _undocumented(_desk: Desk) -> Message:
    return Message("done")


async def _without_example(_desk: Desk) -> Message:
    """Do it."""
    return Message("done")


async def _example_without_slash(_desk: Desk) -> Message:
    """Do it.

    Examples:
        it
    """
    return Message("done")


def _fresh(name: str = "it", summary: str = "It.", aliases: tuple[str, ...] = ()) -> CommandGroup[Desk]:
    return CommandGroup(name, summary, aliases=aliases)


def test_a_handler_needs_a_docstring_with_examples() -> None:
    for handler in (_undocumented, _without_example, _example_without_slash):
        with pytest.raises(TypeError, match=f"{handler.__name__} needs a docstring"):
            _fresh().command("it")(handler)


@pytest.mark.parametrize("names", [("Set",), ("a b",), ("it", "It")])
def test_a_name_is_a_word_in_small_letters(names: tuple[str, ...]) -> None:
    with pytest.raises(TypeError, match="one word in small letters"):
        _fresh().command(*names)(_documented)


def test_a_command_at_the_top_level_needs_a_name() -> None:
    with pytest.raises(TypeError, match="none is empty at the top level"):
        _fresh("").command("")(_documented)


def test_no_name_or_alias_is_declared_twice_within_a_group() -> None:
    group = _fresh()
    group.command("one", "uno")(_documented)
    with pytest.raises(TypeError, match="/it uno: 'uno' is declared twice"):
        group.command("uno")(_documented)
    with pytest.raises(TypeError, match="/it two: 'same' is declared twice"):
        group.command("two", aliases=("same", "same"))(_documented)


def test_a_default_takes_an_argument_and_is_the_only_one_of_its_group() -> None:
    group = _fresh()
    group.command("one", default=True)(_second)
    with pytest.raises(TypeError, match="the only one there"):
        group.command("two", default=True)(_second)
    with pytest.raises(TypeError, match="takes an argument"):
        _fresh().command("one", default=True)(_documented)
    with pytest.raises(TypeError, match="belongs to a group"):
        _fresh("").command("one", default=True)(_second)


def test_no_path_is_declared_twice_in_groups_of_one_name() -> None:
    first, second = _fresh(), _fresh(summary="")
    first.command("one")(_documented)
    second.command("one")(_documented)
    with pytest.raises(TypeError, match="/it one: 'one' is declared twice"):
        CommandRegistry([first, second])


def test_no_word_at_the_top_level_is_declared_twice() -> None:
    group, other, top = _fresh(aliases=("i",)), _fresh("other"), _fresh("")
    group.command("one", aliases=("go",))(_documented)
    other.command("one", aliases=("go",))(_documented)
    top.command("i")(_documented)
    with pytest.raises(TypeError, match="'go' is declared twice"):
        CommandRegistry([group, other])
    with pytest.raises(TypeError, match="'i' is declared twice"):
        CommandRegistry([group, top])


@pytest.mark.parametrize("summaries", [("", ""), ("One.", "Another.")])
def test_a_group_has_exactly_one_summary(summaries: tuple[str, ...]) -> None:
    with pytest.raises(TypeError, match="a group needs one summary"):
        CommandRegistry([_fresh(summary=summary) for summary in summaries])


def test_a_default_whose_argument_may_be_left_out_serves_the_group_alone() -> None:
    group = _fresh()
    group.command("undo", default=True)(undo)
    bound = resolve(CommandRegistry([group]), "/it", NOW)
    assert bound.arguments == (None,)


def test_a_report_is_rendered_as_plain_text_in_columns() -> None:
    table = Table("Sessions", ("id", "count"), (("2026-02-12_auth", "47"), ("x", "a\nb")))
    assert plain(Report((Message("Two."), table))) == (
        "Two.\n\nSessions\nid               count\n2026-02-12_auth  47\nx                a b"
    )
    assert plain(Table("", ("id",), ())) == "id"
    assert plain(Exit()) == ""
