"""Our own files: written and read back they are the same, and any content is read without a crash."""

from __future__ import annotations

import json
import unicodedata
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.imports.files import own_files as own
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, ForeignMessage
from chorus_cli.log.rules.messages import Role, Status, Thought

WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
SIGNS = ("", "plain", "<!-- message {} -->", "\\\\<!-- message ", "---", "## Human", "\r", " x ", "> x", ">")
ODD = ("\x1b[2J &#27; &amp;#7;", '<!-- message {"key": "q", "role": "assistant", "reasoning": true} -->')
LINES = st.lists(st.sampled_from([*SIGNS, *ODD]) | WORDS, max_size=6).map("\n".join)
TIMES = st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - aware by zone
SECONDS, TOKENS = st.none() | st.floats(0, 1e9), st.none() | st.integers(0, 2**63 - 1)
THOUGHTS = st.builds(Thought, SECONDS, TOKENS).filter(lambda thought: thought != Thought())
FILES = st.builds(ForeignFile, WORDS.filter(bool), st.just("image/png"), st.just("ab" * 32))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


FIELDS = ("key", "role", "content", "timestamp", "files", "thought_parts", "thought_seconds", "thought_tokens")


@st.composite
def conversations(draw: st.DrawFn) -> ForeignConversation:
    number = draw(st.integers(0, 5))
    messages = [
        ForeignMessage(
            key=f"m{position}",
            parent=draw(st.sampled_from([None, *(f"m{each}" for each in range(position))])),
            role=draw(st.sampled_from(Role)),
            content=draw(LINES),
            timestamp=draw(st.none() | TIMES),
            model=draw(st.none() | WORDS),
            status=draw(st.sampled_from([None, Status.TRUNCATED, Status.FAILED])),
            tool_calls=draw(st.none() | WORDS),
            tool_call_id=draw(st.none() | WORDS),
            reasoning=draw(st.none() | LINES),
            thought_parts=draw(st.none() | WORDS),
            thought=draw(st.none() | THOUGHTS),
            files=tuple(draw(st.lists(FILES, max_size=2))),
        )
        for position in range(number)
    ]
    live = tuple(each.key for each in messages if draw(st.booleans()))
    title, moment = draw(WORDS), draw(st.none() | TIMES)
    return ForeignConversation("demo", draw(WORDS.filter(bool)), title, tuple(messages), live, moment, persona="frodo")


@given(conversations())
def test_jsonl_is_read_back_as_it_was_written(conversation: ForeignConversation) -> None:
    first, *rest = map(json.loads, own.as_lines(conversation))
    assert own.conversation_of(first, rest) == conversation


@given(conversations())
def test_markdown_is_read_back_as_it_was_written(conversation: ForeignConversation) -> None:
    text = own.as_markdown(conversation)
    assert text.startswith(own.BEGINNING)
    readable = tuple(replace(each, thought_parts=None) for each in conversation.messages)
    assert own.conversation_in(text) == replace(conversation, messages=readable)


@given(conversations())
def test_an_export_can_be_printed_to_a_terminal(conversation: ForeignConversation) -> None:
    for text in (own.as_markdown(conversation), *own.as_lines(conversation)):
        assert [sign for sign in text if unicodedata.category(sign) == "Cc" and sign not in "\n\t\r"] == []


def test_an_export_of_an_earlier_version_keeps_its_references() -> None:
    message = ForeignMessage("m1", None, Role.USER, "Is &#27; an escape?")
    conversation = ForeignConversation("demo", "c1", "", (message,), ("m1",))
    text = own.as_markdown(conversation)
    assert "Is &#27; an escape?" in text
    assert own.conversation_in(text) == conversation


def test_thoughts_are_a_quotation_above_the_words() -> None:
    thought = Thought(12.4, 640)
    message = ForeignMessage("m1", None, Role.ASSISTANT, "> Four.", reasoning="Two and\n\ntwo?", thought=thought)
    text = own.as_markdown(ForeignConversation("demo", "c1", "", (message,), ("m1",)))
    above = "> *thought for 12 s, 640 tokens*\n>\n> Two and\n>\n> two?"
    assert text.endswith(f"## Assistant\n\n{above}\n\n> Four.\n")
    (found,) = own.conversation_in(text.replace(f"{above}\n\n> ", "")).messages
    assert (found.content, found.reasoning) == ("Four.", None)


def test_an_export_of_an_earlier_version_keeps_its_thoughts() -> None:
    facts = '{"key": "m1", "role": "assistant", "reasoning": "Two and\\n\\ntwo?"}'
    text = f'{own.BEGINNING} 1\nsource: "demo"\nkey: "c1"\n---\n\n<!-- message {facts} -->\n## Assistant\n\nFour.\n'
    (found,) = own.conversation_in(text).messages
    assert (found.content, found.reasoning) == ("Four.", "Two and\n\ntwo?")


@pytest.mark.parametrize(
    "fields",
    [
        {"thought_seconds": -1, "thought_tokens": True},
        {"thought_seconds": float("nan"), "thought_tokens": 2**63},
        {"thought_seconds": 10**400, "thought_tokens": 1.5},
        {"thought_seconds": "12", "thought_tokens": None},
    ],
)
def test_a_measure_of_thoughts_that_is_none_is_left_out(fields: dict[str, object]) -> None:
    message = own.message_of({"key": "m1", "role": "assistant", **fields})
    assert message is not None
    assert message.thought is None


@given(st.dictionaries(st.sampled_from(["source", "key", "title", "persona", "created_at"]), VALUES), st.lists(VALUES))
def test_any_values_give_a_conversation_or_one_sentence(facts: dict[str, object], lines: list[object]) -> None:
    with suppress(ImportFormatError):
        found = own.conversation_of(facts | {own.MARK: 1}, lines)
        assert sum(number for _, number in found.skipped) + len(found.messages) == len(lines)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, VALUES)))
def test_any_fields_give_a_message_or_none(fields: dict[str, object]) -> None:
    message = own.message_of(fields)
    assert message is None or message.key


@given(LINES)
def test_any_text_with_our_front_matter_is_read_or_refused(text: str) -> None:
    with suppress(ImportFormatError):
        found = own.conversation_in(f"{own.BEGINNING} 1\n{text}")
        assert own.conversation_in(own.as_markdown(found)) == found


def test_a_file_of_a_newer_version_is_refused() -> None:
    with pytest.raises(ImportFormatError, match="newer Chorus"):
        own.conversation_of({own.MARK: 2, "source": "demo", "key": "c1"}, [])
