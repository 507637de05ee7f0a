"""Finds the files with facts about models: those that come with Chorus, and those of an installed litellm.

``release.model_map`` makes Chorus's files; a newer litellm's files are read instead. Nothing here imports litellm.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from chorus_cli.core.json import values
from chorus_cli.machine.installation import install_command

SHIPPED = Path(__file__).parents[1] / "data"
"""The folder of the facts about models, and of the vocabulary for counting tokens, that come with Chorus."""
MODELS, SOURCE = "models.json", "source.json"
"""Two files in `SHIPPED`: the map of models, and the version and the providers of the litellm that the map is from."""
_MODELS_OF_LITELLM = "model_prices_and_context_window_backup.json"
# Files of litellm: the first declares the providers with code of their own, the second those with only an address.
_PROVIDERS_WITH_CODE, _PROVIDERS_BY_ADDRESS = "types/utils.py", "llms/openai_like/providers.json"
_PROVIDER_CLASS = re.compile(r"^class LlmProviders\b.*?(?=^\S)", re.MULTILINE | re.DOTALL)
_PROVIDER_NAME = re.compile(r'^ +[A-Z]\w* = "([^"]+)"', re.MULTILINE)


def package_folder(name: str) -> Path | None:
    """Return the folder of an installed package without importing it; ``None`` if it is not installed."""
    spec = importlib.util.find_spec(name)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def has_litellm() -> bool:
    """Return whether litellm is installed."""
    return package_folder("litellm") is not None


def litellm_is_missing(model: str) -> str:
    """Return the sentence that says how to install litellm for ``model``."""
    return f"{model} needs the package litellm. Install it with: {install_command('litellm')}."


def newest_folder(shipped: Path = SHIPPED) -> Path:
    """Return the folder of the installed litellm if it is newer and has its map of models, else ``shipped``."""
    litellm = package_folder("litellm")
    if litellm is None or not (litellm / _MODELS_OF_LITELLM).is_file():
        return shipped
    # Importing the library that reads versions takes longer than reading the names of folders beside the package.
    installed = (folder.name.split("-")[1] for folder in litellm.parent.glob("litellm-*.dist-info"))
    known = values.text(_object(_read(shipped / SOURCE)).get("version"))
    return litellm if max(map(_numbers, installed), default=()) > _numbers(known) else shipped


def models_text(folder: Path) -> str:
    """Return the map of models in a folder of Chorus or litellm; empty if it cannot be read."""
    return _read(folder / MODELS) or _read(folder / _MODELS_OF_LITELLM)


def providers(folder: Path) -> frozenset[str]:
    """Return all providers; none if one file cannot be read, because that file's providers would count as unknown."""
    if source := _object(_read(folder / SOURCE)):
        return frozenset(map(str, values.items(source.get("providers"))))
    by_address = _object(_read(folder / _PROVIDERS_BY_ADDRESS))
    declaration = _PROVIDER_CLASS.search(_read(folder / _PROVIDERS_WITH_CODE))
    if declaration is None or not by_address:
        return frozenset()
    return frozenset(_PROVIDER_NAME.findall(declaration.group())) | frozenset(by_address)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def _object(text: str) -> values.Record:
    return values.record(values.parsed(text))
