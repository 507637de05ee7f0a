"""A persona's files are read again when they have changed, however they were changed, and only then."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import UnknownPersonaError
from chorus_cli.personas.service.personas import Personas
from tests.amount import examples

UNREADABLE = Path("/proc/self/mem")
SECOND_NS = 1_000_000_000
LONG_AGO_NS = 1_600_000_000 * SECOND_NS


def home(folder: Path) -> Personas:
    """Make Frodo, with settings and two documents that were last changed years ago."""
    persona = folder / "personas" / "frodo"
    (persona / "docs").mkdir(parents=True)
    (folder / "config.jsonc").write_text('{"defaults": {"context_hours": 9}}')
    (persona / "system.jsonc").write_text('{"name": "Frodo"}')
    (persona / "docs" / "ring.md").write_text("One ring.")
    (persona / "docs" / "shire.md").write_text("Home.")
    for path in (folder / "config.jsonc", *persona.rglob("*")):
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    return Personas(folder / "personas", folder / "config.jsonc")


@pytest.fixture
def personas(tmp_path: Path) -> Personas:
    return home(tmp_path)


def by_rename(path: Path, text: str) -> None:
    """Save as most editors do: a new file takes the place of the old one, here with its times too."""
    draft = path.with_name("draft")
    draft.write_text(text)
    os.utime(draft, ns=(LONG_AGO_NS, LONG_AGO_NS))
    draft.replace(path)


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def in_secret(path: Path, text: str) -> None:
    """Write in place and set the time of the change back."""
    time.sleep(0.02)  # longer than a tick of the kernel's clock
    path.write_text(text)
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))


def unreadable(path: Path) -> None:
    path.unlink()
    path.symlink_to(UNREADABLE)


SETTINGS = "personas/frodo/system.jsonc"
RING = "personas/frodo/docs/ring.md"

CHANGES: dict[str, Callable[[Path], object]] = {
    "settings in place, as long as before": lambda home: (home / SETTINGS).write_text('{"name": "Bilbo"}'),
    "settings in place, as long and as old as before": lambda home: in_secret(home / SETTINGS, '{"name": "Bilbo"}'),
    "settings by rename, as long and as old as before": lambda home: by_rename(home / SETTINGS, '{"name": "Bilbo"}'),
    "settings broken": lambda home: (home / SETTINGS).write_text("{"),
    "settings gone": lambda home: (home / SETTINGS).unlink(),
    "settings unreadable": lambda home: unreadable(home / SETTINGS),
    "defaults changed": lambda home: (home / "config.jsonc").write_text('{"defaults": {"context_hours": 7}}'),
    "defaults gone": lambda home: (home / "config.jsonc").unlink(),
    "a document appended to": lambda home: append(home / RING, " To rule them all."),
    "a document by rename": lambda home: by_rename(home / RING, "Two rings"),
    "a document gone": lambda home: (home / RING).unlink(),
    "a document unreadable": lambda home: unreadable(home / RING),
    "a document renamed": lambda home: (home / RING).rename(home / "personas/frodo/docs/rings.md"),
    "a document hidden": lambda home: (home / RING).rename(home / "personas/frodo/docs/.ring.md"),
    "a document more": lambda home: (home / "personas/frodo/docs/sam.md").write_text("Gardener."),
    "the documents gone": lambda home: (home / "personas/frodo/docs").rename(home / "docs"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_noticed_at_once(personas: Personas, change: Callable[[Path], object]) -> None:
    before = personas.load("frodo")
    change(personas.config_file.parent)
    after = personas.load("frodo")
    assert after != before
    assert after == Personas(personas.folder, personas.config_file).load("frodo")


def test_files_that_have_not_changed_are_not_read_again(personas: Personas) -> None:
    first = personas.load("frodo")
    (personas.folder / "frodo" / ".archived").touch()
    (personas.folder / "sam").mkdir()
    assert personas.load("sam") is personas.load("sam")
    assert personas.load("frodo") is first
    (personas.folder / "sam" / "system.jsonc").write_text('{"name": "Samwise"}')
    assert personas.load("sam").name == "Samwise"


def test_a_file_that_could_not_be_read_is_tried_again(personas: Personas) -> None:
    unreadable(personas.folder / "frodo" / "docs" / "ring.md")
    first = personas.load("frodo")
    assert first.warnings
    assert personas.load("frodo") is not first


def test_a_file_that_permissions_keep_closed_and_open_again_is_noticed(personas: Personas) -> None:
    path = personas.folder / "frodo" / "system.jsonc"
    first = personas.load("frodo")
    for mode in (0o000, 0o600):
        path.chmod(mode)
        assert personas.load("frodo") == Personas(personas.folder, personas.config_file).load("frodo")
    assert personas.load("frodo") == first


def test_a_persona_whose_folder_is_gone_is_unknown(personas: Personas) -> None:
    personas.load("frodo")
    (personas.folder / "frodo").rename(personas.folder / "away-with-it")
    with pytest.raises(UnknownPersonaError):
        personas.load("frodo")


FILES = st.sampled_from([SETTINGS, RING, "config.jsonc", "personas/frodo/docs/sam.md", "personas/frodo/docs/notes.txt"])
ACTS = st.lists(st.tuples(FILES, st.sampled_from(["write", "rename", "append", "delete", "chmod"])), max_size=12)


def act_on(path: Path, act: str, text: str) -> None:
    if act == "write":
        path.write_text(text)
    elif act == "rename":
        by_rename(path, text)
    elif act == "append":
        append(path, text)
    elif act == "delete":
        path.unlink(missing_ok=True)
    elif path.exists():
        path.chmod(0o640)


@given(ACTS)
@examples(40)
def test_whatever_is_done_to_the_files_a_persona_is_what_they_say(acts: list[tuple[str, str]]) -> None:
    with TemporaryDirectory() as folder:
        personas = home(Path(folder))
        for number, (name, act) in enumerate(acts, start=1):
            # Each text is longer than the last: two changes within one tick of the file system differ in size.
            act_on(Path(folder) / name, act, f'{{"name": "{"F" * number}"}}' if act != "append" else " " * number)
            fresh = Personas(personas.folder, personas.config_file)
            assert personas.load("frodo") == personas.load("frodo") == fresh.load("frodo")
