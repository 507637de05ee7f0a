"""Asking an Ollama what it used last: its answers, its address, and everything else that may listen there."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import pytest

from chorus_cli.models.providers.servers import models, most_recent_model, ollama_address
from tests.models.providers.fake_ollama import OK, entry, listening, ollama, sending

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.models.providers.fake_ollama import Answer

# Long enough for a busy machine; tests of the timeout use less.
PATIENCE_SECONDS = 5.0
IMPATIENCE_SECONDS = 0.2


def test_the_model_in_memory_that_expires_last_was_used_last() -> None:
    in_memory = [
        entry("early", "2026-02-12T10:00:00.123456789Z"),
        entry("late", "2026-02-12T13:30:00.5+01:00"),
        entry("middle", "2026-02-12T12:00:00Z"),
    ]
    with listening(ollama(in_memory=in_memory, stored=[entry("newest", "2026-03-01T00:00:00Z")])) as address:
        found = most_recent_model({"OLLAMA_API_BASE": address}, PATIENCE_SECONDS)
    assert found == "ollama_chat/late"


@pytest.mark.parametrize("in_memory", [[], None, [entry("nomic-embed-text:latest", "2026-02-12T10:00:00Z")]])
def test_with_no_model_for_chat_in_memory_the_newest_one_counts(in_memory: object) -> None:
    stored = [entry("old", "2025-01-01T00:00:00Z"), entry("new:7b", "2026-01-01T00:00:00Z"), entry("undated", "soon")]
    with listening(ollama(in_memory=in_memory, stored=stored)) as address:
        assert most_recent_model({"OLLAMA_API_BASE": address}, PATIENCE_SECONDS) == "ollama_chat/new:7b"
        assert models({"OLLAMA_API_BASE": address}, PATIENCE_SECONDS) == (
            "ollama_chat/new:7b",
            "ollama_chat/old",
            "ollama_chat/undated",
        )


@pytest.mark.parametrize(
    "unfit",
    [
        entry("my-vectors", details={"family": "bert"}),
        entry("my-vectors", details={"family": "nomic-bert-moe", "families": ["nomic-bert-moe"]}),
        entry("qwen3-embedding:8b", details={"family": "qwen3"}),
        entry("some-Reranker"),
        entry("vectors", capabilities=["embedding"]),
        entry("painter", capabilities=["image"], details={"family": "flux"}),
        entry("with blank"),
        entry("with\x1b[31mcolour"),
        entry(""),
        {"name": 7},
        {},
        "no object",
    ],
)
def test_what_cannot_chat_or_is_no_model_is_passed_over(unfit: object) -> None:
    with listening(ollama(in_memory=[unfit], stored=[unfit, entry("llama3.2", details=None)])) as address:
        assert most_recent_model({"OLLAMA_API_BASE": address}, PATIENCE_SECONDS) == "ollama_chat/llama3.2"
        assert models({"OLLAMA_API_BASE": address}, PATIENCE_SECONDS) == ("ollama_chat/llama3.2",)


def test_what_the_server_says_of_a_model_stands_over_its_name() -> None:
    stored = [entry("embedded-systems-tutor", capabilities=["completion", "tools"])]
    with listening(ollama(stored=stored)) as address:
        assert models({"OLLAMA_API_BASE": address}, PATIENCE_SECONDS) == ("ollama_chat/embedded-systems-tutor",)


def test_an_ollama_without_models_has_none() -> None:
    with listening(ollama()) as address:
        assert most_recent_model({"OLLAMA_API_BASE": address}, PATIENCE_SECONDS) is None
        assert models({"OLLAMA_API_BASE": address}, PATIENCE_SECONDS) == ()


def test_an_ollama_may_live_below_a_path_and_be_named_by_either_variable() -> None:
    with listening(ollama(stored=[entry("llama3.2")], root="/ollama")) as address:
        for environment in ({"OLLAMA_API_BASE": f"{address}/ollama/"}, {"OLLAMA_HOST": f"{address}/ollama"}):
            assert most_recent_model(environment, PATIENCE_SECONDS) == "ollama_chat/llama3.2"


def test_a_proxy_is_never_asked() -> None:
    with listening(ollama(stored=[entry("llama3.2")])) as address:
        proxies = dict.fromkeys(("http_proxy", "HTTP_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
        found = most_recent_model({"OLLAMA_API_BASE": address, **proxies}, PATIENCE_SECONDS)
    assert found == "ollama_chat/llama3.2"


@pytest.mark.parametrize(
    "answer",
    [
        sending(hangs=True),
        sending(b"HTTP/1.0 200 OK\r\n", hangs=True),
        sending(OK, b'{"models": [', hangs=True),
        sending(OK, *(b" " for _ in range(100)), pause_seconds=0.02),
        sending(*(b"H" for _ in range(100)), pause_seconds=0.02),
    ],
    ids=["silence", "half a head", "half an answer", "a dripping answer", "a dripping head"],
)
def test_who_does_not_answer_in_time_is_not_waited_for(answer: Answer) -> None:
    with listening(answer) as address:
        begun = time.monotonic()
        assert most_recent_model({"OLLAMA_API_BASE": address}, IMPATIENCE_SECONDS) is None
        assert models({"OLLAMA_API_BASE": address}, IMPATIENCE_SECONDS) == ()
        assert time.monotonic() - begun < 2


def test_both_lists_together_have_one_limit() -> None:
    def answer(connection: socket.socket, path: str) -> None:
        time.sleep(0.15)
        ollama(stored=[entry("llama3.2")])(connection, path)

    with listening(answer) as address:
        assert models({"OLLAMA_API_BASE": address}, PATIENCE_SECONDS) == ("ollama_chat/llama3.2",)
        assert most_recent_model({"OLLAMA_API_BASE": address}, IMPATIENCE_SECONDS) is None


@pytest.mark.parametrize(
    "answer",
    [
        sending(),
        sending(b"\x00\xff" * 50),
        sending(OK),
        sending(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>Please log in</html>"),
        sending(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\n\r\n"),
        sending(b'HTTP/1.1 500 No\r\n\r\n{"models": [{"name": "llama3.2"}]}'),
        sending(b'{"models": [{"name": "llama3.2"}]}'),
        sending(OK, b'{"models": [{"name": "llama3.2"}'),
        sending(OK, b'{"models": {"name": "llama3.2"}}'),
        sending(OK, b'{"models": "llama3.2"}'),
        sending(OK, b'["llama3.2"]'),
        sending(OK, b'{"models": [{"name": "\xff"}]}'),
        sending(OK, b"[" * 500_000),
        sending(OK, b"1" * 100_000),
        sending(OK, b" " * 10_000_000, b'{"models": [{"name": "llama3.2"}]}'),
    ],
    ids=[
        "nothing",
        "noise",
        "no body",
        "a web page",
        "a redirect",
        "a failure",
        "no head",
        "half a document",
        "an object for a list",
        "a text for a list",
        "a list for an object",
        "no UTF-8",
        "brackets without end",
        "a number without end",
        "ten megabytes",
    ],
)
def test_whoever_else_answers_is_no_ollama(answer: Answer) -> None:
    with listening(answer) as address:
        begun = time.monotonic()
        assert most_recent_model({"OLLAMA_API_BASE": address}, PATIENCE_SECONDS) is None
        assert models({"OLLAMA_API_BASE": address}, PATIENCE_SECONDS) == ()
        assert time.monotonic() - begun < 2


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:9",
        "https://127.0.0.1:9",
        "ftp://127.0.0.1:9",
        "127.0.0.1:9",
        "http://",
        "http://[::1",
        "http://127.0.0.1:99999999",
        "http://127.0.0.1:port",
        f"http://{'a' * 64}.localhost",
        "http://127.0.0.1:9/\u00fc",
        "\ud800",
    ],
)
def test_an_address_where_nobody_can_be_is_no_ollama(address: str) -> None:
    assert most_recent_model({"OLLAMA_API_BASE": address}) is None
    assert models({"OLLAMA_API_BASE": address}) == ()


def test_who_speaks_no_tls_is_no_ollama_at_an_https_address() -> None:
    with listening(ollama(stored=[entry("llama3.2")])) as address:
        assert most_recent_model({"OLLAMA_API_BASE": address.replace("http", "https")}, IMPATIENCE_SECONDS) is None


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({}, "http://localhost:11434"),
        ({"OLLAMA_API_BASE": " ", "OLLAMA_HOST": ""}, "http://localhost:11434"),
        ({"OLLAMA_API_BASE": "http://gpu:1234/", "OLLAMA_HOST": "other"}, "http://gpu:1234"),
        ({"OLLAMA_HOST": "gpu"}, "http://gpu:11434"),
        ({"OLLAMA_HOST": "gpu:1234"}, "http://gpu:1234"),
        ({"OLLAMA_HOST": ":1234"}, "http://127.0.0.1:1234"),
        ({"OLLAMA_HOST": "gpu:"}, "http://gpu:11434"),
        ({"OLLAMA_HOST": "gpu:x"}, "http://gpu:11434"),
        ({"OLLAMA_HOST": "gpu:65536"}, "http://gpu:11434"),
        ({"OLLAMA_HOST": f"gpu:{'9' * 5000}"}, "http://gpu:11434"),
        ({"OLLAMA_HOST": "http://gpu"}, "http://gpu:80"),
        ({"OLLAMA_HOST": "https://gpu"}, "https://gpu:443"),
        ({"OLLAMA_HOST": "https://gpu:1234/ollama/"}, "https://gpu:1234/ollama"),
        ({"OLLAMA_HOST": " '10.0.0.7:1234' "}, "http://10.0.0.7:1234"),
        ({"OLLAMA_HOST": "0.0.0.0"}, "http://127.0.0.1:11434"),  # noqa: S104 - an address, nothing is bound
        ({"OLLAMA_HOST": "0.0.0.0:1234"}, "http://127.0.0.1:1234"),
        ({"OLLAMA_HOST": "http://0.0.0.0:1234"}, "http://127.0.0.1:1234"),
        ({"OLLAMA_HOST": "::"}, "http://[::1]:11434"),
        ({"OLLAMA_HOST": "[::]:1234"}, "http://[::1]:1234"),
        ({"OLLAMA_HOST": "fe80::7"}, "http://[fe80::7]:11434"),
        ({"OLLAMA_HOST": "[fe80::7]:1234"}, "http://[fe80::7]:1234"),
    ],
)
def test_the_address_is_read_as_litellm_and_ollama_read_it(environment: Mapping[str, str], address: str) -> None:
    assert ollama_address(environment) == address
