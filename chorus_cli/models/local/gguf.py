"""The header of a GGUF file, the format of llama.cpp's models."""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_MAGIC = b"GGUF"
_LENGTH, _TYPE = struct.Struct("<Q"), struct.Struct("<I")
_TEXT_TYPE = 8
_NUMBERS = {4: struct.Struct("<I"), 10: struct.Struct("<Q")}
# The largest vocabularies take ten megabytes; after the header come gigabytes of weights.
_LONGEST_HEADER_BYTES = 64_000_000
_LONGEST_TEXT_BYTES = 1_000_000


class Header(NamedTuple):
    """Facts about a model: the context it was trained for, in tokens, if it says so, and its chat template."""

    trained_tokens: int | None
    template: str


def header(path: Path) -> Header:
    """Return the facts in the header of ``path``.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a GGUF file.
    """
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError(path)
        length = min(path.stat().st_size, _LONGEST_HEADER_BYTES)
        with mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ) as data:
            architecture = _text(data, "general.architecture")
            trained = _number(data, f"{architecture}.context_length")
            return Header(trained, _text(data, "tokenizer.chat_template"))


def _text(data: mmap.mmap, key: str) -> str:
    """Return the text stored under ``key``; empty if there is none."""
    place = _place(data, key, _TEXT_TYPE)
    if place is None or place + _LENGTH.size > len(data):
        return ""
    (length,) = _LENGTH.unpack_from(data, place)
    begin = place + _LENGTH.size
    return data[begin : begin + min(length, _LONGEST_TEXT_BYTES)].decode(errors="replace")


def _number(data: mmap.mmap, key: str) -> int | None:
    for type_, shape in _NUMBERS.items():
        place = _place(data, key, type_)
        if place is not None and place + shape.size <= len(data):
            (number,) = shape.unpack_from(data, place)
            return int(number)
    return None


def _place(data: mmap.mmap, key: str, type_: int) -> int | None:
    """Return where the value under ``key`` begins: after the key with its length and the value's type.

    The bytes are searched, which is a hundred times as fast as reading entry by entry past a vocabulary.
    """
    written = key.encode()
    entry = _LENGTH.pack(len(written)) + written + _TYPE.pack(type_)
    found = data.find(entry)
    return None if found < 0 else found + len(entry)
