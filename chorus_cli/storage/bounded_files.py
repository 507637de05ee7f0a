"""Files read up to a limit, and only if they are files: a pipe could wait for ever, and a device never ends."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chorus_cli.core.limits import Limit


def read_within(path: Path, limit: Limit) -> bytes:
    """Return the bytes of a file.

    Raises:
        OSError: it cannot be read, is larger than ``limit``, or is no file; its ``strerror`` says so.
    """
    with opened_file(path) as file:
        # A file that grows meanwhile has another size than it had.
        data = file.read(limit.most + 1) if os.fstat(file.fileno()).st_size <= limit.most else None
    if data is None or len(data) > limit.most:
        raise OSError(errno.EFBIG, f"it has more than {limit.size}", str(path))
    return data


@contextmanager
def opened_file(path: Path, *, follows_link: bool = True) -> Iterator[BinaryIO]:
    """Open a regular file to be read.

    Raises:
        OSError: it cannot be opened, is no regular file, or is a link and ``follows_link`` is false.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (0 if follows_link else os.O_NOFOLLOW))
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    with os.fdopen(descriptor, "rb") as file:
        yield file
