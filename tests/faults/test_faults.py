"""The program is struck by every fault at every one of its calls, and each time keeps its promises."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.faults.actions import ACTIONS, Action, Place, answer
from tests.faults.faulty_program import FAULTS, Ending, Fault, FaultyProgram, faulty_program
from tests.faults.state import state_of
from tests.faults.verdict import violations
from tests.loopback_server import serving

MEMORY = Path("/dev/shm")  # noqa: S108 - the folder made in it is private
_NEVER = 1 << 30
QUICK = {
    "a turn": [("kill", 30), ("EIO", -2), ("EROFS", -1), ("EMFILE", 1)],
    "a setting": [("kill", 9), ("EIO", -2)],
    "a save": [("ENOSPC", -4)],
    "a restored backup": [("EIO", 34), ("EMFILE", 2)],
    "a purge": [("kill", 105), ("kill", 115), ("EMFILE", 14), ("EMFILE", -1)],
}
"""Faults at calls, counted from the end if negative: syncs after a commit and a rename, locks, rows, files, drafts."""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder in memory, where there is one: thousands of homes are copied."""
    path = Path(tempfile.mkdtemp(prefix="chorus-faults-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def program(folder: Path) -> Iterator[FaultyProgram]:
    with faulty_program(folder) as running:
        yield running


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(answer) as found:
        yield found


class Striking:
    """An action in the home that was prepared for it, copied for each run."""

    def __init__(self, action: Action, folder: Path, program: FaultyProgram, address: str) -> None:
        self.action, self._program = action, program
        self._template, self._folder = Place(folder / "prepared"), folder / "run"
        shutil.rmtree(self._template.folder, ignore_errors=True)
        self._variables = action.prepare(self._template, address)
        for command in action.prepared_by:
            done = program.run(self._template.home.path, tuple(map(self._template.path, command)))
            assert done.code == 0, (command, done)

    def broken_promises(self, fault: Fault, numbers: Iterable[int]) -> list[str]:
        """Strike at each of these calls until there are no more, and return all that was wrong."""
        found: list[str] = []
        before = state_of(self._template.home.path)
        for number in numbers:
            ending, place = self._run(fault, number)
            if not ending.struck:
                break
            told = violations(self.action, before, ending, place, self._program, lasts=fault.lasts)
            found += [f"{self.action.name}, {fault.name} at {number}: {each} {ending}" for each in told]
        return found

    def calls(self, fault: Fault) -> int:
        """Return how many calls the fault may strike."""
        ending, place = self._run(fault, _NEVER)
        assert violations(self.action, state_of(self._template.home.path), ending, place, self._program) == []
        return ending.counted

    def _run(self, fault: Fault, number: int) -> tuple[Ending, Place]:
        place = self._template.copied(self._folder)
        variables = {name: value.replace("ASIDE", str(place.aside)) for name, value in self._variables.items()}
        arguments = tuple(map(place.path, self.action.arguments))
        return self._program.run(
            place.home.path, arguments, fault, number, TMPDIR=str(place.folder), **variables
        ), place


@pytest.mark.parametrize("name", QUICK)
def test_a_fault_at_some_calls_breaks_no_promise(name: str, folder: Path, program: FaultyProgram, address: str) -> None:
    striking = Striking(next(action for action in ACTIONS if action.name == name), folder, program, address)
    found = []
    for kind, number in QUICK[name]:
        fault = next(fault for fault in FAULTS if fault.name == kind)
        found += striking.broken_promises(fault, [number if number > 0 else striking.calls(fault) + 1 + number])
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_a_fault_at_any_call_breaks_no_promise(
    action: Action, fault: Fault, folder: Path, program: FaultyProgram, address: str
) -> None:
    found = Striking(action, folder, program, address).broken_promises(fault, count(1, action.step))
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_an_action_that_nothing_strikes_is_done(
    action: Action, folder: Path, program: FaultyProgram, address: str
) -> None:
    assert Striking(action, folder, program, address).calls(FAULTS[0]) > 0
