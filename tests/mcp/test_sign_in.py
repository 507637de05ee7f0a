"""Signing in at servers: the whole way over loopback, renewals, and servers that cheat."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import stat
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from chorus_cli.core.errors import CommandError, SettingsError, ToolError
from chorus_cli.mcp.connections import Connection, Connections, Patience
from chorus_cli.mcp.files import Tokens
from chorus_cli.mcp.rules.configuration import Server
from chorus_cli.storage import file_lock
from tests.mcp.guarded_server import CANARY, ENDPOINTS, Guarded, browse, guarded

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mcp") is None, reason="the library mcp is not installed")


class Browser:
    """Opens the pages that it is shown, in a thread of its own; ``pages`` has the texts that it read."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.pages: list[str] = []
        self.threads: list[threading.Thread] = []

    def show(self, page: str) -> None:
        self.shown.append(page)
        self.threads.append(threading.Thread(target=lambda: self.pages.append(browse(page))))
        self.threads[-1].start()

    def read(self) -> str:
        """Wait for the page of the sign-in and return its text."""
        for thread in self.threads:
            thread.join(20)
        return "".join(self.pages)


@pytest.fixture
def browser() -> Browser:
    return Browser()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


@pytest.fixture
async def opened(file: Path) -> AsyncIterator[Callable[[], Connections]]:
    made: list[Connections] = []

    def another() -> Connections:
        made.append(Connections(dict(os.environ), lambda _line: None, Patience(60, 5), Tokens(file)))
        return made[-1]

    yield another
    for each in made:
        await each.close()


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


def far(server: Guarded) -> Server:
    return Server("far", url=server.url)


async def connected(connections: Connections, server: Guarded) -> Connection:
    connection = connections.open(far(server))
    await asyncio.wrap_future(connection.settled)
    return connection


async def refusal(connections: Connections, server: Guarded, show: Callable[[str], object]) -> str:
    with pytest.raises(CommandError) as refused:
        await connections.sign_in(far(server), show)
    return str(refused.value)


async def test_a_sign_in_gives_the_tools_and_is_kept(
    opened: Callable[[], Connections], browser: Browser, file: Path
) -> None:
    with guarded() as server:
        connections = opened()
        before = await connected(connections, server)
        assert (before.problem, before.wanted) == ("it wants you to sign in", "sign in")
        await connections.sign_in(far(server), browser.show)
        assert "You can close this page." in browser.read()
        assert mode(file) == 0o600
        for each in (connections, opened()):
            connection = await connected(each, server)
            assert (connection.problem, [tool.name for tool in connection.found]) == ("", ["ping", "environment"])
            assert (await each.call(connection, "ping", {})).text == "pong"
        assert server.asked.count("/token") == 1


async def test_a_new_sign_in_registers_a_page_of_its_own(opened: Callable[[], Connections], browser: Browser) -> None:
    with guarded() as server:
        connections = opened()
        for _ in range(2):
            await connections.sign_in(far(server), browser.show)
        first, second = ({*client["redirect_uris"]} for client in server.clients.values())
        assert all(urlsplit(page).hostname == "127.0.0.1" for page in (*first, *second))


async def test_an_answer_of_another_sign_in_is_refused_and_the_sign_in_goes_on(
    opened: Callable[[], Connections],
) -> None:
    with guarded() as server:
        told: list[str] = []

        def show(page: str) -> None:
            back = parse_qs(urlsplit(page).query)["redirect_uri"][0]
            told.append(browse(back.replace("/callback", "/favicon.ico")))
            told.append(browse(f"{back}?error=access_denied&state=another"))
            told.append(browse(page))

        browsing: list[asyncio.Task[None]] = []
        await opened().sign_in(
            far(server), lambda page: browsing.append(asyncio.create_task(asyncio.to_thread(show, page)))
        )
        await asyncio.wait(browsing)
        assert "This is no page of Chorus." in told[0]
        assert "Chorus did not take this answer: it belongs to another sign-in." in told[1]
        assert "Chorus has the answer." in told[2]


