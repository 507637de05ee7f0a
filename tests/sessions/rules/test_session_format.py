"""A session's file: its text is read back exactly, and invalid text is refused in a sentence."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import SessionError
from chorus_cli.log.rules.messages import Message, MessageContent, Role, Status, content_of
from chorus_cli.sessions.rules.format import SavedThread, Session, read, text_of
from tests.amount import examples
from tests.fakes import START

if TYPE_CHECKING:
    from chorus_cli.core.json.jsonc import JsonValue

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NUMBERS = st.integers(1, 2**63 - 1)
MOMENTS = st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 - bounds
CALLS = st.none() | st.just('[{"id": "c1",  "function": {"name": "search", "arguments": "{}"}}]')
THREADS = st.lists(
    st.builds(SavedThread, NUMBERS, TEXT, TEXT, st.integers(0, 9)),
    min_size=1,
    max_size=3,
    unique_by=lambda each: each.id,
)


def messages_in(threads: list[SavedThread]) -> st.SearchStrategy[tuple[MessageContent, ...]]:
    message = st.builds(
        MessageContent,
        thread_id=st.sampled_from([thread.id for thread in threads]),
        turn_id=NUMBERS,
        role=st.sampled_from(Role),
        content=TEXT,
        timestamp=MOMENTS,
        status=st.sampled_from([status for status in Status if status is not Status.STREAMING]),
        preamble=TEXT,
        tool_calls=CALLS,
        tool_call_id=st.none() | TEXT,
        model=st.none() | TEXT,
    )
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
    text = text_of(SESSION)
    assert list(json.loads(text)) == [
        "format",
        "version",
        "session_id",
        "persona",
        "timestamp",
        "description",
        "summary",
        "message_count",
        "token_estimate",
        "window_start",
        "window_end",
        "active_thread_id",
        "threads",
        "messages",
    ]
    assert '\n  "timestamp": "2026-02-12T14:30:00.000000Z",\n' in text
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


def test_letters_of_every_script_are_written_as_they_are() -> None:
    assert "Größe 日本" in text_of(_with(description="Größe 日本"))


def test_session_includes_tool_use_messages() -> None:
    call = Message(3, "chorus", 1, 1, Role.TOOL_USE, "", START, tool_calls='[{"id": "c"}]', tool_call_id="c")
    result = Message(4, "chorus", 1, 1, Role.TOOL_RESULT, "42", START, tool_call_id="c")
    session = _with(messages=(*SESSION.messages, content_of(call), content_of(result)))
    assert read(text_of(session)) == session
    assert [each["role"] for each in json.loads(text_of(session))["messages"][2:]] == ["tool_use", "tool_result"]


def test_what_a_newer_chorus_may_add_is_passed_over() -> None:
    assert read(text_of(SESSION).replace('"threads"', '"colour": {"a": [1.5, null]}, "threads"', 1)) == SESSION


def _with(**changes: object) -> Session:
    fields = {name: getattr(SESSION, name) for name in Session.__dataclass_fields__}
    return Session(**cast("dict[str, object]", {**fields, **changes}))  # type: ignore[arg-type] # any field may be given


def _document() -> dict[str, JsonValue]:
    return cast("dict[str, JsonValue]", json.loads(text_of(SESSION)))


@pytest.mark.parametrize("key", list(json.loads(text_of(SESSION))))
def test_a_missing_key_is_named(key: str) -> None:
    document = _document()
    del document[key]
    with pytest.raises(SessionError, match=f'the file has no "{key}"'):
        read(json.dumps(document))


@pytest.mark.parametrize("key", ["role", "content", "timestamp", "thread", "turn", "status"])
def test_a_missing_key_of_a_message_is_named_with_its_place(key: str) -> None:
    document = _document()
    messages = cast("list[dict[str, JsonValue]]", document["messages"])
    del messages[1][key]
    with pytest.raises(SessionError, match=rf'messages\[1\] has no "{key}"'):
        read(json.dumps(document))


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("format", "other", 'its "format" is not "chorus-session"'),
        ("format", None, '"format" of the file is not text'),
        ("version", 2, "it may be from a newer Chorus"),
        ("version", True, '"version" of the file is not a whole number'),
        ("session_id", 7, '"session_id" of the file is not text'),
        ("summary", "half \ud800", "a character that cannot be"),
        ("timestamp", "yesterday", "not a time"),
        ("timestamp", "0999-01-01T00:00:00Z", "not a time"),
        ("timestamp", "9999-12-31T23:59:59-14:00", "not a time"),
        ("message_count", -1, "not a whole number"),
        ("message_count", 1.5, "not a whole number"),
        ("token_estimate", "12", "not a whole number"),
        ("active_thread_id", True, "not a whole number"),
        ("active_thread_id", 2, "is none of its threads"),
        ("active_thread_id", 2**63, "not a whole number"),
        ("threads", {}, '"threads" of the file is not a list'),
        ("threads", [1], r"threads\[0\] is not an object"),
        ("threads", [], "is none of its threads"),
        ("threads", [{"id": 1, "title": "a", "summary": ""}] * 2, "have the same id"),
        ("threads", [{"id": 1, "title": None, "summary": ""}], r'"title" of threads\[0\] is not text'),
        ("messages", [], "there is nothing in its"),
        ("messages", "many", "not a list"),
    ],
)
def test_a_value_that_cannot_be_is_refused(key: str, value: JsonValue, sentence: str) -> None:
    with pytest.raises(SessionError, match=sentence):
        read(json.dumps({**_document(), key: value}))


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("role", "robot", "not one of user, assistant, tool_use, tool_result"),
        ("role", "system", "not one of"),
        ("status", "streaming", "not one of a finished message"),
        ("content", None, "not text"),
        ("content", "\udc00", "a character that cannot be"),
        ("thread", 9, "not one of the session's threads"),
        ("thread", "../../etc", "not a whole number"),
        ("turn", 0, "from 1 upwards"),
        ("timestamp", "2026-02-31T00:00:00Z", "not a time"),
        ("preamble", 5, "not text"),
        ("tool_calls", [], "not text"),
    ],
)
def test_a_message_that_cannot_be_is_refused_with_its_place(key: str, value: JsonValue, sentence: str) -> None:
    document = _document()
    messages = cast("list[dict[str, JsonValue]]", document["messages"])
    messages[1][key] = value
    with pytest.raises(SessionError, match=sentence):
        read(json.dumps(document))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "line 1, column 1"),
        ("null", "the file is not an object"),
        ("[]", "the file is not an object"),
        ('{"format": "chorus-session", "version": NaN}', '"version" of the file is not a whole number'),
        ('{"version": ' + "1" * 5000 + "}", "a number or a character that cannot be"),
        ("[" * 200_000, "nested too deeply"),
        ('{"a":' * 200_000, "nested too deeply"),
        ('{"a": 1,}', "line 1"),
        ("{'a': 1}", "line 1"),
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
