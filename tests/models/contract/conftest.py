"""Every test of the contract asks by each of the ways to a model."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from tests.models.providers.ways import WAYS, MakeClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture(params=WAYS)
async def make_client(request: pytest.FixtureRequest) -> AsyncIterator[MakeClient]:
    async with AsyncExitStack() as built:
        yield MakeClient(request.param, built)
