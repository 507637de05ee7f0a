"""A command reads the context once: one transaction, and the persona's files one time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.world import World

_listeners: list[list[str]] = []


def _listen(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open":
        for opened in _listeners:
            opened.append(str(arguments[0]))


# A hook cannot be removed; with no listener it does nothing.
sys.addaudithook(_listen)


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """The paths that are opened meanwhile."""
    opened: list[str] = []
    _listeners.append(opened)
    try:
        yield opened
    finally:
        _listeners.remove(opened)


@pytest.mark.parametrize("line", ["/context", "/context why", "/context ops", "/context at 1h", "/context 24h?"])
async def test_a_command_that_shows_the_context_reads_it_in_one_transaction(talked: World, line: str) -> None:
    statements: list[str] = []
    await talked.store.read(lambda connection: connection.set_trace_callback(statements.append))
    statements.clear()
    await talked.told(line)
    assert [statement for statement in statements if statement.startswith("BEGIN")] == ["BEGIN"]


@pytest.mark.parametrize(("line", "counts"), [("/context", 0), ("/context why", 1)])
async def test_only_the_command_that_explains_the_context_counts_the_messages_outside(
    talked: World, line: str, counts: int
) -> None:
    statements: list[str] = []
    await talked.store.read(lambda connection: connection.set_trace_callback(statements.append))
    await talked.told(line)
    assert sum("AS is_written" in statement for statement in statements) == counts


@pytest.mark.parametrize("line", ["/context", "/context why"])
async def test_a_command_that_shows_the_context_reads_the_settings_once(talked: World, line: str) -> None:
    # A file that has just been written is never taken from the memory of an earlier reading.
    talked.configure('{"context_hours": 24}')
    with opened_files() as opened:
        await talked.told(line)
    assert opened.count(str(talked.personas.settings_path("chorus"))) == 1
