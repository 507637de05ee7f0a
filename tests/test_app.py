"""A running Chorus: its services are composed once, and only if something asks for them."""

from __future__ import annotations

import asyncio
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
    frontend = Frontend(folds_in_background=in_background)
    async with opened(Options(home=str(tmp_path)), {}, frontend) as app:
        assert (app.services().conversation.rounds.folds._tell is not None) == in_background
