"""Gemini CLI: lines add, repeat, take back and replace messages; nothing that was said is lost by it."""

from __future__ import annotations

from typing import Any

import pytest

from chorus_cli.imports.rules.assembly import FileFacts
from chorus_cli.imports.rules.gemini_cli import conversation_of
from chorus_cli.log.rules.messages import Role
from tests.imports.rules.exports import check, live, said
from tests.imports.rules.sessions import gemini_line, gemini_meta

CONTEXT = gemini_line("c", "user", [{"text": "<session_context>\nLinux</session_context>"}])
QUESTION = gemini_line("u1", "user", [{"text": "Where is Rome?"}])
ANSWER = gemini_line("a1", "gemini", "In Latium.", thoughts=[{"subject": "Rome", "description": "A city."}])
MORE = [gemini_line("u2", "user", "And Oslo?"), gemini_line("a2", "gemini", "In Norway.")]
ASKED = [("user", "Where is Rome?"), ("assistant", "In Latium.")]
LONGER = [*ASKED, ("user", "And Oslo?"), ("assistant", "In Norway.")]
RESULT = [{"functionResponse": {"id": "t1", "name": "ls", "response": {"output": "a.txt"}}}]
CALL = {"id": "t1", "name": "ls", "args": {"path": "."}, "result": RESULT, "timestamp": "2026-01-02T03:06:00Z"}


def read(*lines: Any) -> Any:
    found = conversation_of([gemini_meta(), *lines], FileFacts("session-1"))
    check(found)
    return found


def replaced(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"$set": {"messages": list(messages), "lastUpdated": "2026-01-02T03:09:00.000Z"}}


def test_messages_are_read_with_thoughts_and_models() -> None:
    found = read(CONTEXT, QUESTION, {"$set": {"lastUpdated": "x"}}, ANSWER)
    assert said(found) == ASKED
    question, answer = live(found)
    assert (answer.reasoning, answer.model, question.model) == ("Rome: A city.", "gemini-2.5-pro", None)
    assert (found.source, found.key, found.title) == ("gemini-cli", "s1", "Where is Rome?")
    assert dict(found.skipped) == {"note of the program": 1}


def test_the_one_object_of_older_versions_is_read_too() -> None:
    found = conversation_of([gemini_meta(messages=[QUESTION, ANSWER], summary="Cities")], FileFacts("session-1"))
    assert said(found) == ASKED
    assert found.title == "Cities"


def test_messages_without_ids_are_told_apart_by_their_content() -> None:
    talk = [{"type": "user", "content": "Go on."}, {"type": "model", "content": "Gone on."}] * 2
    found = conversation_of([gemini_meta(messages=talk)], FileFacts("session-1"))
    check(found)
    assert said(found) == [("user", "Go on."), ("assistant", "Gone on.")] * 2
    again = read(*talk, replaced(*talk, {"type": "user", "content": "Done."}))
    assert said(again) == [*said(found), ("user", "Done.")]
    assert {message.key for message in found.messages} < {message.key for message in again.messages}


def test_a_message_that_is_written_again_is_replaced_and_keeps_its_first_time() -> None:
    later = {**ANSWER, "timestamp": "2026-01-02T09:00:00.000Z", "toolCalls": [CALL]}
    _, words, call, result = live(read(QUESTION, ANSWER, later))
    assert words.timestamp
    assert words.timestamp.hour == 3
    assert (call.role, result.role, result.content) == (Role.TOOL_USE, Role.TOOL_RESULT, "a.txt")
    assert result.timestamp
    assert result.timestamp.minute == 6


def test_messages_that_were_taken_back_are_a_branch() -> None:
    found = read(QUESTION, ANSWER, *MORE, {"$rewindTo": "u2"}, gemini_line("u3", "user", "And Bern?"))
    assert said(found) == [*ASKED, ("user", "And Bern?")]
    assert len(found.messages) == 5


def test_a_resumed_session_repeats_its_messages() -> None:
    found = read(QUESTION, ANSWER, gemini_meta(), replaced(CONTEXT, QUESTION, ANSWER), *MORE)
    assert said(found) == LONGER
    assert len(found.messages) == 4


@pytest.mark.parametrize("kept", [[], MORE])
def test_what_was_summed_up_was_said_all_the_same(kept: list[dict[str, Any]]) -> None:
    summary = gemini_line("s", "user", "<state_snapshot>They talked.</state_snapshot>")
    found = read(CONTEXT, QUESTION, ANSWER, *MORE, replaced(CONTEXT, summary, *kept))
    assert said(found) == LONGER


def test_a_replacement_without_the_last_messages_takes_them_back() -> None:
    found = read(QUESTION, ANSWER, *MORE, replaced(QUESTION, ANSWER), gemini_line("u3", "user", "And Bern?"))
    assert said(found) == [*ASKED, ("user", "And Bern?")]
    assert len(found.messages) == 5


@pytest.mark.parametrize(
    "line",
    [
        gemini_line("x", "info", "Update available"),
        gemini_line("x", "error", "Quota"),
        gemini_line("x", "user", "/help"),
        gemini_line("x", "user", RESULT),
        gemini_line("x", "user", ""),
    ],
)
def test_lines_that_nobody_said_are_left_out(line: dict[str, Any]) -> None:
    assert said(read(QUESTION, ANSWER, line)) == ASKED


def test_a_path_at_the_beginning_is_no_command() -> None:
    assert said(read(gemini_line("x", "user", "/usr/bin is full"))) == [("user", "/usr/bin is full")]


def test_the_words_that_were_typed_stand_for_the_files_put_into_them() -> None:
    typed = gemini_line("u", "user", [{"text": "Read @a\n--- Content ---\nlong"}], displayContent=[{"text": "Read @a"}])
    assert said(read(typed)) == [("user", "Read @a")]


def test_pictures_are_files() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}
    (question,) = live(read(gemini_line("u", "user", ["What is it?", picture])))
    assert [(file.name, file.media_type, file.data) for file in question.files] == [
        ("file.png", "image/png", b"\x89PNG")
    ]


FULL = [
    gemini_meta(),
    CONTEXT,
    QUESTION,
    {**ANSWER, "toolCalls": [CALL]},
    {"$rewindTo": "a1"},
    *MORE,
    replaced(QUESTION, *MORE),
]
