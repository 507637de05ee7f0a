"""What may be a key in the entry of a server, so that the journal, which keeps all for ever, does not get it."""

from __future__ import annotations

import pytest

from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.settings.rules.keys import arguments_with_keys, keeps_keys


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "npx", "env": {"ANY": "thing"}},
        {"command": "npx", "env": {"ANY": "${TOKEN:-a-default}"}},
        {"url": "https://a.example/mcp", "headers": {"X-Any": "thing"}},
        {"command": "npx", "args": ["--token", "verysecret"]},
        {"command": "npx", "args": ["--token=verysecret"]},
        {"command": "npx", "args": ["--api-key", "${KEY:-a-default}"]},
        {"command": "npx", "args": ["mcp-remote", "--header", "Authorization: Bearer verysecret"]},
        {"command": "npx", "args": ["postgres://frodo:verysecret@localhost/shire"]},
        {"command": "npx", "args": ["sk-ant-0123456789"]},
        {"url": "https://a.example/mcp?profile=verysecret"},
        {"url": "https://frodo:ring@a.example/mcp"},
        {"httpUrl": "https://a.example/s/0123456789abcdef/mcp"},
    ],
    ids=str,
)
def test_an_entry_with_a_key_that_is_written_out(entry: JsonValue) -> None:
    assert keeps_keys(entry)


@pytest.mark.parametrize(
    "entry",
    [
        None,
        True,
        ["now"],
        {"command": "uvx", "args": ["mcp-server-time", "--local-timezone=Europe/Rome"]},
        {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/frodo/notes"]},
        {"command": "npx", "env": {"TOKEN": "${TOKEN}"}, "args": ["--token", "${TOKEN}", "--key=${env:KEY}"]},
        {"command": "npx", "args": ["--header", "Authorization: Bearer ${TOKEN}"]},
        {"url": "https://${USER}@a-long-name.of-a-server.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
        {"url": "${ADDRESS}/mcp?key=${KEY}&more"},
    ],
    ids=str,
)
def test_an_entry_that_only_names_its_keys(entry: JsonValue) -> None:
    assert not keeps_keys(entry)


def test_only_the_argument_after_the_name_of_a_key_is_one() -> None:
    assert arguments_with_keys(["run", "--key", "a", "b", "--token=c", "d"]) == ["a", "--token=c"]
