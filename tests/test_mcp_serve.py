"""``chorus mcp serve`` as other programs use it: by the official SDK, and by the inspector's command line."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from chorus_cli.machine.installation import install_command
from tests.terminal.command import PROGRAM
from tests.terminal.driver import NEW_INTERPRETER, Home
from tests.test_read_only_home import without_permissions

HAS_SDK = importlib.util.find_spec("mcp") is not None
needs_sdk = pytest.mark.skipif(not HAS_SDK, reason="not installed: mcp")
# The SDK takes seconds to import on a busy machine.
pytestmark = pytest.mark.timeout(300)
TOOLS = ["search_history", "read_thread", "list_personas", "list_sessions", "recall_memory"]
INSPECTOR = shutil.which("mcp-inspector")


@pytest.fixture
def home(home: Home) -> Home:
    assert home.run("ask", "-c", "The dentist moved to May.").code == 0
    return home


def command(home: Home, program: Sequence[str] = PROGRAM) -> list[str]:
    return [*program, "mcp", "serve", "--home", str(home.path)]


def client(home: Home, mode: str = "auto", program: Sequence[str] = PROGRAM) -> Any:
    """Return the SDK's own client of a server that it starts."""
    first, *rest = command(home, program)
    sdk, transport = import_module("mcp.client.client"), import_module("mcp.client.stdio")
    return sdk.Client(transport.StdioServerParameters(command=first, args=rest), mode=mode)


async def told(server: Any, name: str, **arguments: object) -> tuple[str, bool]:
    result = await server.call_tool(name, arguments)
    return result.content[0].text, bool(result.is_error)


@needs_sdk
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_program_searches_and_reads_in_both_ages_of_the_protocol(home: Home, mode: str) -> None:
    async with client(home, mode) as server:
        tools = (await server.list_tools()).tools
        assert [tool.name for tool in tools] == TOOLS
        assert all(tool.annotations.read_only_hint for tool in tools)
        found, is_error = await told(server, "search_history", query="When is the dentist?")
        assert (found.splitlines()[0][:16], is_error) == ("Thread chorus/1,", False)
        assert "> #1 Human: The dentist moved to May." in found
        read, _ = await told(server, "read_thread", id="chorus/1", around="#1")
        (listed,) = (await server.list_resources()).resources
        (template,) = (await server.list_resource_templates()).resource_templates
        assert (str(listed.uri), template.uri_template) == (
            "chorus://thread/chorus/1",
            "chorus://thread/{persona}/{number}",
        )
        (content,) = (await server.read_resource(str(listed.uri))).contents
        assert "[#1, " in content.text
        assert read.splitlines()[2:] == content.text.splitlines()[2:]


@needs_sdk
async def test_errors_are_sentences_and_the_server_goes_on(home: Home) -> None:
    async with client(home) as server:
        for name, arguments, sentence in (
            ("forget", {}, f"Chorus has no tool 'forget' for other programs. It has: {', '.join(TOOLS)}."),
            ("search_history", {}, "The argument 'query' is missing: What you want to know"),
            ("search_history", {"query": "x", "since": "tomorrow"}, "tomorrow"),
            ("read_thread", {"id": "gollum/1"}, "No persona 'gollum' may be read here."),
        ):
            text, is_error = await told(server, name, **arguments)
            assert is_error
            assert sentence in text
        with pytest.raises(Exception, match="There is no thread #9 of chorus"):
            await server.read_resource("chorus://thread/chorus/9")
        assert (await told(server, "list_sessions")) == ("No session is saved.", False)


@needs_sdk
async def test_it_lives_beside_a_chat_and_sees_at_once_what_is_said_there_and_in_which_persona(home: Home) -> None:
    async with client(home) as server:
        assert (await told(server, "search_history", query="zanzibar"))[0].startswith("No message has any of these")
        with home.chat() as chat:
            chat.say("We decided on zanzibar.")
            chat.until(lambda: [status for _, status in home.replies()] == ["complete"] * 2, "the reply")
            assert "> #3 Human: We decided on zanzibar." in (await told(server, "search_history", query="zanzibar"))[0]
            (home.path / "config.jsonc").write_text('{"mcp_serve": {"personas": ["frodo"]}}', encoding="utf-8")
            assert "zanzibar" not in (await told(server, "search_history", query="decided"))[0]
            chat.leave()


@needs_sdk
async def test_it_changes_no_row_and_a_restore_and_a_purge_go_on_beside_it(home: Home) -> None:
    backup = home.path.parent / "backup.zip"
    assert home.run("backup", str(backup)).code == 0
    assert home.run("ask", "-c", "The zanzibar word.").code == 0
    rows = "SELECT id, content, status, revises, purged_by FROM messages"
    before = home.sql(rows), home.sql("SELECT * FROM operations"), home.sql("SELECT * FROM threads")
    async with client(home) as server:
        assert "zanzibar" in (await told(server, "read_thread", id="chorus/1"))[0]
        for name in TOOLS:
            await told(server, name, query="dentist", id="chorus/1")
        assert (home.sql(rows), home.sql("SELECT * FROM operations"), home.sql("SELECT * FROM threads")) == before
        outcome = await asyncio.to_thread(home.run, "restore", str(backup), "--yes")
        assert outcome.code == 0, outcome.errors
        assert "zanzibar" not in (await told(server, "read_thread", id="chorus/1"))[0]
        assert (await asyncio.to_thread(home.run, "purge", "search", "dentist", "--yes")).code == 0
        for name, arguments in (("search_history", {"query": "dentist"}), ("read_thread", {"id": "chorus/1"})):
            assert "moved to May" not in (await told(server, name, **arguments))[0]


