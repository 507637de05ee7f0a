"""What other programs read, and what no tool and no list shows them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import product

import pytest

from chorus_cli.core.errors import ChorusError
from chorus_cli.mcp.history import TOOLS, Seen, newest_threads, visible
from chorus_cli.memory.rules.items import ItemType
from chorus_cli.models.rules.declaration import Arguments
from chorus_cli.subcommands.mcp import session_texts
from tests.fakes import FakeClock
from tests.stores.service.canary_talk import purged
from tests.world import World

CANARY = "zanzibar"
BY_NAME = {each.tool.name: each for each in TOOLS}


async def persona(world: World, name: str) -> None:
    await world.carry_out(f"/persona new {name}")
    await world.carry_out(f"/persona {name}")


def seen(world: World, config: str = "") -> Seen:
    world.personas.config_file.write_text(config, encoding="utf-8")

    async def sessions(slug: str) -> list[str]:
        return session_texts(await world.sessions.listing(slug))

    return Seen(world.search, world.services.memory, visible(world.personas), sessions)


async def asked(world: World, name: str, config: str = "", /, **values: str | int) -> str:
    """Return what a tool answers, or the error that the program is told."""
    try:
        return await BY_NAME[name].handler(seen(world, config), Arguments(values))
    except ChorusError as error:
        return str(error)


async def listed(world: World, config: str = "") -> str:
    """Return the threads that a program is offered, or the error that it is told."""
    try:
        return str(await newest_threads(seen(world, config)))
    except ChorusError as error:
        return str(error)


async def everything(world: World, config: str = "") -> str:
    """Return all that another program can read: every answer to questions about the canary, and all that is listed."""
    answers = [
        await asked(world, "search_history", config, query=CANARY),
        await asked(world, "search_history", config, query="before after"),
        await asked(world, "recall_memory", config, query=CANARY),
        *[await asked(world, "recall_memory", config, query=f"#{number}") for number in range(1, 4)],
        await asked(world, "list_personas", config),
        await asked(world, "list_sessions", config),
        await listed(world, config),
    ]
    for name, around in product(("chorus/1", "chorus/2", "frodo/1", "frodo/2"), range(9)):
        answers.append(await asked(world, "read_thread", config, id=name, around=around))
    return "\n".join(answers)


async def undone(world: World) -> None:
    await world.say(f"The {CANARY} word.")
    await world.carry_out("/undo")


async def purged_words(world: World) -> None:
    await world.say(f"The {CANARY} word.")
    await purged(world, f"/purge search {CANARY}")


async def forgotten(world: World) -> None:
    await world.services.memory.remember("chorus", ItemType.TASK, f"The {CANARY} fact.")
    await world.services.memory.forget("chorus", 1)


async def replaced(world: World) -> None:
    await world.services.memory.remember("chorus", ItemType.TASK, f"The {CANARY} fact.")
    await world.services.memory.replace("chorus", 1, "Another fact.")


async def remembered_and_undone(world: World) -> None:
    await world.carry_out(f"/remember The {CANARY} fact.")
    await world.carry_out("/undo")


async def replaced_by_a_retry(world: World) -> None:
    world.model.say(f"The {CANARY} word.")
    await world.say("Well?")
    async for _ in world.conversation.retry(world.current.target()):
        pass


async def imported_and_undone(world: World) -> None:
    file = world.folder / "talk.json"
    file.write_text(f'[{{"role": "user", "content": "The {CANARY} word."}}]', encoding="utf-8")
    assert "1 conversation" in await world.told(f"/import {file}")
    assert CANARY in await asked(world, "search_history", query=CANARY)
    await world.carry_out("/context undo")


async def archived(world: World) -> None:
    await persona(world, "frodo")
    await world.say(f"The {CANARY} word.")
    await world.services.memory.remember("frodo", ItemType.TASK, f"The {CANARY} fact.")
    await world.carry_out(f"/context save {CANARY}")
    await world.carry_out("/persona chorus")
    await world.carry_out("/persona archive frodo")


async def deleted(world: World) -> None:
    await archived(world)
    await world.persona_admin.delete("frodo")


async def deleted_and_made_again(world: World) -> None:
    await deleted(world)
    await persona(world, "frodo")
    await world.say("A new beginning.")


async def with_another_persona(world: World) -> None:
    await persona(world, "frodo")
    await world.say(f"The {CANARY} word.")
    await world.services.memory.remember("frodo", ItemType.TASK, f"The {CANARY} fact.")
    await world.carry_out(f"/context save {CANARY}")
    await world.carry_out(f"/thread new {CANARY}")
    await world.say("Hello.")


CHORUS_ALONE = '{"mcp_serve": {"personas": ["chorus"]}}'


@pytest.mark.parametrize(
    ("hide", "config"),
    [
        *((hide, "") for hide in (undone, purged_words, forgotten, replaced, archived, deleted)),
        *((hide, "") for hide in (remembered_and_undone, replaced_by_a_retry, imported_and_undone)),
        (deleted_and_made_again, ""),
        *((with_another_persona, config) for config in (CHORUS_ALONE, '{"mcp_serve": {"personas": []}}')),
        *(
            (with_another_persona, config)
            for config in ('{"mcp_serve": {"personas": "frodo"}}', '{"mcp_serve": 1}', "{")
        ),
        (archived, '{"mcp_serve": {"personas": ["frodo"]}}'),
    ],
)
async def test_what_the_user_hides_is_in_no_answer(
    world: World, hide: Callable[[World], Awaitable[None]], config: str
) -> None:
    await world.say("What was before.")
    await hide(world)
    if hide is not deleted_and_made_again:
        await world.carry_out("/persona chorus")
    await world.say("What came after.")
    assert CANARY not in await everything(world, config)


async def test_what_is_not_hidden_is_in_every_answer(world: World) -> None:
    await with_another_persona(world)
    for name, values in (
        ("search_history", {"query": CANARY}),
        ("recall_memory", {"query": CANARY}),
        ("list_sessions", {}),
        ("read_thread", {"id": "frodo/1"}),
    ):
        assert CANARY in await asked(world, name, **values), name
    assert CANARY in str(await newest_threads(seen(world)))


async def test_a_search_names_threads_of_all_personas_as_they_can_be_read(world: World, clock: FakeClock) -> None:
    world.model.say("In May.")
    await world.say("When is the dentist?")
    await persona(world, "frodo")
    clock.advance(timedelta(minutes=1))
    world.model.say("The dentist has a ring.")
    await world.say("And yours?")
    found = await asked(world, "search_history", query="dentist")
    heads = {line.partition(",")[0] for line in found.splitlines() if line.startswith("Thread")}
    assert heads == {"Thread chorus/1", "Thread frodo/1"}
    assert "> #4 frodo: The dentist has a ring." in found
    assert "frodo/1" not in await asked(world, "search_history", query="dentist", persona="chorus")
    for name in ("frodo/1", "chorus://thread/frodo/1", "frodo/#1"):
        read = await asked(world, "read_thread", id=name, around=4)
        assert read.startswith("Thread frodo/1, around #4, 2 messages:")
        assert read.endswith("frodo: The dentist has a ring.")
    assert [name for name, _ in await newest_threads(seen(world))] == ["frodo/1", "chorus/1"]


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("read_thread", {"id": "1"}, "Every persona counts its own threads. Write chorus/1 or frodo/1."),
        ("read_thread", {"id": "frodo"}, "'frodo' names no thread. Write its persona and its number, such as frodo/3."),
        ("read_thread", {"id": "frodo/7"}, "There is no thread #7 of frodo. Its threads are #1."),
        ("read_thread", {"id": "gollum/1"}, "No persona 'gollum' may be read here. There are: chorus and frodo."),
        (
            "list_sessions",
            {"persona": "gollum"},
            "No persona 'gollum' may be read here. There are: chorus and frodo.",
        ),
        ("list_sessions", {}, "No session is saved."),
        ("recall_memory", {"query": "ring"}, "No item of the memory has any of these words."),
        ("search_history", {"query": '"'}, "There is nothing to look for. Write a word or more, or a phrase in double"),
    ],
)
async def test_what_cannot_be_read_is_said(world: World, name: str, values: dict[str, str | int], told: str) -> None:
    await world.say("Hello.")
    await persona(world, "frodo")
    await world.say("Hello.")
    assert (await asked(world, name, **values)).startswith(told)


async def test_with_one_persona_to_be_seen_the_number_alone_names_a_thread(world: World) -> None:
    await world.say("Hello.")
    await persona(world, "frodo")
    assert (await asked(world, "read_thread", CHORUS_ALONE, id="1")).startswith(
        "Thread chorus/1, the newest 2 messages"
    )


async def test_items_of_all_personas_are_recalled_the_best_of_each_first_and_count_no_access(
    world: World, clock: FakeClock
) -> None:
    for slug, words in (("chorus", "plumber boiler"), ("chorus", "plumber"), ("frodo", "plumber")):
        await persona(world, slug) if slug == "frodo" else None
        await world.services.memory.remember(slug, ItemType.TASK, f"call the {words}")
    clock.advance(timedelta(minutes=1))
    before = await world.services.memory.item("chorus", 1)
    told = (await asked(world, "recall_memory", query="plumber boiler")).splitlines()
    assert [line.partition(" (")[0] for line in told] == ["chorus #1", "frodo #3", "chorus #2"]
    assert told[0].endswith("from the user; HOT): call the plumber boiler")
    after = await world.services.memory.item("chorus", 1)
    assert (after.access_count, after.last_accessed) == (before.access_count, before.last_accessed)


async def test_personas_are_listed_with_how_much_was_said(world: World) -> None:
    world.configure('{"description": "Helps."}')
    await world.say("Hello.")
    assert (await asked(world, "list_personas")).startswith(
        "chorus: chorus. Helps. (2 messages, the newest of 2026-02-12"
    )


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (
            '{\n"mcp_serve": {"personas": "frodo"}}',
            ':2: "personas" in mcp_serve must be a list of names. Until that is',
        ),
        (
            '{"mcp_serve": {"persona": []}}',
            ':1: mcp_serve has the entry "persona"; it may have "personas" alone. Until',
        ),
        (
            '{"mcp_serve": true}',
            ":1: mcp_serve cannot be true; it must be an object. Until that is corrected, other programs see",
        ),
        ("{", "Until that is corrected, other programs see nothing."),
        ('{"mcp_serve": {"personas": ["gollum"]}}', 'No persona may be seen by other programs: see "mcp_serve" in '),
    ],
)
async def test_a_setting_that_names_nobody_or_cannot_be_read_shows_nothing(
    world: World, config: str, told: str
) -> None:
    await world.say("Hello.")
    for name in BY_NAME:
        assert told in await asked(world, name, config, query="hello", id="1")


async def test_a_name_or_an_alias_is_as_good_as_a_slug(world: World) -> None:
    world.configure('{"name": "The Chorus", "aliases": ["helper"]}')
    await persona(world, "frodo")
    for name in ("the chorus", "helper", "chorus"):
        assert [*seen(world, f'{{"mcp_serve": {{"personas": ["{name}", "nobody"]}}}}').personas] == ["chorus"]
