"""The commands in a private chat: none of them changes the log, the personas or the backups."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chorus_cli.catalogue import groups, registry
from chorus_cli.core.errors import CommandError
from chorus_cli.framework.command_line import OwnCommands, completions, resolve
from chorus_cli.framework.replies import Answer, Exit, PrivateChat, plain
from chorus_cli.private import ANNOUNCED, REFUSED, private_groups
from chorus_cli.threads.commands.composing import command_of
from tests.world import World


@pytest.fixture
def private(world: World) -> World:
    """A world whose commands are those of a private chat."""
    commands = OwnCommands(private_groups(groups()), lambda _slug: (), command_of)
    world.services = replace(world.services, own_commands=commands)
    return world


async def answered(world: World, line: str) -> Answer:
    return await resolve(world.services.registry, line, world.clock.now()).run(world.services)


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and "chorus.db" not in str(path)
    }


def test_every_command_that_is_refused_or_announced_is_one() -> None:
    assert {*REFUSED, *ANNOUNCED} <= {name for command in registry() for name in (command.path, command.group)}
    assert not {*REFUSED} & {*ANNOUNCED}


def test_of_each_group_of_commands_it_is_decided_what_it_is_in_a_private_chat() -> None:
    """Those of these groups keep nothing but in the log, which is in memory, unless they are refused or announced."""
    usual = {"", "context", "memory", "persona", "thread", "jobs", "settings", "attach"}
    assert {command.group for command in registry()} - REFUSED.keys() == usual


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("/import export.zip", "Conversations are imported into the log"),
        ("/persona new Gandalf", "makes and changes no persona"),
        ("/persona import mira.png", "makes and changes no persona"),
        ("/persona archive", "makes and changes no persona"),
        ("/persona delete chorus", "makes and changes no persona"),
        ("/persona Gandalf", "There is no such persona."),
        ("/rescue", "Rescued texts belong to the log"),
        ("/rescue keep", "Rescued texts belong to the log"),
        ("/backup", "A private chat has no backup."),
        ("/private and my secret", "typed here, it would not be private"),
    ],
)
async def test_a_command_that_changes_what_is_kept_is_refused_and_does_nothing(
    private: World, line: str, sentence: str
) -> None:
    before = files(private.folder)
    with pytest.raises(CommandError, match=sentence):
        await answered(private, line)
    assert files(private.folder) == before


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("/settings set temperature 0.3", "This holds until the private chat ends."),
        ("/remember tea", "This holds until the private chat ends."),
        ("/export {folder}/talk.md", "This goes to a file, which is kept."),
    ],
)
async def test_a_command_that_keeps_something_elsewhere_is_preceded_by_a_sentence(
    private: World, line: str, sentence: str
) -> None:
    told: list[str] = []
    await private.say("hello")
    with private.services.notifier.heard_by(told.append, told.append):
        await answered(private, line.format(folder=private.folder))
    assert told[0] == sentence


async def test_a_private_chat_begins_and_ends_by_one_command(world: World, private: World) -> None:
    assert isinstance(await answered(private, "/private off"), Exit)
    assert isinstance(await answered(private, "/quit"), Exit)
    assert "nothing of it is kept" in await private.told("/private")
    private.services = replace(private.services, own_commands=OwnCommands(groups(), lambda _slug: (), command_of))
    begun = await answered(world, "/private")
    assert isinstance(begun, PrivateChat)
    assert plain(begun) == ""
    assert await world.told("/private off") == "This chat is not private. /private begins one that is."


async def test_help_and_completion_know_the_commands_of_a_private_chat(private: World) -> None:
    here = private.services
    assert "everything is kept" not in await private.told("/help quit")
    assert "Not in a private chat." in await private.told("/help import")
    assert {each.text for each in completions(here.registry, here, "/private o").candidates} == {"off"}
