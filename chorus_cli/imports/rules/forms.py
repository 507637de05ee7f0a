"""What a reader declares about its format: how the files are told from others, and who reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import tzinfo

    from chorus_cli.imports.rules.conversation import ForeignConversation


class FileFacts(NamedTuple):
    """The name of a file without its suffix, and the zone of times without one, ``None`` being the system's."""

    name: str
    zone: tzinfo | None = None


class Items(NamedTuple):
    """A format of JSON with a conversation in each item of an array, in a zip archive, a folder or a file.

    ``name`` is the ``source`` of its conversations; ``title`` and ``files`` tell people what it is and where.
    """

    name: str
    title: str
    files: str
    is_item: Callable[[object], bool]
    read: Callable[[object], ForeignConversation]


class Lines(NamedTuple):
    """A format of files with one conversation each, and a value of JSON in each line.

    ``is_beginning`` tells it by the values in the first whole lines. One that begins with a very long line, or is a
    single object over many lines, is told by ``names``, which stand near its beginning.
    """

    name: str
    title: str
    files: str
    is_beginning: Callable[[Sequence[object]], bool]
    names: tuple[bytes, ...]
    read: Callable[[Iterable[object], FileFacts], ForeignConversation]
