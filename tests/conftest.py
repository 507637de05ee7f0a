"""What every test is given: a world without the user's home, keys and network."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import tempfile
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chorus_cli.models.litellm import library
from chorus_cli.models.litellm.library import _FIRST_REQUEST_MODULES, prepare_environment
from chorus_cli.storage.store import Store, opened_store
from tests import guard
from tests.amount import is_thorough, set_amount
from tests.fakes import FakeClock, ScriptedModel, WordCounter
from tests.loopback_providers import CallingProvider, calling
from tests.mock_provider import MockProvider, running
from tests.storage.database import new_log, quick
from tests.storage.schemas import SERVER, drop_all, given_back, shared_log
from tests.storage.server import serving
from tests.terminal.driver import Home
from tests.turns.folding.long_talk import Talk, long_talk
from tests.turns.service.tool_talk import TOOLS
from tests.world import Tools, World, built

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from chorus_cli.storage.port import OpenConnection


# These assert for tests beside them, and are to tell what they compared, as a test does.
ASSERTING = (
    "tests.models.providers.asked_models",
    "tests.log.service.user_story",
    "tests.terminal.screen.terminal_file",
)
pytest.register_assert_rewrite(*ASSERTING)

MEMORY, MEMORY_BYTES = Path("/dev/shm"), 2 << 30  # noqa: S108 - pytest makes a folder of its own in it
"""Where Linux keeps files in memory, and the room there that a run is sure to get by with."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--postgres", action="store_true", help="have the logs of tests on a PostgreSQL server")


def pytest_configure(config: pytest.Config) -> None:
    """Install the guard before anything else is imported."""
    guard.install(Path.home())
    isolated = guard.isolated_environment(dict(os.environ))
    os.environ.clear()
    os.environ.update(isolated)
    # Else each interpreter, of a worker or of a program under test, compiles everything again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    is_thorough = "not slow" not in config.getoption("markexpr")
    _write_to_memory(is_thorough=is_thorough)
    if config.getoption("postgres") and not hasattr(config, "workerinput"):
        _serve_logs(config)
    set_amount(is_thorough=is_thorough)


def _serve_logs(config: pytest.Config) -> None:
    """Start a server for all workers, which inherit its address, until the run is over."""
    until_the_end = ExitStack()
    try:
        os.environ[SERVER] = until_the_end.enter_context(serving()).url
    except pytest.skip.Exception as missing:
        raise pytest.UsageError(f"--postgres needs a server: {missing}") from missing
    config.add_cleanup(until_the_end.close)


def _write_to_memory(*, is_thorough: bool) -> None:
    """Keep the files of tests off the disk, which tests wait for longer than they compute; slow runs write to it."""
    if not is_thorough and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have a run of the slow tests try all examples of the tests that make up their own."""
    for item in items:
        if is_thorough() and hasattr(getattr(item, "obj", None), "hypothesis"):
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    """Leave what was collected out of the search for garbage, which some tests ask for and forks begin with."""
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Leave nothing on a server that others started."""
    drop_all()


def pytest_xdist_auto_num_workers() -> int:
    """Have twice as many workers as there are cores: much of the time goes into waiting for terminals."""
    return (os.cpu_count() or 1) * 2


@pytest.fixture(scope="session")
def _litellm() -> None:
    """Import once what each program of some tests would import, which is then a fork of the test runner."""
    if not is_thorough():
        prepare_environment()
        for name in ("litellm", *_FIRST_REQUEST_MODULES):
            importlib.import_module(name)


@pytest.fixture(scope="module")
def _litellm_is_loaded() -> None:
    library.warm()


@pytest.fixture
async def _no_connection_outlives_the_event_loop_of_its_test() -> AsyncIterator[None]:
    yield
    # litellm keeps its clients, and one that is thrown away later complains of its loop that is gone.
    await library.load().close_litellm_async_clients()


@pytest.fixture(scope="session")
def mock_provider() -> Iterator[MockProvider]:
    """A model server for all tests, which takes a second to start; each test tells it how to behave."""
    with running() as provider:
        yield provider


@pytest.fixture(scope="session")
def template() -> Home | None:
    """The home of which each test of a file gets a copy; a file without one has new homes."""
    return None


@pytest.fixture
def home(tmp_path: Path, template: Home | None) -> Home:
    if template:
        shutil.copytree(template.path, tmp_path / "home")
    return Home(tmp_path / "home")


@pytest.fixture
def provider() -> Iterator[CallingProvider]:
    """A provider whose model calls tools, as its test says."""
    with calling() as started:
        yield started


@pytest.fixture
def talking(home: Home, provider: CallingProvider, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home whose programs talk to the provider."""
    for name, value in provider.environment("openai/test").items():
        monkeypatch.setenv(name, value)
    return home


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def counter() -> WordCounter:
    return WordCounter()


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture(autouse=True)
def _schemas_are_given_back() -> Iterator[None]:
    with given_back():
        yield


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with opened_store(quick(tmp_path / "chorus.db")) as opened:
        yield opened


@pytest.fixture
def log() -> Iterator[str]:
    """The address of an empty log on the server."""
    with shared_log() as address:
        yield address


@pytest.fixture
async def world(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel) -> World:
    return await built(tmp_path, store, clock, model, limit_tokens=10_000)


@pytest.fixture
async def talk(tmp_path: Path, store: Store, clock: FakeClock) -> Talk:
    return await long_talk(tmp_path, store, clock)


@pytest.fixture
def fake_key(monkeypatch: pytest.MonkeyPatch) -> str:
    """Take the machine's keys and addresses out of the environment, put a key for OpenAI in, and return that."""
    for name in list(os.environ):
        if name.endswith(("_KEY", "_TOKEN", "_API_BASE", "_BASE_URL")):
            monkeypatch.delenv(name)
    key = "sk-test-0123456789abcdef"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    return key


@pytest.fixture
async def talked(world: World) -> World:
    """Two turns, ten minutes ago."""
    world.model.say("Hi there")
    await world.say("Hello")
    await world.say("How are you?")
    world.clock.advance(timedelta(minutes=10))
    return world


@pytest.fixture
def connection() -> Iterator[OpenConnection]:
    with new_log() as opened:
        yield opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The place of the ``store`` fixture's file."""
    return tmp_path / "chorus.db"


@pytest.fixture
async def turns(world: World) -> World:
    """Three turns, a minute apart: A1 B1 A2 B2 A3 B3."""
    for number in (1, 2, 3):
        world.model.say(f"B{number}")
        await world.say(f"A{number}")
        world.clock.advance(timedelta(minutes=1))
    return world


@pytest.fixture
def tools() -> Tools:
    return Tools(TOOLS)


@pytest.fixture
async def tooled(tmp_path: Path, store: Store, clock: FakeClock, model: ScriptedModel, tools: Tools) -> World:
    """A world whose model is offered tools."""
    return await built(tmp_path, store, clock, model, 10_000, tools)
