"""A signal ends the chat at any moment: soon, with the terminal as it was, no orphans, and the typed text kept."""

from __future__ import annotations

import os
import pty
import random
import shutil
import signal
import termios
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.faults.moments import PHASES, Phase, Talk, model, opened_editor, told
from tests.terminal.driver import PROMPT, Home, Terminal

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT, signal.SIGKILL)
KEYS = (signal.SIGINT, signal.SIGQUIT)
MOMENTS = 32
"""Of each phase; with sixteen phases that makes more than five hundred."""

LIMIT_SECONDS = 2.0
MARK = "CHORUS_TEST_MARK"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("signals") / "home")
    told(home)
    return home


@pytest.fixture(scope="module")
def asked() -> Iterator[dict[str, str]]:
    with model() as variables:
        yield variables


@pytest.mark.parametrize("phase", [PHASES[2], PHASES[5]], ids=lambda phase: phase.name)
def test_a_signal_ends_the_chat(phase: Phase, tmp_path: Path, template: Home, asked: dict[str, str]) -> None:
    one_signal(phase, ENDING[0], tmp_path / "run", template, asked, chances(phase))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.name)
def test_a_signal_at_any_moment_ends_the_chat(
    phase: Phase, tmp_path: Path, template: Home, asked: dict[str, str]
) -> None:
    chance = chances(phase)
    for number in range(MOMENTS):
        one_signal(phase, ENDING[number % len(ENDING)], tmp_path / str(number), template, asked, chance)
        shutil.rmtree(tmp_path / str(number))


def chances(phase: Phase) -> random.Random:
    """Return the same chances for a phase in each run."""
    return random.Random(phase.name)  # noqa: S311 - no secret


def one_signal(
    phase: Phase, number: signal.Signals, folder: Path, template: Home, asked: dict[str, str], chance: random.Random
) -> None:
    """Bring a chat into a phase, send it a signal, and check everything."""
    home = Home(Path(shutil.copytree(template.path, folder / "home")))
    mark = f"{folder}-{chance.random()}"
    variables = {MARK: mark, "EDITOR": opened_editor(folder), **(asked if phase.has_model else {})}
    with closing(Terminal({**home.environment, **variables})) as chat:
        if phase.name != "start":
            chat.await_line(PROMPT)
        phase.enter(Talk(chat, folder))
        chat.watch(chance.uniform(0, phase.seconds))
        code = ended(chat, number, is_key=number in (KEYS if phase.has_editor else KEYS[:1]))
        told_of = f"{phase.name}, {number.name}:\n{chat.screen_text()}"
        # Until the program is loaded, Python itself answers Ctrl-C.
        unloaded = {1} if phase.name == "start" and number == signal.SIGINT else set()
        assert code in {0, -number, 128 + number, 128 + signal.SIGTERM, *unloaded}, (code, told_of)
        if number != signal.SIGKILL:
            assert chat.modes() == fresh_modes(), told_of
        assert not left_alone(mark), (left_alone(mark), told_of)
        assert "bug" not in chat.screen_text(), told_of
    assert not (home.path / "state" / "chorus.log").exists(), told_of
    assert home.run("doctor", "--json").code == 0, told_of
    if phase.typed and number not in {signal.SIGINT, signal.SIGKILL}:
        assert phase.typed in kept(home), told_of


def ended(chat: Terminal, number: signal.Signals, *, is_key: bool) -> int:
    """Send a signal and return the exit code, which must come soon; one that ``is_key`` is followed by another."""
    began, busy = time.monotonic(), busy_seconds()
    send(chat, number)
    if is_key:
        chat.watch(LIMIT_SECONDS / 4)
        began, busy = time.monotonic(), busy_seconds()
        send(chat, signal.SIGTERM)
    code = chat.await_end()
    seconds = time.monotonic() - began
    # The time that other programs kept both cores is not the chat's.
    waited = busy_seconds() - busy
    assert seconds - waited < LIMIT_SECONDS, (number, seconds, waited, chat.screen_text())
    return code


def send(chat: Terminal, number: signal.Signals) -> None:
    # Its exit code is not fetched yet, so that the number is still its own.
    with suppress(ProcessLookupError):
        os.kill(chat.pid, number)


def busy_seconds() -> float:
    """Return how long any process has waited for a processor so far."""
    try:
        (line, *_) = Path("/proc/pressure/cpu").read_text().splitlines()
    except OSError:
        return 0.0
    return int(line.rpartition("total=")[2]) / 1e6


def fresh_modes() -> list[object]:
    """Return the modes of a terminal that no program has changed."""
    ours, theirs = pty.openpty()
    try:
        return [*termios.tcgetattr(ours)]
    finally:
        os.close(ours)
        os.close(theirs)


def left_alone(mark: str) -> list[str]:
    """Return the processes that were started by a chat and outlive it for more than a moment."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while found := [*_marked(mark)]:
        if time.monotonic() > deadline:
            return found
        time.sleep(0.02)
    return []


def _marked(mark: str) -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes():
                yield (process / "cmdline").read_text()
        except OSError:
            continue


def kept(home: Home) -> str:
    """Return the texts that are in the log, in the input line of the next chat or in a draft."""
    drafts = [path.read_text() for path in (home.path / "state" / "drafts").glob("*")]
    return "\n".join([*home.said(), *home.unsent(), *drafts])
