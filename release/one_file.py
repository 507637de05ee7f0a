"""Packs Chorus and the packages that it needs into one file, but for litellm and what litellm alone needs."""

from __future__ import annotations

import io
import sys
import sysconfig
import time
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import Distribution, distributions
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from release.needs import needed
from release.one_file_unpacking import PACKED
from release.running import ReleaseError

MOST_BYTES = 15_000_000
_LEFT_OUT = ("litellm",)
_OF_THE_INSTALLER = frozenset({"INSTALLER", "RECORD", "REQUESTED", "direct_url.json"})
_START = Path(__file__).with_name("one_file_start.py")
_FIRST_START = (_START.with_name("__init__.py"), _START.with_name("one_file_unpacking.py"))
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def file_name(version: str) -> str:
    """Return the name of the file for this Python and platform."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"chorus-{version}-cp{_PYTHON.replace('.', '')}-{platform}.pyz"


def pack(packages: Path, version: str, into: Path, epoch: int) -> Path:
    """Write the file of the packages in a folder, with the time ``epoch`` for each, and return its path."""
    chosen = needed("chorus-cli", distributions(path=[str(packages)]), without=_LEFT_OUT)
    packed = _zipped(_files(chosen), epoch, ZIP_DEFLATED)
    name = f"{version}-{sha256(packed).hexdigest()[:16]}"
    made_for = f"CPython {_PYTHON} on {sysconfig.get_platform()}"
    start = f"{_START.read_text(encoding='utf-8')}\n\nstart({name!r}, {made_for!r}, {EXTENSION_SUFFIXES[0]!r})\n"
    files = {f"release/{each.name}": each.read_bytes() for each in _FIRST_START}
    whole = _zipped({"__main__.py": start.encode(), **files, PACKED: packed}, epoch, ZIP_STORED)
    path = into / file_name(version)
    path.write_bytes(f"#!/usr/bin/env python{_PYTHON}\n".encode() + whole)
    path.chmod(0o755)
    if path.stat().st_size > MOST_BYTES:
        largest = max(chosen, key=lambda each: sum(map(len, _files([each]).values()))).name
        raise ReleaseError(f"{path.name} has more than {MOST_BYTES:,} bytes; its largest package is {largest}.")
    return path


def _files(chosen: list[Distribution] | tuple[Distribution, ...]) -> dict[str, bytes]:
    """Return the files of installed packages by their place among the packages, without what an installer adds."""
    return {
        str(file): Path(str(file.locate())).read_bytes()
        for each in chosen
        for file in each.files or ()
        if ".." not in file.parts and file.suffix != ".pyc" and file.name not in _OF_THE_INSTALLER
    }


def _zipped(files: dict[str, bytes], epoch: int, compression: int) -> bytes:
    made = io.BytesIO()
    with ZipFile(made, "w") as archive:
        for name in sorted(files):
            entry = ZipInfo(name, time.gmtime(epoch)[:6])
            entry.compress_type, entry.external_attr = compression, 0o644 << 16
            archive.writestr(entry, files[name], compresslevel=9)
    return made.getvalue()
