"""Names, hashes and schemas of servers' tools, as providers take them."""

from __future__ import annotations

import json
import re

import pytest

from chorus_cli.core import limits
from chorus_cli.mcp.rules.declarations import Declared, declared, tools_of
from chorus_cli.models.wire.gemini import _declaration


@pytest.mark.parametrize(
    ("server", "tool"),
    [
        ("time", "get_current_time"),
        ("a" * 64, "b" * 200),
        ("time", "now\x1b[2J"),
        ("1password", "read"),
        ("zeit", "jetzt süß"),
        ("x", "a.b/c"),
    ],
)
def test_a_name_is_one_that_every_provider_takes(server: str, tool: str) -> None:
    (found,) = tools_of(server, [Declared(tool)])
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", found.name)
    assert found.origin is not None
    assert (found.origin.server, found.origin.tool) == (server, tool)


def test_an_ordinary_name_stays_and_no_two_tools_have_one_name() -> None:
    found = tools_of("a", [Declared("b__c"), Declared("d e"), Declared("d.e")])
    assert found[0].name == "a__b__c"
    assert len({tool.name for tool in found}) == 3


@pytest.mark.parametrize(("server", "tool", "other", "its_tool"), [("a", "b__c", "a__b", "c"), ("a", "_b", "a_", "b")])
def test_no_two_servers_have_a_tool_of_one_name(server: str, tool: str, other: str, its_tool: str) -> None:
    (one,), (another,) = tools_of(server, [Declared(tool)]), tools_of(other, [Declared(its_tool)])
    assert one.name == f"{server}__{tool}"
    assert another.name != one.name


def test_a_tool_that_is_declared_thrice_is_offered_once() -> None:
    first, second = tools_of(
        "time", [Declared("now", "Tell."), Declared("now", "Lie."), Declared("now"), Declared("at")]
    )
    assert (first.description, second.name) == ("Tell.", "time__at")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_schema_that_cannot_be_json_is_left_out(value: float) -> None:
    assert declared("now", "", {"default": value}, says_it_only_reads=False) is None


def test_each_part_of_a_declaration_changes_its_hash() -> None:
    known = Declared("now", "Tell the time.")
    changed = (known._replace(name="then"), known._replace(description="More."), known._replace(schema='{"a": 1}'))
    assert known.digest not in {each.digest for each in changed}
    assert known._replace(says_it_only_reads=True).digest == known.digest


def test_a_schema_is_an_object_without_what_providers_refuse_at_its_top() -> None:
    schema = {"$schema": "http://x", "anyOf": [{}], "properties": {"a": {"anyOf": [{"type": "string"}]}}}
    found = declared("now", "", schema, says_it_only_reads=False)
    assert found is not None
    (tool,) = tools_of("time", [found])
    assert tool.schema == {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}]}}}


def test_what_is_too_large_is_cut_or_left_out() -> None:
    found = declared("now", "x" * 10_000_000, {}, says_it_only_reads=False)
    assert found is not None
    assert len(found.description) == limits.DESCRIPTION.most
    assert declared("now", "", {"title": "x" * 100_000}, says_it_only_reads=False) is None
    assert declared("n" * 300, "", {}, says_it_only_reads=False) is None


def test_lone_surrogates_do_not_reach_a_request() -> None:
    found = declared("now\ud800", "\ud800", {"title": "\ud800"}, says_it_only_reads=True)
    assert found is not None
    assert json.dumps([*found], ensure_ascii=False).encode()


def test_gemini_gets_the_schema_of_a_server_as_json_schema() -> None:
    (tool,) = tools_of("time", [Declared("now", "Tell.", '{"properties": {"a": {"const": 1}}}')])
    assert _declaration(tool) == {
        "name": "time__now",
        "description": "Tell.",
        "parametersJsonSchema": {"type": "object", "properties": {"a": {"const": 1}}},
    }
