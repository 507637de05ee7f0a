"""A talk in another program, in our own JSONL, and short ways to import it."""

from __future__ import annotations

import json
from pathlib import Path

from chorus_cli.imports.service import ImportReport, Wanted
from tests.world import World

ROME = {"chorus_conversation": 1, "source": "demo", "key": "c1", "title": "Rome", "created_at": "2025-01-01T10:00:00Z"}
WHERE = {"key": "m1", "role": "user", "content": "Where is Rome?", "timestamp": "2025-01-01T10:00:00Z"}
ITALY = {"key": "m2", "parent": "m1", "role": "assistant", "content": "In Italy", "superseded": True}
LATIUM = {"key": "m3", "parent": "m1", "role": "assistant", "content": "In Latium", "model": "gpt-4"}
OSLO = {**ROME, "key": "c2", "title": "Oslo"}
OFTEN = {**WHERE, "content": "Is Oslo cold?"}
TAVERN = [
    {"user_name": "Ann", "character_name": "Mara", "create_date": "2024-7-12@01h31m37s", "chat_metadata": {}},
    {"name": "Ann", "is_user": True, "send_date": "2024-7-12@01h31m37s", "mes": "Which harbour is the oldest?"},
    {"name": "Mara", "send_date": "July 12, 2024 1:32am", "mes": "Byblos, perhaps."},
]
"""A chat of SillyTavern."""


def written(folder: Path, *lines: object) -> Path:
    path = folder / "talk.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return path


async def took_in(world: World, *paths: Path) -> ImportReport:
    report = ImportReport(is_dry=False)
    await world.services.imports.take_in(Wanted(paths, "chorus"), report, lambda _line: None)
    return report


async def previewed(world: World, *paths: Path) -> ImportReport:
    report = ImportReport(is_dry=True)
    await world.services.imports.preview(Wanted(paths, "chorus"), report)
    return report


async def reported(world: World, *lines: object) -> ImportReport:
    return await took_in(world, written(world.folder, *lines))


async def exported(world: World, folder: Path, ending: str) -> dict[str, bytes]:
    await world.services.imports.export_all(folder, ending, None, lambda _line: None)
    return contents_of(folder)


def contents_of(folder: Path) -> dict[str, bytes]:
    return {f"{path.relative_to(folder)}": path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def taken_in(world: World, *lines: object) -> tuple[int, int]:
    """Import these lines, and return the numbers of new conversations and messages."""
    report = await reported(world, *lines)
    return report.added.conversations, report.added.messages


def many(folder: Path, number: int) -> Path:
    """Write conversations of a thousand messages, each of which is a batch of its own."""
    said = [{**WHERE, "key": f"m{position}", "content": f"word {position}"} for position in range(1_000)]
    path = folder / "many.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for each in range(number):
            for line in ({**ROME, "key": f"c{each}", "title": f"Talk {each}"}, *said):
                file.write(json.dumps(line) + "\n")
    return path
