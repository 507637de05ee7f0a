"""Shortcuts for saving and restoring sessions and for reading their rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.sessions.service.sessions import Saved
from chorus_cli.storage.port import Connection
from tests.world import World

SHIPPED = "2026-02-12_auth-refactor"


async def save(world: World, description: str = "Auth refactor", summary: str = "It is done.") -> Saved:
    world.model.say(summary)
    return await world.sessions.save(world.current.target(), description)


async def save_idle(world: World, summary: str = "Idle.") -> Saved | None:
    world.model.say(summary)
    return await world.sessions.save_idle(world.current.target())


async def restore(world: World, session_id: str = SHIPPED) -> None:
    await world.sessions.restore(world.current.target(), session_id)


async def undo(world: World) -> None:
    await world.journal.undo(world.current.target(), None)


def folder(world: World, slug: str = "chorus") -> Path:
    return world.folder / "personas" / slug / "sessions"


def file_of(world: World, session_id: str = SHIPPED) -> dict[str, JsonValue]:
    text = (folder(world) / f"{session_id}.json").read_text(encoding="utf-8")
    return cast("dict[str, JsonValue]", json.loads(text))


async def count(world: World, table: str) -> int:
    def counted(connection: Connection) -> int:
        return int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])  # noqa: S608 - a constant

    return await world.store.read(counted)


async def sql(world: World, statement: str, *values: object) -> None:
    await world.store.write(lambda connection: connection.execute(statement, values))
