"""A line that was sent while the lines behind it are written as a draft: a signal or an error gives it back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

import pytest

from chorus_cli.editing.rows import outbox_rows
from chorus_cli.editing.service.unsent import UnsentInput
from chorus_cli.machine.notifier import Notifier
from chorus_cli.terminal import repl as repls
from chorus_cli.terminal.backend import Backend
from chorus_cli.terminal.prompt.history import InputHistories
from chorus_cli.terminal.prompt.keys import Leave
from chorus_cli.terminal.prompt.line import Prompt
from chorus_cli.terminal.repl import Repl
from chorus_cli.terminal.screen.output import Screen
from chorus_cli.terminal.screen.progress import Progress
from tests.terminal.screen.terminal_file import TerminalFile

if TYPE_CHECKING:
    from tests.world import World


LINE, BEHIND = "The line just sent", "and one behind it"


class SlowDrafts(UnsentInput):
    """Drafts whose first writing ends when the test says so."""

    writing: asyncio.Future[None] | None = None
    is_writing = asyncio.Event()

    def hold(self, slug: str, typed: str) -> asyncio.Future[None]:
        if self.writing is None:
            self.writing = asyncio.get_running_loop().create_future()
            self.is_writing.set()
            return self.writing
        return super().hold(slug, typed)


class TwoLines(Prompt):
    """A prompt at which a line was sent, and another typed behind it; it ends when it is asked again."""

    asked: ClassVar[list[str]] = []

    async def read(self, _persona: object, _history: object, typed: str = "", **_: object) -> str:  # type: ignore[override]
        self.asked.append(typed)
        if len(self.asked) > 1:
            raise Leave
        return LINE

    @property
    def typed_ahead(self) -> str:
        return BEHIND


async def nothing_read(_slug: str) -> tuple[list[str], str]:
    return [], ""


async def nothing_written(_slug: str, _line: str) -> None:
    return


@pytest.fixture
def unsent(world: World, monkeypatch: pytest.MonkeyPatch) -> SlowDrafts:
    monkeypatch.setattr(repls, "Prompt", TwoLines)
    monkeypatch.setattr(TwoLines, "asked", [])
    monkeypatch.setattr(SlowDrafts, "is_writing", asyncio.Event())
    return SlowDrafts(world.store, "run", world.clock, lambda _run: False, lambda _record: None)


async def begun(world: World, unsent: SlowDrafts) -> asyncio.Task[None]:
    """Begin a chat, and return it when the line was sent and the other one is being written."""
    screen = Screen(TerminalFile(), {})
    histories = InputHistories(nothing_read, nothing_written)
    backend = Backend(world.focus, unsent, histories, Notifier(), str, lambda: world.services)
    chat = asyncio.create_task(Repl(backend, screen, Progress(screen)).run(lambda: None))
    await unsent.is_writing.wait()
    return chat


async def test_a_signal_keeps_it_for_the_next_run(world: World, unsent: SlowDrafts) -> None:
    chat = await begun(world, unsent)
    chat.cancel()
    with pytest.raises(asyncio.CancelledError):
        await chat
    left = await world.store.read(outbox_rows.left_by_ended, lambda _run: False)
    assert "\n".join(each.text.content for each in left) == f"{LINE}\n{BEHIND}"


async def test_an_error_puts_it_into_the_next_prompt(world: World, unsent: SlowDrafts) -> None:
    chat = await begun(world, unsent)
    assert unsent.writing is not None
    unsent.writing.set_exception(OSError("in the thread"))
    await chat
    assert TwoLines.asked == ["", LINE]
