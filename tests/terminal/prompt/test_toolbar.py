"""Keys before the prompt, Ctrl-C on a line and on the work that Enter began, and the line below the prompt."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input

from chorus_cli.core.errors import LogUnreachableError, StorageError
from chorus_cli.models.rules.budget import Meter
from chorus_cli.models.rules.choice import ModelChoice
from chorus_cli.personas.rules.persona import Persona, Target
from chorus_cli.settings.rules.table import Settings
from chorus_cli.terminal.prompt.keyboard import Foreground
from chorus_cli.terminal.prompt.keys import Line, presses, text_of
from chorus_cli.terminal.prompt.line import Prompt
from chorus_cli.terminal.prompt.toolbar import Background, Toolbar, metered, ranked
from tests.world import World


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("", ""),
        ("half a line", "half a line"),
        ("one\rtwo", "one\ntwo"),
        ("one\ntwo", "one\ntwo"),
        ("typo\x7fe", "type"),
        ("\x7fa", "a"),
        ("a\x1b[D\x1b[Ab", "ab"),
        ("\x1b[200~pasted\nlines\x1b[201~ and more", "pasted\nlines and more"),
        ("\x01\x05\x0c", ""),
        ("香 ü", "香 ü"),
    ],
)
def test_keys_make_the_text_that_a_prompt_would_show(keys: str, text: str) -> None:
    assert text_of(presses(keys)) == text


async def test_work_that_ends_at_once_leaves_nothing_to_be_stopped_of_the_next() -> None:
    foreground = Foreground(nullcontext, lambda: False)

    async def quick() -> bool:
        return True

    async def slow() -> bool:
        await asyncio.sleep(0.01)
        return True

    foreground.stop()
    assert await foreground.carry_out(quick())
    assert await foreground.carry_out(slow())


@pytest.mark.parametrize("steps", range(4))
async def test_a_signal_stops_the_work_at_whatever_step_of_the_loop_it_comes(steps: int) -> None:
    foreground = Foreground(nullcontext, lambda: False)
    done: list[str] = []

    async def work() -> bool:
        done.append("begun")
        await asyncio.sleep(60)
        return True

    def signal(steps_left: int) -> None:
        if steps_left:
            asyncio.get_running_loop().call_soon(signal, steps_left - 1)
        else:
            foreground.stop()

    signal(steps)
    async with asyncio.timeout(5):
        assert not await foreground.carry_out(work())
    assert done == ["begun"]


@pytest.mark.parametrize(
    ("texts", "times"),
    [(["hello"], 1), (["hello", "again"], 2), (["h\x7f\x7fhi"], 2), (["\x1b[200~pasted\x1b[201~ text"], 1)],
    ids=["a text", "two texts", "a text begun anew", "a pasted text"],
)
async def test_each_text_is_begun_once(world: World, texts: list[str], times: int) -> None:
    begun: list[str] = []
    with create_pipe_input() as source, create_app_session(input=source):
        prompt = Prompt(lambda: world.services, lambda _columns: [], lambda: begun.append("begun"))
        for text in texts:
            source.send_text(f"{text}\r")
            await prompt.read(world.services.current.target().persona, InMemoryHistory())
    assert len(begun) == times


_PATIENCE_SECONDS = 3.0


async def test_after_a_while_a_line_goes_on_by_itself() -> None:
    line, went_on = Line(leaving_seconds=0.01), asyncio.Event()
    line.end(went_on.set)
    assert line.is_over
    async with asyncio.timeout(_PATIENCE_SECONDS):
        await went_on.wait()
    assert not line.is_over


async def test_a_line_that_is_typed_on_goes_on_at_once() -> None:
    line = Line()
    line.end(lambda: None)
    assert line.is_over
    line.go_on()
    assert not line.is_over


@pytest.mark.parametrize(
    ("meter", "unicode", "drawn"),
    [
        (Meter(0, 8_000, 6_400), True, "▱▱▱▱▱▱▱▱ 0 / 8,000 (0%)"),
        (Meter(4_000, 8_000, 6_400), True, "▰▰▰▰▱▱▱▱ 4,000 / 8,000 (50%)"),
        (Meter(9_000, 8_000, 6_400), True, "▰▰▰▰▰▰▰▰ 9,000 / 8,000 (112%)"),
        (Meter(2_000, 8_000, 6_400), False, "##------ 2,000 / 8,000 (25%)"),
    ],
)
def test_the_gauge_shows_the_share_of_the_limit(meter: Meter, drawn: str, *, unicode: bool) -> None:
    assert metered(meter, unicode=unicode) == drawn


def test_a_model_that_is_not_settled_is_not_named_and_a_name_is_harmless() -> None:
    here = target(name="Fro\x1b[31mdo")
    assert ranked(here, "", names_model=False) == ((0, "Fro␛[31mdo"), (2, "sees 8 h"))
    assert (7, "thread 2") in ranked(target(thread_id=2), "", names_model=False)


@pytest.mark.parametrize(
    ("background", "columns", "line"),
    [
        (Background(), 100, " Frodo · openai/test · sees 8 h"),
        (Background(replies=2), 100, " Frodo · openai/test · sees 8 h · 2 running"),
        (Background(2, 1, 1), 100, " Frodo · openai/test · sees 8 h · 2 running · 1 job · 1 waiting"),
        (Background(2, 3, 1), 60, " Frodo · openai/test · sees 8 h · 2 running · 1 waiting"),
        (Background(2, 1, 1), 50, " Frodo · openai/test · sees 8 h · 2 running"),
        (Background(2, 1, 1), 40, " Frodo · openai/test · sees 8 h · 1 job"),
        (Background(2, 1, 1), 30, " Frodo · openai/test · 1 job"),
        (Background(2, 1, 1), 20, " Frodo · openai/test"),
    ],
)
def test_the_persona_and_the_model_stay_longest(background: Background, columns: int, line: str) -> None:
    bar = Toolbar(measured_in_a_step, unexpected, lambda: background)
    bar.names_model = True
    bar.show(target())
    [(_, text)] = bar.text(columns)
    assert text == line
    assert len(text) <= columns


async def test_a_request_that_takes_all_it_may_is_marked_and_another_thread_is_measured_anew() -> None:
    measured = {1: Meter(900, 1_000, 800), 2: Meter(100, 1_000, 800)}
    changes = asyncio.Queue[None]()

    async def measure(where: Target) -> tuple[Meter, None]:
        return measured[where.thread_id], None

    bar = Toolbar(measure, unexpected)
    bar.show(target(thread_id=1))
    bar.begin(lambda: changes.put_nowait(None))
    await changes.get()
    [(style, text)] = bar.text(100)
    assert (style, "900 / 1,000" in text) == ("class:warning", True)
    assert bar.text(40) == [("class:warning", " Frodo · sees 8 h · 90%")]
    bar.show(target(thread_id=2))
    assert " / " not in bar.text(100)[0][1]
    await changes.get()
    [(style, text)] = bar.text(100)
    assert (style, "100 / 1,000" in text) == ("", True)
    await bar.close()


async def test_what_cannot_be_measured_is_not_shown_and_measured_when_it_can_be() -> None:
    unmeasured = [StorageError("It is locked."), LogUnreachableError("The log is out of reach.")]
    outcomes: list[Meter | StorageError] = [*unmeasured, Meter(1, 1_000, 800)]
    changes = asyncio.Queue[None]()

    async def measure(_: Target) -> tuple[Meter, None]:
        outcome = outcomes.pop(0)
        if isinstance(outcome, StorageError):
            raise outcome
        return outcome, None

    bar = Toolbar(measure, unexpected)
    bar.show(target())
    bar.begin(lambda: changes.put_nowait(None))
    for line in (" Frodo · sees 8 h", " log: out of reach · Frodo · sees 8 h"):
        await changes.get()
        assert bar.text(100) == [("", line)]
        bar.show(target())
    await changes.get()
    assert bar.text(100)[0][1].startswith(" Frodo · sees 8 h · ▱▱▱▱▱▱▱▱ 1 / 1,000")
    await bar.close()


async def test_a_bug_in_measuring_is_reported_once_and_harms_nobody() -> None:
    bugs = asyncio.Queue[Exception]()

    async def measure(_: Target) -> tuple[Meter, None]:
        raise ZeroDivisionError

    bar = Toolbar(measure, bugs.put_nowait)
    bar.show(target())
    bar.begin(lambda: None)
    assert type(await bugs.get()) is ZeroDivisionError
    assert bar.text(100) == [("", " Frodo · sees 8 h")]
    await bar.close()
    assert bugs.empty()


@pytest.mark.parametrize("steps", range(12))
async def test_it_ends_when_it_is_closed_at_whatever_step_of_its_work(steps: int) -> None:
    bar = Toolbar(measured_in_a_step, unexpected)
    bar.show(target())
    bar.begin(lambda: None)
    await asyncio.sleep(0)
    bar.show(target())
    for _ in range(steps):
        await asyncio.sleep(0)
    closing = asyncio.create_task(bar.close())
    done, _ = await asyncio.wait({closing}, timeout=1)
    assert done, "The line below is still being brought up to date, and Ctrl-D does not leave."


async def measured_in_a_step(_: Target) -> tuple[Meter, None]:
    await asyncio.sleep(0)
    return Meter(1, 1_000, 800), None


def unexpected(bug: Exception) -> None:
    raise AssertionError from bug


def target(name: str = "Frodo", thread_id: int = 1) -> Target:
    choice = ModelChoice("openai/test", "for the test")
    return Target(Persona("frodo", Settings(name=name)), thread_id, choice, thread_number=thread_id)
