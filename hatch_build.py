"""Adds the completion scripts and the manual page to a wheel, and links to the page of the package."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_PAGE = "docs/package.md"


class PackagePage(MetadataHookInterface):
    """Makes the page of the package and its links from one setting: ``repository`` in ``[tool.chorus]``."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the page and the links to the metadata of the project."""
        sys.path.insert(0, self.root)
        from release.package_page import package_page, project_urls

        root = Path(self.root)
        settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["chorus"]
        place = settings["repository"], metadata["version"]
        page = package_page((root / _PAGE).read_text(encoding="utf-8"), *place)
        metadata["readme"] = {"content-type": "text/markdown", "text": page}
        metadata["urls"] = project_urls(*place)


class ShellFiles(BuildHookInterface):
    """Makes the files in a folder that lasts as long as the build."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the files of a wheel; an editable installation makes them when they are asked for."""
        if version == "editable":
            return
        # The width of the terminal and the time zone must not show in the files.
        os.environ |= {"COLUMNS": "80", "TZ": "UTC"}
        time.tzset()
        sys.path.insert(0, self.root)
        from chorus_cli.subcommands import shell_files

        self._folder = tempfile.TemporaryDirectory()
        for shell, places in shell_files.PLACES.items():
            script = shell_files.completion_script(shell)
            build_data["force_include"][self._made(shell, script)] = f"chorus_cli/{shell_files.FOLDER}/{shell}"
            for place in places:
                build_data["shared_data"][self._made(Path(place).name, script)] = place
        build_data["shared_data"][self._made("chorus.1", shell_files.manual_page())] = shell_files.MANUAL_PLACE

    def finalize(self, _version: str, _build_data: dict[str, Any], _artifact_path: str) -> None:
        """Remove the files."""
        if folder := getattr(self, "_folder", None):
            folder.cleanup()

    def _made(self, name: str, text: str) -> str:
        path = Path(self._folder.name, name)
        path.write_text(text, encoding="utf-8")
        return str(path)
