"""Homes that Chorus 0.1.0 made open and go on.

``kept_home.zip`` holds one, and beside it the log and the context of each persona as that program printed them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from chorus_cli.models.providers.providers import endpoint
from chorus_cli.models.wire.chat_completions import ChatCompletions
from chorus_cli.models.wire.gemini import GeminiContents
from chorus_cli.models.wire.protocol import WireProtocol
from chorus_cli.storage.sqlite import Sqlite
from tests.fakes import FakeClock
from tests.loopback_server import Asked
from tests.models.providers.asked_models import MODEL_MAP
from tests.storage.database import sql
from tests.strict.providers import PROVIDERS
from tests.strict.server import Call, Reply, Sent, StrictServer, serving
from tests.terminal.driver import Home
from tests.world import World, world_on

ARCHIVE = Path(__file__).with_name("kept_home.zip")
CALLS = ARCHIVE.with_name("kept_calls.zip")
MADE_AT, CALLED_AT = datetime(2026, 11, 22, 4, 5, tzinfo=UTC), datetime(2026, 11, 23, 20, 16, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path)
    return tmp_path


def inhabited(home: Home, now: datetime) -> AbstractAsyncContextManager[World]:
    return world_on(Sqlite(home.path / "chorus.db"), home.path, FakeClock(now))


@pytest.fixture
async def kept(folder: Path) -> AsyncIterator[World]:
    """A world on the kept home, a minute after it was left."""
    async with inhabited(Home(folder / "home"), MADE_AT) as world:
        yield world


def expected(folder: Path, name: str) -> Any:
    return json.loads((folder / "expected" / f"{name}.json").read_text(encoding="utf-8"))


async def contents(world: World) -> list[str]:
    snapshot = await world.services.context.snapshot(world.current.target(), world.clock.now())
    return [message.content for message in snapshot.view.messages]


def numbered(key: str, value: object) -> object:
    """Return a value of the log with the number of a thread or operation in place of the id that was printed."""
    numbers: dict[tuple[str, object], int] = {("thread", 3): 1, ("thread", 4): 2, ("introduced_by", 7): 6}
    return numbers.get((key, value), value)


@pytest.mark.parametrize("persona", ["chorus", "frodo"])
def test_the_log_of_a_kept_home_is_printed_as_before(folder: Path, persona: str) -> None:
    printed = Home(folder / "home").run("log", "--persona", persona, "--json")
    before = expected(folder, f"log_{persona}")
    renumbered = [{key: numbered(key, value) for key, value in row.items()} for row in before]
    assert [{key: row[key] for key in before[0]} for row in json.loads(printed.output) if "id" in row] == renumbered


@pytest.mark.parametrize("persona", ["chorus", "frodo"])
async def test_the_context_of_a_kept_home_is_as_before(kept: World, folder: Path, persona: str) -> None:
    await kept.current.turn_to(persona)
    before = expected(folder, f"context_{persona}")
    assert (kept.current.thread_id, await contents(kept)) == (before["thread"], before["messages"])


def test_the_database_of_a_kept_home_is_copied_once_before_it_is_changed(folder: Path) -> None:
    database = folder / "home" / "chorus.db"
    first = columns(database)
    before = rows(database, first)
    for _ in range(2):
        Home(folder / "home").run("log")
    (copy,) = (folder / "home" / "backups").iterdir()
    assert rows(copy, first) == rows(database, first) == before


def columns(database: Path) -> dict[str, str]:
    """Return the columns of the log, of the journal and of the highest ids ever given."""
    tables = ("messages", "operations", "operation_members", "summaries", "threads", "sqlite_sequence")
    return {table: ", ".join(sql(database, f"SELECT name FROM pragma_table_info('{table}')")) for table in tables}  # noqa: S608 - names of this file


def rows(database: Path, columns: dict[str, str]) -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of a whole database, as far as ``columns`` go."""
    assert sql(database, "PRAGMA integrity_check") == ["ok"]
    return {table: sorted(sql(database, f"SELECT {names} FROM {table}")) for table, names in columns.items()}  # noqa: S608 - names of this file


async def test_every_operation_of_a_kept_home_is_listed(kept: World) -> None:
    listed = (await kept.told("/context ops")).splitlines()[1:]
    assert [line.split("  ")[-1].strip() for line in listed] == [
        "window default → 24h",
        'undo of "My family is well"',
        "undo of operation 1",
        "redo of operation 1",
        "another reply to the last message",
        "edit of the context, 4 messages kept",
    ]


