"""The talk that falls silent in each of these tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.sessions.idle.silence import PatientClock, Talk, watches


@pytest.fixture
async def talk() -> AsyncIterator[Talk]:
    talk = Talk(PatientClock())
    yield talk
    await talk.timer.close()
    assert watches() == []
