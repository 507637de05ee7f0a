"""``/continue``: the last reply goes on, by a longer one in its place, in one step of undo."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import pytest

from chorus_cli.context.rules.plan import BROKEN_OFF
from chorus_cli.core.errors import JournalError, ModelError
from chorus_cli.log.rows import interrupted_replies
from chorus_cli.log.rules.acts import Way
from chorus_cli.log.rules.messages import Role, Status
from chorus_cli.models.rules.choice import ELIZA, ModelChoice
from chorus_cli.models.rules.events import ReplyEnd, TextDelta, TurnDone, TurnEvent
from chorus_cli.terminal.one_shot import shown_as_json
from chorus_cli.terminal.screen.output import Screen
from tests.storage.database import refuse
from tests.turns.service.test_conversation import Script
from tests.turns.service.tool_talk import call, calls
from tests.world import World, of_run, words_come

HALF = "The road goes ever"
DOWN = ModelError("It is down.")


async def half_said(world: World, *, reason: str = "length") -> None:
    world.model.enqueue(TextDelta(HALF), ReplyEnd(reason))
    await world.say("Sing")


async def go_on(world: World) -> list[TurnEvent]:
    return [event async for event in world.conversation.retry(world.current.target(), Way.CONTINUE)]


def done(events: list[TurnEvent]) -> TurnDone:
    assert isinstance(events[-1], TurnDone)
    return events[-1]


async def assert_as_before(world: World) -> None:
    last = (await world.view()).messages[-1]
    assert (last.content, last.revises) == (HALF, None)
    assert len((await world.told("/thread history")).split("\n\n")) == 2
    assert [row.content for row in await world.log()].count(HALF) == 1


@pytest.mark.parametrize("reason", ["length", "stop"])
async def test_a_reply_goes_on_where_it_was_cut_or_ended_and_one_undo_takes_that_back(
    world: World, reason: str
) -> None:
    await half_said(world, reason=reason)
    world.model.say(" on and on.")
    events = await go_on(world)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == " on and on."
    request = world.model.requests[-1]
    assert (request.goes_on, request.may_call) == (True, False)
    assert world.asked() == [("user", "Sing"), ("assistant", HALF)]
    old, new = (await world.log())[1:]
    assert (new.content, new.revises, new.turn_id, new.status) == (f"{HALF} on and on.", old.id, 1, Status.COMPLETE)
    assert old.content == HALF
    assert await world.seen() == ["Sing", new.content]
    assert f"{HALF} " in await world.told("/thread history")
    await world.say("More")
    assert world.asked() == [("user", "Sing"), ("assistant", new.content), ("user", "More")]
    await world.told("/undo")
    assert await world.told("/undo") == f'Undone: continuation of the last reply\nIn context: "{HALF}"'
    assert await world.seen() == ["Sing", HALF]
    await world.told("/redo")
    assert await world.seen() == ["Sing", new.content]


async def test_it_goes_on_and_on_and_a_retry_replaces_it_all(world: World) -> None:
    await half_said(world)
    for words in (" on", " and on"):
        world.model.say(words)
        await go_on(world)
    assert await world.seen() == ["Sing", f"{HALF} on and on"]
    world.model.say("Another song")
    async for _ in world.conversation.retry(world.current.target()):
        pass
    assert await world.seen() == ["Sing", "Another song"]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("So:\n```python\nx = 1\n", "```python\ny = 2\n```"),
        ("```sh\nls\n```\nand\n  ~~~~\n~~~\n", "~~~~\ny = 2\n```"),
        ("```sh\nls\n```\n", "y = 2\n```"),
        ("```ls``` lists:\n", "y = 2\n```"),
    ],
)
async def test_what_goes_on_within_a_block_of_code_is_shown_as_code(world: World, said: str, shown: str) -> None:
    world.model.enqueue(TextDelta(said), ReplyEnd("length"))
    await world.say("Code")
    world.model.enqueue(TextDelta("y = 2\n```"), ReplyEnd("stop"))
    events = await go_on(world)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == shown
    assert await world.seen() == ["Code", f"{said}y = 2\n```"]


async def test_json_has_only_what_the_model_wrote(world: World) -> None:
    world.model.enqueue(TextDelta("```python\nx = 1\n"), ReplyEnd("length"))
    await world.say("Code")
    world.model.say("y = 2\n```")
    target, stream = world.current.target(), io.StringIO()
    screen = Screen(stream, {})
    await shown_as_json(target, world.conversation.retry(target, Way.CONTINUE), world.clock, screen, screen)
    assert json.loads(stream.getvalue())["reply"] == "y = 2\n```"


async def test_code_of_the_reply_that_goes_on_is_not_captured(world: World) -> None:
    world.model.enqueue(TextDelta("```\na = 1\nb = 2\nc = 3\n```\nand"), ReplyEnd("length"))
    await world.say("Code")
    assert done(await go_on(world)).remembered == ""


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ((DOWN,), "It is down. Your message is kept; /continue asks again."),
        ((ReplyEnd("stop"),), "The model added nothing to its reply. Your message is kept; /continue asks again."),
        ((TextDelta(" \n"), ReplyEnd("stop")), "The model added nothing to its reply. Your message is kept;"),
    ],
)
async def test_what_adds_nothing_leaves_the_reply_as_it_was(world: World, script: Script, complaint: str) -> None:
    await half_said(world)
    repeats = f"new.revises > 0 AND new.content LIKE '{HALF}%'"
    await world.store.write(refuse, "UPDATE ON messages", "the log repeats the words", repeats)
    world.model.enqueue(*script)
    assert done(await go_on(world)).complaint.startswith(complaint)
    await assert_as_before(world)


async def test_what_breaks_off_again_keeps_the_words_that_came(world: World) -> None:
    await half_said(world)
    world.model.enqueue(TextDelta(" on"), DOWN)
    ended = done(await go_on(world))
    assert (ended.status, ended.complaint) == (Status.TRUNCATED, "It is down.")
    assert await world.seen() == ["Sing", f"{HALF} on"]
    world.model.say(" and on")
    await go_on(world)
    assert BROKEN_OFF not in str(world.asked())
    assert await world.seen() == ["Sing", f"{HALF} on and on"]


@pytest.mark.parametrize(("words", "seen"), [((), HALF), ((TextDelta(" on"),), f"{HALF} on")])
async def test_ctrl_c_keeps_what_has_come(world: World, words: Script, seen: str) -> None:
    await half_said(world)
    world.model.enqueue(*words, asyncio.Event(), ReplyEnd("stop"))
    async with aclosing(world.conversation.retry(world.current.target(), Way.CONTINUE)) as events:
        await (words_come(events) if words else anext(events))
    assert await world.seen() == ["Sing", seen]
    if not words:
        await assert_as_before(world)


@pytest.mark.parametrize(("words", "seen"), [("", HALF), (f"{HALF} on", f"{HALF} on")])
async def test_a_killed_process_leaves_the_longest_words(world: World, words: str, seen: str) -> None:
    await half_said(world)
    async with aclosing(of_run(world.conversation, "dead").retry(world.current.target(), Way.CONTINUE)) as events:
        await anext(events)
        row = (await world.log())[-1]
        assert (row.content, row.status, row.run) == ("", Status.STREAMING, "dead")
        await world.store.write(
            lambda log: log.execute("UPDATE messages SET content = ? WHERE id = ?", (words, row.id))
        )
        await world.store.write(interrupted_replies.mark_interrupted, lambda run: run != "dead", world.clock.now())
        assert await world.seen() == ["Sing", seen]
        if not words:
            await assert_as_before(world)


async def nothing(_world: World) -> None:
    pass


async def failed(world: World) -> None:
    world.model.enqueue(DOWN)
    await world.say("Sing")


async def with_eliza(world: World) -> None:
    await half_said(world)
    await world.store.write(lambda log: log.execute("UPDATE messages SET model = ?", (ELIZA,)))


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (nothing, "There is no message of yours in context to answer again."),
        (failed, "There is no reply to continue. /retry asks for one."),
        (with_eliza, "ELIZA cannot continue a reply, nor can others continue ELIZA's. /retry asks again."),
    ],
)
async def test_where_no_reply_can_go_on_a_sentence_says_so(
    world: World, before: Callable[[World], Awaitable[None]], told: str
) -> None:
    await before(world)
    with pytest.raises(JournalError) as refused:
        await go_on(world)
    assert str(refused.value) == told
    assert await world.journal.entries(world.current.target()) == []


async def test_eliza_is_not_asked_to_go_on(world: World) -> None:
    await half_said(world)
    target = world.current.target()._replace(choice=ModelChoice(ELIZA, "for a test"))
    with pytest.raises(JournalError, match="ELIZA"):
        _ = [event async for event in world.conversation.retry(target, Way.CONTINUE)]


async def test_a_reply_after_calls_goes_on_without_calls(tooled: World) -> None:
    calls(tooled, call("echo", {"text": "ha"}))
    tooled.model.enqueue(TextDelta(HALF), ReplyEnd("length"))
    await tooled.say("Sing")
    calls(tooled, call("echo", {"text": "ha"}, "c2"), before=" on")
    await go_on(tooled)
    rows = (await tooled.view()).messages
    assert [row.role for row in rows] == [Role.USER, Role.ASSISTANT, Role.TOOL_USE, Role.TOOL_RESULT, Role.ASSISTANT]
    assert rows[-1].content == f"{HALF} on"
