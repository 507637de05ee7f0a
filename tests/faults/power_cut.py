"""A file system of its own, on a file, whose power can be cut: what was not synced is lost."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SHUT_DOWN = 0x8004587D
"""EXT4_IOC_SHUTDOWN."""

_WITHOUT_THE_JOURNAL = struct.pack("I", 2)
_SIZE = "512M"
_TOOLS = ("losetup", "mkfs.ext4", "mount", "umount", "truncate")


class PowerCuts:
    """A mounted file system at ``place``."""

    def __init__(self, device: str, place: Path) -> None:
        self.place, self._device = place, device

    def mount(self) -> None:
        _run("mount", "-t", "ext4", self._device, str(self.place))

    def cut(self) -> None:
        """Cut the power: from now on nothing reaches the disk, and every call fails."""
        descriptor = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _SHUT_DOWN, _WITHOUT_THE_JOURNAL)
        finally:
            os.close(descriptor)

    def unmount(self) -> None:
        if os.path.ismount(self.place):
            _run("umount", str(self.place))


@contextmanager
def power_cuts(folder: Path) -> Iterator[PowerCuts]:
    """Make a file system below ``folder`` and mount it; skip the test where that is impossible."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"a file system is mounted by root alone, with {', '.join(missing or _TOOLS)}")
    image, place = folder / "disk", folder / "mounted"
    place.mkdir()
    _run("truncate", "-s", _SIZE, str(image))
    _run("mkfs.ext4", "-q", str(image))
    with ExitStack() as undone:
        try:
            device = _run("losetup", "--find", "--show", str(image)).strip()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"there is no loop device: {error.stderr}")
        undone.callback(_run, "losetup", "--detach", device)
        disk = PowerCuts(device, place)
        undone.callback(disk.unmount)
        disk.mount()
        yield disk


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
