"""Input that waits to be sent is a draft as soon as its writing is over, which keeps no key waiting."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chorus_cli.editing.service.unsent import UnsentInput
from chorus_cli.storage import drafts

if TYPE_CHECKING:
    from collections.abc import Mapping

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

    def is_dir(self) -> bool:
        return self.path.is_dir()

    @property
    def parent(self) -> Path:
        return self.path.parent

    def __fspath__(self) -> str:
        return str(self.path)


def files(folder: Path) -> list[Path]:
    return [*folder.iterdir()]


def kept(folder: Path) -> list[str]:
    return [path.read_text() for path in folder.glob("*-unsent-frodo.md")]


@pytest.fixture
def slow(tmp_path: Path) -> SlowFolder:
    return SlowFolder(tmp_path / "drafts")


@pytest.fixture
def unsent(slow: SlowFolder, clock: FakeClock) -> UnsentInput:
    return UnsentInput(slow, "1-ab", clock, lambda _run: False, lambda _record: None)  # type: ignore[arg-type]


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


@pytest.fixture
def typing(tmp_path: Path, clock: FakeClock) -> UnsentInput:
    """Input of which the line being typed is kept at once."""
    return run_of(tmp_path, clock, "1-ab")


def run_of(folder: Path, clock: FakeClock, run: str, *alive: str) -> UnsentInput:
    return UnsentInput(folder, run, clock, lambda each: each in alive, lambda _record: None, held_seconds=0.01)


async def held(typing: UnsentInput) -> None:
    """Wait until the line is kept."""
    await asyncio.sleep(0.05)
    await typing.written()


async def test_the_line_being_typed_is_kept_with_its_changes_and_without_a_change_nothing_is_written(
    tmp_path: Path, typing: UnsentInput
) -> None:
    typing.hold_soon("frodo", "on")
    typing.hold_soon("frodo", "on we")
    assert kept(tmp_path) == []
    await held(typing)
    assert kept(tmp_path) == ["on we"]
    first = files(tmp_path)
    typing.hold_soon("frodo", "on we go")
    typing.hold_soon("frodo", "on we")
    await held(typing)
    assert files(tmp_path) == first
    typing.hold_soon("frodo", "on we go")
    await held(typing)
    assert kept(tmp_path) == ["on we go"]


@pytest.mark.parametrize("typed", ["", " \n", "/private a word"])
async def test_a_line_that_was_deleted_or_is_private_is_no_draft(
    tmp_path: Path, typing: UnsentInput, typed: str
) -> None:
    typing.hold_soon("frodo", "on we go")
    await held(typing)
    typing.hold_soon("frodo", typed)
    await held(typing)
    assert files(tmp_path) == []


async def test_a_line_that_was_sent_in_time_is_never_written(tmp_path: Path, typing: UnsentInput) -> None:
    typing.hold_soon("frodo", "on we go")
    typing.hold("frodo", "")
    await held(typing)
    assert kept(tmp_path) == []


async def test_a_line_that_came_back_belongs_to_the_chat_that_has_it(tmp_path: Path, clock: FakeClock) -> None:
    killed = run_of(tmp_path, clock, "1-ab")
    await asyncio.wrap_future(killed.hold("frodo", "on we go"))
    first, second = run_of(tmp_path, clock, "2-ab"), run_of(tmp_path, clock, "3-ab", "2-ab")
    assert (first.take_up("frodo"), first.text) == ((), "on we go")
    assert (second.take_up("frodo"), second.text) == ((), "")
    first.hold_soon("frodo", "on we go again")
    await held(first)
    assert kept(tmp_path) == ["on we go again"]
    third = run_of(tmp_path, clock, "4-ab")
    assert (third.take_up("frodo"), third.text) == ((), "on we go again")


async def test_a_line_that_is_put_off_outlives_the_lines_before_it(tmp_path: Path, clock: FakeClock) -> None:
    await asyncio.wrap_future(run_of(tmp_path, clock, "1-ab").hold("frodo", "on we go"))
    unsent = run_of(tmp_path, clock, "2-ab")
    unsent.take_up("frodo")
    unsent.put_off("frodo")
    assert (unsent.text, unsent.is_put_off("frodo"), unsent.is_put_off("sam")) == ("", True, False)
    unsent.keep("frodo", "hello")
    assert sorted(kept(tmp_path)) == ["hello", "on we go"]
    unsent.bring_back()
    assert (unsent.text, unsent.is_put_off("frodo")) == ("on we go", False)
    await asyncio.wrap_future(unsent.hold("frodo", ""))
    assert kept(tmp_path) == ["hello"]


async def test_a_line_that_is_sent_is_kept_with_the_input_behind_it_until_it_is_stored(
    tmp_path: Path, typing: UnsentInput
) -> None:
    typing.send("frodo", "on we go", "and on")
    await typing.written()
    assert kept(tmp_path) == ["on we go\nand on"]
    typing.hold_soon("frodo", "and on we go")
    await held(typing)
    assert kept(tmp_path) == ["on we go\nand on we go"]
    typing.release()
    await typing.written()
    assert kept(tmp_path) == ["and on we go"]


async def test_a_line_that_was_refused_is_kept_for_the_next_prompt(tmp_path: Path, typing: UnsentInput) -> None:
    typing.send("frodo", "on we go", "and on")
    typing.text = "on we go"
    typing.release()
    await typing.written()
    assert kept(tmp_path) == ["on we go\nand on"]


async def test_a_line_that_is_sent_is_kept_once_if_a_signal_comes(tmp_path: Path, typing: UnsentInput) -> None:
    typing.send("frodo", "on we go", "")
    await held(typing)
    typing.keep("frodo", "on we go")
    assert kept(tmp_path) == ["on we go"]


async def test_a_line_that_is_stored_at_once_is_never_written(tmp_path: Path, typing: UnsentInput) -> None:
    typing.send("frodo", "on we go", "")
    typing.release()
    await held(typing)
    assert files(tmp_path) == []


async def test_the_same_line_to_another_persona_is_another_draft(tmp_path: Path, clock: FakeClock) -> None:
    typing = run_of(tmp_path, clock, "1-ab")
    typing.hold("frodo", "hello")
    typing.hold("sam", "hello")
    await typing.written()
    assert [path.name.partition("-unsent-")[2] for path in files(tmp_path)] == ["sam.md"]
    frodo, sam = run_of(tmp_path, clock, "2-ab"), run_of(tmp_path, clock, "3-ab")
    assert (sam.take_up("sam"), sam.text) == ((), "hello")
    assert (frodo.take_up("frodo"), frodo.text) == ((*files(tmp_path),), "")


async def test_a_line_that_another_start_claims_meanwhile_is_left_to_it(tmp_path: Path, clock: FakeClock) -> None:
    for killed in ("1-ab", "2-ab"):
        await asyncio.wrap_future(run_of(tmp_path, clock, killed).hold("frodo", killed))
    seen: list[str] = []

    def claimed_meanwhile(run: str) -> bool:
        seen.append(run)
        [newest] = tmp_path.glob(f"draft-{seen[0]}-*")
        if run == seen[0]:
            os.utime(newest, (2e10, 2e10))
        else:
            drafts.claimed(newest, "3-ab")
        return False

    late = UnsentInput(tmp_path, "4-ab", clock, claimed_meanwhile, lambda _record: None)
    [other] = late.take_up("frodo")
    assert (other.read_text(), late.text) == (seen[1], "")


async def killed_while_sending(folder: Path, clock: FakeClock, line: str, behind: str) -> None:
    """Leave the draft of a run that was killed after a line had left the prompt."""
    killed = run_of(folder, clock, "1-ab")
    killed.hold("frodo", line)
    killed.send("frodo", line, behind)
    await killed.written()


@pytest.mark.parametrize(
    ("line", "behind", "stored", "returned"),
    [
        ("on we go", "", "on we go", ""),
        ("on we go", "and on", "on we go", "and on"),
        ("on we go ", "and on", "on we go", "and on"),
        ("on\nwe go", "and on", "on\nwe go", "and on"),
        ("on we go", "", "", "on we go"),
        ("on we go", "and on", "hello", "on we go\nand on"),
        ("on we go", "", "on we", "on we go"),
        ("//usr is a folder", "and on", "/usr is a folder", "and on"),
        ("!!wow", "", "!wow", ""),
        ("mail \\@home", "", "mail @home", ""),
    ],
)
async def test_a_line_that_was_stored_does_not_come_back(
    tmp_path: Path, clock: FakeClock, line: str, behind: str, stored: str, returned: str
) -> None:
    await killed_while_sending(tmp_path, clock, line, behind)
    unsent = run_of(tmp_path, clock, "2-ab")
    assert (unsent.take_up("frodo", stored), unsent.text) == ((), returned)
    assert kept(tmp_path) == [returned] * bool(returned)
    again = run_of(tmp_path, clock, "3-ab")
    assert (again.take_up("frodo", stored), again.text) == ((), returned)


@pytest.mark.parametrize("text", ["", "on we go"])
async def test_a_line_at_the_prompt_comes_back_even_if_the_last_message_was_the_same(
    tmp_path: Path, clock: FakeClock, text: str
) -> None:
    killed = run_of(tmp_path, clock, "1-ab")
    killed.send("frodo", "on we go", "")
    killed.text = text
    killed.release()
    killed.hold("frodo", "on we go")
    await killed.written()
    unsent = run_of(tmp_path, clock, "2-ab")
    assert (unsent.take_up("frodo", "on we go"), unsent.text) == ((), "on we go")


async def test_a_text_that_comes_back_leaves_no_draft_of_another(tmp_path: Path, clock: FakeClock) -> None:
    await asyncio.wrap_future(run_of(tmp_path, clock, "1-ab").hold("frodo", "on we go"))
    unsent = run_of(tmp_path, clock, "2-ab")
    unsent.take_up("frodo")
    unsent.put_off("frodo")
    await asyncio.wrap_future(unsent.hold("frodo", "typed and deleted"))
    unsent.bring_back()
    await unsent.written()
    assert kept(tmp_path) == ["on we go"]


@pytest.mark.parametrize(
    ("other", "told"), [(Path("/other"), "What you had typed is kept in /other"), (None, "could not be kept: on we go")]
)
async def test_input_that_no_draft_holds_is_in_another_file_or_in_the_sentence(
    tmp_path: Path, clock: FakeClock, other: Path | None, told: str
) -> None:
    records: list[Mapping[str, str]] = []

    def rescue(record: Mapping[str, str]) -> Path | None:
        records.append(record)
        return other

    folder = tmp_path / "drafts"
    folder.write_text("in the way")
    unsent = UnsentInput(folder, "1-ab", clock, lambda _run: False, rescue)
    assert unsent.keep("frodo", " \n") == ""
    assert unsent.keep("frodo", "on we go").endswith(told)
    assert [(record["persona"], record["content"]) for record in records] == [("frodo", "on we go")]


async def test_input_that_a_draft_holds_already_is_not_rescued_besides(tmp_path: Path, clock: FakeClock) -> None:
    records: list[Mapping[str, str]] = []
    folder = tmp_path / "drafts"
    unsent = UnsentInput(folder, "1-ab", clock, lambda _run: False, records.append)
    await asyncio.wrap_future(unsent.hold("frodo", "on we go"))
    folder.rename(tmp_path / "moved")
    folder.write_text("in the way")
    unsent.hold("frodo", "on we go again")
    unsent.hold("frodo", "on we go")
    assert (unsent.keep("frodo", "on we go"), records) == ("", [])
    assert kept(tmp_path / "moved") == ["on we go"]
