"""The list of stores: every place in a home that can hold words of the user. A test fails if a place is missing."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from chorus_cli.log.rules.log_acts import MemoryChange, PurgedIds, Unreadable
from chorus_cli.machine.paths import STAGED, Paths
from chorus_cli.personas import files as persona_files
from chorus_cli.storage.files import RANDOM, TEMPORARY, sync_folder, write_atomically
from chorus_cli.storage.port import Connection

PurgedRows: TypeAlias = "Mapping[RowStore, frozenset[tuple[object, ...]]]"
"""The rows of a purge, by store. Each row is given by its values in the store's ``identity`` columns."""
AMONG = "IN (SELECT value FROM json_each(:ids))"
"""The SQL condition that an id is in the parameter ``:ids``, a JSON list."""


class RowStore(NamedTuple):
    """A table whose rows can have texts; ``name`` is the field of ``PurgedIds`` with the ids of these rows.

    The texts are in the ``columns`` of rows that meet the condition ``is_there``. ``identity`` are the columns that
    identify a row in a backup; without them, the rows are not looked up in backups. ``erasing`` is the SQL that
    overwrites the texts of a row; most rows stay, to keep order, references and journal. ``time`` is the column that
    a purge of a span compares. If the first column is JSON, ``texts_in`` returns the texts in the JSON, and
    ``emptied`` returns the JSON without the texts, in place of ``erasing``.
    """

    name: str
    table: str
    columns: tuple[str, ...]
    erasing: str = ""
    identity: str = ""
    is_there: str = "TRUE"
    time: str = "NULL"
    texts_in: Callable[[str], list[str]] | None = None
    emptied: Callable[[str], str] | None = None

    def texts(self, connection: Connection) -> Sequence[tuple[int, str, str, str | None]]:
        """Return id, persona, text and ``time`` for each text in the first column."""
        rows = connection.execute(
            f"SELECT id, persona, {self.columns[0]}, {self.time} FROM {self.table} "
            f"WHERE {self.is_there} AND {self.columns[0]} <> ''"
        ).fetchall()
        if self.texts_in is None:
            return rows
        return [(id_, persona, text, time) for id_, persona, stored, time in rows for text in self.texts_in(stored)]

    def rows(self, connection: Connection, columns: str, ids: Collection[int]) -> list[Any]:
        """Return these columns of the rows with these ids, in the order of the ids."""
        query = f"SELECT {columns} FROM {self.table} WHERE id {AMONG} ORDER BY id"
        return connection.execute(query, {"ids": json.dumps([*ids])}).fetchall()

    def erase(self, connection: Connection, ids: Collection[int], operation_id: int) -> None:
        """Overwrite the texts of the rows with these ids for the purge with the id ``operation_id``."""
        if self.emptied is None:
            connection.execute(
                f"{self.erasing} WHERE {self.is_there} AND id {AMONG}",
                {"ids": json.dumps([*ids]), "operation": operation_id},
            )
            return
        (column,) = self.columns
        connection.executemany(
            f"UPDATE {self.table} SET {column} = ? WHERE {self.is_there} AND id = ?",
            [(self.emptied(stored), id_) for id_, stored in self.rows(connection, f"id, {column}", ids)],
        )


MESSAGES = RowStore(
    "messages",
    "messages",
    ("content", "tool_calls", "reasoning", "thought_parts"),
    "UPDATE messages SET content = '', preamble = '', tool_calls = NULL, tool_call_id = NULL, reasoning = NULL, "
    "thought_parts = NULL, thought_seconds = NULL, thought_tokens = NULL, attachments = NULL, token_count = 0, "
    "status = 'complete', run = NULL, checksum = NULL, purged_by = :operation",
    "id, persona, role, timestamp",
    "purged_by IS NULL",
)
ITEMS = RowStore(
    "items",
    "context_items",
    ("content",),
    "UPDATE context_items SET content = '', content_hash = NULL, token_count = 0, purged_by = :operation, "
    "forgotten_by = COALESCE(forgotten_by, :operation)",
    "id, persona, item_type, created_at",
    "purged_by IS NULL",
    "created_at",
)
SUMMARIES = RowStore(
    "summaries",
    "summaries",
    ("content",),
    "UPDATE summaries SET content = '', token_count = 0, model = NULL",
    "id, persona, thread_id, created_at",
)
INPUTS = RowStore("inputs", "input_history", ("content",), "DELETE FROM input_history", time="created_at")
UNSAID = RowStore("unsaid", "outbox", ("content",), "DELETE FROM outbox", time="created_at")
TITLES = RowStore("titles", "threads", ("title",), "UPDATE threads SET title = ''")
PREAMBLES = RowStore(
    "preambles",
    "messages",
    ("preamble",),
    "UPDATE messages SET preamble = '', token_count = NULL",
    is_there="purged_by IS NULL",
)


