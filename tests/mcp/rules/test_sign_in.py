"""Which addresses a sign-in may use, and which answers of a browser it takes."""

from __future__ import annotations

import pytest

from chorus_cli.core.errors import SignInError
from chorus_cli.mcp.rules.sign_in import brought, check_address, state_of

FAR, HERE = "https://far.example/mcp", "http://localhost:3000/mcp"


@pytest.mark.parametrize(
    ("address", "server"),
    [
        ("https://login.example/token", FAR),
        ("https://login.example/token", HERE),
        ("http://127.0.0.1:8000/token", HERE),
        ("http://[::1]:8000/token", HERE),
    ],
)
def test_what_is_encrypted_or_stays_on_this_machine_may_be_asked(address: str, server: str) -> None:
    check_address(address, server)


@pytest.mark.parametrize(
    ("address", "server", "told"),
    [
        ("http://login.example/token?a=b", FAR, "http://login.example"),
        ("http://user:word@login.example/token", FAR, "http://login.example"),
        ("http://127.0.0.1:8000/token", FAR, "http://127.0.0.1:8000"),
        ("http://127.0.0.1.example/token", HERE, "http://127.0.0.1.example"),
        ("http://192.168.1.5/token", HERE, "http://192.168.1.5"),
        ("file:///etc/passwd", HERE, "file://"),
        ("javascript:alert(1)", HERE, "javascript://"),
        ("https:///token", HERE, "https://"),
    ],
)
def test_anything_else_may_not(address: str, server: str, told: str) -> None:
    with pytest.raises(SignInError) as refused:
        check_address(address, server)
    assert str(refused.value) == f"the connection to {told} is not encrypted (https)"


def test_an_address_that_cannot_be_read_may_not_either() -> None:
    with pytest.raises(SignInError, match="cannot be read"):
        check_address("https://[::1/token", FAR)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("error=access_denied&state=s", r"refused \(access_denied\)"),
        ("error=%1b%5b2J+now&state=s", r"refused \(error\)"),
        ("state=s", "no code"),
    ],
)
def test_the_browser_must_bring_a_code_for_this_sign_in(query: str, told: str) -> None:
    with pytest.raises(SignInError, match=told):
        brought(query, "s")
    assert brought("code=c&state=s&iss=https%3A%2F%2Fa.example", "s") == {
        "code": "c",
        "state": "s",
        "iss": "https://a.example",
    }


@pytest.mark.parametrize("query", ["code=c", "code=c&state=", "code=c&state=other", "error=access_denied&state=other"])
def test_what_belongs_to_another_sign_in_is_passed_over(query: str) -> None:
    assert brought(query, "s") is None


def test_the_state_is_the_one_that_the_library_wrote() -> None:
    assert state_of("https://login.example/?state=evil?response_type=code&state=own") == "own"
