"""Fixtures for the adapters: a mock provider, litellm, and an environment without the machine's own keys."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from chorus_cli.adapters.models.litellm import library

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
def test_key(monkeypatch: pytest.MonkeyPatch) -> str:
    """Take the machine's keys and addresses out of the environment, put a key for OpenAI in, and return that."""
    for name in list(os.environ):
        if name.endswith(("_KEY", "_TOKEN", "_API_BASE", "_BASE_URL")):
            monkeypatch.delenv(name)
    key = "sk-test-0123456789abcdef"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    return key


@pytest.fixture(scope="module")
def _litellm_is_loaded() -> None:
    library.warm()


@pytest.fixture
async def _no_connection_outlives_the_event_loop_of_its_test() -> AsyncIterator[None]:
    yield
    # litellm keeps its clients, and one that is thrown away later complains of its loop that is gone.
    await library.load().close_litellm_async_clients()
