"""Gemini CLI: lines add, repeat, take back and replace messages; nothing that was said is lost by it."""

from __future__ import annotations

from typing import Any

import pytest

from chorus_cli.imports.rules.assembly import FileFacts
from chorus_cli.imports.rules.gemini_cli import conversation_of
from chorus_cli.log.rules.messages import Role
from tests.imports.rules.exports import check, files_of, live, said
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


BERN = gemini_line("u3", "user", "And Bern?")
SUMMARY = gemini_line("s", "user", "<state_snapshot>They talked.</state_snapshot>")
TYPED = gemini_line("u", "user", [{"text": "Read @a\n--- Content ---\nlong"}], displayContent=[{"text": "Read @a"}])
ON_BERN = [*ASKED, ("user", "And Bern?")]
LEFT_OUT = (("info", "Update available"), ("error", "Quota"), ("user", "/help"), ("user", RESULT), ("user", ""))
TALKS: dict[str, tuple[list[Any], list[tuple[str, str]], int]] = {
    "messages taken back are a branch": ([QUESTION, ANSWER, *MORE, {"$rewindTo": "u2"}, BERN], ON_BERN, 5),
    "and so by a replacement": ([QUESTION, ANSWER, *MORE, replaced(QUESTION, ANSWER), BERN], ON_BERN, 5),
    "a resumed session repeats its messages": (
        [QUESTION, ANSWER, gemini_meta(), replaced(CONTEXT, QUESTION, ANSWER), *MORE], LONGER, 4,
    ),
    "what was summed up was said": ([CONTEXT, QUESTION, ANSWER, *MORE, replaced(CONTEXT, SUMMARY)], LONGER, 4),
    "and so if the rest is kept": ([CONTEXT, QUESTION, ANSWER, *MORE, replaced(CONTEXT, SUMMARY, *MORE)], LONGER, 4),
    **{f"nobody said {each}": ([QUESTION, ANSWER, gemini_line("x", *each)], ASKED, 2) for each in LEFT_OUT},
    "a path is no command": ([gemini_line("x", "user", "/usr/bin is full")], [("user", "/usr/bin is full")], 1),
    "words that were typed stand for files put into them": ([TYPED], [("user", "Read @a")], 1),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "talk", "messages"), TALKS.values(), ids=TALKS)
def test_what_was_said_is_read(lines: list[Any], talk: list[tuple[str, str]], messages: int) -> None:
    found = read(*lines)
    assert (said(found), len(found.messages)) == (talk, messages)


def test_pictures_are_files() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}
    (question,) = live(read(gemini_line("u", "user", ["What is it?", picture])))
    assert files_of(question) == [("file.png", "image/png", b"\x89PNG")]


CALLED = {**ANSWER, "toolCalls": [CALL]}
FULL = [gemini_meta(), CONTEXT, QUESTION, CALLED, {"$rewindTo": "a1"}, *MORE, replaced(QUESTION, *MORE)]
