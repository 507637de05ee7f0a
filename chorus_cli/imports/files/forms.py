"""Formats by the forms that readers declare: exports of JSON, read piece by piece, files of lines, and texts."""

from __future__ import annotations

import codecs
import json
import re
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import islice
from typing import IO, TYPE_CHECKING

from chorus_cli.core import limits
from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json import values
from chorus_cli.imports.files.source import Format, Source, archive, folder, is_archive, or_skipped
from chorus_cli.imports.rules.assembly import FileFacts, assembled
from chorus_cli.imports.rules.conversation import Skipped

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from chorus_cli.imports.files.source import Container, Opening
    from chorus_cli.imports.rules.assembly import Items, Lines, Texts
    from chorus_cli.imports.rules.conversation import ForeignConversation

_NOT_JSON = "It is not JSON."

_LARGEST_ITEM = limits.IMPORTED_CONVERSATION.most
_LEAST_READ = 1 << 20
_MOST_READ = 1 << 23
_CUT_CHARACTERS = 16
"""An error this near to the end of the text may come from a number, a word or an escape that is cut there."""

_BLANKS = re.compile(r"[ \t\r\n,]*")
_OUTSIDE = re.compile(r'["\[\]{},]')
_INSIDE = re.compile(r'["\\]')
_ANY = re.compile(".", re.DOTALL)
# A control character within a string is no reason to lose a conversation.
_DECODER = json.JSONDecoder(strict=False)


def json_items(file: IO[bytes], largest: int = _LARGEST_ITEM) -> Iterator[object]:
    """Yield the items of an array, or the one value of a file that has no array; ``Skipped`` for one that is broken."""
    text = _Text(file, largest)
    first = text.next_sign()
    if first not in {"[", "{"}:
        raise ImportFormatError(_NOT_JSON)
    if first == "{":
        yield text.item(is_only=True)
        return
    text.position += 1
    while (sign := text.next_sign()) not in {"", "]"}:
        yield text.item()
    if not sign:
        yield Skipped("file that ends before its end")


class _Text:
    """The part of a file that is read, and the ``position`` within it, in characters."""

    def __init__(self, file: IO[bytes], largest: int) -> None:
        self.position = 0
        self._buffer = ""
        self._largest = largest
        self._file = file
        self._is_at_end = False
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")

    def next_sign(self) -> str:
        """Move over blanks and commas, and return the character after them, empty at the end of the file."""
        while True:
            self.position = self._blanks_end()
            if self.position < len(self._buffer):
                return self._buffer[self.position]
            if not self._read_on():
                return ""

    def item(self, *, is_only: bool = False) -> object:
        """Return the value at the position and move behind it, unless it is the only one and too large."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self.position)
            except json.JSONDecodeError as error:
                if self._is_at_end or not self._may_be_cut(error):
                    return self._skipped("conversation that is no valid JSON")
            except (ValueError, RecursionError):
                return self._skipped("conversation that is nested too deeply")
            else:
                # A number at the end of the text may go on.
                if end < len(self._buffer) or self._is_at_end:
                    self.position = end
                    return value
            if len(self._buffer) - self.position > self._largest:
                reason = f"conversation of more than {self._largest:,} characters"
                return Skipped(reason) if is_only else self._skipped(reason)
            self._read_on()

    def _blanks_end(self) -> int:
        found = _BLANKS.match(self._buffer, self.position)
        return found.end() if found else self.position

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        is_near_end = error.pos >= len(self._buffer) - _CUT_CHARACTERS
        return is_near_end or error.msg.startswith("Unterminated string")

    def _read_on(self) -> bool:
        """Drop the text before the position and read about as much as is left; return whether there was any."""
        self._buffer, self.position = self._buffer[self.position :], 0
        wanted = min(max(len(self._buffer), _LEAST_READ), _MOST_READ)
        data = self._file.read(wanted)
        self._buffer += self._decoder.decode(data, final=not data)
        self._is_at_end = not data
        return bool(data)

    def _skipped(self, reason: str) -> Skipped:
        """Move behind an item that cannot be read, by its brackets alone."""
        depth = 0
        while (sign := self._next_bracket()) is not None:
            depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(sign, 0)
            if depth < 0 and sign == "]":
                # The end of the array, which is no part of the item.
                self.position -= 1
            if depth <= 0:
                break
        return Skipped("conversation that is cut off" if sign is None else reason)

    def _next_bracket(self) -> str | None:
        """Move behind the next bracket or comma that is not in a string and return it, ``None`` at the end."""
        while (sign := self._next_of(_OUTSIDE)) == '"':
            while (inside := self._next_of(_INSIDE)) == "\\":
                self._next_of(_ANY)
            if inside is None:
                return None
        return sign

    def _next_of(self, signs: re.Pattern[str]) -> str | None:
        while (found := signs.search(self._buffer, self.position)) is None:
            self.position = len(self._buffer)
            if not self._read_on():
                return None
        self.position = found.end()
        return found[0]


LONGEST_LINE_BYTES = limits.IMPORTED_LINE.most
"""The longest line that is read: a screenshot or the output of a tool may have many megabytes."""

_CHUNK_BYTES = 1 << 20


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file; an error of the system becomes a sentence."""
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise ImportFormatError(f"{path} cannot be read: {error.strerror}.") from error


