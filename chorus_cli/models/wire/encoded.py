"""Messages as JSON, encoded once and kept as long as requests repeat them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

_MOST_BYTES = 1 << 25

_Message = TypeVar("_Message", bound="Hashable")


class EncodedMessages(Generic[_Message]):
    """The encoded messages of the newest two requests, which the next one mostly repeats.

    Of each request at most ``most_bytes`` are kept: those of its first messages. Any thread may ask.
    """

    def __init__(self, encode: Callable[[_Message], bytes], most_bytes: int = _MOST_BYTES) -> None:
        self._encode = encode
        self._most_bytes = most_bytes
        self._newest: dict[_Message, bytes] = {}
        self._before: dict[_Message, bytes] = {}

    def joined(self, messages: Iterable[_Message]) -> bytes:
        """Return the JSON list of the messages of a request."""
        newest, before = self._newest, self._before
        kept: dict[_Message, bytes] = {}
        pieces: list[bytes] = []
        room = self._most_bytes
        for message in messages:
            # Nearly all are in the request before; to look one up costs about as much as to join it.
            piece = newest.get(message) or before.get(message) or kept.get(message) or self._encode(message)
            room -= len(piece)
            if room >= 0:
                kept[message] = piece
            pieces.append(piece)
        self._newest, self._before = kept, newest
        return b"[" + b",".join(pieces) + b"]"
