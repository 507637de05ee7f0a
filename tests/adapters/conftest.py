"""A fixture for the adapters: an environment without the machine's own keys."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def test_key(monkeypatch: pytest.MonkeyPatch) -> str:
    """Take the machine's keys and addresses out of the environment, put a key for OpenAI in, and return that."""
    for name in list(os.environ):
        if name.endswith(("_KEY", "_TOKEN", "_API_BASE", "_BASE_URL")):
            monkeypatch.delenv(name)
    key = "sk-test-0123456789abcdef"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    return key
