"""A timeout counts all waits, however short each is."""

from __future__ import annotations

import asyncio

import pytest

from chorus_cli.machine.clock import Patience


async def test_waits_shorter_than_a_tick_use_up_the_patience() -> None:
    async def wait_often(patience: Patience) -> None:
        for _ in range(1_000):
            await patience.wait_for(asyncio.sleep(0.002))

    with pytest.raises(TimeoutError):
        await wait_often(Patience(0.3))
