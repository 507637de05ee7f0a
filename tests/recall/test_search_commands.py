"""``/search``: its answers."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from chorus_cli.catalogue import registry
from chorus_cli.framework.command_line import resolve
from chorus_cli.log.rules.wording import local
from chorus_cli.recall.commands import AskedSearch
from tests.world import World

NOW = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("typed", "words", "hours", "thoughts"),
    [
        ("ring", "ring", None, False),
        ("ring since 3h", "ring", 3, False),
        ("the ring SINCE 3 days ago", "the ring", 72, False),
        ("ever since then since 2h", "ever since then", 2, False),
        ("since 3h", "since 3h", None, False),
        ("ring since", "ring since", None, False),
        ("ring since 12:30", "ring", 2, False),
        ("ring since 9", "ring since 9", None, False),
        ('"ring since 3h"', '"ring since 3h"', None, False),
        ('"ring" since 3h', '"ring"', 3, False),
        ("wait until then since 3h", "wait until then", 3, False),
        ("ring --thoughts", "ring", None, True),
        ("ring since 3h  --thoughts", "ring", 3, True),
        ("--thoughts ring since 3h", "ring", 3, True),
        ("ring --thought", "ring --thought", None, False),
        ('"ring --thoughts"', '"ring --thoughts"', None, False),
        ("ring--thoughts", "ring--thoughts", None, False),
    ],
)
def test_a_time_at_the_end_says_how_far_back_and_an_option_anywhere_that_thoughts_are_searched(
    typed: str, words: str, hours: int | None, *, thoughts: bool
) -> None:
    bound = resolve(registry(), f"/search {typed}", NOW)
    assert bound.arguments == (AskedSearch(words, None if hours is None else NOW - timedelta(hours=hours)),)
    assert bound.options["thoughts"] is thoughts


async def test_each_message_found_has_a_line_that_says_where_it_is(world: World) -> None:
    world.model.say("Three rings for the elves.")
    await world.say("Where is\nthe ring?")
    when = local(world.clock.now())
    question, reply = "Where is the ring?", "Three rings for the elves."
    assert await world.told("/search +ring -elves") == (
        f"#1  {when}  chorus, thread #1\nHuman: Where is the «ring»?\n  chorus: {reply}"
    )
    assert await world.told("/search +rings +elves") == (
        f"#2  {when}  chorus, thread #1\n  Human: {question}\nchorus: Three «rings» for the «elves»."
    )


async def test_a_result_stands_between_the_messages_beside_it_without_those_taken_back(world: World) -> None:
    for question in ("Before?", "Wrong?", "The ring?"):
        await world.say(question)
        if question == "Wrong?":
            await world.told("/undo")
    await world.told("/thread new Elsewhere")
    await world.say("Not here.")
    shown = (await world.told("/search ring")).splitlines()[1:]
    assert shown == ["  chorus: ok", "Human: The «ring»?", "  chorus: ok"]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("ring role:user", ["#1"]),
        ("ring role:assistant", ["#2"]),
        ("persona:frodo ring", []),
        ("persona:chorus ring until 1h", []),
        ("ring since 3h until 1h", ["#2", "#1"]),
        ("ring since today until today", ["#2", "#1"]),
    ],
)
async def test_who_speaks_to_whom_and_when_narrows_a_search(world: World, typed: str, found: list[str]) -> None:
    await world.told("/persona new frodo")
    await world.told("/persona chorus")
    world.model.say("A ring.")
    await world.say("The ring?")
    if "since" in typed:
        world.clock.advance(timedelta(hours=2))
    assert re.findall(r"^#[0-9]+", await world.told(f"/search {typed}"), re.MULTILINE) == found


async def test_titles_are_found_before_messages_also_those_of_closed_threads(world: World) -> None:
    await world.say("A ring?")
    await world.told("/thread rename The Ring of Fire")
    await world.told("/thread new Rings of Power")
    assert (await world.told("/search ring fire")).startswith("Thread #1 of chorus: The «Ring» of «Fire»\n\n#1 ")
    assert await world.told("/search +ring +fire") == "Thread #1 of chorus: The «Ring» of «Fire»"
    await world.told("/thread 1")
    await world.told("/thread kill 2")
    when = local(world.clock.now())
    assert await world.told("/search ring*") == (
        "Thread #2 of chorus: «Rings» of Power  [closed]\n"
        "Thread #1 of chorus: The «Ring» of Fire\n\n"
        f"#1  {when}  chorus, thread #1\nHuman: A «ring»?\n  chorus: ok"
    )
    assert await world.told("/search power* role:user") == "Nothing was found."
    world.clock.advance(timedelta(hours=2))
    assert await world.told("/search power* since 1h") == f"Nothing was found since {local(NOW + timedelta(hours=1))}."
    assert "Power" not in await world.told("/search +power +rings until today")
    assert "«Fire»" in await world.told("/search +fire until 1h")
    assert "Fire" not in await world.told("/search +fire until 3h")


async def test_a_span_that_ends_before_it_begins_is_refused(world: World) -> None:
    for typed in ("ring since 1h until 2h", "ring until 2h --since 1h"):
        assert 'must be later than the time after "since"' in await world.told(f"/search {typed}")


async def test_everybody_is_searched_also_whoever_is_archived_or_gone(world: World) -> None:
    for slug in ("frodo", "gone"):
        await world.store.write(
            lambda connection, slug: connection.execute(
                "INSERT INTO messages(persona, thread_id, role, content, timestamp) "
                "VALUES (?, 9, 'assistant', 'my ring', '2026-02-12T14:30:00Z')",
                (slug,),
            ),
            slug,
        )
    (world.folder / "personas" / "frodo").mkdir()
    world.configure('{"name": "Frodo Baggins"}', "frodo")
    await world.persona_admin.archive("frodo")
    text = await world.told("/search ring")
    assert "Frodo Baggins, thread #1\nFrodo Baggins: my «ring»" in text
    assert "gone, thread #9\ngone: my «ring»" in text


async def test_what_was_taken_back_or_broke_off_is_marked(world: World) -> None:
    await world.say("the ring")
    await world.told("/undo")
    assert "thread #1  [undone]\nHuman" in await world.told("/search ring")
    await world.store.write(
        lambda connection: connection.execute("UPDATE messages SET status = 'interrupted' WHERE id = 2")
    )
    assert "thread #1  [interrupted]  [undone]\nchorus: «ok»" in await world.told("/search ok")


async def test_a_replaced_reply_is_marked_as_in_the_log(world: World) -> None:
    world.model.say("the ring of old")
    await world.say("What is it?")
    _ = [event async for event in world.conversation.retry(world.current.target())]
    assert "thread #1  [replaced]\n" in await world.told("/search ring")


async def test_ten_are_shown_and_the_rest_is_counted(world: World) -> None:
    for number in range(12):
        await world.say(f"ring {number}")
    text = await world.told("/search ring since 1h")
    assert text.startswith("#23  ")
    assert text.count("«ring»") == 10
    since = local(world.clock.now() - timedelta(hours=1))
    assert text.endswith(
        f"2 more since {since}; a +word, a -word or a later time (since 2 days ago) narrows the search."
    )


async def test_a_search_without_a_star_that_finds_nothing_names_the_star(world: World) -> None:
    hint = "Chorus looks for whole words; begin* also finds longer ones."
    assert await world.told("/search lor") == f"Nothing was found. {hint}"
    assert await world.told("/search lor*") == "Nothing was found."


async def test_a_time_is_confirmed_also_when_nothing_or_all_is_found(world: World) -> None:
    await world.say("the ring")
    world.clock.advance(timedelta(hours=5))
    two, six = (local(world.clock.now() - timedelta(hours=hours)) for hours in (2, 6))
    assert await world.told("/search ri* since 2h") == f"Nothing was found since {two}."
    assert (await world.told("/search ring since 6h")).endswith(f"Nothing else was found since {six}.")


async def test_a_time_that_cannot_be_read_is_named_and_its_words_are_searched_for(world: World) -> None:
    await world.say("The ring since gone")
    told = await world.told("/search ring since gone")
    assert told.startswith("Cannot read 'gone' as a length of time or a moment; ")
    assert "Chorus searched for the whole text as words instead.\n\n#1  " in told


async def test_nothing_to_look_for_is_refused(world: World) -> None:
    assert "nothing to look for" in await world.told("/search")
    assert "nothing to look for" in await world.told('/search ""')
