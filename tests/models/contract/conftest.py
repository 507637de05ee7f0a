"""Every test of the contract asks by each of the ways to a model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tests.models.providers.asked_models import WAYS, MakeClient


@pytest.fixture(params=WAYS)
async def make_client(request: pytest.FixtureRequest) -> AsyncIterator[MakeClient]:
    async with AsyncExitStack() as built:
        yield MakeClient(request.param, built)
