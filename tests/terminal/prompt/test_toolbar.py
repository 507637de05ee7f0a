"""The line at the bottom of the screen, and what of it a narrow one keeps."""

from __future__ import annotations

import asyncio

import pytest

from chorus_cli.core.errors import StorageError
from chorus_cli.models.rules.budget import Meter
from chorus_cli.models.rules.choice import ModelChoice
from chorus_cli.personas.rules.persona import Persona, Target
from chorus_cli.settings.rules.table import Settings
from chorus_cli.terminal.prompt.toolbar import Background, Toolbar, fitting, metered, ranked

PIECES = ((2, "Frodo"), (3, "gpt-5.4"), (1, "8h"), (0, "9,000 / 10,000"), (4, "thread 12"))
"""13 columns of separators and 37 of words."""


@pytest.mark.parametrize(
    ("columns", "kept"),
    [
        (51, "Frodo · gpt-5.4 · 8h · 9,000 / 10,000 · thread 12"),
        (50, "Frodo · gpt-5.4 · 8h · 9,000 / 10,000 · thread 12"),
        (49, "Frodo · gpt-5.4 · 8h · 9,000 / 10,000"),
        (37, "Frodo · 8h · 9,000 / 10,000"),
        (20, "8h · 9,000 / 10,000"),
        (15, "9,000 / 10,000"),
        (14, "Frodo · 8h"),
        (1, ""),
    ],
)
def test_the_least_important_goes_first(columns: int, kept: str) -> None:
    assert " · ".join(fitting(PIECES, columns, 3)) == kept
    assert len(kept) < columns or not kept


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
    assert ranked(here, None, unicode=True, names_model=False) == ((2, "Fro␛[31mdo"), (1, "8h"), (7, "thread 1"))


@pytest.mark.parametrize(
    ("background", "columns", "line"),
    [
        (Background(), 100, " Frodo · openai/test · 8h · thread 1"),
        (Background(replies=2), 100, " Frodo · openai/test · 8h · thread 1 · 2 running"),
        (Background(2, 1, 1), 100, " Frodo · openai/test · 8h · thread 1 · 2 running · 1 job · 1 waiting"),
        (Background(2, 3, 1), 60, " Frodo · openai/test · 8h · 2 running · 3 jobs · 1 waiting"),
        (Background(2, 1, 1), 50, " Frodo · 8h · 2 running · 1 job · 1 waiting"),
        (Background(2, 1, 1), 40, " Frodo · 8h · 2 running · 1 waiting"),
        (Background(2, 1, 1), 30, " Frodo · 8h · 2 running"),
        (Background(2, 1, 1), 20, " Frodo · 8h · 1 job"),
    ],
)
def test_work_in_the_background_stays_longer_than_the_model(background: Background, columns: int, line: str) -> None:
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
    bar.show(target(thread_id=2))
    assert " / " not in bar.text(100)[0][1]
    await changes.get()
    [(style, text)] = bar.text(100)
    assert (style, "100 / 1,000" in text) == ("", True)
    await bar.close()


async def test_what_cannot_be_measured_is_not_shown_and_measured_when_it_can_be() -> None:
    outcomes: list[Meter | StorageError] = [StorageError("It is locked."), Meter(1, 1_000, 800)]
    changes = asyncio.Queue[None]()

    async def measure(_: Target) -> tuple[Meter, None]:
        outcome = outcomes.pop(0)
        if isinstance(outcome, StorageError):
            raise outcome
        return outcome, None

    bar = Toolbar(measure, unexpected)
    bar.show(target())
    bar.begin(lambda: changes.put_nowait(None))
    await changes.get()
    assert " / " not in bar.text(100)[0][1]
    bar.show(target())
    await changes.get()
    assert "1 / 1,000" in bar.text(100)[0][1]
    await bar.close()


async def test_a_bug_in_measuring_is_reported_once_and_harms_nobody() -> None:
    bugs = asyncio.Queue[Exception]()

    async def measure(_: Target) -> tuple[Meter, None]:
        raise ZeroDivisionError

    bar = Toolbar(measure, bugs.put_nowait)
    bar.show(target())
    bar.begin(lambda: None)
    assert type(await bugs.get()) is ZeroDivisionError
    assert bar.text(100) == [("", " Frodo · 8h · thread 1")]
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
