"""Unpacks the one file into a virtual environment, from which it is started as an installed program."""

from __future__ import annotations

import fcntl
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TextIO
from zipfile import ZipFile

PACKED = "packages.zip"
"""The archive within the file: in two layers, a later start reads the names of a few files only."""

_UNPACKING = ".unpacking-"
_LOOK_SECONDS = 0.1

COMMAND = """import fcntl

in_use = open(__file__)
try:
    fcntl.flock(in_use, fcntl.LOCK_SH)
except OSError:
    pass
from chorus_cli.__main__ import run

run()
"""
"""The program, which holds a lock on its own file, so that a newer version knows that this one is in use."""


def unpack(file: str, folder: str, made_for: str, extension: str) -> str | None:
    """Make the environment ``folder``, and compile it; return a sentence if that cannot be done."""
    if extension not in EXTENSION_SUFFIXES:
        here = f"{platform.python_implementation()} {platform.python_version()} on {sysconfig.get_platform()}"
        return f"{file} is for {made_for}, and this is {here}; use the file made for it, or install Chorus with pip."
    place = Path(folder)
    if sys.stderr.isatty():
        print(f"Chorus unpacks itself into {folder}, once.", file=sys.stderr)
    try:
        _make(file, place)
    except OSError as error:
        return f"Chorus cannot unpack itself into {folder}: {error}. Set XDG_CACHE_HOME to a folder for it."
    return None


def _make(file: str, place: Path) -> None:
    """Make the environment beside its place and move it there, so that an interrupted start leaves none.

    One start at a time does it; it deletes what a start that was killed has left.
    """
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (place.parent / ".lock").open("w") as lock:
        _wait_for(lock)
        if (python := place / "bin" / "python").exists():
            return
        # The Python of an environment may be gone.
        for left in (place, *place.parent.glob(f"{_UNPACKING}*")):
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=_UNPACKING, dir=place.parent) as temporary:
            made = Path(temporary, "made")
            venv.create(made, symlinks=True, with_pip=False)
            base = {"base": str(made), "platbase": str(made)}
            with ZipFile(file) as outer, outer.open(PACKED) as packed, ZipFile(packed) as inner:
                inner.extractall(sysconfig.get_path("purelib", "venv", base))
            (made / "bin" / "chorus").write_text(COMMAND, encoding="utf-8")
            made.rename(place)
        # A newer version, which waits for the lock, deletes no environment that is being compiled.
        subprocess.run([python, "-m", "compileall", "-q", "-j", "0", place / "lib"], capture_output=True, check=False)
        _delete_older(place)


def _wait_for(lock: TextIO) -> None:
    """Wait until no other start has the lock; a wait in one call would miss a Ctrl-C that comes just before it."""
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(_LOOK_SECONDS)


def _delete_older(place: Path) -> None:
    """Delete the unpacked older versions that are not in use; 0.2.0 stays, because it does not show whether it is.

    A deletion that is interrupted leaves nothing in place of the version.
    """
    for older in place.parent.glob("[0-9]*"):
        if _version(older) < _version(place):
            with suppress(OSError), (older / "bin" / "chorus").open(encoding="utf-8") as program:
                if "flock" in program.read():
                    fcntl.flock(program, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    going = older.rename(place.parent / f"{_UNPACKING}{older.name}")
                    shutil.rmtree(going, ignore_errors=True)


def _version(folder: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", folder.name.partition("-")[0])]
