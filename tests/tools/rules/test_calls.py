"""Calls: assembled from pieces in any split, with arguments read as they were meant, and shown in one line."""

from __future__ import annotations

import json
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import ToolError
from chorus_cli.log.rules.calls import CallAssembly, CallPiece, ToolCall, calls_in_words, stored_calls, unique_id
from chorus_cli.models.rules.declaration import LONGEST_ARGUMENTS, Kind, Parameter, Tool, read_call
from tests.imports.rules.exports import SOUND

REMEMBER = Tool(
    "remember",
    "Keep something.",
    (
        Parameter("type", "The kind.", choices=("TASK", "CODE")),
        Parameter("content", "The text."),
        Parameter("days", "How long.", Kind.NUMBER, is_required=False),
    ),
)
TOOLS = {"remember": REMEMBER}


@given(
    arguments=st.lists(st.dictionaries(st.text(max_size=20), SOUND, max_size=4), min_size=1, max_size=4),
    sizes=st.lists(st.integers(1, 9), min_size=1),
)
def test_any_split_of_any_calls_is_put_together_again(arguments: list[dict[str, object]], sizes: list[int]) -> None:
    written = [json.dumps(each, ensure_ascii=False) for each in arguments]
    assembly = CallAssembly()
    for index, text in enumerate(written):
        assembly.add(CallPiece(index, f"c{index}", "remember"))
        place, turn = 0, 0
        while place < len(text):
            size = sizes[turn % len(sizes)]
            assembly.add(CallPiece(index, arguments=text[place : place + size]))
            place, turn = place + size, turn + 1
    assert [(call.id, call.name, call.arguments) for call in assembly.calls()] == [
        (f"c{index}", "remember", text) for index, text in enumerate(written)
    ]


@given(text=st.text(max_size=60))
def test_whatever_a_model_writes_every_provider_takes_it_back(text: str) -> None:
    read = read_call(ToolCall("c1", "remember", text), TOOLS)
    assert isinstance(json.loads(read.call.arguments), dict)
    assert "\n" not in read.shown
    json.loads(read.call.as_json)[0]["function"]["arguments"].encode()


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ({"type": "TASK", "content": "a"}, {"type": "TASK", "content": "a"}),
        ({"type": " task ", "content": "a"}, {"type": "TASK", "content": "a"}),
        ({"type": "CODE", "content": 7, "days": 3.0}, {"type": "CODE", "content": "7", "days": 3}),
        ({"type": "CODE", "content": "a", "days": None, "colour": "red"}, {"type": "CODE", "content": "a"}),
        ({"type": "CODE", "content": "a", "days": ""}, {"type": "CODE", "content": "a"}),
        ({"type": "CODE", "content": "a", "days": 2**63 - 1}, {"type": "CODE", "content": "a", "days": 2**63 - 1}),
    ],
)
def test_arguments_are_taken_as_they_are_meant(arguments: dict[str, object], values: dict[str, object]) -> None:
    assert read_call(ToolCall("c1", "remember", json.dumps(arguments)), TOOLS).arguments().values == values


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"content": "a"}, "The argument 'type' is missing: The kind."),
        ({"type": "SONG", "content": "a"}, "The argument 'type' must be one of: TASK, CODE."),
        ({"type": "TASK", "content": ""}, "The argument 'content' is missing: The text."),
        ({"type": "TASK", "content": True}, "The argument 'content' must be a text: The text."),
        ({"type": "TASK", "content": "a", "days": -1}, "The argument 'days' must be a whole number: How long."),
        ({"type": "TASK", "content": "a", "days": True}, "The argument 'days' must be a whole number: How long."),
        ({"type": "TASK", "content": "a", "days": 2**63}, "The argument 'days' must be a whole number: How long."),
        (
            {"type": "TASK", "content": "a", "days": "9" * 5_000},
            "The argument 'days' must be a whole number: How long.",
        ),
    ],
)
def test_what_cannot_be_taken_is_said(arguments: dict[str, object], told: str) -> None:
    with pytest.raises(ToolError) as caught:
        read_call(ToolCall("c1", "remember", json.dumps(arguments)), TOOLS).arguments()
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [
        ("remember", '{"type": "TASK", "content": "Buy\\nbread"}', 'remember("TASK", "Buy bread")'),
        ("remember", '{"content": "a", "type": "CODE", "days": "#3"}', 'remember("a", "CODE", "#3")'),
        ("remember", "{'content': 'a'}", 'remember("a")'),
        ("remember", "no idea", "remember()"),
        ("dream", '{"of": "sheep"}', 'dream(of "sheep")'),
        ("remember", json.dumps({"content": "a" * 500}), f'remember("{"a" * 59}…")'),
    ],
)
def test_a_call_is_shown_in_one_line(name: str, arguments: str, shown: str) -> None:
    assert read_call(ToolCall("c1", name, arguments), TOOLS).shown == shown


@pytest.mark.parametrize(
    ("wanted", "taken", "given_id"),
    [("a", [], "a"), ("a", ["a"], "a_1"), ("a", ["a", "a_1"], "a_2"), ("", [], "call_1"), (" ", ["call_1"], "call_2")],
)
def test_an_id_is_kept_if_it_is_one_of_a_kind(wanted: str, taken: list[str], given_id: str) -> None:
    assert unique_id(wanted, taken) == given_id


def test_a_call_is_written_as_the_api_writes_it_and_read_in_words() -> None:
    call = ToolCall("c1", "remember", '{"content": "Brötchen"}')
    assert json.loads(call.as_json) == [
        {"id": "c1", "type": "function", "function": {"name": "remember", "arguments": '{"content": "Brötchen"}'}}
    ]
    assert calls_in_words(call.as_json) == 'remember {"content": "Brötchen"}'
    assert stored_calls(call.as_json) == (call,)


@pytest.mark.parametrize("stored", ["", "{", "null", "3", "[3]", "[{}]", '[{"id": "a", "function": {"name": 3}}]'])
def test_text_that_holds_no_call_has_no_stored_calls(stored: str) -> None:
    assert stored_calls(stored) == ()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (json.dumps({"type": "TASK", "content": "\n" * 100_000}), ""),
        (
            json.dumps({"type": "TASK", "content": "x" * LONGEST_ARGUMENTS}),
            "The arguments have 250,031 characters, but 250,000 is the maximum. Send shorter arguments.",
        ),
    ],
    ids=["the longest memory item", "longer"],
)
def test_arguments_have_a_largest_size(arguments: str, told: str) -> None:
    read = read_call(ToolCall("c1", "remember", arguments), TOOLS)
    assert read.problem == told
    assert json.loads(read.call.arguments) == ({} if told else json.loads(arguments))


def test_a_name_that_is_repeated_with_every_piece_costs_no_parsing() -> None:
    written = json.dumps({"content": "word " * 16_000})
    assembly = CallAssembly()
    begun = time.process_time()
    for place in range(0, len(written), 4):
        assembly.add(CallPiece(0, name="remember", arguments=written[place : place + 4]))
    assembly.add(CallPiece(0, name="remember", arguments="{}"))
    assert time.process_time() - begun < 1
    assert [call.arguments for call in assembly.calls()] == [written, "{}"]


def test_without_the_repairing_package_damaged_arguments_are_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "json_repair", None)
    assert read_call(ToolCall("c1", "remember", "{'a': 1}"), TOOLS).problem
