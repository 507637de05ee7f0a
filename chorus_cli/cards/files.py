"""Files of character cards: PNG pictures, JSON, and CHARX, which is a zip with ``card.json``.

A persona that was made from a card keeps the card's JSON in its folder, and also the whole file if it is PNG or CHARX.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from io import BufferedReader
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
LARGEST_BYTES = limits.CARD.most
LARGEST_JSON_BYTES = limits.CARD_JSON.most

_ENTRY = "card.json"
_ZIP, _WEBP, _JSON = b"PK\x03\x04", b"WEBP", b"{"
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
    """Return the card in a file, ``None`` if the file is of another kind.

    Raises:
        ImportFormatError: the file cannot be read, is a picture without a card, or has a damaged or too large card.
    """
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            found = _found(path, file)
        return None if found is None else _card_file(path, *found)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ImportFormatError(f"{path} cannot be read: {reason}.") from error
    except ImportFormatError as error:
        raise ImportFormatError(f"{path}: {error}") from None


def sorted_out(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Return the paths of cards, also of cards in folders, and the other paths, among them the folders.

    In a folder only files ending in .png or .charx are read, and damaged ones are left out.
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
    """Return the PNG picture that the persona keeps of its card; without a picture, a new one of a plain colour."""
    folder = personas / slug
    return _stored(folder / CARD_PICTURE) or _icon(folder / CARD_ARCHIVE) or png.plain_picture(name)


def _icon(path: Path) -> bytes | None:
    """Return the main icon in a CHARX archive, ``None`` if it is missing or no PNG picture."""
    if not path.is_file():
        return None
    try:
        with zipfile.ZipFile(path) as archive, archive.open(icon_entry(parsed(_entry(archive)))) as entry:
            found = entry.read(LARGEST_BYTES)
    except (*_BROKEN, KeyError, OSError):
        return None
    return found if found.startswith(png.SIGNATURE) else None


def _stored(path: Path) -> bytes | None:
    try:
        return read_within(path, limits.CARD)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ImportFormatError(f"{path} cannot be read: {error.strerror}.") from error


def _found(path: Path, file: BufferedReader) -> tuple[bytes, dict[str, bytes]] | None:
    """Return JSON that may be a card, and the whole file if it is PNG or CHARX; ``None`` for another kind of file."""
    beginning = file.read(_MARK_BYTES)
    file.seek(0)
    if beginning.startswith(png.SIGNATURE):
        data = _whole(file)
        found = png.card_json(data)
        if found is None:
            raise ImportFormatError("This picture holds no character card.")
        return found, {CARD_PICTURE: data}
    if beginning[8:12] == _WEBP:
        raise ImportFormatError("A card in a WebP picture is outside the specification. Export it as PNG or JSON.")
    if beginning.startswith(_ZIP):
        try:
            with zipfile.ZipFile(file) as archive:
                found = _entry(archive) if _ENTRY in archive.namelist() else None
        except _BROKEN as error:
            raise ImportFormatError(f"This archive cannot be read ({error}).") from error
        file.seek(0)
        return None if found is None else (found, {CARD_ARCHIVE: _whole(file)})
    is_json = beginning.removeprefix(_UTF_8_MARK).lstrip().startswith(_JSON)
    return (file.read(), {}) if is_json and path.stat().st_size <= LARGEST_JSON_BYTES else None


def _entry(archive: zipfile.ZipFile) -> bytes:
    """Return the card's JSON in an archive; its bytes are counted, because the archive may state a wrong size."""
    with archive.open(_ENTRY) as entry:
        found = entry.read(LARGEST_JSON_BYTES + 1)
    if len(found) > LARGEST_JSON_BYTES:
        raise ImportFormatError(f"The card in this archive is larger than {LARGEST_JSON_BYTES // 1_000_000} MB.")
    return found


def _card_file(path: Path, json: bytes, kept: Mapping[str, bytes]) -> CardFile | None:
    """Return the card, ``None`` if a JSON file holds none; a PNG or CHARX file without a card is an error."""
    if len(json) > LARGEST_JSON_BYTES:
        raise ImportFormatError(f"The card is larger than {LARGEST_JSON_BYTES // 1_000_000} MB.")
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


def _whole(file: BufferedReader) -> bytes:
    data = file.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        raise ImportFormatError(f"A file with a card can be up to {LARGEST_BYTES // 1_000_000} MB; this one is larger.")
    return data
