"""Configures and imports litellm; the import takes seconds, and would fetch files without the configuration."""

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

_OFFLINE = {
    # Without these litellm fetches its price map at its import and a list of Anthropic's headers at a request.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    # If the option below fails, litellm must not ask Hugging Face for a tokenizer: blocked, this takes 23 seconds.
    "HF_HUB_OFFLINE": "1",
}
_PREFERENCES = {
    # In its default mode litellm reads a .env file from the folders above the installation.
    "LITELLM_MODE": "PRODUCTION",
    # litellm's log lines would appear on the screen and may quote a request. Chorus shows errors as sentences.
    "LITELLM_LOG": "CRITICAL",
}
# With these options litellm prints nothing, downloads no tokenizer, and leaves out parameters that a model refuses.
_OPTIONS = ("suppress_debug_info", "disable_hf_tokenizer_download", "drop_params")
_FIRST_REQUEST_MODULES = ("openai.resources", "litellm.litellm_core_utils.default_encoding", "litellm.proxy._types")
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_TRANSPORTS = "litellm.llms.custom_httpx.aiohttp_transport"
_importing = threading.Lock()


def prepare_environment(environment: MutableMapping[str, str] = os.environ) -> None:
    """Set the variables that keep litellm from fetching files; set the preferences that the user has not set."""
    environment.update(_OFFLINE)
    for name, value in _PREFERENCES.items():
        environment.setdefault(name, value)


def load() -> ModuleType:
    """Return litellm, which the first call imports and configures; any thread may call this."""
    with _importing:
        return _imported()


async def load_beside() -> ModuleType:
    """Import litellm in a daemon thread and return it; a thread of an executor would keep the process from ending."""
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


def warm() -> None:
    """Import litellm and the modules of its first request; a later import freezes the keyboard for half a second."""
    with _importing:
        _imported()
        with _garbage_collector_paused():
            for name in _FIRST_REQUEST_MODULES:
                # A later version of litellm may lack a module; then only the first request is slower.
                with suppress(ImportError):
                    importlib.import_module(name)


@cache
def _imported() -> ModuleType:
    prepare_environment()
    with _garbage_collector_paused():
        # The import takes two seconds, and only a user who talks to a provider needs it.
        library = importlib.import_module("litellm")
    for name in _OPTIONS:
        setattr(library, name, True)
    # litellm's own handler writes some lines to standard output.
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        for handler in tuple(logger.handlers):
            logger.setLevel(handler.level)
            logger.removeHandler(handler)
    # A later version of litellm may lack this class; then answers are not limited.
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
