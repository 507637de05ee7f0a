"""The benchmarks of one question and of memory: programs are timed, and a comparison that cannot be made says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks import httpx_script
from benchmarks.figures import Figure, Skipped, table
from benchmarks.memory import resident_mebibytes
from benchmarks.one_question import installed_llm, seconds_to_first_character
from benchmarks.syncs import syncs
from tests.loopback_server import serving
from tests.models.providers.fault_server import DONE, chunk

if TYPE_CHECKING:
    from pathlib import Path


def test_a_program_is_timed_until_its_first_character_and_may_end_by_itself() -> None:
    program = "import time; print('a', flush=True); time.sleep(0.3)"
    assert seconds_to_first_character([sys.executable, "-c", program], os.environ) > 0


def test_a_program_that_writes_nothing_is_told() -> None:
    with pytest.raises(RuntimeError, match="wrote nothing"):
        seconds_to_first_character([sys.executable, "-c", "pass"], os.environ)


def test_the_script_of_the_reference_prints_the_answer_as_it_comes() -> None:
    with serving(lambda _body: (200, [chunk("Hi "), chunk("there."), DONE])) as address:
        environment = {**os.environ, "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-invented"}
        asked = subprocess.run(
            [sys.executable, "-m", httpx_script.__name__, "hello"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    assert asked.stdout == "Hi there."


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace counts them")
def test_the_waits_for_the_disk_of_a_program_and_its_children_are_counted(tmp_path: Path) -> None:
    program = (
        f"import os, threading; file = open({str(tmp_path / 'file')!r}, 'w'); os.fork() or os.fsync(file); "
        "os.fsync(file); threading.Thread(target=os.fdatasync, args=(file,)).start()"
    )
    assert syncs([sys.executable, "-c", program], os.environ, tmp_path) == 5


@pytest.mark.slow
def test_a_reference_that_cannot_be_installed_is_an_error_of_the_installer(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        installed_llm(tmp_path, "http://127.0.0.1:1/v1", str(tmp_path / "no such package"))


def test_the_memory_of_a_process_is_told_in_mebibytes() -> None:
    assert 5 < resident_mebibytes(os.getpid()) < 5_000


def test_a_skipped_comparison_stands_below_the_table_with_its_reason() -> None:
    shown = Figure("a", 1.0, "b", 1.0, "ms", 1.0, goal=2)
    *rows, last = table([Skipped("a, against llm", "no network"), shown]).splitlines()
    assert len(rows) == 2
    assert last == "a, against llm: skipped, no network"
    assert Skipped("a", "b").as_json() == {"name": "a", "skipped": "b"}
