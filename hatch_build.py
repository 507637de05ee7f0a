"""Adds the completion scripts and the manual page to a wheel."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ShellFiles(BuildHookInterface):
    """Makes the files in a folder that lasts as long as the build."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the files of a wheel; an editable installation makes them when they are asked for."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from chorus_cli.subcommands import shell_files  # noqa: PLC0415 - its sources are on the path only now

        self._folder = tempfile.TemporaryDirectory()
        for shell, place in shell_files.PLACES.items():
            path = self._made(shell, shell_files.completion_script(shell))
            build_data["force_include"][path] = f"chorus_cli/{shell_files.FOLDER}/{shell}"
            build_data["shared_data"][path] = place
        build_data["shared_data"][self._made("chorus.1", shell_files.manual_page())] = shell_files.MANUAL_PLACE

    def finalize(self, _version: str, _build_data: dict[str, Any], _artifact_path: str) -> None:
        """Remove the files."""
        if folder := getattr(self, "_folder", None):
            folder.cleanup()

    def _made(self, name: str, text: str) -> str:
        path = Path(self._folder.name, name)
        path.write_text(text, encoding="utf-8")
        return str(path)
