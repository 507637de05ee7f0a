"""The last catcher: a bug ends in one sentence, and its traceback is kept."""

from __future__ import annotations

import os
from collections import UserDict
from pathlib import Path
from typing import TYPE_CHECKING

from chorus_cli.cli import main
from chorus_cli.subcommands.exit_codes import BUG

if TYPE_CHECKING:
    import pytest


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
