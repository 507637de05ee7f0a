"""What the tests of the adapters share: litellm imported once, and no key of the machine in the environment."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def only_test_keys(monkeypatch: pytest.MonkeyPatch) -> str:
    """Take every key and address out of the environment, set one for OpenAI, and return it."""
    for name in os.environ:
        if name.endswith(("_API_KEY", "_TOKEN", "_API_BASE", "_BASE_URL")):
            monkeypatch.delenv(name)
    key = "sk-test-0123456789abcdef"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    return key
