"""Builds wheel and source archive twice, in two folders, and compares their bytes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from release.checkout import Checkout
from release.running import ReleaseError, run, tool

_DIFFERENCES = ({"PYTHONHASHSEED": "1", "TZ": "UTC"}, {"PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo", "COLUMNS": "60"})
"""Variables of the two builds, which must not matter."""


def built_twice(checkout: Checkout, folder: Path, into: Path, epoch: int) -> tuple[Path, Path]:
    """Build into ``into`` and return wheel and source archive; their files have the time ``epoch``.

    The wheel is built from the source archive. A second build from a clone must have the same bytes.
    """
    other = folder / "again"
    for source, target, variables in (
        (checkout, into, _DIFFERENCES[0]),
        (checkout.cloned(folder / "clone"), other, _DIFFERENCES[1]),
    ):
        command = tool("build", "--no-isolation", "--outdir", target)
        run("The build", command, source.path, {**variables, "SOURCE_DATE_EPOCH": str(epoch)})
    if unequal := unequal_files(into, other):
        raise ReleaseError(f"Two builds of {unequal[0]} have different bytes; find the time or place that is in it.")
    (wheel,), (sources,) = into.glob("*.whl"), into.glob("*.tar.gz")
    return wheel, sources


def unequal_files(first: Path, second: Path) -> list[str]:
    """Return the names of files that only one folder has, or that differ."""
    sums = [{path.name: digest(path) for path in folder.iterdir()} for folder in (first, second)]
    return sorted(name for name in sums[0] | sums[1] if sums[0].get(name) != sums[1].get(name))


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sums(folder: Path) -> str:
    """Return the lines of ``SHA256SUMS`` for the files of a folder, as ``sha256sum --check`` reads them."""
    return "".join(f"{digest(path)}  {path.name}\n" for path in sorted(folder.iterdir()) if path.name != "SHA256SUMS")