async def test_tokens_that_are_over_are_renewed_for_all_runs(
    opened: Callable[[], Connections], browser: Browser
) -> None:
    with guarded() as server:
        server.lifetime_seconds = -1
        await opened().sign_in(far(server), browser.show)
        server.lifetime_seconds = 3600
        one, other = opened(), opened()
        first = await connected(one, server)
        assert first.problem == ""
        assert (await connected(other, server)).problem == ""
        assert server.asked.count("/token") == 2
        server.revoke()
        # Without a time in the token, the refusal is the sign.
        assert (await one.call(first, "ping", {})).text == "pong"
        assert server.asked.count("/token") == 3


async def test_renewed_tokens_of_another_run_are_taken(opened: Callable[[], Connections], browser: Browser) -> None:
    with guarded() as server:
        one, other = opened(), opened()
        await one.sign_in(far(server), browser.show)
        first, second = await connected(one, server), await connected(other, server)
        server.revoke()
        assert (await one.call(first, "ping", {})).text == "pong"
        assert (await other.call(second, "ping", {})).text == "pong"
        assert server.asked.count("/token") == 2


async def test_what_cannot_be_renewed_asks_for_another_sign_in(
    opened: Callable[[], Connections], browser: Browser
) -> None:
    with guarded() as server:
        connections = opened()
        await connections.sign_in(far(server), browser.show)
        connection = await connected(connections, server)
        server.revoke(renewals_too=True)
        with pytest.raises(ToolError, match=r"far gave no result: it wants you to sign in again\.$"):
            await connections.call(connection, "ping", {})
        assert connection.problem == "it wants you to sign in again"
        assert (await connected(connections, server)).wanted == "sign in again"
        await connections.sign_in(far(server), browser.show)
        assert (await connected(connections, server)).problem == ""


async def test_a_renewal_that_fails_for_now_keeps_the_sign_in(
    opened: Callable[[], Connections], browser: Browser
) -> None:
    with guarded() as server:
        server.lifetime_seconds = -1
        await opened().sign_in(far(server), browser.show)
        server.fault = "broken"
        connection = await connected(opened(), server)
        assert connection.problem == "your sign-in cannot be renewed now (HTTP 503)"
        server.fault = ""
        assert (await connected(opened(), server)).problem == ""


async def test_no_other_server_waits_while_tokens_cannot_be_kept_yet(
    opened: Callable[[], Connections], browser: Browser, file: Path
) -> None:
    with guarded() as server, guarded("open") as other:
        server.lifetime_seconds = -1
        await opened().sign_in(far(server), browser.show)
        server.lifetime_seconds = 3600
        connections = opened()
        with file_lock.locked(file):
            renewing = connections.open(far(server))
            for _ in range(3_000):
                await asyncio.sleep(0 if server.asked.count("/token") == 2 else 0.01)
            await connected(connections, other)
            assert not renewing.settled.done()
        await asyncio.wrap_future(renewing.settled)
        assert renewing.problem == ""


async def test_signing_out_deletes_the_tokens(opened: Callable[[], Connections], browser: Browser, file: Path) -> None:
    with guarded() as server:
        connections = opened()
        assert not await connections.sign_out(far(server))
        await connections.sign_in(far(server), browser.show)
        assert CANARY in text(file)
        assert await connections.sign_out(far(server))
        assert json.loads(text(file)) == {}
        assert (await connected(connections, server)).wanted == "sign in"


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("another issuer", "Authorization server metadata issuer mismatch: https://login.example"),
        ("another resource", "Protected resource https://other.example/mcp does not match"),
        *((f"plain {name}", "the connection to http://login.example is not encrypted (https).") for name in ENDPOINTS),
        ("plain metadata", "the connection to http://login.example is not encrypted (https)."),
        ("rubbish", "it gave no token (127.0.0.1, HTTP 200)."),
        ("huge", "an answer at the sign-in is larger than 1 MB."),
        ("packed", "an answer at the sign-in is packed, which was not asked for."),
        ("broken", "it gave no token (127.0.0.1, HTTP 503)."),
        ("declined", "the page in the browser refused (access_denied)."),
        ("no registration", "it does not let unknown programs sign in (127.0.0.1, HTTP 404)"),
        ("no sign-in", "it does not let unknown programs sign in (127.0.0.1, HTTP 404)"),
        ("open", "it asks for no sign-in."),
    ],
)
async def test_a_server_that_cheats_or_fails_costs_one_sentence(
    opened: Callable[[], Connections],
    browser: Browser,
    file: Path,
    capfd: pytest.CaptureFixture[str],
    fault: str,
    told: str,
) -> None:
    with guarded(fault) as server:
        sentence = await refusal(opened(), server, browser.show)
    browser.read()
    assert sentence.startswith(f"You are not signed in to far: {told}")
    assert "\n" not in sentence
    assert CANARY not in "".join([sentence, *capfd.readouterr()])
    assert text(file) == ""


