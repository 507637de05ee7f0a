"""A running Chorus: its services are composed once, and only if something asks for them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from chorus_cli.app import Frontend, Options, opened


async def test_two_threads_that_ask_at_once_get_the_same_services(tmp_path: Path) -> None:
    async with opened(Options(home=str(tmp_path)), {}) as app:
        first, second = await asyncio.gather(asyncio.to_thread(app.services), asyncio.to_thread(app.services))
        assert first is second


async def test_leaving_closes_what_was_composed_and_composes_nothing(tmp_path: Path) -> None:
    async with opened(Options(home=str(tmp_path)), {}) as app:
        pass
    assert app._services is None


@pytest.mark.parametrize("in_background", [False, True])
async def test_only_a_frontend_that_says_so_folds_in_the_background(tmp_path: Path, *, in_background: bool) -> None:
    frontend = Frontend(is_chat=in_background)
    async with opened(Options(home=str(tmp_path)), {}, frontend) as app:
        assert (app.services().conversation.folds.tell is not None) == in_background


async def test_the_server_of_the_model_is_connected_to_in_the_background_one_connection_at_a_time(
    tmp_path: Path,
) -> None:
    connecting: list[str] = []
    connected = asyncio.Event()

    async def connect(model: str) -> None:
        connecting.append(model)
        await connected.wait()

    async with opened(Options(home=str(tmp_path), model="openai/m"), {}) as app:
        app.connect()
        turns = app.turns()
        app._turns = replace(turns, providers=replace(turns.providers, connect=connect))
        for _ in range(2):
            app.connect()
            await asyncio.sleep(0)
        assert connecting == ["openai/m"]
        connected.set()
        assert app._connecting
        await app._connecting
        app.connect()
        await asyncio.sleep(0)
        assert connecting == ["openai/m"] * 2
