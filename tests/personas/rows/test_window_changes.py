"""The journal follows the windows in the files of personas, whatever has changed them."""

from __future__ import annotations

from pathlib import Path

import pytest

from chorus_cli.core.errors import SettingsError
from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules.acts import Window
from chorus_cli.personas import rows as persona_rows
from chorus_cli.storage import meta_rows
from chorus_cli.storage.store import Connection, Store
from tests.fakes import START

ME = "frodo"
BEFORE, EDITED = b'{ "context_hours": 12 }', b'{ "context_hours": 7 }'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "personas" / ME / "system.jsonc"
    path.parent.mkdir(parents=True)
    path.write_bytes(BEFORE)
    return path


def edit(file: Path, text: bytes | None) -> None:
    if text is None:
        file.unlink()
    else:
        file.write_bytes(text)


def text_of(file: Path) -> bytes | None:
    return file.read_bytes() if file.exists() else None


async def noted(store: Store, file: Path) -> list[object]:
    """Note what the file says, and return the acts of the journal."""
    await store.write(persona_rows.note_edit, file, ME, START)
    return await acts(store)


async def acts(store: Store) -> list[object]:
    return [each.act for each in await store.read(operation_rows.all_of, ME, 0)]


EDITS: dict[str, tuple[bytes | None, list[object]]] = {
    "another window": (EDITED, [Window(12, 7)]),
    "no window": (b"{}", [Window(12, None)]),
    "a window that is none": (b'{ "context_hours": "long" }', []),
    "an empty file": (b"", [Window(12, None)]),
    "no file": (None, [Window(12, None)]),
    "another setting": (b'{ "context_hours": 12, "tools": true }', []),
    "a broken file": (b"{", []),
    "no UTF-8": (b"\xff", []),
}


@pytest.mark.parametrize(("text", "entries"), EDITS.values(), ids=EDITS)
async def test_an_edit_by_hand_is_noted_once_and_leaves_the_file_alone(
    store: Store, file: Path, text: bytes | None, entries: list[object]
) -> None:
    assert await noted(store, file) == []
    edit(file, text)
    assert await noted(store, file) == entries
    assert text_of(file) == text
    assert await noted(store, file) == entries


async def test_an_edit_is_noted_once_the_file_is_mended(store: Store, file: Path) -> None:
    await noted(store, file)
    edit(file, b"{")
    assert await noted(store, file) == []
    edit(file, EDITED)
    assert await noted(store, file) == [Window(12, 7)]


async def test_an_edit_is_noted_before_the_next_change(store: Store, file: Path) -> None:
    await noted(store, file)
    edit(file, EDITED)
    await store.write_in_steps(persona_rows.change_window, file, lambda _: 48, ME, START)
    assert await acts(store) == [Window(12, 7), Window(7, 48)]
    assert await noted(store, file) == [Window(12, 7), Window(7, 48)]


async def test_a_change_of_a_window_that_the_journal_has_not_seen_is_one_entry(store: Store, file: Path) -> None:
    await store.write_in_steps(persona_rows.change_window, file, lambda _: 48, ME, START)
    assert await noted(store, file) == [Window(12, 48)]


@pytest.mark.parametrize("known", ["", "{", "twelve"])
async def test_a_damaged_note_of_the_window_begins_anew(store: Store, file: Path, known: str) -> None:
    await store.write(meta_rows.store, meta_rows.WINDOW + ME, known)
    assert await noted(store, file) == []
    edit(file, EDITED)
    assert await noted(store, file) == [Window(12, 7)]


async def test_an_edit_during_a_change_is_not_overwritten(store: Store, file: Path) -> None:
    def by_hand(connection: Connection) -> None:
        # A trigger runs in the transaction, when the text of the file is known already.
        connection.create_function("edit", 0, lambda: edit(file, EDITED))
        connection.execute("CREATE TEMP TRIGGER edited AFTER INSERT ON main.operations BEGIN SELECT edit(); END")

    await store.write(by_hand)
    with pytest.raises(SettingsError, match=r"is being edited by another program\. It is left as it is"):
        await store.write_in_steps(persona_rows.change_window, file, lambda _: 24, ME, START)
    assert (text_of(file), await acts(store)) == (EDITED, [])
