"""Command lines: run, refused with advice, completed, or explained by the help."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import ChorusError, CommandError, TimeSpanError
from chorus_cli.core.time.timespan import Span, format_span
from chorus_cli.framework.arguments import COMMAND, NUMBER, TEXT, TIME, Candidate
from chorus_cli.framework.command_line import Completions, completions, look_up, resolve
from chorus_cli.framework.help import page, screen
from chorus_cli.framework.registry import Command, CommandGroup, CommandRegistry
from chorus_cli.framework.replies import Exit, Reply, Report, Table, Text, plain
from tests.amount import examples
from tests.world import World

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)


@dataclass
class Desk:
    """The context of the handlers below."""

    personas: list[str] = field(default_factory=lambda: ["frodo", "chorus"])


def _personas(desk: Desk, _text: str) -> list[Candidate]:
    return [Candidate(name, "somebody") for name in desk.personas]


PERSONA = replace(TEXT, name="persona", complete=_personas)
DESCRIPTION = replace(TEXT, name="description", help="what the session was about")

window: CommandGroup[Desk] = CommandGroup("context", "The part of the conversation the model sees.", aliases=("ctx",))
saving: CommandGroup[Desk] = CommandGroup("context")
memory: CommandGroup[Desk] = CommandGroup("memory", "What is kept apart from messages.", aliases=("mem",))
everywhere: CommandGroup[Desk] = CommandGroup("", "Everywhere.", topic="general")


@window.command("")
async def show(desk: Desk) -> Text:
    """Show the window.

    Examples:
        /context
    """
    return Text(f"window of {len(desk.personas)}")


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
    return Text(f"set to {format_span(time.seconds)}")


@window.command("reset", "default")
async def reset(_desk: Desk) -> Text:
    """Take the default again.

    Examples:
        /context reset
    """
    return Text("reset")


@window.command("clear", aliases=("new", "clear"))
async def clear(_desk: Desk) -> Text:
    """Begin a new conversation.

    Examples:
        /new
    """
    return Text("cleared")


@window.command("undo")
async def undo(_desk: Desk, number: Annotated[int | None, NUMBER] = None) -> Text:
    """Take an operation back.

    Examples:
        /context undo
        /context undo #3
    """
    return Text(f"undone {number}")


@saving.command("save")
async def save(_desk: Desk, description: Annotated[str, DESCRIPTION] = "") -> Text:
    """Save the view.

    Examples:
        /context save don't lose this
    """
    return Text(f"saved {description!r}")


@saving.command("history", guesses=("sessions",))
async def history(_desk: Desk, persona: Annotated[str, PERSONA] = "") -> Text:
    """List saved sessions.

    Examples:
        /context history
    """
    return Text(f"history of {persona!r}")


@memory.command("add")
async def add(_desk: Desk, kind: Annotated[str, PERSONA], text: Annotated[str, TEXT]) -> Text:
    """Keep a text.

    Examples:
        /memory add task buy bread
    """
    return Text(f"{kind}: {text}")


@memory.command("pin", listed="everyday")
async def pin(_desk: Desk, number: Annotated[int, NUMBER]) -> Text:
    """Keep an item hot.

    Examples:
        /memory pin 3
    """
    return Text(f"pinned {number}")


@memory.command("drop", "-", listed="nowhere")
async def drop(_desk: Desk, number: Annotated[int, NUMBER]) -> Text:
    """Drop an item.

    Examples:
        /memory -3
    """
    return Text(f"dropped {number}")


@everywhere.command("help", "?", listed="everyday")
async def help_command(_desk: Desk, command: Annotated[str, COMMAND] = "") -> Text:
    """Say what there is.

    Examples:
        /help context set
    """
    return Text(command)


@everywhere.command("quit", "exit", "q")
async def leave(_desk: Desk) -> Exit:
    """Leave.

    Examples:
        /quit
    """
    return Exit()


REGISTRY = CommandRegistry([window, memory, saving, everywhere])


def _refusal(line: str) -> str:
    with pytest.raises(ChorusError) as refusal:
        resolve(REGISTRY, line, NOW)
    return str(refusal.value)


ANSWERS = {
    "window of 2": ("/context", "/CONTEXT", "  /context  ", "/ctx"),
    "set to 24h": ("/context set 24h", "/Context Set 24H", "/context 24h", "/context se 24h", "/con 24h"),
    "set to 72h": ("/context 3 days ago",),
    "set to 48h": ("/context the last 2 days",),
    "history of 'Frodo Baggins'": ("/cont hist Frodo Baggins",),
    "reset": ("/context reset", "/context default", "/context d"),
    "cleared": ("/clear", "/new", "/n", "/context clear"),
    "undone None": ("/context undo",),
    "undone 3": ("/context undo #3",),
    "saved ''": ("/context save",),
    "saved 'don\\'t   lose \"this'": ("/context save   don't   lose \"this  ",),
    "task: buy   bread": ("/memory add task  buy   bread ",),
    "pinned 3": ("/mem pin 3",),
    "dropped 3": ("/mem drop 3", "/memory -3", "/memory - 3", "/mem -#3"),
    "": ("/?",),
    "context set": ("/help context set",),
}


@pytest.mark.parametrize(("line", "answer"), [(line, answer) for answer, lines in ANSWERS.items() for line in lines])
async def test_a_line_is_carried_out(line: str, answer: str) -> None:
    assert await resolve(REGISTRY, line, NOW).run(Desk()) == Text(answer)


@pytest.mark.parametrize("line", ["/q", "/qu"])
async def test_several_beginnings_of_names_of_one_command_are_not_ambiguous(line: str) -> None:
    assert await resolve(REGISTRY, line, NOW).run(Desk()) == Exit()


def unknown(typed: str, meant: str = "", listing: str = "/help all lists all commands.") -> str:
    return f"There is no command '{typed}'.{f' Did you mean {meant}?' if meant else ''} {listing}"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("/c", "/c is ambiguous: /clear or /context?"),
        ("/context s", "/context s is ambiguous: /context save or /context set?"),
        ("/contxt", unknown("/contxt", "/context")),
        ("/context sett 24h", unknown("/context sett", "/context set")),
        ("/context claer", unknown("/context claer", "/context clear")),
        ("/Sessions of Frodo", unknown("/Sessions", "/context history")),
        ("/context Sessions of Frodo", unknown("/context Sessions", "/context history")),
        *(("/xyzzy", unknown("/xyzzy")), ("/", unknown("/"))),
        ("/memory xyzzy", unknown("/memory xyzzy", listing="/help memory lists its commands.")),
        *(("/memory", "/memory needs one of: add, pin."), ("/\x1b[2J", unknown("/\\x1b[2J"))),
        *(("/quit now", "/quit takes no argument."), ("/context clear all", "/new takes no argument.")),
        *((line, "/new takes no argument.") for line in ("/new hello", "/n hello")),
        ("/context default 3", "/context reset takes no argument."),
        ("/memory -", "/memory drop needs <number>, for example: /memory -3"),
        ("/memory pin -3", "'-3' is not a whole number above 0, such as 3 or #3."),
        ("/memory pin", "/memory pin needs <number>, for example: /memory pin 3"),
        ("/context set", "/context needs <time>, for example: /context set 24h"),
        (
            "/memory add task",
            "/memory add needs <text>, for example: /memory add task buy bread",
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
    assert _refusal("/memory pin soon").startswith("'soon' is not a whole number")


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
        *(("", 0, []), ("hello", 5, [])),
        ("/", 0, ["/memory", "/help", "/context", "/quit", "/new"]),
        *(("/c", 0, ["/context"]), ("/C", 0, ["/context"]), ("/ex", 0, [])),
        ("/nothing ", 9, []),
        ("/context ", 9, [*(each.text for each in TIME.complete(None, "")), "reset", "clear", "undo", "save"]),
        *(
            ("/context  s", 10, ["since friday", "save"]),
            ("/context 2", 9, ["24h", "2 days"]),
            ("/context 2 d", 9, ["2 days"]),
        ),
        *(("/context set 2", 13, ["24h", "2 days"]), ("/context set  2 d", 14, ["2 days"])),
        *(("/context clear ", 15, []), ("/context history F", 17, ["frodo"])),
        *(("/CTX history ", 13, ["frodo", "chorus"]), ("/memory add fr", 12, ["frodo"])),
        *(("/memory ", 8, ["add", "pin"]), ("/memory d", 8, []), ("/memory drop ", 13, [])),
        *(("/memory add frodo x", 18, []), ("/memory nothing x", 8, [])),
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


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        ("context set", "/context <time>"),
        ("/NEW", "/new"),
        ("mem a", "/memory add <persona> <text>"),
        ("context undo", "/context undo [number]"),
    ],
)
def test_help_finds_a_command_by_its_words(words: str, usage: str) -> None:
    found = look_up(REGISTRY, words)
    assert isinstance(found, Command)
    assert found.usage == usage


def test_help_for_a_command_says_everything_about_it_under_one_name() -> None:
    assert page(REGISTRY, "context set") == (
        "/context <time>\n"
        "<time>: how far back: 24h, 2 days, 1h30, half an hour, 3 days ago, yesterday, monday 9am\n\n"
        "Reach back a given length of time.\n\n"
        "A boundary that is nearer still binds.\n\n"
        "A second paragraph.\n\n"
        "Examples:\n  /context set 24h\n  /context 2 days"
    )
    assert page(REGISTRY, "context clear") == "/new\n\nBegin a new conversation.\n\nExamples:\n  /new"


def test_help_for_a_topic_lists_its_commands_and_no_other_spelling() -> None:
    assert page(REGISTRY, "memory").splitlines() == [
        "What is kept apart from messages.",
        "  /memory add <persona> <text>",
        "                               Keep a text.",
        "  /memory pin <number>         Keep an item hot.",
    ]
    assert page(REGISTRY, "mem") == page(REGISTRY, "memory")


@pytest.mark.parametrize("words", ["context sett", "contxt", "memory xyzzy", "c"])
def test_help_for_what_there_is_not_is_refused(words: str) -> None:
    with pytest.raises(CommandError, match=r"There is no command|is ambiguous"):
        look_up(REGISTRY, words)


def test_help_for_everything_has_each_topic() -> None:
    assert page(REGISTRY, "all").split("\n\n") == [page(REGISTRY, topic) for topic in REGISTRY.topics]


def test_the_screen_of_the_help_has_what_is_declared_for_every_day() -> None:
    commands, rest = screen(REGISTRY).splitlines()[:2], screen(REGISTRY).splitlines()[2:]
    assert commands == ["/memory pin <number>  Keep an item hot.", "/help                 Say what there is."]
    assert [line.split()[0] for line in rest] == ["@file", "!cmd", "Ctrl-C", "Topics:"]
    assert rest[-1] == "Topics: context, memory, general, all"


def test_a_report_is_rendered_as_plain_text_in_columns() -> None:
    table = Table("Sessions", ("id", "count"), (("2026-02-12_auth", "47"), ("x", "a\nb")))
    assert plain(Report((Text("Two."), table))) == (
        "Two.\n\nSessions\nid               count\n2026-02-12_auth  47\nx                a b"
    )
    assert plain(Table("", ("id",), ())) == "id"
    assert plain(Exit()) == ""


@pytest.mark.parametrize(
    ("guess", "meant"),
    [
        *(("/history", "/context history"), ("/sessions", "/context history"), ("/save", "/context save")),
        *(("/load", "/context restore"), ("/window", "/context"), ("/reset", "/context"), ("/log", "/search")),
        *(("/fork", "/thread fork"), ("/context sessions", "/context history"), ("/context load", "/context restore")),
    ],
)
async def test_a_word_that_others_expect_leads_to_the_command_that_is_meant(
    world: World, guess: str, meant: str
) -> None:
    sentence = f"There is no command '{guess}'. Did you mean {meant}? /help all lists all commands."
    assert await world.told(guess) == await world.told(f"{guess} 24h") == sentence
    if " " not in guess and guess[1:] not in world.services.registry.topics:
        assert await world.told(f"/help {guess}") == sentence.replace("no command", "no command or topic")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("/help und", {"undo"}),
        ("/help context s", {"context set", "context save", "context show", "context summary"}),
        ("/? /context at", {"/context at"}),
        ("/help nosuch", set()),
    ],
)
async def test_help_offers_every_command_with_what_it_does(world: World, line: str, offered: set[str]) -> None:
    here = world.services
    found = completions(here.registry, here, line).candidates
    assert {each.text for each in found} == offered
    assert all(each.description for each in found)


async def test_everyday_names_come_first_and_each_command_once(world: World) -> None:
    here = world.services
    offered = [each.text for each in completions(here.registry, here, "/").candidates]
    everyday = list(dict.fromkeys(each.brief.split()[0] for each in here.registry.everyday))
    assert offered[: len(everyday)] == everyday
    assert len({*offered}) == len(offered)
    assert {*offered} & {"/why", "/clear", "/status", "/exit", "/personas", "/mem", "/p", "/t"} == set()
    assert {"/backup", "/compact", "/paste", "/run"} <= {*offered}


async def test_personas_are_offered_before_what_can_be_done_with_them(world: World) -> None:
    await world.told("/persona new Ada")
    here = world.services
    offered = [each.text for each in completions(here.registry, here, "/persona ").candidates]
    assert {*offered[:2]} == {"Ada", "chorus"}
    assert offered[2:4] == ["new", "edit"]
    assert {"switch", "list"} & {*offered} == set()
