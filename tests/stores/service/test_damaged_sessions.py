"""Damaged and lost sessions: a copy is kept until the user or a purge deletes it, and no persona hides another's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from chorus_cli.storage import drafts
from chorus_cli.stores.salvage import copying
from chorus_cli.stores.service.stored_files import Copy, LostFile, bring, copies, gap, lost_sessions
from tests.stores.service.test_stored_files import findings, lose, places_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.world import World

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
SESSION = "2026-02-12_draft-of-the-letter"


def replace(folder: Path, damaged: bytes, now: datetime = NOW) -> Path:
    """Replace a damaged session by the one of a backup, and return the copy of the damaged one."""
    path = folder / "personas" / "chorus" / "sessions" / f"{SESSION}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(damaged)
    kept = bring(Copy(LostFile(path, "", "", bool), folder / "all.zip", b"{}"), folder / "drafts", now)
    assert path.read_bytes() == b"{}"
    assert kept is not None
    return kept


def test_each_copy_has_a_name_of_its_own(tmp_path: Path) -> None:
    kept = [replace(tmp_path, b"%d" % number, NOW + timedelta(seconds=number)) for number in range(2)]
    assert [path.read_bytes() for path in kept] == [b"0", b"1"]
    assert [path.name for path in kept] == [
        f"damaged-chorus-{SESSION}-20261122-120000-000000.json",
        f"damaged-chorus-{SESSION}-20261122-120001-000000.json",
    ]
    assert {oct(path.stat().st_mode & 0o777) for path in kept} == {"0o600"}


def test_no_copy_is_replaced(tmp_path: Path) -> None:
    kept = replace(tmp_path, b"first")
    with pytest.raises(FileExistsError):
        replace(tmp_path, b"second")
    assert kept.read_bytes() == b"first"


def test_the_sweep_of_old_drafts_passes_a_copy_over(tmp_path: Path) -> None:
    kept = replace(tmp_path, b"{")
    drafts.sweep(kept.parent, datetime.now(UTC) + timedelta(days=30), lambda _run: False)
    assert kept.exists()


async def test_a_purge_of_its_text_deletes_a_copy(world: World) -> None:
    await world.say("The ring is in the hobbit's pocket.")
    (first, *_) = await world.log()
    kept = replace(world.folder, f'{{"messages": [{{"content": "{first.content}"'.encode())
    await (await world.asked_back(f"/purge message {first.id}")).confirmed()
    assert not kept.exists()


async def test_the_sessions_of_a_deleted_persona_are_not_missed(world: World) -> None:
    path = await lose(world, "sessions", b"{")
    persona = path.parents[1]
    persona.rename(persona.with_name("gone"))
    assert findings(world)["sessions"].sentence.endswith("chorus restore brings a whole backup back.")
    (places_of(world).backups / "deleted").mkdir()
    persona.with_name("gone").rename(places_of(world).backups / "deleted" / "chorus-20261122-110000-000000")
    assert findings(world)["sessions"].state == "fine"


async def test_the_sessions_of_a_persona_are_missed_if_one_of_a_longer_name_was_deleted(world: World) -> None:
    path = await lose(world, "sessions", b"{")
    (places_of(world).backups / "deleted" / "chorus-two-20261122-110000-000000").mkdir(parents=True)
    persona = path.parents[1].rename(world.folder / "gone")
    assert findings(world)["sessions"].state == "wrong"
    persona.rename(places_of(world).backups / "deleted" / "chorus-20261122-110000-000000")
    assert findings(world)["sessions"].sentence == "0 saved sessions can be read."


@pytest.mark.parametrize("more", [0, 2])
async def test_a_session_that_is_older_than_its_row_is_told(world: World, more: int) -> None:
    await lose(world, "sessions", b"{")
    await world.store.write(lambda c: c.execute("UPDATE sessions SET message_count = message_count + ?", (more,)))
    with copying.opened(places_of(world).database) as connection:
        (found,) = copies(connection, places_of(world), [*lost_sessions(connection, places_of(world))])
        told = gap(connection, found)
    whole = f"The session {found.lost.path.stem} of the backup is older: it has 2 of 4 messages."
    assert told == (whole if more else "")
