"""The interface of a format's reader: a file to be recognised, and the source of its conversations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import tzinfo
    from pathlib import Path

    from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, Skipped


class Source(ABC):
    """A file or a folder of another program, read by one thread and never on the event loop.

    Files that stay open are entered into ``resources``.
    """

    def __init__(self) -> None:
        self.resources = ExitStack()

    @abstractmethod
    def conversations(self) -> Iterator[ForeignConversation | Skipped]:
        """Yield the conversations one by one; one that cannot be read is skipped.

        Raises:
            ImportFormatError: the file as a whole cannot be read any further.
        """

    def bytes_of(self, file: ForeignFile) -> bytes | None:
        """Return the bytes of a file of a message, ``None`` if the export does not have them."""
        return file.data

    def close(self) -> None:
        """Close the files that are open."""
        self.resources.close()


class Opening(NamedTuple):
    """A file to be recognised by its ``beginning``, or a folder, whose beginning is empty.

    ``zone`` is that of times without one, ``None`` being the system's.
    """

    path: Path
    beginning: bytes
    zone: tzinfo | None = None


class Format(NamedTuple):
    """A format: ``name`` for programs, as in the ``source`` of its conversations; ``title`` and ``files`` for people.

    ``opened`` returns the source of a file or folder, ``None`` if that is of another format.
    """

    name: str
    title: str
    files: str
    opened: Callable[[Opening], Source | None]
