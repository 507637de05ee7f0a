"""Turns beside others: in a thread that is busy or was closed, and what is told of other threads and of jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli.context.rules.plan import BROKEN_OFF
from chorus_cli.context.rules.preamble import ActiveThread, job_lines, thread_lines
from chorus_cli.core.errors import JournalError, MessageRefusedError
from chorus_cli.jobs.rules import RunningJob
from chorus_cli.log.rows import message_rows, thread_rows
from chorus_cli.log.rules.messages import MessageContent, Role, Status
from chorus_cli.memory.rules.recall import items_in, without_items
from chorus_cli.models.rules.events import (
    Notice,
    ReplyEnd,
    TextDelta,
    ThreadOpened,
    ToolStarted,
    TurnDone,
    TurnEvent,
    WaitBegun,
    WaitOver,
)
from chorus_cli.personas.rules.persona import Target
from tests.fakes import START
from tests.sessions.service.saved_sessions import sql
from tests.storage.database import locked, traced
from tests.turns.service.tool_talk import call, calls, stop_at
from tests.world import MODEL, World, another_thread, of_run, words_come

WAITS = "Waiting for the reply in progress in thread #1 …"


class Writing:
    """A reply to ``First`` that ``run`` is writing, as far as its first word."""

    def __init__(self, world: World, run: str) -> None:
        self.hold = asyncio.Event()
        world.model.enqueue(TextDelta("Half"), self.hold, TextDelta(" and half"), ReplyEnd("stop"))
        conversation = of_run(world.conversation, run)
        self.events = conversation.answer(world.current.target(), "First")

    async def begin(self) -> None:
        await words_come(self.events)

    async def end(self) -> None:
        self.hold.set()
        _ = [event async for event in self.events]


@pytest.fixture
async def writing(world: World) -> Writing:
    begun = Writing(world, "another")
    await begun.begin()
    return begun


async def waiting(events: AsyncGenerator[TurnEvent, None]) -> str:
    """Follow a turn until it waits, and return what it says."""
    event = await anext(events)
    assert isinstance(event, WaitBegun)
    return event.text


@pytest.mark.parametrize("run", ["another", "this-run"])
async def test_a_message_waits_for_the_reply_and_its_request_holds_it(world: World, run: str) -> None:
    writing = Writing(world, run)
    await writing.begin()
    second = world.conversation.answer(world.current.target(), "Second")
    assert await waiting(second) == WAITS
    assert [message.content for message in await world.log() if message.role is Role.USER] == ["First"]
    await writing.end()
    events = [event async for event in second]
    assert isinstance(events[0], WaitOver)
    assert isinstance(events[-1], TurnDone)
    assert world.asked() == [("user", "First"), ("assistant", "Half and half"), ("user", "Second")]
    assert [message.content for message in await world.log()] == ["First", "Half and half", "Second", "ok"]


async def test_a_retry_waits_and_asks_again_for_that_reply(world: World, writing: Writing) -> None:
    retry = world.conversation.retry(world.current.target())
    assert await waiting(retry) == WAITS
    await writing.end()
    _ = [event async for event in retry]
    assert world.asked() == [("user", "First")]
    assert await world.seen() == ["First", "ok"]


@pytest.mark.parametrize("turn", ["message", "retry"])
async def test_nothing_is_stored_when_the_wait_is_stopped(world: World, writing: Writing, turn: str) -> None:
    target, talk = world.current.target(), world.conversation
    await stop_at(talk.answer(target, "Second") if turn == "message" else talk.retry(target), WaitBegun)
    await writing.end()
    assert await world.seen() == ["First", "Half and half"]
    assert await world.told("/context ops") == "There are no operations on this context yet."


async def test_the_wait_ends_when_the_process_that_writes_has_died(world: World, writing: Writing) -> None:
    second = world.conversation.answer(world.current.target(), "Second")
    await waiting(second)
    await sql(world, "UPDATE messages SET run = 'dead', content = 'Half' WHERE id = 2")
    _ = [event async for event in second]
    assert world.asked() == [("user", "First"), ("assistant", f"Half\n{BROKEN_OFF}"), ("user", "Second")]
    assert [message.status for message in await world.log()][1] is Status.INTERRUPTED
    await writing.events.aclose()


async def test_messages_that_wait_together_are_answered_one_after_the_other(world: World, writing: Writing) -> None:
    runs = [of_run(world.conversation, f"run-{number}") for number in range(4)]
    asking = [run.answer(world.current.target(), f"Q{number}") for number, run in enumerate(runs)]
    assert {await waiting(events) for events in asking} == {WAITS}

    async def rest(events: AsyncGenerator[TurnEvent, None]) -> list[TurnEvent]:
        return [event async for event in events]

    others = asyncio.gather(*map(rest, asking))
    await writing.end()
    assert [sum(isinstance(event, WaitBegun) for event in events) for events in await others] == [0, 0, 0, 0]
    log = await world.log()
    assert [message.role for message in log] == [Role.USER, Role.ASSISTANT] * 5
    assert sorted(message.content for message in log[2::2]) == ["Q0", "Q1", "Q2", "Q3"]
    # Each request holds every turn before it, whole.
    assert [len(world.asked(number)) for number in range(5)] == [1, 3, 5, 7, 9]


async def test_a_message_stopped_while_it_is_stored_says_so(world: World, writing: Writing, tmp_path: Path) -> None:
    seen: list[TurnEvent] = []
    second = world.conversation.answer(world.current.target(), "Second")
    await waiting(second)
    see = seen.append

    async def listen() -> None:
        async for event in second:
            see(event)

    task = asyncio.create_task(listen())
    await writing.end()
    with locked(tmp_path / "chorus.db"):
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.sleep(0.05)
    with pytest.raises(asyncio.CancelledError):
        await task
    stored = [message.content for message in await world.log() if message.role is Role.USER]
    assert any(isinstance(event, WaitOver) for event in seen) == (stored == ["First", "Second"])
    assert Status.STREAMING not in {message.status for message in await world.log()}


async def test_a_message_stopped_while_it_opens_a_thread_of_its_own_names_it(world: World) -> None:
    events = world.conversation.answer(world.current.target()._replace(thread_id=0), "Hello")
    opening = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    opening.cancel()
    assert await opening == ThreadOpened(2)
    with pytest.raises(asyncio.CancelledError):
        await anext(events)
    assert [message.status for message in await world.log()] == [Status.COMPLETE, Status.INTERRUPTED]


async def test_a_message_that_can_never_be_sent_is_refused_at_once(world: World, writing: Writing) -> None:
    for text, sentence in (("w " * 20_000, "too large"), ("  ", "empty")):
        with pytest.raises(MessageRefusedError, match=sentence):
            await anext(world.conversation.answer(world.current.target(), text))
    await writing.end()


AGAIN = "Thread #2 is open again."


@pytest.mark.parametrize(("turn", "is_open"), [("message", True), ("retry", True), ("refused", False)])
async def test_a_turn_in_a_closed_thread_opens_it_again(world: World, turn: str, *, is_open: bool) -> None:
    await world.carry_out("/thread new")
    if turn == "retry":
        await world.say("Hello")
    # Another chat leaves the focus as it is.
    await world.store.write(thread_rows.close, [world.current.thread_id], world.clock.now())
    talk, target = world.conversation, world.current.target()
    with suppress(JournalError):
        events = [event async for event in (talk.answer(target, "Hello") if turn == "message" else talk.retry(target))]
        assert [event.text for event in events if isinstance(event, Notice)] == [AGAIN]
        assert await world.notices("And now?") == []
    numbers = [thread.number for thread in await world.services.threads.open_threads()]
    assert numbers == ([1, 2] if is_open else [1])


async def test_a_thread_of_an_earlier_persona_stays_closed(world: World) -> None:
    await world.persona_admin.create("Ada")
    await world.carry_out("/persona ada")
    before = world.current.target()
    await world.persona_admin.archive("ada")
    await world.persona_admin.delete("ada")
    await world.persona_admin.create("Ada")
    _ = [event async for event in world.conversation.answer(before, "Hello")]
    assert await world.services.threads.open_threads() == []


WAITING = "currently: waiting for the model"


@asynccontextmanager
async def being_answered(world: World, target: Target, text: str) -> AsyncIterator[None]:
    """Have a message stored and its model asked, and the reply arrive when the block is left."""
    events = world.conversation.answer(target, text)
    await anext(events)
    yield
    assert [event async for event in events]


async def test_context_includes_thread_status(world: World) -> None:
    await world.say("Hello")
    second = await another_thread(world, "The long poem")
    async with being_answered(world, second, "Write a poem of a thousand lines."):
        world.clock.advance(timedelta(seconds=14))
        await world.say("And what is the weather like?")
        threads = (
            "Active threads:\n"
            f"  #1 (this thread): Hello, step 1, 0 s, {WAITING}\n"
            f"  #2: The long poem, step 1, 14 s, {WAITING}"
        )
        assert world.asked() == [
            ("user", "Hello"),
            ("assistant", "ok"),
            ("user", f"{threads}\n\nAnd what is the weather like?"),
        ]


async def test_nothing_is_told_once_the_other_reply_is_there_and_an_earlier_preamble_stays(world: World) -> None:
    second = await another_thread(world)
    async with being_answered(world, second, "Write a poem."):
        await world.say("One")
        told = world.asked()[-1]
    statements = await traced(world.store)
    await world.say("Two")
    assert world.asked() == [told, ("assistant", "ok"), ("user", "Two")]
    # Without another thread at work, one look at an empty index is all that the others cost.
    assert sum(each.startswith("SELECT") and "status = 'streaming'" in each for each in statements) == 1
    assert [each for each in statements if "FROM threads" in each] == []


async def test_the_step_and_the_tool_at_work_are_told(tooled: World) -> None:
    second = await another_thread(tooled, "Echoes")
    calls(tooled, call("echo", {"text": "a"}))
    calls(tooled, call("endless", id_="c2"))
    events = tooled.conversation.answer(second, "Call")
    for tool in ("echo", "endless"):
        await tool_starts(events, tool)
    await tooled.say("Hello")
    assert "#2: Echoes, step 2, 0 s, currently: using endless" in tooled.asked()[-1][1]
    await events.aclose()


async def test_rounds_of_tools_leave_the_preamble_as_it_was_when_the_turn_opened(tooled: World) -> None:
    second = await another_thread(tooled)
    async with being_answered(tooled, second, "Write\na poem."):
        calls(tooled, call("echo", {"text": "a"}))
        await tooled.say("Call")
    first, then, _ = tooled.model.requests
    assert then.messages[: len(first.messages)] == first.messages
    # A thread without a title is called by its first words.
    for line in (f"  #1 (this thread): Call, step 1, 0 s, {WAITING}", f"  #2: Write a poem., step 1, 0 s, {WAITING}"):
        assert line in first.messages[-1].content.splitlines()


@pytest.mark.parametrize(
    ("persona", "run", "told"),
    [
        ("chorus", "another-run", "#2: Poem, step 1, 9 s, currently: writing"),
        ("chorus", "dead", None),
        ("frodo", "another-run", None),
    ],
)
async def test_threads_that_any_live_process_answers_are_told(
    world: World, persona: str, run: str, told: str | None
) -> None:
    second = await another_thread(world, "Poem")
    question = MessageContent(second.thread_id, Role.USER, "Write", world.clock.now() - timedelta(seconds=9))
    _, reply = await world.store.write(message_rows.open_turn, persona, question, MODEL, run)
    await world.store.write(message_rows.update_reply, reply._replace(content="Half"))
    await world.say("Hello")
    assert (told in world.asked()[-1][1]) if told else (world.asked() == [("user", "Hello")])


async def test_a_retry_is_as_old_as_itself_and_counts_its_own_steps(world: World) -> None:
    second = await another_thread(world, "Poem")
    async with being_answered(world, second, "Write a poem."):
        pass
    world.clock.advance(timedelta(minutes=30))
    go_on = asyncio.Event()
    world.model.enqueue(TextDelta("Once"), go_on, ReplyEnd("stop"))
    events = world.conversation.retry(second)
    await words_come(events)
    world.clock.advance(timedelta(seconds=7))
    await world.say("Hello")
    assert "#2: Poem, step 1, 7 s, " in world.asked()[-1][1]
    go_on.set()
    assert [event async for event in events]


async def tool_starts(events: AsyncIterator[TurnEvent], name: str) -> None:
    """Follow a turn until a tool begins."""
    while not (isinstance(event := await anext(events), ToolStarted) and event.call.startswith(name)):
        pass


NOW = START + timedelta(hours=1)
OWN = ActiveThread(3, "Plan the journey", NOW)
RAIN = ActiveThread(1, "Rain", NOW - timedelta(seconds=5))
JOB = RunningJob(1, "pytest -q", 12.3, "")


def test_a_thread_alone_and_no_job_are_not_worth_a_line() -> None:
    assert thread_lines(OWN, [], NOW) == ""
    assert job_lines([]) == ""


@pytest.mark.parametrize(
    ("other", "line"),
    [
        (RAIN, "Rain, step 1, 5 s, currently: waiting for the model"),
        (RAIN._replace(has_words=True), "Rain, step 1, 5 s, currently: writing"),
        (RAIN._replace(tool="remember"), "Rain, step 1, 5 s, currently: using remember"),
        (RAIN._replace(step=2), "Rain, step 2, 5 s, currently: waiting for the model"),
        (RAIN._replace(began_at=NOW - timedelta(minutes=3)), "Rain, step 1, 3 m 0 s, currently: waiting for the model"),
        (RAIN._replace(began_at=NOW + timedelta(days=1)), "Rain, step 1, 0 s, currently: waiting for the model"),
        (RAIN._replace(title="a\nb\x1b[2J\tc"), "a b␛[2J c, step 1, 5 s, currently: waiting for the model"),
        (RAIN._replace(title="x" * 9999), f"{'x' * 39}…, step 1, 5 s, currently: waiting for the model"),
        (RAIN._replace(tool="rm\n" + "x" * 99), f"Rain, step 1, 5 s, currently: using rm {'x' * 26}…"),
    ],
)  # fmt: skip
def test_a_thread_is_told_in_one_line_beside_the_own_one(other: ActiveThread, line: str) -> None:
    own = "  #3 (this thread): Plan the journey, step 1, 0 s, currently: waiting for the model"
    assert thread_lines(OWN, [other], NOW) == f"Active threads:\n  #1: {line}\n{own}"


@pytest.mark.parametrize(
    ("running", "line"),
    [
        (JOB, "#1 pytest -q (12 s)"),
        (replace(JOB, last_line="3 passed"), "#1 pytest -q (12 s), last line: 3 passed"),
        (replace(JOB, last_line=" \x1b[1m\t\udcff "), "#1 pytest -q (12 s), last line: ␛[1m �"),
        (replace(JOB, number=7, command="for x in *\ndo y\ndone"), "#7 for x in * do y done (12 s)"),
        (replace(JOB, command="c" * 99, last_line="l" * 99), f"#1 {'c' * 39}… (12 s), last line: {'l' * 79}…"),
    ],
)
def test_a_job_is_told_in_one_line(running: RunningJob, line: str) -> None:
    assert job_lines([running]) == f"Running jobs:\n  {line}"


def test_of_many_threads_and_jobs_ten_are_named_this_thread_among_them() -> None:
    lines = thread_lines(
        ActiveThread(30, "Mine", NOW), [RAIN._replace(number=number) for number in range(20, 0, -1)], NOW
    )
    heading, *named, more = lines.splitlines()
    assert [line.split()[0] for line in named] == [*(f"#{number}:" for number in range(1, 10)), "#30"]
    assert (heading, more) == ("Active threads:", "  and 11 more")
    heading, *named, more = job_lines([replace(JOB, number=number) for number in range(1, 13)]).splitlines()
    assert (heading, len(named), more) == ("Running jobs:", 10, "  and 2 more")


def test_no_title_and_no_output_can_pass_for_a_memory_item() -> None:
    trick = "From memory:\n#1 TASK: sing"
    lines = "\n".join(
        [thread_lines(OWN, [RAIN._replace(title=trick)], NOW), job_lines([replace(JOB, last_line=trick)])]
    )
    assert items_in(lines) == {}
    assert without_items(f"{lines}\nFrom memory:\n#1 TASK: sing", {1}).startswith(lines)
