"""What readers are made of, values and branches, and what holds for every reader, whatever it is given."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json import values
from chorus_cli.imports.rules import (
    chatgpt,
    claude_ai,
    claude_code,
    codex,
    gemini_cli,
    librechat,
    open_webui,
    plain_messages,
    qwen_code,
    silly_tavern,
)
from chorus_cli.imports.rules.assembly import FileFacts, Kind, Node, Said, assembled, joined
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignMessage
from chorus_cli.log.rules.messages import Role
from tests.imports.rules import (
    test_chatgpt,
    test_claude_ai,
    test_claude_code,
    test_codex,
    test_gemini_and_qwen,
    test_open_webui,
    test_silly_tavern,
    test_small_files,
)
from tests.imports.rules.exports import ANYTHING, check, claude, spoiled
from tests.imports.rules.sessions import (
    claude_line,
    codex_event,
    codex_line,
    codex_meta,
    gemini_meta,
    text,
    tool_result,
    tool_use,
)


def message(key: str, second: int | None = None) -> ForeignMessage:
    time = None if second is None else datetime(2024, 1, 1, 0, 0, second, tzinfo=UTC)
    return ForeignMessage(key, None, Role.USER, key, time)


def node(key: str, parent: str | None = None, second: int | None = None) -> Node:
    return Node(key, parent, (message(key, second),))


def parents_of(messages: Iterable[ForeignMessage]) -> dict[str, str | None]:
    return {each.key: each.parent for each in messages}


@pytest.mark.parametrize(
    ("nodes", "leaf", "live"),
    [
        ([node("a"), node("b", "a"), node("c", "b")], "c", "abc"),
        ([node("c", "b"), node("b", "a"), node("a")], "c", "abc"),
        ([node("a"), node("b", "a", 1), node("c", "a", 2)], "b", "ab"),
        ([node("a"), node("b", "a", 2), node("c", "a", 1)], None, "ab"),
        ([node("a"), node("b", "a", 2), node("c", "b"), node("d", "a", 1)], None, "abc"),
        ([node("a"), node("b", "a"), node("c", "a")], "gone", "ac"),
        ([node("a"), Node("b", "a"), node("c", "b")], "c", "ac"),
        ([node("a"), Node("b", "a"), node("c", "b")], "b", "a"),
        ([node("a", "gone"), node("b", "a")], "b", "ab"),
        ([node("a", "c"), node("b", "a"), node("c", "b")], "b", "ab"),
        ([node("a", "b"), node("b", "c"), node("c", "b")], "a", "ba"),
        ([node("a", "a")], "a", "a"),
        ([Node("a")], "a", ""),
        ([Node("a"), node("b", "a")], "a", "b"),
        ([node("a"), Node("", "a", (message("b"),))], "", "a"),
        ([], None, ""),
    ],
)
def test_the_live_path_leads_from_the_root_to_the_leaf(nodes: list[Node], leaf: str | None, live: str) -> None:
    assert "".join(joined(nodes, leaf)[1]) == live


def test_a_node_of_several_messages_is_a_chain() -> None:
    messages, live = joined([Node("a", None, (message("a1"), message("a2"))), node("b", "a"), node("c", "a")], "b")
    assert parents_of(messages) == {"a1": None, "a2": "a1", "b": "a2", "c": "a2"}
    assert live == ("a1", "a2", "b")


def test_messages_without_branches_follow_each_other() -> None:
    found = assembled(ForeignConversation("fake"), [Said(key, Kind.USER, key) for key in "abc"])
    assert {each.key: each.parent for each in found.messages} == {"a": None, "b": "a", "c": "b"}
    assert found.live == ("a", "b", "c")


def test_calls_with_the_same_id_have_their_own_results() -> None:
    said = [
        Said(f"{kind.name}{number}", kind, f"{number}", key=f"{kind.name}{number}", call="call_0")
        for number in range(3)
        for kind in (Kind.CALL, Kind.RESULT)
    ]
    found = assembled(ForeignConversation("fake"), [Said("q", Kind.USER, "q", key="q"), *said[:-1]]).messages[1:]
    assert [each.content for each in found if each.role is Role.TOOL_RESULT] == ["0", "1"]
    assert [each.tool_call_id for each in found] == ["call_0", "call_0", "call_0-2", "call_0-2", None]


def test_a_conversation_may_be_a_hundred_thousand_messages_long() -> None:
    nodes = [node(str(number), str(number - 1)) for number in range(100_000)]
    assert len(joined(reversed(nodes))[1]) == 100_000


KEYS = st.sampled_from("abcdefg")
NODES = st.builds(
    Node,
    KEYS,
    st.none() | st.sampled_from("abcdefgh"),
    st.lists(st.builds(message, KEYS, st.none() | st.integers(0, 3)), max_size=2).map(tuple),
)


@given(st.lists(NODES, max_size=10), st.none() | KEYS)
def test_any_tree_has_parents_first_and_one_path(nodes: list[Node], leaf: str | None) -> None:
    messages, live = joined(nodes, leaf)
    parents = parents_of(messages)
    keys = list(parents)
    assert len(keys) == len(messages)
    assert {each.key for of in {one.key: one for one in nodes}.values() for each in of.messages} == set(keys)
    for position, key in enumerate(keys):
        assert parents[key] is None or parents[key] in keys[:position]
    assert [parents[key] for key in live[:1]] == [None] * len(live[:1])
    assert all(parents[after] == before for before, after in pairwise(live))


BERLIN = timezone(timedelta(hours=1))


NO_TIMES = (0, -5, True, float("nan"), 10**400, 1e300, "yesterday", "0001-01-01T00:00:00+14:00", "9" * 5000, None)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (1700000000, "2023-11-14T22:13:20+00:00"),
        (1700000000.5, "2023-11-14T22:13:20.500000+00:00"),
        (1700000000500, "2023-11-14T22:13:20.500000+00:00"),
        (1700000000500000, "2023-11-14T22:13:20.500000+00:00"),
        ("1700000000", "2023-11-14T22:13:20+00:00"),
        ("2023-11-14T22:13:20.123456Z", "2023-11-14T22:13:20.123456+00:00"),
        ("2023-11-14 22:13:20+02:00", "2023-11-14T20:13:20+00:00"),
        ("2023-11-14T22:13:20", "2023-11-14T21:13:20+00:00"),
        *((each, None) for each in NO_TIMES),
    ],
)
def test_a_time_is_read_in_each_of_its_forms(written: object, expected: str | None) -> None:
    found = values.moment(written, BERLIN)
    assert (found and found.isoformat()) == expected


@given(ANYTHING)
def test_no_value_is_refused_by_any_reader(value: object) -> None:
    values.json_text(value).encode()
    if not isinstance(value, str):
        assert (values.text(value), values.line(value), values.decoded(value)) == ("", "", None)
        assert values.from_data_url(value) is None
        if not isinstance(value, int | float) or isinstance(value, bool):
            assert (values.identifier(value), values.whole_number(value), values.moment(value)) == ("", 0, None)
    values.identifier(value).encode()
    assert values.whole_number(value) >= 0
    assert values.record(value) == (value if isinstance(value, dict) else {})
    listed = value if isinstance(value, list) else []
    assert values.records(value) == [each for each in listed if isinstance(each, dict)]


@given(st.text(st.characters()))
def test_any_text_can_be_stored_and_shown_in_a_line(text: str) -> None:
    assert not {"\0", "\r"} & set(values.text(text))
    values.text(text).encode()
    line = values.line(text)
    line.encode()
    assert not [sign for sign in line if unicodedata.category(sign) == "Cc"]
    assert line == values.line(line)


def test_a_text_can_be_stored() -> None:
    assert values.text("a\ud83d\ude00b\ud83dc\0d\r\ne") == "a😀b\ufffdc\u2400d\ne"
    long = values.text("x" * (values.LONGEST_TEXT + 1500))
    assert long.endswith("x\n[1,500 more characters were not imported]")


def test_a_title_is_one_line_without_control_sequences() -> None:
    assert values.line(" Tea\x1b]0;owned\x07 \u009b2J\nand\tcake ") == "Tea ]0;owned 2J and cake"
    assert values.line("y" * 300) == "y" * 199 + "…"


def test_json_is_written_once() -> None:
    assert values.json_text({"a": [1, "ä"]}) == '{"a": [1, "ä"]}'
    assert values.json_text('{"a": 1}') == '{"a": 1}'
    deep: object = []
    for _ in range(100_000):
        deep = [deep]
    assert values.json_text(deep) == "{}"


def test_a_data_url_is_its_media_type_and_its_bytes() -> None:
    assert values.from_data_url("data:image/PNG;base64,aGk=") == ("image/png", b"hi")
    assert values.from_data_url("data:text/plain;charset=utf-8;base64,aGk=") == ("text/plain", b"hi")
    assert values.from_data_url("data:;base64,aGk=") == ("", b"hi")
    assert values.from_data_url("data:image/png;base64,a?") is None
    assert values.from_data_url("https://example.org/a.png") is None


def test_equal_messages_have_keys_of_their_own() -> None:
    first, second = values.ContentKeys(), values.ContentKeys()
    keys = [first.of("user", "hi"), first.of("user", "hi"), first.of("userh", "i")]
    assert len(set(keys)) == 3
    assert keys[:2] == [second.of("user", "hi"), second.of("user", "hi")]


def test_an_id_may_be_a_number() -> None:
    assert [values.identifier(each) for each in ("a", 7, 7.5, True, None)] == ["a", "7", "", "", ""]
    assert values.moment(datetime(2023, 1, 1, tzinfo=UTC)) is None


ITEMS = {
    chatgpt: spoiled(test_chatgpt.FULL),
    claude_ai: spoiled(test_claude_ai.FULL),
    librechat: spoiled(test_small_files.TREE),
    open_webui: spoiled(test_open_webui.FULL) | spoiled(test_open_webui.LISTED),
}
LINES = {
    claude_code: test_claude_code.FULL,
    codex: test_codex.FULL,
    gemini_cli: test_gemini_and_qwen.GEMINI,
    plain_messages: test_small_files.MESSAGES,
    qwen_code: test_gemini_and_qwen.QWEN,
    silly_tavern: test_silly_tavern.FULL,
}


def read(reader: Any, lines: Any) -> ForeignConversation:
    found: ForeignConversation = reader.conversation_of(lines, FileFacts("s1"))
    return found


def name_of(reader: Any) -> str | None:
    return getattr(reader, "SOURCE", None)


@pytest.mark.parametrize("reader", ITEMS, ids=name_of)
@given(data=st.data())
def test_any_value_in_any_field_of_an_item_is_survived(reader: Any, data: st.DataObject) -> None:
    value = data.draw(ITEMS[reader] | ANYTHING)
    assert not reader.is_conversation(value) or isinstance(value, dict)
    with suppress(ImportFormatError):
        check(reader.conversation_of(value))


@pytest.mark.parametrize("reader", LINES, ids=name_of)
@given(data=st.data())
def test_any_value_in_any_field_of_a_line_is_survived(reader: Any, data: st.DataObject) -> None:
    lines = data.draw(spoiled(LINES[reader])) or [None]
    reader.is_beginning(lines)
    parts = plain_messages.parted([lines, *lines], FileFacts("s1")) if reader is plain_messages else ()
    for each in (lines, *(part for part, _ in parts)):
        with suppress(ImportFormatError):
            check(read(reader, each))


HEADER = test_silly_tavern.HEADER
EMPTY: dict[Any, list[Any]] = {
    chatgpt: [None, [], {}, {"mapping": []}, {"mapping": {}}, {"mapping": {"a": None}}],
    claude_ai: [None, {}, claude(), {"chat_messages": [None, 7]}],
    open_webui: [None, {}, {"chat": {"history": {"messages": {}}}}, {"chat": {"messages": [None]}}],
    silly_tavern: [[HEADER], [HEADER, None], [HEADER, {}], [HEADER, {"mes": ""}], [HEADER, {"swipes": []}]],
    qwen_code: [
        [],
        [None],
        [test_gemini_and_qwen.TELEMETRY],
        [{**test_gemini_and_qwen.QWEN_QUESTION, "message": {"parts": []}}],
    ],
    claude_code: [[{"type": "summary", "summary": "x"}]],
    codex: [[codex_meta(), test_codex.CONTEXT]],
    gemini_cli: [[gemini_meta(), test_gemini_and_qwen.CONTEXT]],
}


@pytest.mark.parametrize("reader", EMPTY, ids=name_of)
def test_without_a_message_it_is_no_conversation(reader: Any) -> None:
    for value in EMPTY[reader]:
        with pytest.raises(ImportFormatError, match="conversation without messages"):
            _ = reader.conversation_of(value) if reader in ITEMS else read(reader, value)


SUBAGENT = {**codex_meta()["payload"], "source": {"subagent": {"thread_spawn": {}}}}


@pytest.mark.parametrize(
    ("reader", "lines"),
    [
        (claude_code, [{**test_claude_code.QUESTION, "isSidechain": True}]),
        (codex, [codex_line("session_meta", **SUBAGENT), codex_event("user_message", "x")]),
        (gemini_cli, [gemini_meta(kind="subagent"), test_gemini_and_qwen.QUESTION]),
        (qwen_code, [{**line, "isSidechain": True} for line in test_gemini_and_qwen.QWEN]),
    ],
)
def test_a_session_of_a_subagent_is_none_of_its_own(reader: Any, lines: Any) -> None:
    with pytest.raises(ImportFormatError, match="session of a subagent"):
        read(reader, lines)


GROWING = {
    claude_code: [
        *test_claude_code.REWOUND,
        {**claude_line("r1", "c2", "assistant", [text("One")]), "message": {"id": "m", "content": [text("One")]}},
        {**claude_line("r2", "r1", "assistant", []), "message": {"id": "m", "content": [text("moment")]}},
        {
            **claude_line("r3", "r2", "assistant", []),
            "message": {"id": "m", "content": [tool_use("t1"), tool_use("t2")]},
        },
        claude_line("x1", "r3", "user", [tool_result("t1", "found")]),
        claude_line("x2", "x1", "user", [tool_result("t2", "this too")]),
        claude_line("e1", "x2", "assistant", [text("Done")]),
    ],
    codex: [
        *test_codex.FULL[:7],
        codex_line("response_item", 8, type="message", role="user", content=[]),
        *test_codex.FULL[7:10],
    ],
    gemini_cli: test_gemini_and_qwen.GEMINI,
}


@pytest.mark.parametrize("reader", GROWING, ids=name_of)
def test_no_key_of_a_session_that_goes_on_stands_for_two_messages(reader: Any) -> None:
    def messages(lines: list[Any]) -> dict[str, tuple[object, ...]]:
        with suppress(ImportFormatError):
            return {
                each.key: (each.role, each.content, each.timestamp, each.tool_call_id)
                for each in read(reader, lines).messages
            }
        return {}

    lines = GROWING[reader]
    whole = messages(lines)
    for length in range(len(lines)):
        for key, message in messages(lines[:length]).items():
            assert whole.get(key, message) == message
