"""The export that benchmarks import is read as it was counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.chatgpt_export import write_export
from chorus_cli.imports.files.reading import sources
from chorus_cli.imports.rules.conversation import Skipped

if TYPE_CHECKING:
    from pathlib import Path


def test_a_generated_export_is_read_as_it_was_counted(tmp_path: Path) -> None:
    written = write_export(tmp_path / "export.zip", 2_000_000, turns=4)
    (source,) = sources(tmp_path / "export.zip")
    assert not isinstance(source, Skipped)
    read = [item for item in source.conversations() if not isinstance(item, Skipped)]
    source.close()
    assert written.json_bytes >= 2_000_000
    assert len(read) == written.conversations > 100
    assert sum(len(item.messages) for item in read) == written.messages
    assert sum(len(item.messages) - len(item.live) for item in read) == written.superseded > 100