def values_in(path: Path, longest: int = LONGEST_LINE_BYTES) -> Iterator[object]:
    """Yield the value in each line; ``None`` for one that is cut, too long or no JSON. Empty lines are left out."""
    with opened(path) as file:
        while line := file.readline(longest):
            if len(line) == longest and not line.endswith(b"\n"):
                _pass_over_line(file)
                yield None
            elif line.strip():
                yield parsed(line)


def value_in(path: Path) -> Iterator[object]:
    """Yield the one value of a file, ``None`` if it is too long or no JSON."""
    with opened(path) as file:
        whole = file.read(LONGEST_LINE_BYTES + 1)
    yield parsed(whole) if len(whole) <= LONGEST_LINE_BYTES else None


def parsed(line: bytes) -> object:
    """Return the value in a line or a file, ``None`` if it is no JSON."""
    return values.parsed(line.decode("utf-8-sig", "replace"))


def first_values(beginning: bytes, most: int = 20) -> list[object]:
    """Return the values in the first whole lines of a file."""
    whole, _, _ = beginning.rpartition(b"\n")
    return [parsed(line) for line in whole.split(b"\n")[:most] if line.strip()]


def _pass_over_line(file: BinaryIO) -> None:
    while (rest := file.readline(_CHUNK_BYTES)) and not rest.endswith(b"\n"):
        pass


_CONVERSATIONS = re.compile(r"conversations(?:-(\d{1,9}))?\.json")
_LOOKED_AT = 5
"""The number of items, and of files, among which the format is recognised."""


def items(form: Items) -> Format:
    """Return the format of exports."""
    return Format(form.name, form.title, form.files, partial(_export, form))


def lines(form: Lines) -> Format:
    """Return the format of files of lines."""
    return Format(form.name, form.title, form.files, partial(_session, form))


def texts(form: Texts) -> Format:
    """Return the format of files of text."""
    return Format(form.name, form.title, form.files, partial(_text, form))


def _values(container: Container, name: str) -> Generator[object, None, None]:
    try:
        with container.opened(name) as file:
            yield from json_items(file)
    except ImportFormatError as error:
        yield Skipped(str(error))


def _export(form: Items, opening: Opening) -> Source | None:
    with ExitStack() as resources:
        container, names = _located(opening, resources)
        found = [value for name in names[:_LOOKED_AT] for value in _first_values(container, name)]
        if any(map(form.is_item, found)):
            # One file that is damaged does not keep the others away.
            return Source(
                lambda: (_read(form, value) for name in names for value in _values(container, name)),
                lambda file: container.bytes_of(file.entry) if file.data is None else file.data,
                resources.pop_all().close,
            )
    reasons = [value.reason for value in found if isinstance(value, Skipped) and value.reason != _NOT_JSON]
    if names and is_archive(opening.beginning) and len(reasons) == len(found):
        reason = reasons[-1] if reasons else "it has no conversations"
        raise ImportFormatError(f"Nothing can be imported from {opening.path}: {reason}.")
    return None