async def test_a_kept_home_goes_on(kept: World) -> None:
    before = await contents(kept)
    kept.model.say("Welcome back")
    await kept.say("I am back")
    assert await contents(kept) == [*before, "I am back", "Welcome back"]
    await kept.told("/undo")
    assert await contents(kept) == before


async def test_an_edit_in_a_kept_home_is_undone(kept: World) -> None:
    await kept.told("/context undo 6")
    assert "I feel tired today" in await contents(kept)
    assert "I feel very tired today" not in await contents(kept)


async def test_a_session_of_a_kept_home_is_restored(kept: World) -> None:
    before = await contents(kept)
    await kept.told("/new")
    assert await contents(kept) == []
    await kept.told("/context restore 2026-11-22_before")
    assert await contents(kept) == before


DEEPSEEK, GEMINI = "deepseek/deepseek-v4-flash", "gemini/gemini-3-pro-preview"


@pytest.fixture
def called(tmp_path: Path) -> Home:
    """A home in which ``chorus`` has called tools of DeepSeek and ``frodo`` of Gemini, before thoughts were kept."""
    with ZipFile(CALLS) as archive:
        archive.extractall(tmp_path)
    return Home(tmp_path / "home")


@pytest.fixture
async def calling(called: Home) -> AsyncIterator[World]:
    async with inhabited(called, CALLED_AT) as world:
        yield world


async def sent(calling: World, persona: str, model: str, protocol: WireProtocol) -> Any:
    await calling.current.turn_to(persona)
    await calling.say("And now?")
    asked = endpoint(model, {})
    assert asked is not None
    return json.loads(protocol.post(calling.model.requests[-1], asked).body)


@pytest.mark.parametrize("persona", ["chorus", "frodo"])
async def test_calls_of_one_reply_go_back_together(calling: World, persona: str) -> None:
    await calling.current.turn_to(persona)
    await calling.say("And now?")
    roles = [message.role for message in calling.model.requests[-1].messages]
    assert " ".join(roles) == (
        "system user assistant user assistant tool tool assistant "
        "user assistant tool assistant tool assistant user assistant user"
    )


async def test_replies_of_deepseek_without_thoughts_have_the_least_that_it_takes(calling: World) -> None:
    body = await sent(calling, "chorus", DEEPSEEK, ChatCompletions(MODEL_MAP))
    said = [message for message in body["messages"] if message["role"] == "assistant"]
    assert [message["reasoning_content"] for message in said] == [" "] * 7


async def test_signatures_in_the_ids_of_calls_go_back_to_gemini(calling: World) -> None:
    body = await sent(calling, "frodo", GEMINI, GeminiContents(MODEL_MAP))
    calls = [part for content in body["contents"] for part in content["parts"] if "functionCall" in part]
    assert [(call["functionCall"]["id"], call.get("thoughtSignature")) for call in calls] == [
        ("g1", "c2lnLW9uZQ=="),
        ("g2", None),
        ("s0", "c2lnLXN0ZXA="),
        ("s1", "c2lnLXN0ZXA="),
    ]


def was_sent(text: str, signature: str, **queries: str) -> Sent:
    """Return a reply with calls by their ids, the first of which Gemini had signed."""
    calls = tuple(Call("search_history", {"query": query}, id_) for id_, query in queries.items())
    return Sent(text, calls, [{"call": 0, "signature": signature}], Asked("", {}, {}))


SIGNED = [
    was_sent("I look.", "c2lnLW9uZQ==", g1="ring", g2="shire"),
    was_sent("", "c2lnLXN0ZXA=", s0="word0"),
    was_sent("", "c2lnLXN0ZXA=", s1="word1"),
]


@pytest.mark.parametrize(
    ("persona", "model", "provider", "before"),
    [("chorus", DEEPSEEK, "deepseek", []), ("frodo", GEMINI, "gemini-3", SIGNED)],
)
def test_the_program_goes_on_with_them(
    called: Home, monkeypatch: pytest.MonkeyPatch, persona: str, model: str, provider: str, before: list[Sent]
) -> None:
    strict = PROVIDERS[provider]
    with serving(StrictServer(provider, strict.protocol, sent=[*before])) as server:
        for variable, value in strict.environment(server.address).items():
            monkeypatch.setenv(variable, value)
        server.will(Reply("It goes on."), Reply("Still."))
        for question, answer in (("/context 36500d", ""), ("And now?", "It goes on."), ("And then?", "Still.")):
            asked = called.run("ask", "-c", "--persona", persona, "--model", model, question)
            assert (asked.code, answer in asked.output) == (0, True), asked.errors
        assert server.refused == []
        assert ["word0" in str(body) for body in server.bodies] == [True, True]
