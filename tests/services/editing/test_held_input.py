"""Input that waits to be sent is a draft as soon as its writing is over, which keeps no key waiting."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from chorus_cli.services.editing.drafts import UnsentInput

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fakes import FakeClock


class SlowFolder:
    """A folder of drafts on a slow disk, as far as ``mkdir`` tells: it answers when ``gate`` is open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.gate = threading.Event()

    def mkdir(self, **options: object) -> None:
        assert options
        self.gate.wait(10)
        self.path.mkdir(exist_ok=True)

    def __fspath__(self) -> str:
        return str(self.path)


def kept(folder: Path) -> list[str]:
    return [path.read_text() for path in folder.glob("*-unsent-frodo.md")]


@pytest.fixture
def slow(tmp_path: Path) -> SlowFolder:
    return SlowFolder(tmp_path / "drafts")


@pytest.fixture
def unsent(slow: SlowFolder, clock: FakeClock) -> UnsentInput:
    return UnsentInput(slow, "1-ab", clock, lambda _run: False)  # type: ignore[arg-type]


async def test_a_slow_disk_keeps_no_key_waiting(slow: SlowFolder, unsent: UnsentInput) -> None:
    held = [unsent.hold("frodo", text) for text in ("on", "on we", "on we go")]
    assert kept(slow.path) == []
    slow.gate.set()
    await asyncio.wrap_future(held[-1])
    assert kept(slow.path) == ["on we go"]
    await asyncio.wrap_future(unsent.hold("frodo", ""))
    assert kept(slow.path) == []


def test_input_that_a_signal_interrupts_is_kept_before_the_end(slow: SlowFolder, unsent: UnsentInput) -> None:
    slow.gate.set()
    unsent.hold("frodo", "typed ahead")
    unsent.keep("frodo", "typed ahead and more")
    assert kept(slow.path) == ["typed ahead and more"]
