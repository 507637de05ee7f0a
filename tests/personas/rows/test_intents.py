"""Changes of a window that a kill has cut off: the file tells how far each came, and the next start settles it."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import SettingsError
from chorus_cli.log.rows import intents, operation_rows
from chorus_cli.log.rows.intents import Intent, hash_of
from chorus_cli.log.rules.acts import Window
from chorus_cli.personas.files import settings_path
from chorus_cli.personas.rows import window_changes
from chorus_cli.storage.file_lock import locked
from tests.fakes import START

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.core.json.jsonc import JsonValue
    from chorus_cli.storage.store import Connection, Store

ME = "frodo"
BEFORE, AFTER = '{ "context_hours": 12 }', '{ "context_hours": 24 }'
EDITED, EDITED_AFTER = '{ "context_hours": 7 }', '{ "context_hours": 24, "tools": true }'
CUT_OFF = "A change of frodo (window 12h → 24h) was cut off: "


class KilledError(Exception):
    """The end of a process, as far as its transaction can tell."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = settings_path(tmp_path / "personas", ME)
    path.parent.mkdir(parents=True)
    path.write_text(BEFORE)
    return path


def put(file: Path, text: str | None) -> None:
    """Write the file by hand, or delete it and its folder."""
    if text is None:
        shutil.rmtree(file.parent)
    else:
        file.write_text(text)


def text_of(file: Path) -> str | None:
    return file.read_text() if file.exists() else None


async def cut_off(store: Store, present: str = "edited") -> None:
    """Fail in a change from `BEFORE` to `AFTER`; the intent is left unless the file is as before."""
    detail: dict[str, JsonValue] = {"act": Window(12, 24).detail(), "thread": None, "change": [12, 24]}
    intent = Intent(ME, Window.kind, detail, hash_of(BEFORE), hash_of(AFTER), START)

    def die(_: Connection) -> None:
        raise KilledError

    work = partial(intents.carry_out, intent=intent, present=lambda: hash_of(present), work=die)
    with pytest.raises(KilledError):
        await store.write_in_steps(work)


async def acts(store: Store) -> list[object]:
    return [each.act for each in await store.read(operation_rows.all_of, ME, 0)]


async def unfinished(store: Store) -> int:
    return len(await store.read(intents.unfinished))


FOUND = {
    "not written": (BEFORE, "nothing of it was done.", False),
    "written": (AFTER, "the file has it, and so has the journal now.", True),
    "edited": (EDITED, "FILE was edited since and counts; the journal leaves out the change.", False),
    "edited elsewhere": (EDITED_AFTER, "FILE was edited since and counts; the journal has the change.", True),
    "edited and broken": ("{", "FILE was edited since and counts; the journal leaves out the change.", False),
    "deleted": (None, "FILE was edited since and counts; the journal leaves out the change.", False),
}


@pytest.mark.parametrize(("text", "told", "is_done"), FOUND.values(), ids=FOUND)
async def test_the_next_start_settles_a_change_by_the_file_and_leaves_the_file_alone(
    store: Store, file: Path, text: str | None, told: str, *, is_done: bool
) -> None:
    await cut_off(store)
    put(file, text)
    said = await store.write(lambda c: list(window_changes.settle(c, file.parents[1])))
    assert said == [CUT_OFF + told.replace("FILE", str(file))]
    assert text_of(file) == text
    assert await acts(store) == ([Window(12, 24)] if is_done else [])
    assert await unfinished(store) == 0
    assert await store.write(lambda c: list(window_changes.settle(c, file.parents[1]))) == []


async def test_a_change_that_fails_before_the_file_is_written_leaves_no_intent(store: Store) -> None:
    await cut_off(store, present=BEFORE)
    assert await unfinished(store) == 0


async def test_the_next_change_settles_it_first_and_is_not_made_then(store: Store, file: Path) -> None:
    await cut_off(store)
    put(file, AFTER)
    with pytest.raises(SettingsError, match=r"so has the journal now\. Give your command again"):
        await store.write_in_steps(window_changes.change_window, file, 48, ME, START)
    assert (text_of(file), await acts(store), await unfinished(store)) == (AFTER, [Window(12, 24)], 0)
    await store.write_in_steps(window_changes.change_window, file, 48, ME, START)
    assert (await acts(store))[1:] == [Window(24, 48)]


async def test_a_change_that_is_being_made_is_left_to_its_process(store: Store, file: Path) -> None:
    await cut_off(store)
    with locked(file):
        assert await store.write(lambda c: list(window_changes.settle(c, file.parents[1]))) == []
    assert await unfinished(store) == 1


async def test_an_edit_between_intent_and_file_is_not_overwritten(store: Store, file: Path) -> None:
    def by_hand(connection: Connection) -> None:
        # A trigger runs in the second transaction, when the text of the file is known already.
        connection.create_function("edit", 0, lambda: file.write_text(EDITED))
        connection.execute("CREATE TEMP TRIGGER edited AFTER INSERT ON main.operations BEGIN SELECT edit(); END")

    await store.write(by_hand)
    with pytest.raises(SettingsError, match=r"is being edited by another program\. It is left as it is"):
        await store.write_in_steps(window_changes.change_window, file, 24, ME, START)
    assert (text_of(file), await acts(store)) == (EDITED, [])
