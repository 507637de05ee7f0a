"""Files of character cards: PNG pictures, JSON, and CHARX, which is a zip with ``card.json``.

A persona that was made from a card keeps the card's JSON in its folder, and also the whole file if it is PNG or CHARX.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from chorus_cli.cards.rules import png
from chorus_cli.cards.rules.card import Card, card_of, icon_entry, parsed
from chorus_cli.core import limits
from chorus_cli.core.errors import ImportFormatError
from chorus_cli.personas.files import CARD_ARCHIVE, CARD_FILE, CARD_PICTURE
from chorus_cli.storage.files import read_within

_PACKED = frozenset({".png", ".charx"})
ENDINGS = _PACKED | {".json"}

_ENTRY = "card.json"
_ZIP, _JSON = b"PK\x03\x04", b"{"
_MARK_BYTES = 64
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
_UTF_8_MARK = b"\xef\xbb\xbf"


class CardFile(NamedTuple):
    """A file with a card: its name, the card's JSON, the card, and the files that a persona keeps, by name."""

    name: str
    json: bytes
    card: Card
    kept: Mapping[str, bytes]


def read(path: Path) -> CardFile | None:
    """Return the card in a file, ``None`` if there is no card; a PNG or CHARX file without a card is an error."""
    try:
        found = _found(path) if path.is_file() else None
        return None if found is None else _card_file(path, *found)
    except (*_BROKEN, OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ImportFormatError(f"{path} cannot be read: {reason}.") from error
    except ImportFormatError as error:
        raise ImportFormatError(f"{path}: {error}") from None


def sorted_out(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Return the paths of cards, including cards in folders, and the other paths, including the folders.

    In a folder only files ending in .png or .charx are read, and damaged files are left out.
    """
    cards: list[Path] = []
    others: list[Path] = []
    for path in paths:
        is_card = read(path) is not None
        (cards if is_card else others).append(path)
        cards += _cards_in(path)
    return cards, others


def _cards_in(folder: Path) -> Iterator[Path]:
    try:
        files = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError:
        # The import of conversations reports this error.
        return
    for file in files:
        with suppress(ImportFormatError):
            if file.suffix.lower() in _PACKED and read(file) is not None:
                yield file


def stored_json(personas: Path, slug: str) -> bytes | None:
    """Return the JSON of the card that a persona was made from, ``None`` if there was no card."""
    return _stored(personas / slug / CARD_FILE)


def picture(personas: Path, slug: str, name: str) -> bytes:
    """Return the PNG picture of a persona's card, or a new picture in a plain colour if the card has no PNG picture."""
    folder = personas / slug
    return _stored(folder / CARD_PICTURE) or _icon(folder / CARD_ARCHIVE) or png.plain_picture(name)


def _icon(path: Path) -> bytes | None:
    """Return the main icon in a CHARX archive, ``None`` if it is missing or not a PNG picture."""
    if not path.is_file():
        return None
    try:
        with zipfile.ZipFile(path) as archive, archive.open(icon_entry(parsed(_entry(archive)))) as entry:
            found = entry.read(limits.CARD.most)
    except (*_BROKEN, KeyError, OSError, ImportFormatError):
        return None
    return found if found.startswith(png.SIGNATURE) else None


def _stored(path: Path) -> bytes | None:
    try:
        return read_within(path, limits.CARD)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ImportFormatError(f"{path} cannot be read: {error.strerror}.") from error


def _found(path: Path) -> tuple[bytes, dict[str, bytes]] | None:
    """Return JSON that may be a card, and the whole file if it is PNG or CHARX; ``None`` for another kind of file."""
    with path.open("rb") as file:
        beginning = file.read(_MARK_BYTES)
    if beginning.startswith(png.SIGNATURE):
        data = read_within(path, limits.CARD)
        found = png.card_json(data)
        if found is None:
            raise ImportFormatError("This picture holds no character card.")
        return found, {CARD_PICTURE: data}
    if beginning.startswith(_ZIP):
        with zipfile.ZipFile(path) as archive:
            found = _entry(archive) if _ENTRY in archive.namelist() else None
        return None if found is None else (found, {CARD_ARCHIVE: read_within(path, limits.CARD)})
    is_json = beginning.removeprefix(_UTF_8_MARK).lstrip().startswith(_JSON)
    return (path.read_bytes(), {}) if is_json and path.stat().st_size <= limits.CARD_JSON.most else None


def _entry(archive: zipfile.ZipFile) -> bytes:
    """Return the card's JSON in an archive, at most one byte above the limit: the archive may state a wrong size."""
    with archive.open(_ENTRY) as entry:
        return entry.read(limits.CARD_JSON.most + 1)


def _card_file(path: Path, json: bytes, kept: Mapping[str, bytes]) -> CardFile | None:
    """Return the card, ``None`` if a JSON file holds none; a PNG or CHARX file without a card is an error."""
    if len(json) > limits.CARD_JSON.most:
        raise ImportFormatError(f"The card is larger than {limits.CARD_JSON.size}.")
    try:
        card = card_of(parsed(json))
    except ImportFormatError:
        if kept:
            raise
        return None
    if card is None and kept:
        raise ImportFormatError("The JSON in it is not a character card.")
    if card is not None and not card.name:
        card = replace(card, name=path.stem)
    return None if card is None else CardFile(path.name, json, card, {CARD_FILE: json, **kept})
