"""Transcripts in slices that fit, and the extract in place of a summary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.sessions.rules.format import FAILED, STOPPED, can_be_extended, extract
from chorus_cli.turns.rules import entries_of, next_slice
from tests.amount import examples
from tests.fakes import START


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
    assert entries_of(messages, "Frodo") == [
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


def test_no_room_at_all_still_ends() -> None:
    assert all_slices(["abc"], 0) == ["a", "b", "c"]


def test_the_extract_is_labelled_and_holds_what_the_user_said_first_and_last() -> None:
    said = [message("First\nthing"), message("Reply", Role.ASSISTANT), message("Middle"), message("Last")]
    assert extract(said) == "Extract, as ELIZA does not summarise: “First thing” … “Last”"
    assert extract(said[:1]) == "Extract, as ELIZA does not summarise: “First thing”"
    assert extract([message("Only me", Role.ASSISTANT)]).endswith("“Only me”")
    assert len(extract([message("x" * 999)])) < 220


@pytest.mark.parametrize(
    ("summary", "extendable"),
    [("It is done.", True), ("", False), (FAILED, False), (STOPPED, False), (extract([message("a")]), False)],
)
def test_only_a_real_summary_is_extended(summary: str, extendable: bool) -> None:  # noqa: FBT001 - a row of the table
    assert can_be_extended(summary) is extendable
