"""The rows in a file of SQLite: every page that holds some is read, wherever it stands.

No tree is walked and nothing is believed but the pages themselves, as ``sqlite.org/fileformat2.html`` describes them:
a damaged root, header or list of free pages hides no row.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Value: TypeAlias = int | float | str | bytes | None

_INDEX_INNER, _TABLE_INNER, _INDEX_LEAF, _TABLE_LEAF = 0x02, 0x05, 0x0A, 0x0D
_HEADER_BYTES = {_INDEX_INNER: 12, _TABLE_INNER: 12, _INDEX_LEAF: 8, _TABLE_LEAF: 8}
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_FLOAT, _ZERO, _ONE, _FIRST_WITH_LENGTH = 7, 8, 9, 12
_PAGE_SIZES = (4096, 8192, 2048, 1024, 16_384, 32_768, 512, 65_536)
"""The sizes that a page may have, that of Chorus first."""

_SAMPLE_PAGES = 1000
_MOST_COLUMNS = 64


class Row(NamedTuple):
    """A row of a table, or an entry of an index, which has no ``number``; of one that is not whole the end is lost."""

    number: int | None
    values: tuple[Value, ...]
    is_whole: bool


def file_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of all tables and the entries of all indexes, page by page; damaged ones are left out.

    Text that is no UTF-8 is read with replacement characters.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        pages = max((_Pages(descriptor, each, -(-size // each)) for each in _PAGE_SIZES), key=_trees)
        for number in range(pages.number):
            yield from _rows(pages, pages.page(number))
    finally:
        os.close(descriptor)


class _Pages(NamedTuple):
    descriptor: int
    bytes_each: int
    number: int

    def page(self, number: int) -> bytes:
        """Return a page, the first one being 0."""
        return os.pread(self.descriptor, self.bytes_each, number * self.bytes_each)


def _trees(pages: _Pages) -> int:
    """Count the pages of a sample that would be pages of a tree if this were the size of a page.

    Cells lie at the end of their page.
    """
    sample = range(0, pages.number, max(1, pages.number // _SAMPLE_PAGES))
    ends = (max(_cells(pages.page(number)), default=0) for number in sample)
    return sum(pages.bytes_each // 2 <= end < pages.bytes_each for end in ends)


def _cells(page: bytes) -> tuple[int, ...]:
    """Return where the cells of a page begin; none of a page that is no part of a tree."""
    header = _HEADER_BYTES.get(page[0], 0) if page else 0
    number = int.from_bytes(page[3:5], "big")
    if not header or header + 2 * number > len(page):
        return ()
    return struct.unpack_from(f">{number}H", page, header)


def _rows(pages: _Pages, page: bytes) -> Iterator[Row]:
    if not page or page[0] == _TABLE_INNER:
        return
    for at in _cells(page):
        try:
            yield _row(pages, page, at)
        except (IndexError, struct.error):
            continue


def _row(pages: _Pages, page: bytes, at: int) -> Row:
    if page[0] == _INDEX_INNER:
        at += 4
    size, at = _number(page, at)
    number = None
    if page[0] == _TABLE_LEAF:
        number, at = _number(page, at)
    payload = _payload(pages, page, at, size)
    return Row(number, _values(payload), len(payload) == size)


def _payload(pages: _Pages, page: bytes, at: int, size: int) -> bytes:
    """Return the bytes of a row, with those on the pages that it overflows to, as far as they are there."""
    usable = pages.bytes_each
    most = usable - 35 if page[0] == _TABLE_LEAF else (usable - 12) * 64 // 255 - 23
    if size <= most:
        return page[at : at + size]
    least = (usable - 12) * 32 // 255 - 23
    local = least + (size - least) % (usable - 4)
    local = local if local <= most else least
    payload, following = bytearray(page[at : at + local]), page[at + local : at + local + 4]
    seen = {0}
    while len(payload) < size and (number := int.from_bytes(following, "big")) not in seen and number <= pages.number:
        seen.add(number)
        overflow = pages.page(number - 1)
        payload += overflow[4:]
        following = overflow[:4]
    return bytes(payload[:size])


def _values(payload: bytes) -> tuple[Value, ...]:
    end, at = _number(payload, 0)
    begin, values = end, list[Value]()
    while at < end and len(values) < _MOST_COLUMNS:
        kind, at = _number(payload, at)
        value, begin = _value(payload, begin, kind)
        values.append(value)
    return tuple(values)


def _value(payload: bytes, at: int, kind: int) -> tuple[Value, int]:
    """Return the value of a kind at a place, and the place after it; of a text that is cut off, the beginning."""
    if kind >= _FIRST_WITH_LENGTH:
        end = at + (kind - _FIRST_WITH_LENGTH) // 2
        found = payload[at:end]
        if end > len(payload) and not found:
            return None, end
        return found.decode("utf-8", "replace") if kind % 2 else found, end
    if kind in (_ZERO, _ONE):
        return kind - _ZERO, at
    end = at + (8 if kind == _FLOAT else _INTEGER_BYTES.get(kind, 0))
    if end == at or end > len(payload):
        return None, end
    if kind == _FLOAT:
        return struct.unpack_from(">d", payload, at)[0], end
    return int.from_bytes(payload[at:end], "big", signed=True), end


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return the number of variable length at a place, and the place after it."""
    value = 0
    for place in range(at, at + 8):
        value = value << 7 | data[place] & 0x7F
        if not data[place] & 0x80:
            return value, place + 1
    value = value << 8 | data[at + 8]
    return value - (1 << 64) if value >= 1 << 63 else value, at + 9
