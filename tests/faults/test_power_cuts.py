"""Power is cut while turns, settings and saves are stored: all that was acknowledged is there, and nothing is torn."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.faults.faulty_program import FaultyProgram, faulty_program
from tests.faults.power_cut import PowerCuts, power_cuts
from tests.terminal.driver import Home

ROUNDS = 24


@dataclass
class Talk:
    """Commands one after the other, until the disk is gone, and what they have acknowledged."""

    home: Home
    program: FaultyProgram
    said: list[str] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    named: int = 0
    tried: int = 0
    _is_over: threading.Event = field(default_factory=threading.Event)

    def go_on(self) -> None:
        """Say something, set something, save something, and so on."""
        self._is_over.clear()
        while not self._is_over.is_set():
            number = self.tried = self.tried + 1
            self._say(f"I am {number}") and self._name(number) and self._save(number)

    def end(self) -> None:
        self._is_over.set()

    def _say(self, text: str) -> bool:
        is_stored = self._done("ask", "-c", text)
        self.said += [text] if is_stored else []
        return is_stored

    def _name(self, number: int) -> bool:
        is_stored = self._done("ask", f"/settings set user_name Sam{number}")
        self.named = number if is_stored else self.named
        return is_stored

    def _save(self, number: int) -> bool:
        is_stored = self._done("ask", f"/context save number {number}")
        self.sessions += [f"number-{number}"] if is_stored else []
        return is_stored

    def _done(self, *arguments: str) -> bool:
        # What is rescued while the disk is away is no part of the machine's temporary folder.
        folder = self.home.path.parent.parent
        return self.program.run(self.home.path, arguments, TMPDIR=str(folder)).code == 0

    def check(self) -> None:
        """Compare what is there after a power cut with what was acknowledged."""
        examined = self.program.run(self.home.path, ("doctor", "--json"))
        wrong = [each for each in json.loads(examined.output)["findings"] if each["state"] == "wrong"]
        assert [each for each in wrong if each["subject"] != "rescue"] == []
        assert set(self.said) <= {*self.home.said()}
        stored = self.home.sql("SELECT session_id FROM sessions")
        assert all(any(name.endswith(saved) for name in stored) for saved in self.sessions)
        settings = (self.home.path / "personas" / "chorus" / "system.jsonc").read_text()
        names = [f'"Sam{number}"' for number in range(self.named, self.tried + 1)]
        assert not self.named or any(name in settings for name in names)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[PowerCuts]:
    with power_cuts(tmp_path) as made:
        yield made


@pytest.fixture
def program(tmp_path: Path) -> Iterator[FaultyProgram]:
    with faulty_program(tmp_path) as running:
        yield running


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_power_cut_takes_nothing_back_that_was_acknowledged(disk: PowerCuts, program: FaultyProgram) -> None:
    talk, chance = Talk(Home(disk.place / "home"), program), random.Random(17)  # noqa: S311 - no secret
    assert program.run(talk.home.path, ("ask", "-c", "hello")).code == 0
    for _ in range(ROUNDS):
        talking = threading.Thread(target=talk.go_on)
        talking.start()
        time.sleep(chance.uniform(1, 4))
        disk.cut()
        talk.end()
        talking.join()
        disk.unmount()
        disk.mount()
        talk.check()
    assert len(talk.said) >= ROUNDS
    assert len(talk.sessions) >= ROUNDS // 4
