"""The last catcher: a bug ends in one sentence, and its traceback is kept."""

from __future__ import annotations

import os
from collections import UserDict
from typing import TYPE_CHECKING

import pytest

from chorus_cli.cli import main
from chorus_cli.core import limits
from chorus_cli.machine.bug_report import report_bug
from chorus_cli.subcommands.exit_codes import BUG

if TYPE_CHECKING:
    from pathlib import Path


class BrokenEnvironment(UserDict[str, str]):
    """An environment in which reading one variable for the first time is a bug."""

    is_broken = True

    def __getitem__(self, key: str) -> str:
        if key == "CHORUS_PERSONA" and self.is_broken:
            self.is_broken = False
            raise ValueError("a bug made for a test")
        return super().__getitem__(key)


def test_a_bug_is_one_sentence_and_its_traceback_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mask = os.umask(0o077)
    try:
        code = main(["context"], BrokenEnvironment({"CHORUS_HOME": str(tmp_path), "CHORUS_PERSONA": "frodo"}))
    finally:
        os.umask(mask)
    kept = (tmp_path / "state" / "chorus.log").read_text(encoding="utf-8")
    assert code == BUG
    assert "Traceback" not in capsys.readouterr().err
    assert "a bug made for a test" in kept


def test_the_log_file_of_bugs_stays_small_and_holds_no_keys(tmp_path: Path) -> None:
    log_file = tmp_path / "state" / "chorus.log"
    environment = {"DEPLOY_TOKEN": "canary-deploy-0005"}
    for number, length in enumerate((limits.LOG_FILE.most, limits.LOG_FILE.most, 0)):
        error = ValueError(f"bug {number} canary-deploy-0005 xai-0123456789abcdef {'x' * length}")
        assert str(log_file) in report_bug(log_file, error, environment)
    kept = {path.name: path.read_text(encoding="utf-8") for path in log_file.parent.iterdir()}
    assert sorted(kept) == ["chorus.log", "chorus.log.old"]
    assert "bug 2 [redacted] [redacted]" in kept["chorus.log"]
    assert "bug 1 [redacted] [redacted]" in kept["chorus.log.old"]
    assert log_file.stat().st_mode & 0o077 == 0


def fail(said: str) -> None:
    raise ValueError(len(said))


def test_a_traceback_holds_no_values_of_variables(tmp_path: Path) -> None:
    said = "told in confidence".upper()
    with pytest.raises(ValueError, match="18") as caught:
        fail(said)
    report_bug(tmp_path / "chorus.log", caught.value, {})
    kept = (tmp_path / "chorus.log").read_text(encoding="utf-8")
    assert "raise ValueError(len(said))" in kept
    assert said not in kept