def values_in(stored: str, keys: Collection[str]) -> list[object] | None:
    """Return the values of these keys at any depth of a JSON text, ``None`` if it is no JSON."""
    try:
        left: list[object] = [json.loads(stored)]
    except (ValueError, RecursionError):
        return None
    found: list[object] = []
    while left:
        each = left.pop()
        if isinstance(each, dict):
            found += (value for key, value in each.items() if key in keys)
        left += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
    return found


def _texts_of_items(stored: str) -> list[str]:
    """Return the texts of memory items in a JSON text; invalid JSON counts as one text."""
    found = values_in(stored, {"title", "command", "content", "detail"})
    return [stored] if found is None else [each for each in found if each and isinstance(each, str)]


def _emptied_act(detail: str) -> str:
    """Return the JSON of an act without the texts of items; ``{}`` if it is no readable change of the memory."""
    try:
        act = json.loads(detail)
        emptied = {**act, "title": "", "change": act["change"]}
        for state in (item[name] for item in act["items"][:1] for name in ("before", "after")):
            state.pop("content", None)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return "{}"
    emptied.pop("command", None)
    return json.dumps(emptied)


def _emptied_checkpoint(data: str) -> str:
    """Return the JSON of a checkpoint without the texts of its items; ``{}`` if ``data`` is no JSON."""
    ids = values_in(data, {"id"})
    if ids is None:
        return "{}"
    items = [{"id": id_} for id_ in ids if isinstance(id_, int)]
    return json.dumps({"context_state": {"hot_items": [], "cold_items": [], "warm_items": items}})


# An operation that cannot be read may have changed the memory.
ACTS = RowStore(
    "acts",
    "operations",
    ("detail",),
    identity="id, persona, kind, created_at",
    is_there=f"kind IN ('{MemoryChange.kind}', '{Unreadable.kind}')",
    texts_in=_texts_of_items,
    emptied=_emptied_act,
)
CHECKPOINTS = RowStore(
    "checkpoints",
    "context_checkpoints",
    ("checkpoint_data",),
    identity="id, persona, created_at",
    texts_in=_texts_of_items,
    emptied=_emptied_checkpoint,
)
ROWS = (MESSAGES, ITEMS, SUMMARIES, INPUTS, UNSAID, TITLES, PREAMBLES, ACTS, CHECKPOINTS)


def rows_of(connection: Connection, ids: PurgedIds) -> PurgedRows:
    """Return the rows of a purge that are looked up in backups."""
    return {
        store: frozenset(store.rows(connection, store.identity, getattr(ids, store.name)))
        for store in ROWS
        if store.identity
    }


# The names of files being written, of their SQLite journals, and of working folders.
_TEMPORARY = rf"\.chorus-{RANDOM}(\.tmp(-journal)?)?"