@needs_sdk
async def test_a_log_that_is_damaged_locked_or_missing_is_one_sentence_and_not_the_end(home: Home) -> None:
    database, aside = home.path / "chorus.db", home.path / "aside"
    async with client(home) as server:
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            text, is_error = await told(server, "read_thread", id="chorus/1")
            assert (is_error, "did not finish in time. Try again." in text) == (True, True)
        assert not (await told(server, "read_thread", id="chorus/1"))[1]
        database.rename(aside)
        text, is_error = await told(server, "read_thread", id="chorus/1")
        assert (is_error, text) == (
            True,
            f"There is no log in {home.path} yet; if it is elsewhere, add --home DIR to the command of the server.",
        )
        database.write_bytes(b"no database " * 1000)
        text, is_error = await told(server, "search_history", query="dentist")
        assert (is_error, text.startswith(f"{database} is damaged or is not a database")) == (True, True)
        aside.replace(database)
        assert "moved to May" in (await told(server, "search_history", query="dentist"))[0]


@needs_sdk
async def test_a_log_that_can_only_be_read_is_searched(home: Home) -> None:
    with without_permissions(home) as program:
        async with client(home, program=program) as server:
            for _ in range(2):
                found, is_error = await told(server, "search_history", query="dentist")
                assert ("moved to May" in found, is_error) == (True, False)


def requests(*methods: Sequence[object]) -> bytes:
    lines = (
        {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
        for number, (method, parameters) in enumerate(methods, 1)
    )
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


HELLO = (
    "initialize",
    {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
)
SEARCH = ("tools/call", {"name": "search_history", "arguments": {"query": "dentist"}})


@needs_sdk
def test_only_the_protocol_is_on_standard_output_and_it_ends_with_the_input(home: Home) -> None:
    with subprocess.Popen(
        command(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(requests(HELLO) + b"no request\n")
        process.stdin.flush()
        first = json.loads(process.stdout.readline())
        assert first["result"]["serverInfo"]["name"] == "chorus"
        process.stdin.write(requests(HELLO, SEARCH).splitlines(keepends=True)[1])
        process.stdin.flush()
        lines = iter(process.stdout.readline, b"")
        answer = next(each for line in lines if (each := json.loads(line)).get("id") == 2)
        assert "moved to May" in answer["result"]["content"][0]["text"]
        rest, errors = process.communicate(timeout=60)
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())
    assert (process.returncode, errors) == (0, b"")


@needs_sdk
def test_sigterm_ends_it_though_the_input_goes_on(home: Home) -> None:
    with subprocess.Popen(command(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(requests(HELLO))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 128 + signal.SIGTERM


def test_without_the_sdk_one_sentence_says_what_to_install(home: Home, tmp_path: Path) -> None:
    (tmp_path / "mcp_types.py").write_text("raise ImportError('not there')", encoding="utf-8")
    without = {"PYTHONPATH": str(tmp_path), **NEW_INTERPRETER}
    outcome = subprocess.run(command(home), env=home.environment | without, capture_output=True, text=True, check=False)
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr == (
        "chorus mcp serve needs the package mcp, version 2.3 or later (not there). "
        f"Install it with: {install_command('chorus-cli[mcp]')}.\n"
    )


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("mcp", "sing"), 2, "invalid choice: 'sing' (choose from add, remove, import, login, logout, serve)"),
        (("mcp", "serve", "--private"), 2, "unrecognized arguments: --private"),
        (("mcp", "--help"), 0, ""),
    ],
)
def test_the_group_tells_what_it_needs(home: Home, words: Sequence[str], code: int, sentence: str) -> None:
    outcome = home.run(*words)
    assert (outcome.code, sentence in outcome.errors) == (code, True)
    assert ("let another program read the log, over MCP" in outcome.output) == (code == 0)


@needs_sdk
@pytest.mark.skipif(not INSPECTOR, reason="not on the PATH: mcp-inspector of npm")
@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (("tools/list",), '"name": "search_history"'),
        (("tools/call", "--tool-name", "search_history", "--tool-arg", "query=dentist"), "#1 Human: The dentist moved"),
        (("resources/list",), '"uri": "chorus://thread/chorus/1"'),
        (("resources/read", "--uri", "chorus://thread/chorus/1"), "The dentist moved to May."),
    ],
)
def test_the_inspector_of_npm_drives_it(home: Home, method: Sequence[str], sentence: str) -> None:
    words = [str(INSPECTOR), "--cli", *command(home), "--method", *method]
    outcome = subprocess.run(words, capture_output=True, text=True, check=False, timeout=200)
    assert outcome.returncode == 0, outcome.stderr
    assert sentence in outcome.stdout