def _read(form: Items, value: object) -> ForeignConversation | Skipped:
    if isinstance(value, Skipped):
        return value
    return or_skipped(form.read, value) if form.is_item(value) else Skipped("entry that is no conversation")


def _first_values(container: Container, name: str) -> list[object]:
    with closing(_values(container, name)) as found:
        return list(islice(found, _LOOKED_AT))


def _located(opening: Opening, resources: ExitStack) -> tuple[Container, Sequence[str]]:
    """Return the container of an export, and the names of the files that may hold its conversations."""
    path = opening.path
    if is_archive(opening.beginning):
        container = archive(path, resources)
        return container, _names_of_conversations(container.names)
    if opening.beginning:
        is_json = opening.beginning.removeprefix(codecs.BOM_UTF8).lstrip().startswith((b"[", b"{"))
        return folder(path.parent), (path.name,) if is_json else ()
    names = _names_of_conversations(_files_in(path))
    return folder(path), names if names and _CONVERSATIONS.fullmatch(names[0]) else ()


def _files_in(path: Path) -> list[str]:
    try:
        return [each.name for each in path.iterdir() if each.is_file()]
    except OSError:
        return []


def _names_of_conversations(names: Sequence[str]) -> list[str]:
    """Return the shards in their order, or in an archive without those all files of JSON."""
    matches = ((_CONVERSATIONS.fullmatch(name.rpartition("/")[2]), name) for name in names)
    found = [(int(match[1] or -1), name) for match, name in matches if match]
    return [name for _, name in sorted(found)] or [name for name in names if name.endswith(".json")]


def _session(form: Lines, opening: Opening) -> Source | None:
    path, beginning = opening.path, opening.beginning.removeprefix(codecs.BOM_UTF8)
    first, file = first_values(beginning), FileFacts(path.stem, opening.zone)
    if form.is_beginning(first):
        return Source(lambda: _conversations(form, values_in(path), file))
    is_whole_line = bool(first) and first[0] is not None
    is_json = not is_whole_line and beginning.lstrip().startswith((b"{", b"["))
    if not is_json or not all(name in beginning for name in form.names):
        return None
    if form.names:
        read = value_in if b"\n" in beginning else values_in
        return Source(lambda: _conversations(form, read(path), file))
    # A first line may be longer than the beginning, so that lines of objects are told from one object only here.
    if beginning.lstrip().startswith(b"{") and form.is_beginning([next(values_in(path), None)]):
        return Source(lambda: _conversations(form, values_in(path), file))
    container = folder(path.parent)
    if not form.is_beginning(_first_values(container, path.name)):
        return None
    return Source(lambda: _conversations(form, _values(container, path.name), file))


def _conversations(
    form: Lines, values_of_lines: Iterable[object], file: FileFacts
) -> Iterator[ForeignConversation | Skipped]:
    return (or_skipped(form.read, *part) for part in form.parted(values_of_lines, file))


def _text(form: Texts, opening: Opening) -> Source | None:
    path, file = opening.path, FileFacts(opening.path.stem, opening.zone)
    if not opening.beginning.removeprefix(codecs.BOM_UTF8).lstrip().startswith(form.beginning):
        return None
    return Source(lambda: (or_skipped(assembled, *each) for each in form.read(whole_text(path), file)))


def whole_text(path: Path) -> str:
    """Return the text of a file, in which broken signs are replaced."""
    with opened(path) as file:
        data = file.read(limits.IMPORTED_FILE.most + 1)
    if len(data) > limits.IMPORTED_FILE.most:
        raise ImportFormatError(f"{path} has over {limits.IMPORTED_FILE.size}.")
    return data.decode("utf-8-sig", "replace")
