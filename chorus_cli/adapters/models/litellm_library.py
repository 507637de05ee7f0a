"""Finds, prepares and imports litellm, which takes seconds and would fetch files at its import if it were let."""

from __future__ import annotations

import asyncio
import gc
import importlib
import importlib.util
import os
import threading
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping
    from types import ModuleType

_OFFLINE = {
    # Without these litellm fetches its price map and its header list when it is imported.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    # Counting tokens for a Llama model would ask Hugging Face for a vocabulary, for 23 seconds when that is blocked.
    "HF_HUB_OFFLINE": "1",
}
_PREFERENCES = {
    # Any other mode reads a .env file from the folders above the installation.
    "LITELLM_MODE": "PRODUCTION",
    # Its lines would land in the middle of the screen and may quote a request; an error reaches the user as a sentence.
    "LITELLM_LOG": "CRITICAL",
}
_FIRST_REQUEST_MODULES = (
    "openai.resources",
    "litellm.litellm_core_utils.default_encoding",
    "litellm.proxy._types",
)

_importing = threading.Lock()


def installation_folder() -> Path:
    """Return the folder of the installed litellm without importing it.

    Raises:
        ModelError: it is not installed.
    """
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        raise ModelError(
            "litellm is not installed, and every model but chorus/eliza needs it. Install it with: pip install litellm."
        )
    return Path(spec.origin).parent


def prepare_environment(environment: MutableMapping[str, str] = os.environ) -> None:
    """Set the variables that keep litellm offline and quiet; they count only before it is imported."""
    environment.update(_OFFLINE)
    for name, value in _PREFERENCES.items():
        environment.setdefault(name, value)


def load() -> ModuleType:
    """Import litellm, set it up, and return it; afterwards this costs nothing. Any thread may call it.

    Raises:
        ModelError: it is not installed.
    """
    with _importing:
        return _imported()


async def load_beside() -> ModuleType:
    """Import litellm beside the event loop; a process that ends does not wait for it, as it would for an executor.

    Raises:
        ModelError: it is not installed.
    """
    imported: Future[ModuleType] = Future()
    # From here on it cannot be cancelled: only who waits for it can.
    imported.set_running_or_notify_cancel()

    def run() -> None:
        try:
            imported.set_result(load())
        except Exception as error:  # noqa: BLE001 - whoever awaits it is told
            imported.set_exception(error)

    threading.Thread(target=run, name="import", daemon=True).start()
    return await asyncio.wrap_future(imported)


def loaded() -> ModuleType | None:
    """Return litellm if it is there and nobody imports anything of it, so that using it keeps no key waiting."""
    return None if _importing.locked() or not _imported.cache_info().currsize else _imported()


def warm() -> None:
    """Import litellm and what its first request would import, half a second that would freeze the keyboard there."""
    with _importing:
        _imported()
        _import_for_first_request()


@cache
def _imported() -> ModuleType:
    """Import litellm and keep it from printing, from the network, and from refusing settings that a model lacks."""
    installation_folder()
    prepare_environment()
    with _garbage_collector_paused():
        # litellm takes two seconds to import; only who talks to a provider waits for it.
        import litellm  # noqa: PLC0415
    litellm.suppress_debug_info = True
    litellm.disable_hf_tokenizer_download = True
    litellm.drop_params = True
    library: ModuleType = litellm
    return library


@cache
def _import_for_first_request() -> None:
    with _garbage_collector_paused():
        for name in _FIRST_REQUEST_MODULES:
            # A later version may have moved one; then the first request is slower, no more.
            with suppress(ImportError):
                importlib.import_module(name)


@contextmanager
def _garbage_collector_paused() -> Iterator[None]:
    """Spare the collector the thousands of modules that an import makes and that live as long as the process."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