class FileStore(NamedTuple):
    """A folder of a home, or a file if it ``is_file``; ``name`` is its attribute of `Paths`.

    ``put`` moves it from an unpacked backup to its place; without ``put``, no backup holds it. If it ``is_searched``,
    a purge must be able to read it. ``temporary`` matches the names of temporary files and folders in the folder or
    beside the file, ``temporary_below`` such names in subfolders.
    """

    name: str
    put: Callable[[Path, Path], None] | None = None
    is_searched: bool = False
    is_file: bool = False
    temporary: str = _TEMPORARY
    temporary_below: str = ""

    def place(self, home: Paths) -> Path:
        """Return the folder, or the file."""
        found: Path = getattr(home, self.name)
        return found

    def files(self, home: Paths) -> Iterator[Path]:
        """Yield the files, sorted by path, without locks, temporary files and the contents of temporary folders."""
        place, left = self.place(home), {*self.leftovers(home)}
        for path in [place] if self.is_file else _below(place):
            is_left = left and not left.isdisjoint((path, *path.parents))
            if not is_left and path.is_file() and path.name not in persona_files.LOCKS:
                yield path

    def packed(self, home: Paths) -> Iterator[tuple[Path, str]]:
        """Yield each file with its path in a backup, which is laid out like a home in a single folder."""
        place, entry = self.place(home), self.place(home_in(Path()))
        return ((path, (entry / path.relative_to(place)).as_posix()) for path in self.files(home))

    def leftovers(self, home: Paths) -> Iterator[Path]:
        """Yield temporary files and folders, even if they are in use, but no symbolic links: Chorus makes none."""
        names, place = self.temporary, self.place(home)
        for folder, below, found in os.walk(place.parent if self.is_file else place):
            matching = {name for name in (*below, *found) if re.fullmatch(names, name)}
            yield from (path for path in map(Path(folder).joinpath, sorted(matching)) if not path.is_symlink())
            below[:] = [name for name in below if self.temporary_below and name not in matching]
            names = self.temporary_below


def _below(folder: Path) -> list[Path]:
    """Return all that is in a folder, sorted by path; behind links to folders, as deep as Chorus reads."""
    return sorted({path for pattern in ("**/*", "*/*", "*/*/*") for path in folder.glob(pattern)})


def home_in(folder: Path) -> Paths:
    """Return the paths of a backup that is unpacked in a folder."""
    return Paths(folder, folder, folder)


def _replace_folder(source: Path, place: Path) -> None:
    """Replace a folder. The old folder is moved beside ``source``, and deleted later with the unpacked backup."""
    if place.exists():
        replaced = source.with_name("replaced")
        shutil.rmtree(replaced, ignore_errors=True)
        place.rename(replaced)
    source.rename(place)


def _write_file(source: Path, place: Path) -> None:
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(place, source.read_bytes())


def _add_files(source: Path, place: Path) -> None:
    """Move files to ``place``, except files that are there already."""
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        added = place / path.relative_to(source)
        if not added.exists():
            added.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                path.rename(added)
            except OSError:
                # The folder may be a link to another disk.
                write_atomically(added, path.read_bytes())
            sync_folder(added.parent)


def _replace_database(source: Path, place: Path) -> None:
    # With the journal of the old database, SQLite would roll back pages of the new database.
    place.with_name(f"{place.name}-journal").unlink(missing_ok=True)
    sync_folder(place.parent)
    source.replace(place)


PERSONAS = FileStore(
    "personas",
    _replace_folder,
    is_searched=True,
    temporary=f"{TEMPORARY}|{persona_files.TEMPORARY}",
    temporary_below=TEMPORARY,
)
CONFIG = FileStore("config_file", _write_file, is_file=True)
ATTACHMENTS = FileStore("attachments", _add_files, is_searched=True, temporary_below=TEMPORARY)
DATABASE = FileStore(
    "database",
    _replace_database,
    is_file=True,
    temporary=f"{_TEMPORARY}|{persona_files.TEMPORARY_SHIPPED}|\\{STAGED}-{RANDOM}",
)
BACKUPS = FileStore("backups")
KEPT_ATTACHMENTS = FileStore("kept_attachments", temporary_below=TEMPORARY)
FILES = (
    PERSONAS,
    CONFIG,
    ATTACHMENTS,
    DATABASE,
    BACKUPS,
    KEPT_ATTACHMENTS,
    FileStore("deleted_personas", is_searched=True),
    FileStore("drafts", is_searched=True),
    FileStore("rescue", is_searched=True),
    # No purge searches the user's commands, locks, error reports (which quote no messages), paths and tokens.
    FileStore("commands", _add_files),
    FileStore("run"),
    FileStore("log_file", is_file=True),
    FileStore("projects", is_file=True),
    FileStore("tokens", is_file=True),
)
"""The files of a home, in the order in which a restore puts them in place."""
