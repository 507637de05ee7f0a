"""A talk in which a word went through every path that texts have, and the files that have the word."""

from __future__ import annotations

import zipfile
from datetime import timedelta
from pathlib import Path

from chorus_cli.editing.rows import outbox_rows
from chorus_cli.editing.rows.outbox_rows import Unsaid
from chorus_cli.framework.replies import plain
from chorus_cli.log.rows import input_rows
from chorus_cli.storage.files import rescue
from chorus_cli.storage.port import Connection
from tests.attachments.attached_talk import say
from tests.log.service.thinking_talk import parts_of, think
from tests.storage.database import on_server
from tests.turns.service.tool_talk import call, calls, events_of
from tests.world import World

CANARY = "xyzzyplugh"
"""A word that is nowhere else."""


async def canary_talk(world: World) -> None:
    """Say the word, and have it thought, repeated, remembered, summarised, saved, edited, attached and rescued."""
    world.model.say(f"So the word is {CANARY}, I will keep it.")
    await world.say(f"The word that opens the gate is {CANARY}, do not tell anybody of it.")
    await world.say("And what is the weather like?")
    think(world, f"They asked for\n{CANARY} before.", "I cannot tell.")
    await world.say("What is on your mind?")
    think(world, "", "Nothing at all.", parts=parts_of(f"Not\n{CANARY} again"))
    await world.say("And now?")
    await world.told(f"/remember the gate opens by {CANARY}")
    world.editor.enqueue(f"TASK\n\nthe small gate opens by {CANARY}")
    await world.told("/memory edit 1")
    calls(world, call("search_history", {"query": CANARY}))
    await events_of(world, "Look for the word again, please.")
    calls(world, call("remember", {"type": "TASK", "content": f"say {CANARY} at the gate"}))
    await events_of(world, "Keep that as well.")
    await world.told("/memory flash --force")
    world.model.say(f'[{{"fact": "The word of the gate is {CANARY}.", "message": 1}}]')
    await (await world.asked_back("/memory distil")).confirmed()
    world.editor.enqueue(_greater)
    await world.told("/context edit")
    world.model.say(f"They speak of a gate and of {CANARY}.")
    await world.told(f"/context save the word {CANARY}")
    note = world.folder / "note.txt"
    note.write_text(f"{CANARY} in a file", encoding="utf-8")
    await say(world, f"Here is {CANARY} in a file: @{note}")
    note.write_text(f"{CANARY} in a file that is not sent", encoding="utf-8")
    await world.told(f"/attach {note}")
    note.unlink()
    await world.told(f"/thread rename The {CANARY} affair")
    world.model.say(f"A summary with {CANARY}.")
    await world.told("/context compact")
    await world.store.write(input_rows.add, "chorus", f"/remember {CANARY}", world.clock.now())
    unsaid = (Unsaid("chorus", f"Is it {CANARY}?"),)
    await world.store.write(outbox_rows.hold, "dead", unsaid, world.clock.now())
    (world.folder / "drafts").mkdir(exist_ok=True)
    (world.folder / "drafts" / "draft-dead-x-message.md").write_text(f"About {CANARY}", encoding="utf-8")
    record = {"persona": "chorus", "role": "user", "content": f"{CANARY} was lost", "error": "full"}
    rescue(world.folder / "rescue", world.clock.now(), record)
    world.clock.advance(timedelta(minutes=3))


async def purged(world: World, line: str) -> str:
    """Carry out a purge, agree to it, and return the answer; backups stay."""
    return plain(await (await world.asked_back(line)).confirmed())


async def sql(world: World, statement: str, *values: object) -> list[tuple[object, ...]]:
    """Run a statement in the log, and return its rows."""

    def work(connection: Connection) -> list[tuple[object, ...]]:
        return connection.execute(statement, values).fetchall()

    return await world.store.write(work)


def holding(folder: Path, word: str = CANARY) -> list[str]:
    """Return the files that have a word, in their names or anywhere in their bytes, those in archives among them.

    The tables of a log on a server count as its file, and the attachments on the server as their folder.
    """
    holders = (table for table, stored in on_server(folder / "chorus.db").items() if word.encode() in stored)
    found = ["attachments" if table == "attachment_files" else "chorus.db" for table in holders]
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if any(word.encode() in part for part in (name.encode(), path.read_bytes(), *_packed(path))):
            found.append(name)
    return sorted({*found})


def _greater(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace("the gate is", "the great gate is", 1), encoding="utf-8")


def _packed(path: Path) -> list[bytes]:
    if path.suffix != ".zip":
        return []
    with zipfile.ZipFile(path) as archive:
        return [archive.read(name) for name in archive.namelist()] + [name.encode() for name in archive.namelist()]
