"""The help of commands: single, in the menu and in the documents' table, and the words that lead to one."""

from __future__ import annotations

import pytest

from chorus_cli.core.errors import CommandError
from chorus_cli.framework.command_line import completions, look_up, resolve
from chorus_cli.framework.registry import Command
from chorus_cli.framework.replies import Exit, Report, Table, Text, plain
from tests.documents import commands_table
from tests.framework.example_commands import COMMANDS, NOW, REGISTRY, Desk
from tests.world import World


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
    with pytest.raises(CommandError, match=r"There is no command|is ambiguous"):
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
    rows = commands_table(REGISTRY, only_in_chat=False).splitlines()
    assert rows[:3] == ["| command | description |", "|---|---|", "| `/context` | Show the window. |"]
    assert "| `/context clear`, `/new`, `/clear` | Begin a new conversation. |" in rows
    assert len(rows) == 2 + len(COMMANDS)
    assert len(commands_table(REGISTRY, only_in_chat=True).splitlines()) == 2


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
        *(("/load", "/context restore"), ("/window", "/context"), ("/reset", "/context reset"), ("/log", "/search")),
        *(("/fork", "/thread fork"), ("/context sessions", "/context history"), ("/context load", "/context restore")),
    ],
)
async def test_a_word_that_others_expect_leads_to_the_command_that_is_meant(
    world: World, guess: str, meant: str
) -> None:
    sentence = f"There is no command '{guess}'. Did you mean {meant}? /help lists all commands."
    assert await world.told(guess) == await world.told(f"{guess} 24h") == sentence
    if " " not in guess:
        assert await world.told(f"/help {guess}") == sentence


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("/help und", {"undo"}),
        ("/help context s", {"context set", "context sub", "context save", "context show", "context summary"}),
        ("/? /context un", {"/context undo"}),
        ("/help nosuch", set()),
    ],
)
async def test_help_offers_every_command_with_what_it_does(world: World, line: str, offered: set[str]) -> None:
    here = world.services
    found = completions(here.registry, here, line).candidates
    assert {each.text for each in found} == offered
    assert all(each.description for each in found)
