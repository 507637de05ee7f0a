"""Importing a gigabyte of ChatGPT's shards: memory, time for a message, and a search in what came in."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
import zipfile
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.chatgpt_export import write_export
from benchmarks.figures import Figure, figure
from benchmarks.program import CHORUS
from benchmarks.surroundings import isolated, temporary_folder
from chorus_cli.log.rows import found_messages
from chorus_cli.log.rows.found_messages import Scope
from chorus_cli.log.rules.search_query import search_query

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.figures import Pair

MEMORY_CEILING_MEBIBYTES = 300
TIME_GOAL = 15
SEARCH_GOAL = 0.1
WHOLE_BYTES, QUICK_BYTES = 1_000_000_000, 30_000_000
_KIBIBYTES_PER_MEBIBYTE = 1024
_MICROSECONDS = 1_000_000
_ROUNDS = 5
_SCOPE = Scope(None, None, 10)
_WORDS = ("ferryman", "impossible", "thirteen")
_REQUIRED = " ".join(f"+{word}" for word in _WORDS)
# To a process Linux counts the memory of the one that started it, so it is started by a small one.
_MEASURED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
_WITH_ALL = "FROM messages WHERE content LIKE ? AND content LIKE ? AND content LIKE ?"


class _Imported(NamedTuple):
    """An import: its seconds, the most memory that it held, and its report."""

    seconds: float
    mebibytes: float
    report: dict[str, int]


def measure(*, quick: bool) -> Iterator[Figure]:
    """Import an export into an empty home, and search it."""
    return compare(QUICK_BYTES if quick else WHOLE_BYTES)


def compare(least_bytes: int) -> Iterator[Figure]:
    """Yield the figures of an import of shards of at least so many bytes together.

    Raises:
        RuntimeError: other amounts came in than were written.
    """
    with temporary_folder() as folder:
        written = write_export(folder / "export.zip", least_bytes)
        begun = time.perf_counter()
        _parse(folder / "export.zip")
        parsed = time.perf_counter() - begun
        imported = _import(folder / "home", folder / "export.zip")
        if imported.report["new_messages"] != written.messages:
            raise RuntimeError(f"Of {written.messages} messages {imported.report['new_messages']} came in.")
        name = f"{written.json_bytes / 1e6:,.0f} MB of ChatGPT, {written.messages:,} messages"
        memory, ceiling = imported.mebibytes, MEMORY_CEILING_MEBIBYTES
        yield Figure(f"memory of importing {name}", memory, "the ceiling", ceiling, "MiB", memory / ceiling, 1)
        each, bare = (_MICROSECONDS * seconds / written.messages for seconds in (imported.seconds, parsed))
        speed = f"import and index a message, {written.messages / imported.seconds:,.0f} a second"
        yield Figure(speed, each, "json.loads of its shard", bare, "µs", each / bare, TIME_GOAL)
        with closing(sqlite3.connect(folder / "home" / "chorus.db", isolation_level=None)) as connection:
            pairs = [_searched(connection) for _ in range(_ROUNDS + 1)][1:]
        yield figure("search the imported messages for three words", "LIKE", pairs, SEARCH_GOAL)


def _parse(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        for name in opened.namelist():
            json.loads(opened.read(name))


def _import(home: Path, export: Path) -> _Imported:
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *CHORUS, "import", str(export), "--json"],
        env=isolated(os.environ, home),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    seconds = time.perf_counter() - begun
    report, _, kibibytes = done.stdout.decode().rstrip().rpartition("\n")
    return _Imported(seconds, int(kibibytes) / _KIBIBYTES_PER_MEBIBYTE, json.loads(report or "{}"))


def _searched(connection: sqlite3.Connection) -> Pair:
    begun = time.perf_counter()
    found_messages.find(connection, search_query(_REQUIRED), _SCOPE)
    between = time.perf_counter()
    likes = [f"%{word}%" for word in _WORDS]
    connection.execute(f"SELECT id {_WITH_ALL} ORDER BY id DESC LIMIT 10", likes).fetchall()
    connection.execute(f"SELECT COUNT(*) {_WITH_ALL}", likes).fetchone()
    return between - begun, time.perf_counter() - between
