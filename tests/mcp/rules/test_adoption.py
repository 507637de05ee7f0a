"""The settings of other programs, in the shapes of their own documents, and what becomes of each of their servers."""

from __future__ import annotations

import json
from textwrap import dedent

import pytest

from chorus_cli.core.errors import ChorusError
from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.mcp.rules.adoption import read
from chorus_cli.settings.rules.servers import server_fault

NPX: dict[str, JsonValue] = {"command": "npx", "args": ["-y", "a-server"]}

CLAUDE = {
    "mcpServers": {"time": {**NPX, "env": {"KEY": "secret"}}, "far": {"type": "http", "url": "https://a.example"}}
}
CURSOR = {"mcpServers": {"time": {**NPX, "env": {"KEY": "${env:KEY}"}}}}
VS_CODE = """
{
  // what VS Code asks for
  "inputs": [{"type": "promptString", "id": "api-key", "password": true}],
  "servers": {
    "far": {"type": "http", "url": "https://a.example", "headers": {"Authorization": "Bearer ${input:api-key}"}},
  },
}
"""
GEMINI = {
    "mcpServers": {
        "far": {"httpUrl": "https://a.example", "trust": True, "timeout": 5000, "headers": {"X": "$TOKEN"}},
        "time": {**NPX, "cwd": "./x", "env": {"KEY": "$KEY"}, "includeTools": ["a"]},
    }
}
CODEX = dedent("""
    model = "gpt-5"
    [mcp_servers.time]
    command = "npx"
    args = ["-y", "a-server"]
    env = { LEVEL = "1" }
    env_vars = ["KEY"]
    [mcp_servers.far]
    url = "https://a.example"
    bearer_token_env_var = "TOKEN"
    http_headers = { "X-Region" = "eu" }
    env_http_headers = { "X-Key" = "KEY" }
    [mcp_servers.off]
    url = "https://b.example"
    enabled = false
""")
OPENCODE = {
    "mcp": {
        "time": {"type": "local", "command": ["npx", "-y", "a-server"], "environment": {"KEY": "{env:KEY}"}},
        "far": {"type": "remote", "url": "https://a.example", "enabled": False},
    }
}
GPTME = '[[mcp.servers]]\nname = "time"\nenabled = true\ncommand = "npx"\nargs = ["-y", "a-server"]\n'
WITH_KEY = {**NPX, "env": {"KEY": "${KEY}"}}


@pytest.mark.parametrize(
    ("text", "file", "expected"),
    [
        (
            json.dumps(CLAUDE),
            "claude_desktop_config.json",
            {"time": {**NPX, "env": {"KEY": "secret"}}, "far": {"url": "https://a.example"}},
        ),
        (json.dumps(CURSOR), "mcp.json", {"time": {**NPX, "env": {"KEY": "${env:KEY}"}}}),
        (VS_CODE, "mcp.json", {"far": {"url": "https://a.example", "headers": {"Authorization": "Bearer ${API_KEY}"}}}),
        (
            json.dumps(GEMINI),
            "settings.json",
            {"far": {"httpUrl": "https://a.example", "headers": {"X": "${TOKEN}"}}, "time": {**WITH_KEY, "cwd": "./x"}},
        ),
        (
            CODEX,
            "config.toml",
            {
                "time": {**NPX, "env": {"KEY": "${KEY}", "LEVEL": "1"}},
                "far": {
                    "url": "https://a.example",
                    "headers": {"X-Key": "${KEY}", "Authorization": "Bearer ${TOKEN}", "X-Region": "eu"},
                },
                "off": {"url": "https://b.example", "disabled": True},
            },
        ),
        (
            json.dumps(OPENCODE),
            "opencode.json",
            {"time": WITH_KEY, "far": {"url": "https://a.example", "disabled": True}},
        ),
        (GPTME, "config.toml", {"time": NPX}),
        (json.dumps({"mcpServers": {"my own.server ": NPX}}), "x.json", {"my-own-server": NPX}),
    ],
    ids=["Claude", "Cursor", "VS Code", "Gemini CLI", "Codex", "opencode", "gptme", "a name with other signs"],
)
def test_the_servers_of_each_program_are_read(text: str, file: str, expected: dict[str, JsonValue]) -> None:
    found = dict(read(text, file))
    assert found == expected
    assert [server_fault(name, entry) for name, entry in found.items()] == [""] * len(found)


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("npx", "is no object"),
        ({"type": "sse", "url": "https://a.example"}, '"type" must be "stdio" or "http"'),
        ({"command": []}, 'needs a "command" or a "url"'),
        ({"command": "npx", "env": ["KEY"]}, '"env" must be an object of texts'),
        ({"env_vars": ["A"], "env": 5, "command": "npx"}, '"env" must be an object of texts'),
    ],
)
def test_what_cannot_be_taken_over_is_told_by_the_check_of_the_settings(entry: JsonValue, fault: str) -> None:
    found = dict(read(json.dumps({"mcpServers": {"bad": entry}}), "x.json"))
    assert fault in server_fault("bad", found["bad"])


@pytest.mark.parametrize(
    ("text", "file", "told"),
    [
        *((text, "x.json", "x.json names no server") for text in ("{}", "[]", '{"mcpServers": {}}', '{"mcp": 5}')),
        ("model = 1", "config.toml", "config.toml names no server"),
        ("[mcp", "config.toml", "config.toml is not valid TOML: "),
        ("{", "x.json", "x.json:1:2: expected"),
        ("[" * 100_000, "x.json", "x.json:1:101: expected at most 100 levels"),
    ],
)
def test_a_file_without_servers_is_refused_with_a_sentence(text: str, file: str, told: str) -> None:
    with pytest.raises(ChorusError) as refusal:
        read(text, file)
    assert str(refusal.value).startswith(told)
