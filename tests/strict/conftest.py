"""A stage in a folder of the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from chorus_cli.storage.store import Store
from tests.fakes import FakeClock

# They assert for the tests, and are to tell what they compared.
pytest.register_assert_rewrite("tests.strict.by_services", "tests.strict.story")

from tests.strict.by_services import Stage  # noqa: E402 - it is imported when it is registered


@pytest.fixture
def stage(tmp_path: Path, store: Store, clock: FakeClock) -> Stage:
    return Stage(tmp_path, store, clock)
