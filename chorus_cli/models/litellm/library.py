"""Finds, configures and imports litellm; the import takes seconds and would fetch files if it were allowed to."""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import threading
from collections.abc import Iterator, MutableMapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import cache
from types import ModuleType

from chorus_cli.models.providers.model_map import installation_folder

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
    # Its log lines would appear on the screen and may quote a request; errors are shown as sentences.
    "LITELLM_LOG": "CRITICAL",
}
# It prints nothing, downloads no tokenizer, and leaves out parameters that a model does not take.
_OPTIONS = ("suppress_debug_info", "disable_hf_tokenizer_download", "drop_params")
_FIRST_REQUEST_MODULES = ("openai.resources", "litellm.litellm_core_utils.default_encoding", "litellm.proxy._types")
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_TRANSPORTS = "litellm.llms.custom_httpx.aiohttp_transport"
_importing = threading.Lock()


def prepare_environment(environment: MutableMapping[str, str] = os.environ) -> None:
    """Set the variables that keep litellm offline and quiet; they have no effect after its import."""
    environment.update(_OFFLINE)
    for name, value in _PREFERENCES.items():
        environment.setdefault(name, value)


def load() -> ModuleType:
    """Import and configure litellm, once, and return it. Any thread may call it."""
    with _importing:
        return _imported()


async def load_beside() -> ModuleType:
    """Import litellm in a daemon thread; the end of the process does not wait for it, as it would for an executor."""
    imported: Future[ModuleType] = Future()
    # From here on the import cannot be cancelled, only the wait for it.
    imported.set_running_or_notify_cancel()

    def run() -> None:
        try:
            imported.set_result(load())
        except Exception as error:  # noqa: BLE001 - the awaiting caller gets it
            imported.set_exception(error)

    threading.Thread(target=run, name="import", daemon=True).start()
    return await asyncio.wrap_future(imported)


def loaded() -> ModuleType | None:
    """Return litellm if it is imported and no import is in progress, so that its use does not block the keyboard."""
    return None if _importing.locked() or not _imported.cache_info().currsize else _imported()


def warm() -> None:
    """Import litellm and the modules of its first request, half a second that would freeze the keyboard then."""
    with _importing:
        _imported()
        with _garbage_collector_paused():
            for name in _FIRST_REQUEST_MODULES:
                # A later version may have moved one; then the first request is slower, no more.
                with suppress(ImportError):
                    importlib.import_module(name)


@cache
def _imported() -> ModuleType:
    installation_folder()
    prepare_environment()
    with _garbage_collector_paused():
        # litellm takes two seconds to import; only who talks to a provider waits for it.
        library = importlib.import_module("litellm")
    for name in _OPTIONS:
        setattr(library, name, True)
    # Its own handler writes some lines to standard output.
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        for handler in tuple(logger.handlers):
            logger.setLevel(handler.level)
            logger.removeHandler(handler)
    # A later version may have moved its transport; then its answers have no bounds.
    with suppress(ImportError, AttributeError):
        from chorus_cli.models.litellm.answers import bound  # it imports httpx

        bound(importlib.import_module(_TRANSPORTS).LiteLLMAiohttpTransport)
    return library


@contextmanager
def _garbage_collector_paused() -> Iterator[None]:
    """Keep the garbage collector from scanning the objects of an import, which live as long as the process."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
