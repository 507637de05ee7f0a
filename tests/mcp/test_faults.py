"""Everything that a server can do wrong, as a real process: it costs one sentence, and the talk goes on."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from chorus_cli.core.errors import ToolError
from chorus_cli.mcp.connections import Connection, Connections, Patience
from chorus_cli.mcp.rules.configuration import Server

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mcp") is None, reason="the library mcp is not installed")

SMALL = Path(__file__).with_name("small_server.py")
PATIENT = Patience(connect_seconds=60, call_seconds=60)


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
async def connections(notes: list[str]) -> AsyncIterator[Callable[[Patience], Connections]]:
    opened: list[Connections] = []

    def begun(patience: Patience) -> Connections:
        opened.append(Connections(dict(os.environ) | {"OPENAI_API_KEY": "sk-test-0123456789"}, notes.append, patience))
        return opened[-1]

    yield begun
    for each in opened:
        await each.close()


def small(fault: str) -> Server:
    return Server("small", sys.executable, (str(SMALL), fault))


async def settled(connection: Connection) -> Connection:
    await asyncio.wrap_future(connection.settled)
    return connection


Begun = Callable[[Patience], Connections]


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        (small("dies at start"), "it has ended"),
        (small("wrong list"), "its answer is not as the protocol demands (at tools)"),
        (small("endless"), "it sent a message of more than 16 MB"),
        (Server("small", "no-such-program"), "the command no-such-program cannot be found"),
        (Server("small", sys.executable, folder="/nowhere"), "it cannot be started"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_server_that_does_not_come_up_says_why(connections: Begun, server: Server, problem: str) -> None:
    connection = await settled(connections(PATIENT).open(server))
    assert connection.problem.startswith(problem)
    assert connection.found == ()


BROKEN = """
from chorus_cli.mcp.rules.configuration import Server
from chorus_cli.mcp.connections import Connections
connection = Connections({}, print).open(Server("small", "small"))
connection.settled.result(60)
print(connection.problem)
"""


def test_a_library_that_cannot_be_imported_costs_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise RuntimeError('this build is broken')\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{Path.cwd()}"}
    ran = subprocess.run([sys.executable, "-c", BROKEN], env=environment, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("this build is broken\n", "")


async def test_a_server_that_never_connects_is_given_up(connections: Begun) -> None:
    connection = await settled(connections(Patience(connect_seconds=0.5)).open(small("silent")))
    assert connection.problem == "it did not answer in time"


@pytest.mark.parametrize(
    ("fault", "problem"),
    [("dies at a call", "it has ended"), ("never answers", ""), ("another id", "")],
)
async def test_a_call_without_an_answer_is_told(connections: Begun, fault: str, problem: str) -> None:
    all_of_them = connections(Patience(connect_seconds=60, call_seconds=1.5))
    connection = await settled(all_of_them.open(small(fault)))
    assert connection.problem == ""
    with pytest.raises(ToolError, match=f"^The server small gave no result: {problem}"):
        await all_of_them.call(connection, "ping", {})


async def test_a_cancelled_call_leaves_the_connection(connections: Begun) -> None:
    all_of_them = connections(PATIENT)
    connection = await settled(all_of_them.open(small("never answers")))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await all_of_them.call(connection, "ping", {})
    assert connection.problem == ""


async def test_rubbish_between_messages_is_passed_over(connections: Begun, notes: list[str]) -> None:
    all_of_them = connections(PATIENT)
    connection = await settled(all_of_them.open(small("rubbish")))
    assert (await all_of_them.call(connection, "ping", {})).text == "pong"
    assert notes == ["small: small server is here"]


async def test_what_a_server_writes_to_the_log_has_none_of_its_keys(connections: Begun, notes: list[str]) -> None:
    arguments = (str(SMALL), "quotes", "--token", "my-own-key", "https://a.example?key=another-key", "--verbose")
    server = Server("small", sys.executable, arguments, {"TOKEN": "Bearer third-key"}, filled=("fourth key",))
    await settled(connections(PATIENT).open(server._replace(arguments=(*arguments, "fourth key"))))
    assert notes[1:] == [
        "small: ['--token', '[redacted]', '[redacted]', '--verbose', '[redacted]'] [redacted]",
    ]


async def test_a_result_against_the_protocol_is_told_in_plain_words(connections: Begun) -> None:
    all_of_them = connections(PATIENT)
    connection = await settled(all_of_them.open(small("wrong result")))
    told = "The server small gave no result: its answer is not as the protocol demands (at content.1)."
    with pytest.raises(ToolError) as error:
        await all_of_them.call(connection, "ping", {})
    assert str(error.value) == told


async def test_a_result_of_10_mb_comes_cut_to_what_the_log_takes(connections: Begun) -> None:
    all_of_them = connections(PATIENT)
    connection = await settled(all_of_them.open(small("huge")))
    result = await all_of_them.call(connection, "ping", {})
    text = result.text
    assert 8_000_000 <= len(text) < 8_000_100
    assert "2,000,000 characters left out" in text
    # The chat only reads values; the thread of the servers has made them.
    assert [*result] == [text, "3 lines", False, ()]


@pytest.mark.parametrize(
    ("fault", "found", "left_out"),
    [("many", 300, 0), ("long", 2, 0), ("wide", 1, 1), ("heavy", 16, 14), ("wrong tool", 1, 2)],
)
async def test_declarations_without_measure(connections: Begun, fault: str, found: int, left_out: int) -> None:
    connection = await settled(connections(PATIENT).open(small(fault)))
    assert (len(connection.found), connection.left_out) == (found, left_out)
    assert all(len(each.description) <= 8_000 for each in connection.found)


async def test_a_flood_of_changes_is_one_list_after_another(connections: Begun, tmp_path: Path) -> None:
    methods = tmp_path / "methods"
    all_of_them = connections(PATIENT)
    restless = small("restless")._replace(environment={"METHODS": str(methods)})
    connection = await settled(all_of_them.open(restless))
    for _ in range(3):
        assert (await all_of_them.call(connection, "ping", {})).text == "pong"
    # Most of the 900 notices arrive while a list is under way.
    assert 2 <= (await asyncio.to_thread(methods.read_text)).count("tools/list") <= 12


async def test_tools_that_change_while_they_are_first_listed_are_listed_again(connections: Begun) -> None:
    connection = await settled(connections(PATIENT).open(small("growing")))
    for _ in range(1000):
        await asyncio.sleep(0.01 if len(connection.found) < 2 else 0)
    assert len(connection.found) == 2


async def test_control_sequences_reach_no_name(connections: Begun) -> None:
    all_of_them = connections(PATIENT)
    connection = await settled(all_of_them.open(small("rude")))
    assert connection.tools[0].name.isprintable()
    assert (await all_of_them.call(connection, connection.found[0].name, {})).text.endswith("pong")


async def test_a_server_gets_no_key_and_ends_with_the_connection(connections: Begun) -> None:
    all_of_them = connections(PATIENT)
    connection = await settled(all_of_them.open(small("")))
    names = (await all_of_them.call(connection, "environment", {})).text.splitlines()
    assert "PATH" in names
    assert "OPENAI_API_KEY" not in names
    began = time.monotonic()
    await all_of_them.close()
    assert time.monotonic() - began < 10
    assert connection.problem == "it is switched off"
