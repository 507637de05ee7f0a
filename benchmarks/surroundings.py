"""The environment of the measured programs: without the user's settings, with bytecode if possible."""

from __future__ import annotations

import gc
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PREFIXES = ("CHORUS_", "LITELLM_", "OPENAI_", "ANTHROPIC_", "OLLAMA_", "PROMPT_TOOLKIT_")
_SUFFIXES = ("_API_KEY", "_API_BASE", "_BASE_URL")
_PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy"})
_WITHOUT_BYTECODE = "PYTHONDONTWRITEBYTECODE"


def isolated(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return ``environment`` with ``home`` as Chorus's home, without keys, servers and proxies."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith(_PREFIXES)
        and not name.endswith(_SUFFIXES)
        and name.lower() not in _PROXIES
        and name != _WITHOUT_BYTECODE
    }
    return {**kept, "CHORUS_HOME": str(home), "LC_ALL": "C.UTF-8"}


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder and delete it in the end, with its contents."""
    folder = Path(tempfile.mkdtemp(prefix="chorus-benchmark-"))
    try:
        yield folder
    finally:
        # A program that is still ending may put a last file there.
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def libraries_frozen() -> Iterator[None]:
    """Keep the collector from scanning the imports of other rows, as the chat does with its libraries."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
