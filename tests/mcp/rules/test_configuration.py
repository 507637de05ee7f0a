"""Servers in the settings: their shape, the files that name them, and the variables in their texts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.json.jsonc import JsonValue, parse_object
from chorus_cli.mcp.rules.configuration import Server, servers
from chorus_cli.settings.rules.servers import arguments_with_keys
from chorus_cli.settings.rules.table import Layer, Resolution, resolve
from tests.amount import examples

TIME: dict[str, JsonValue] = {"command": "uvx", "args": ["mcp-server-time"]}


def layer(entries: JsonValue, file: str = "system.jsonc", **others: JsonValue) -> Layer:
    document = parse_object(json.dumps({"mcpServers": entries, **others}))
    return Layer(file, document.values, document.lines)


def named(resolution: Resolution, **environment: str) -> tuple[Server, ...]:
    return servers(resolution.settings._asdict(), environment)


def test_a_server_has_what_every_client_writes() -> None:
    entries: JsonValue = {
        "files": {
            "type": "stdio",
            "command": "${HOME}/bin/files",
            "args": ["--root", "${ROOT:-/srv}"],
            "env": {"TOKEN": "${env:TOKEN}"},
            "cwd": "${HOME}",
            "timeout": 5,
        },
        "other": {"type": "http", "url": "https://a.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
        "gemini": {"httpUrl": "https://b.example", "trust": True, "command": None},
    }
    found = resolve([layer(entries, mcp_allow={"files.read": "a1", "other.x.y": "b2", "filesystem.read": "c3"})])
    assert found.warnings == ()
    assert tuple(server._replace(place="") for server in named(found, HOME="/home/x", TOKEN="t")) == (
        Server(
            "files",
            "/home/x/bin/files",
            ("--root", "/srv"),
            {"TOKEN": "t"},
            folder="/home/x",
            allow={"read": "a1"},
            filled=("/home/x", "/srv", "t", "/home/x"),
        ),
        Server(
            "other",
            url="https://a.example/mcp",
            headers={"Authorization": "Bearer t"},
            allow={"x.y": "b2"},
            filled=("t",),
        ),
        Server("gemini", url="https://b.example", trust=True),
    )


def test_no_setting_names_no_server() -> None:
    assert named(resolve([])) == ()
    assert resolve([]).sources["mcpServers"] == "default"


def test_a_personas_server_replaces_one_of_all_personas_and_switches_another() -> None:
    config = layer({"time": TIME, "other": {"command": "a", "env": {"A": "1"}}, "third": TIME}, "config.jsonc")
    own = layer(
        {"other": {"url": "https://b.example"}, "time": {"disabled": True}, "gone": {"trust": True}, "third": None}
    )
    found = resolve([own, config])
    assert found.warnings == ()
    assert found.sources["mcpServers"] == "system.jsonc:1"
    time, other, third = named(found)
    assert (time.name, time.command, time.is_on) == ("time", "uvx", False)
    assert (other.command, other.environment, other.url) == ("", {}, "https://b.example")
    assert (third.name, third.is_on) == ("third", True)


def test_trust_counts_only_where_the_place_is_and_any_file_can_end_it() -> None:
    switches: JsonValue = {"time": {"trust": True, "excludeTools": ["x"]}, "far": {"trust": False}}
    config = layer({"time": TIME, "far": {**TIME, "trust": True}}, "config.jsonc")
    time, far = named(resolve([layer(switches), config]))
    assert (time.trust, time.excluded, far.trust) == (False, ("x",), False)


def test_a_place_is_as_it_is_written() -> None:
    (before,) = named(resolve([layer({"a": {"command": "${A}", "env": {"B": "1"}}})]), A="x")
    (after,) = named(resolve([layer({"a": {"command": "${A}", "env": {"B": "2"}}})]), A="y")
    (other,) = named(resolve([layer({"a": {"command": "x"}})]))
    assert before.place == after.place != other.place


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        *((entry, "is no object") for entry in ("uvx", 5, ["uvx"], True)),
        *((entry, 'needs a "command" or a "url"') for entry in ({"args": ["a"]}, {"command": None})),
        ({"command": "a", "url": "https://b.example"}, 'has both "command" and "url"'),
        ({"url": "https://b.example", "httpUrl": "https://b.example"}, 'has both "url" and "httpUrl"'),
        *(({"command": command}, '"command" must be a text') for command in ("", " ", 5, ["uvx", "x"])),
        *(({**TIME, "args": args}, '"args" must be a list of texts') for args in ("x", [5], {"a": "b"})),
        *(({**TIME, "env": env}, '"env" must be an object of texts') for env in (["A=1"], {"A": 1}, "A=1")),
        ({**TIME, "cwd": 5}, '"cwd" must be a text'),
        *(
            ({"url": url}, '"url" must be an address that begins with http:// or https://')
            for url in ("a.example", "file:///etc/passwd", 5)
        ),
        ({"httpUrl": "ws://a.example"}, '"httpUrl" must be an address that begins with http:// or https://'),
        ({"url": "https://a.example", "type": "sse"}, '"type" must be "stdio" or "http"'),
        ({"url": "https://a.example", "headers": {"A": None}}, '"headers" must be an object of texts'),
        *(({**TIME, key: "yes"}, f'"{key}" must be true or false') for key in ("trust", "disabled")),
    ],
)
def test_a_server_of_another_shape_is_left_out_with_a_sentence_that_names_file_server_and_key(
    entry: JsonValue, told: str
) -> None:
    found = resolve([layer({"time": TIME, "bad": entry})])
    colon = ":" if "must be" in told else ""
    assert found.warnings == (f'system.jsonc:1: the server "bad"{colon} {told}; it is left out',)
    assert [server.name for server in named(found)] == ["time"]


def test_an_empty_entry_which_the_undo_of_a_switch_leaves_says_nothing() -> None:
    found = resolve([layer({"time": {}, "far": {}}), layer({"time": TIME})])
    assert (found.settings.mcpServers, found.warnings) == ({"time": TIME}, ())


@pytest.mark.parametrize("name", ["", "my server", "a.b", "x" * 65, "\x1b[2J"])
def test_a_server_whose_name_cannot_be_a_part_of_a_tools_name_is_left_out(name: str) -> None:
    (warning,) = resolve([layer({name: TIME})]).warnings
    assert (
        "has a name of more than 64 characters, or with characters other than letters, digits, - and _; it is left out"
        in warning
    )


def test_what_is_no_object_of_servers_is_left_out_and_no_secret_is_told() -> None:
    assert resolve([layer(["time"])]).warnings == (
        'system.jsonc:1: mcpServers cannot be ["time"]; it must be an object; it is left out',
    )
    (warning,) = resolve([layer({"a": {"command": 5, "env": {"KEY": "hunter2"}}})]).warnings
    assert "hunter2" not in warning


@pytest.mark.parametrize(("name", "declared"), [("time", "a1"), ("time.now", 5), ("time.now", "")])
def test_an_allowance_names_server_and_tool_with_a_hash(name: str, declared: JsonValue) -> None:
    found = resolve([layer({}, mcp_allow={name: declared, "time.x": "ok"})])
    sentence = f'system.jsonc:1: "{name}" must be "server.tool" with the hash of its declaration; it is left out'
    assert found.warnings == (sentence,)
    assert found.settings.mcp_allow == {"time.x": "ok"}


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ({"command": "${NONE}"}, "command"),
        ({**TIME, "args": ["${NONE}"]}, "args"),
        ({**TIME, "env": {"A": "x${NONE}"}}, "env"),
        ({**TIME, "cwd": "${env:NONE}"}, "cwd"),
        ({"url": "${NONE}/mcp"}, "url"),
        ({"httpUrl": "https://${NONE}"}, "httpUrl"),
        ({"url": "https://a.example", "headers": {"A": "${NONE}"}}, "headers"),
    ],
)
def test_a_variable_that_is_not_set_is_a_problem_that_names_it(entry: dict[str, JsonValue], key: str) -> None:
    found = resolve([layer({"bad": entry, "time": TIME})])
    assert found.warnings == ()
    bad, time = named(found, SOME="x")
    assert bad.problem == (
        f'its "{key}" names the variable NONE, which is not set; '
        "set it before you start Chorus, or write a default: ${NONE:-…}"
    )
    assert time.problem == ""
    # A server that is off needs none of its variables.
    (server,) = named(resolve([layer({"bad": {**entry, "disabled": True}})]))
    assert (server.is_on, server.problem) == (False, "")


NAMES = st.from_regex("[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
PLAIN = st.text(st.characters(exclude_characters="$", exclude_categories=["Cs"]), max_size=8)
DEFAULTS = st.none() | st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]), max_size=8)


@examples(200)
@given(st.lists(st.tuples(PLAIN, NAMES, DEFAULTS), max_size=4), PLAIN, st.dictionaries(NAMES, st.text(max_size=8)))
def test_each_variable_is_replaced_once_and_nothing_else_changes(
    parts: list[tuple[str, str, str | None]], end: str, environment: dict[str, str]
) -> None:
    environment = {name: "set" for _, name, default in parts if default is None} | environment
    written, expected = "", ""
    for before, name, default in parts:
        written += f"{before}${{{name}}}" if default is None else f"{before}${{{name}:-{default}}}"
        value = environment[name] if default is None else environment.get(name) or default
        expected += before + value
    found = resolve([layer({"s": {"command": "c", "args": [written + end]}})])
    (server,) = named(found, **environment)
    assert server.arguments == (expected + end,)


@pytest.mark.parametrize("text", ["$HOME", "${1}", "${a b}", "${input:key}", "${HOME", "$${}", "100 $"])
def test_what_is_no_variable_stays_as_it_is_written(text: str) -> None:
    (server,) = named(resolve([layer({"s": {"command": "c", "args": [text]}})]), HOME="/h")
    assert server.arguments == (text,)


def test_only_the_argument_after_the_name_of_a_key_is_one() -> None:
    assert arguments_with_keys(["run", "--key", "a", "b", "--token=c", "d"]) == ["a", "--token=c"]