@pytest.mark.parametrize("fault", ["elsewhere", "moved"])
async def test_no_token_and_no_code_follow_a_redirect_to_another_host(
    opened: Callable[[], Connections], browser: Browser, fault: str
) -> None:
    with guarded() as other, guarded("" if fault == "moved" else fault, other.address) as server:
        connections = opened()
        if fault == "elsewhere":
            assert "it gave no token (127.0.0.1, HTTP 307)" in await refusal(connections, server, browser.show)
        else:
            await connections.sign_in(far(server), browser.show)
            server.fault = fault
            assert (await connected(connections, server)).problem
            assert server.taken[-1]
        assert other.asked == []


async def test_a_sign_in_ends_after_a_time_and_can_be_ended(file: Path) -> None:
    with guarded() as server:
        connections = Connections({}, lambda _line: None, Patience(60, 5, 0.5), Tokens(file))
        sentence = "You have not signed in to far within 0.00833333 minutes."
        assert await refusal(connections, server, lambda _page: None) == sentence
        patient, shown = Connections({}, lambda _line: None, tokens=Tokens(file)), asyncio.Event()
        work = asyncio.create_task(patient.sign_in(far(server), lambda _page: shown.set()))
        await shown.wait()
        work.cancel()
        await asyncio.wait({work}, timeout=5)
        assert work.cancelled()
        await connections.close()
        await patient.close()


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({}, "it wants you to sign in"),
        ({"X-Api-Key": "x"}, "it wants you to sign in"),
        ({"Authorization": "Bearer x"}, "(HTTP 401)"),
    ],
)
async def test_a_token_of_the_settings_is_no_sign_in(
    opened: Callable[[], Connections], headers: dict[str, str], problem: str
) -> None:
    with guarded() as server:
        connections = opened()
        connection = connections.open(far(server)._replace(headers=headers))
        await asyncio.wrap_future(connection.settled)
        assert connection.problem.endswith(problem)
        assert CANARY not in connection.problem


async def test_a_refusal_without_a_challenge_may_be_about_a_key(opened: Callable[[], Connections]) -> None:
    with guarded("no challenge") as server:
        connections = opened()
        found = [connections.open(far(server)._replace(headers=each)) for each in ({}, {"X-Api-Key": "x"})]
        for connection in found:
            await asyncio.wrap_future(connection.settled)
        assert [connection.wanted for connection in found] == ["sign in", ""]


def test_where_nothing_is_kept_a_sign_out_makes_no_file(file: Path) -> None:
    assert not Tokens(file).forget("https://a.example")
    assert [*file.parent.iterdir()] == []


def test_tokens_that_cannot_be_kept_are_told(file: Path) -> None:
    file.mkdir()
    with pytest.raises(SettingsError, match=r"^The tokens in .*tokens.json cannot be changed: Is a directory\.$"):
        Tokens(file).keep("https://a.example", {})


def test_a_file_that_cannot_be_read_has_no_tokens(file: Path) -> None:
    file.write_text("[1, {")
    assert Tokens(file).of("https://a.example") == {}
    Tokens(file).keep("https://a.example", {"tokens": {"access_token": "a"}, "expires_at": None})
    assert Tokens(file).secrets("https://a.example") == ("a",)
    assert mode(file) == 0o600
