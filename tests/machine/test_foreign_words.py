"""What libraries write to standard error stands in the log file, its beginning, without keys, and on no screen."""

from __future__ import annotations

import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from chorus_cli.core.errors import HomeError
from chorus_cli.machine.bug_report import noted, own_standard_error, unnoted

CANARY = "canary-deploy-0005"
ENVIRONMENT = {"DEPLOY_TOKEN": CANARY}


def warn() -> None:
    # The test runner hears what is warned of.
    sys.stderr.write(warnings.formatwarning(f"quotes {CANARY}\nand the reply", UserWarning, __file__, 1))


def log() -> None:
    logger, handler = logging.getLogger("library"), logging.StreamHandler()
    logger.addHandler(handler)
    logger.error("quotes %s\nand the reply", CANARY)
    logger.removeHandler(handler)


def show() -> None:
    print(f"quotes {CANARY}\nand the reply", file=sys.stderr)  # noqa: T201 - as a library does


@pytest.mark.parametrize("write", [warn, log, show])
def test_only_the_beginning_is_noted_and_nothing_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], write: Callable[[], None]
) -> None:
    file = tmp_path / "chorus.log"
    with noted(lambda: file, ENVIRONMENT):
        write()
    (line,) = file.read_text(encoding="utf-8").splitlines()
    assert line.endswith("quotes [redacted]")
    assert file.stat().st_mode & 0o077 == 0
    shown = capfd.readouterr()
    assert (shown.out, shown.err) == ("", "")


def test_of_a_traceback_the_kind_is_noted(tmp_path: Path) -> None:
    file = tmp_path / "chorus.log"
    try:
        raise ValueError("Precious words\nand more")  # noqa: TRY301 - as a library does
    except ValueError as error:
        with noted(lambda: file, ENVIRONMENT):
            traceback.print_exception(error)
            show()
            sys.stderr.write(traceback.format_exc())
            show()
    lines = [line.split(" ", 1)[1] for line in file.read_text(encoding="utf-8").splitlines()]
    assert lines == ["ValueError", "quotes [redacted]"] * 2


def test_standard_error_is_found_behind_it(tmp_path: Path) -> None:
    before = sys.stderr
    with noted(lambda: tmp_path / "chorus.log", {}):
        assert own_standard_error() is before
        assert not sys.stderr.isatty()
        print(file=sys.stderr)  # noqa: T201 - as a library does
    assert own_standard_error() is sys.stderr is before
    assert [*tmp_path.iterdir()] == []


def test_of_a_private_chat_nothing_is_noted(tmp_path: Path) -> None:
    file = tmp_path / "chorus.log"
    with unnoted(), noted(lambda: file, {}):
        with unnoted():
            show()
        assert not file.exists()
        show()
    assert "quotes" in file.read_text(encoding="utf-8")
    with noted(lambda: None, {}):
        show()


def test_what_cannot_be_noted_is_no_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def homeless() -> Path:
        raise HomeError("There is no home.")

    for log_file in (homeless, lambda: tmp_path / "nowhere" / "chorus.log", lambda: tmp_path):
        with noted(log_file, {}):
            show()
    assert [*tmp_path.iterdir()] == []
    assert capfd.readouterr().err == ""


def test_a_full_log_file_is_set_aside(tmp_path: Path) -> None:
    file = tmp_path / "chorus.log"
    file.touch()
    os.truncate(file, 5_000_001)
    with noted(lambda: file, {}):
        show()
    assert {path.name: path.stat().st_size > 1_000 for path in tmp_path.iterdir()} == {
        "chorus.log": False,
        "chorus.log.old": True,
    }
