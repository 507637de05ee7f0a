"""Sessions: their files, which are read back exactly or refused, their names, and their messages in the log."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import SessionError
from chorus_cli.core.json.jsonc import JsonValue
from chorus_cli.log.rules.messages import Message, MessageContent, Role, Status, content_of
from chorus_cli.log.rules.speakers import Speakers
from chorus_cli.sessions.rules.format import (
    FAILED,
    LONGEST_SLUG,
    STOPPED,
    SavedThread,
    Session,
    can_be_extended,
    candidates,
    extract,
    is_session_id,
    meant,
    read,
    slug,
    text_of,
)
from chorus_cli.sessions.rules.matching import known_threads, members
from chorus_cli.turns.rules import entries_of, next_slice
from tests.amount import examples
from tests.fakes import START

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NUMBERS = st.integers(1, 2**63 - 1)
MOMENTS = st.datetimes(datetime(1000, 1, 1), datetime(9998, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 - bounds
CALLS = st.none() | st.just('[{"id": "c1",  "function": {"name": "search", "arguments": "{}"}}]')
THREADS = st.lists(
    st.builds(SavedThread, NUMBERS, TEXT, TEXT, st.integers(0, 9)),
    min_size=1,
    max_size=3,
    unique_by=lambda each: each.id,
)


def messages_in(threads: list[SavedThread]) -> st.SearchStrategy[tuple[MessageContent, ...]]:
    # By name, because `builds` would make up the fields that a file does not keep.
    fields = {
        "thread_id": st.sampled_from([thread.id for thread in threads]),
        "turn_id": NUMBERS,
        "role": st.sampled_from(Role),
        "content": TEXT,
        "timestamp": MOMENTS,
        "status": st.sampled_from([status for status in Status if status is not Status.STREAMING]),
        "preamble": TEXT,
        "tool_calls": CALLS,
        "tool_call_id": st.none() | TEXT,
        "model": st.none() | TEXT,
    }
    message = st.fixed_dictionaries(fields).map(lambda drawn: MessageContent(**drawn))
    return st.lists(message, min_size=1, max_size=5).map(tuple)


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    threads = draw(THREADS)
    return Session(
        session_id=draw(TEXT),
        persona=draw(TEXT),
        timestamp=draw(MOMENTS),
        description=draw(TEXT),
        summary=draw(TEXT),
        token_estimate=draw(st.integers(0, 2**63 - 1)),
        window_start=draw(MOMENTS),
        window_end=draw(MOMENTS),
        active_thread_id=draw(st.sampled_from(threads)).id,
        threads=tuple(threads),
        messages=draw(messages_in(threads)),
    )


SESSION = Session(
    session_id="2026-02-12_auth-refactor",
    persona="chorus",
    timestamp=START,
    description="auth refactor",
    summary="It is done.",
    token_estimate=12,
    window_start=START - timedelta(hours=8),
    window_end=START,
    active_thread_id=1,
    threads=(SavedThread(1, "Auth"),),
    messages=(
        MessageContent(1, Role.USER, "Hello", START, 1),
        MessageContent(1, Role.ASSISTANT, "Hi", START + timedelta(microseconds=1), 1, model="openai/test"),
    ),
)


@examples(200)
@given(session=sessions())
def test_session_json_roundtrip(session: Session) -> None:
    assert read(text_of(session)) == session


def test_the_file_has_the_promised_keys_and_can_be_read_by_a_person() -> None:
    text = text_of(replace(SESSION, description="Größe 日本"))
    assert " ".join(json.loads(text)) == (
        "format version session_id persona timestamp description summary message_count token_estimate "
        "window_start window_end active_thread_id threads messages"
    )
    assert '\n  "timestamp": "2026-02-12T14:30:00.000000Z",\n  "description": "Größe 日本",\n' in text
    assert text.endswith("}\n")
    assert json.loads(text)["messages"][1] == {
        "role": "assistant",
        "content": "Hi",
        "timestamp": "2026-02-12T14:30:00.000001Z",
        "thread": 1,
        "turn": 1,
        "status": "complete",
        "model": "openai/test",
    }


def test_session_includes_tool_use_messages() -> None:
    call = Message(3, "chorus", 1, 1, Role.TOOL_USE, "", START, tool_calls='[{"id": "c"}]', tool_call_id="c")
    result = Message(4, "chorus", 1, 1, Role.TOOL_RESULT, "42", START, tool_call_id="c")
    session = replace(SESSION, messages=(*SESSION.messages, content_of(call), content_of(result)))
    assert read(text_of(session)) == session
    assert [each["role"] for each in json.loads(text_of(session))["messages"][2:]] == ["tool_use", "tool_result"]


def test_what_a_newer_chorus_may_add_is_passed_over() -> None:
    assert read(text_of(SESSION).replace('"threads"', '"colour": {"a": [1.5, null]}, "threads"', 1)) == SESSION


def changed(of: str, key: str, *values: JsonValue) -> str:
    """Return the text of a session with another value of a key of the file, or of the second message, or without it."""
    document: Any = json.loads(text_of(SESSION))
    place = document if of == "the file" else document["messages"][1]
    place.pop(key, None)
    for value in values:
        place[key] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("of", "key"),
    [
        *(("the file", key) for key in json.loads(text_of(SESSION))),
        *(("message 2", key) for key in ("role", "content", "timestamp", "thread", "turn", "status")),
    ],
)
def test_a_missing_key_is_named_with_its_place(of: str, key: str) -> None:
    with pytest.raises(SessionError, match=f'"{key}" of {of} is missing'):
        read(changed(of, key))


UNREAD = "is missing or cannot be read"
STRANGE = "has calls, files or a status that no saved message has"
FILE = {"name": "a.png", "media_type": "image/png", "size_bytes": 1}


@pytest.mark.parametrize(
    ("of", "key", "value", "sentence"),
    [
        ("the file", "format", "other", "it may be from a newer Chorus"),
        ("the file", "version", 2, "it may be from a newer Chorus"),
        *(
            ("the file", key, value, f'"{key}" of the file {UNREAD}')
            for key, value in (
                ("format", None),
                ("session_id", 7),
                ("timestamp", "yesterday"),
                ("timestamp", 20260212),
                ("timestamp", "0999-01-01T00:00:00Z"),
                ("timestamp", "9999-12-31T23:59:59-14:00"),
                ("message_count", 1.5),
                ("active_thread_id", True),
                ("active_thread_id", 2**63),
                ("threads", {}),
            )
        ),
        ("the file", "summary", "half \ud800", "a character that is not valid"),
        ("the file", "active_thread_id", 2, "not those of its messages"),
        ("the file", "threads", [], "not those of its messages"),
        ("the file", "threads", [{"id": 1, "title": "a", "summary": ""}] * 2, "not those of its messages"),
        ("the file", "messages", [], "not those of its messages"),
        ("the file", "threads", [1], f'"id" of a thread {UNREAD}'),
        ("the file", "threads", [{"id": 1, "title": None, "summary": ""}], f'"title" of a thread {UNREAD}'),
        *(
            ("message 2", key, value, f'"{key}" of message 2 {UNREAD}')
            for key, value in (("role", "robot"), ("content", None), ("turn", -1), ("preamble", 5), ("tool_calls", []))
        ),
        ("message 2", "status", "streaming", STRANGE),
        ("message 2", "tool_calls", "{}", STRANGE),
        ("message 2", "attachments", [{**FILE, "sha256": "../../evil"}], STRANGE),
        ("message 2", "attachments", [FILE], f'"sha256" of a file of message 2 {UNREAD}'),
        ("message 2", "content", "\udc00", "a character that is not valid"),
        ("message 2", "thread", 9, "not those of its messages"),
        ("message 2", "tool_calls", "not JSON", "line 1, column 1"),
        ("message 2", "tool_calls", '[{"a": "\\ud800"}]', "a character that is not valid"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_place(of: str, key: str, value: JsonValue, sentence: str) -> None:
    with pytest.raises(SessionError, match=sentence):
        read(changed(of, key, value))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "line 1, column 1"),
        ("null", f'"format" of the file {UNREAD}'),
        ('{"format": "chorus-session", "version": NaN}', f'"version" of the file {UNREAD}'),
        ('{"version": ' + "1" * 5000 + "}", "a number or a character that is not valid"),
        ("[" * 200_000, "nested too deeply"),
        ('{"a": 1,}', "line 1"),
    ],
)
def test_what_is_no_sound_json_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(SessionError, match=sentence):
        read(text)


def test_a_file_that_was_cut_anywhere_is_refused() -> None:
    text = text_of(SESSION)
    for length in range(0, len(text) - 2, 7):
        with pytest.raises(SessionError):
            read(text[:length])


def row(id_: int, content: str, role: Role = Role.USER, thread: int = 1, turn: int | None = None) -> Message:
    return Message(id_, "chorus", thread, turn or id_, role, content, START + timedelta(seconds=id_))


def session_of(*messages: MessageContent) -> Session:
    threads = tuple(SavedThread(id_) for id_ in dict.fromkeys(message.thread_id for message in messages))
    return Session("id", "chorus", START, "", "", 0, START, START, threads[0].id, threads, messages)


ROWS = [row(1, "Hello"), row(2, "Hi", Role.ASSISTANT, turn=1), row(3, "Bye"), row(4, "Bye!", Role.ASSISTANT, turn=3)]


def test_what_differs_in_role_time_or_content_is_new() -> None:
    message = content_of(ROWS[0])
    others = [
        message._replace(content="Hello!"),
        message._replace(role=Role.ASSISTANT),
        message._replace(timestamp=message.timestamp + timedelta(microseconds=1)),
    ]
    found = members(session_of(*others), ROWS, {1: 1}, {})
    assert all(isinstance(member, MessageContent) for member in found)


def test_of_equal_messages_the_kth_is_the_kth_and_none_is_taken_twice() -> None:
    twins = [row(id_, "ok", Role.ASSISTANT)._replace(timestamp=START) for id_ in (5, 6)]
    session = session_of(*(content_of(twins[0])._replace(turn_id=99) for _ in range(3)))
    first, second, third = members(session, twins, {1: 1}, {})
    assert (first, second) == (5, 6)
    assert isinstance(third, MessageContent)


def test_of_equal_messages_the_one_of_the_same_turn_is_meant() -> None:
    twins = [row(id_, "ok", Role.ASSISTANT, turn=turn)._replace(timestamp=START) for id_, turn in ((5, 4), (7, 6))]
    assert members(session_of(content_of(twins[1])), twins, {1: 1}, {}) == (7,)


def test_what_was_said_comes_before_what_an_operation_put_in() -> None:
    put_in = ROWS[0]._replace(id=7, introduced_by=1)
    session = session_of(content_of(ROWS[0])._replace(turn_id=50))
    assert members(session, [put_in, ROWS[0]._replace(id=9)], {1: 1}, {}) == (9,)


def test_a_thread_is_known_by_its_messages_whatever_its_number_and_is_that_of_one_in_a_session() -> None:
    elsewhere = [each._replace(thread_id=8) for each in ROWS]
    session = session_of(*map(content_of, ROWS))
    assert known_threads(session, elsewhere, {}) == {1: 8}
    assert known_threads(session, [*elsewhere, *ROWS], {}) == {1: 1}
    assert known_threads(session, [], {}) == {}
    twice = session_of(content_of(ROWS[0]), content_of(ROWS[0])._replace(thread_id=2))
    assert known_threads(twice, ROWS, {}) == {1: 1}


def test_a_new_message_joins_the_turn_of_a_known_one_and_keeps_everything_else() -> None:
    call = MessageContent(1, Role.TOOL_USE, "", START, 1, tool_calls="[]", tool_call_id="c", preamble="p", model="m")
    _, added = members(session_of(content_of(ROWS[0]), call), ROWS, {1: 1}, {})
    assert added == MessageContent(
        1, Role.TOOL_USE, "", START, 1, preamble="p", tool_calls="[]", tool_call_id="c", model="m"
    )


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("Auth refactor", "auth-refactor"),
        ("  Auth   refactor  ", "auth-refactor"),
        ("don't lose this!", "dont-lose-this"),
        ("JWT / OAuth: a & b", "jwt-oauth-a-b"),
        ("re-factor -- all", "re-factor-all"),
        ("Café Größe", "cafe-groe"),
        ("../../etc/passwd", "etcpasswd"),
        ("a" * 50, "a" * 40),
        (f"{'a' * 39} tail", "a" * 39),
        ("under_score", "underscore"),
    ],
)
def test_session_slug_generation_from_description(description: str, expected: str) -> None:
    assert slug(description, "Hello") == expected


@pytest.mark.parametrize("description", ["", "   ", "!!!", "日本語", "---"])
def test_session_slug_generation_auto(description: str) -> None:
    generated = slug(description, "Hello")
    assert len(generated) == 6
    assert set(generated) <= set("0123456789abcdef")
    assert generated == slug("", "Hello") != slug("", "Goodbye")


@examples(200)
@given(description=st.text(max_size=80), first=st.text(max_size=20))
def test_every_name_that_is_made_is_a_session_id(description: str, first: str) -> None:
    made = slug(description, first)
    assert 0 < len(made) <= LONGEST_SLUG
    assert all(is_session_id(name) for name in islice(candidates(f"2026-02-12_{made}"), 12))


_DAY = "2026-02-12"
_ENDINGS = ["", "_", "_-a", "_a-", "_A", "_a/b", "_a.json", "_a\n", "_\0", "_é", f"_{'a' * 90}"]


@pytest.mark.parametrize("text", ["", ".", "..", f"../{_DAY}_a", "٢٠٢٦-02-12_a", *(_DAY + each for each in _ENDINGS)])
def test_what_is_no_session_id_is_never_one(text: str) -> None:
    assert not is_session_id(text)


KNOWN = ["2026-02-12_auth", "2026-02-12_auth-2", "2026-02-13_tests", "2026-02-14_the-ring"]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("2026-02-12_auth", ["2026-02-12_auth"]),
        ("2026-02-12_AUTH-2", ["2026-02-12_auth-2"]),
        ("2026-02-12", ["2026-02-12_auth", "2026-02-12_auth-2"]),
        (" 2026-02-13 ", ["2026-02-13_tests"]),
        ("tests", ["2026-02-13_tests"]),
        ("The  ring!", ["2026-02-14_the-ring"]),
        ("ring", []),
        ("", []),
        ("../../etc/passwd", []),
    ],
)
def test_a_name_is_meant_by_itself_by_how_it_begins_or_by_the_description(typed: str, expected: list[str]) -> None:
    assert meant(typed, KNOWN) == expected


def message(content: str, role: Role = Role.USER) -> MessageContent:
    return MessageContent(1, role, content, START, 1)


def all_slices(entries: list[str], room: int) -> list[str]:
    found: list[str] = []
    while entries:
        part, entries = next_slice(entries, room, len)
        found.append(part)
    return found


def test_a_transcript_says_who_speaks() -> None:
    call = MessageContent(1, Role.TOOL_USE, "", START, 1, tool_calls='[{"name": "x"}]')
    messages = [message("Hello"), message("Hi", Role.ASSISTANT), call, message("42", Role.TOOL_RESULT)]
    assert entries_of(messages, Speakers("Frodo")) == [
        "Human: Hello",
        "Frodo: Hi",
        'Frodo calls a tool: [{"name": "x"}]',
        "The tool answers: 42",
    ]


@examples(200)
@given(entries=st.lists(st.text("ab ", min_size=1, max_size=40), max_size=8), room=st.integers(3, 60))
def test_slices_fit_and_leave_nothing_out(entries: list[str], room: int) -> None:
    slices = all_slices(entries, room)
    assert all(len(part) <= room for part in slices)
    assert "".join(slices).replace("\n", "") == "".join(entries)


def test_entries_that_fit_together_go_together() -> None:
    assert all_slices(["one", "two", "three"], 1000) == ["one\n\ntwo\n\nthree"]
    assert all_slices([], 10) == []
    assert all_slices(["abc"], 0) == ["a", "b", "c"]


def test_the_extract_is_labelled_and_holds_what_the_user_said_first_and_last() -> None:
    said = [message("First\nthing"), message("Reply", Role.ASSISTANT), message("Middle"), message("Last")]
    assert extract(said) == "ELIZA writes no summaries. Your words: “First thing” … “Last”"
    assert extract(said[:1]) == "ELIZA writes no summaries. Your words: “First thing”"
    assert extract([message("Only me", Role.ASSISTANT)]).endswith("“Only me”")
    assert len(extract([message("x" * 999)])) < 220


@pytest.mark.parametrize(
    ("summary", "extendable"),
    [("It is done.", True), ("", False), (FAILED, False), (STOPPED, False), (extract([message("a")]), False)],
)
def test_only_a_real_summary_is_extended(summary: str, extendable: bool) -> None:  # noqa: FBT001 - a row of the table
    assert can_be_extended(summary) is extendable
