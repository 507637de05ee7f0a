"""Gemini CLI, and Qwen Code, which was made of it: what is taken back, replaced or rewound is a branch, never lost."""

from __future__ import annotations

from typing import Any

import pytest

from chorus_cli.imports.rules import gemini_cli, qwen_code
from chorus_cli.imports.rules.assembly import FileFacts
from chorus_cli.log.rules.messages import Role
from tests.imports.rules.exports import check, files_of, live, said
from tests.imports.rules.sessions import gemini_line, gemini_meta, qwen_answer, qwen_call, qwen_line

PICTURE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}
CONTEXT = gemini_line("c", "user", [{"text": "<session_context>\nLinux</session_context>"}])
QUESTION = gemini_line("u1", "user", [{"text": "Where is Rome?"}])
ANSWER = gemini_line("a1", "gemini", "In Latium.", thoughts=[{"subject": "Rome", "description": "A city."}])
MORE = [gemini_line("u2", "user", "And Oslo?"), gemini_line("a2", "gemini", "In Norway.")]
ASKED = [("user", "Where is Rome?"), ("assistant", "In Latium.")]
LONGER = [*ASKED, ("user", "And Oslo?"), ("assistant", "In Norway.")]
RESULT = [{"functionResponse": {"id": "t1", "name": "ls", "response": {"output": "a.txt"}}}]
CALL = {"id": "t1", "name": "ls", "args": {"path": "."}, "result": RESULT, "timestamp": "2026-01-02T03:06:00Z"}


def read_gemini(*lines: Any) -> Any:
    found = gemini_cli.conversation_of([gemini_meta(), *lines], FileFacts("session-1"))
    check(found)
    return found


def replaced(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"$set": {"messages": list(messages), "lastUpdated": "2026-01-02T03:09:00.000Z"}}


def test_messages_are_read_with_thoughts_and_models() -> None:
    found = read_gemini(CONTEXT, QUESTION, {"$set": {"lastUpdated": "x"}}, ANSWER)
    assert said(found) == ASKED
    question, answer = live(found)
    assert (answer.reasoning, answer.model, question.model) == ("Rome: A city.", "gemini-2.5-pro", None)
    assert (found.source, found.key, found.title) == ("gemini-cli", "s1", "Where is Rome?")
    assert dict(found.skipped) == {"note of the program": 1}


def test_messages_without_ids_are_told_apart_by_their_content() -> None:
    talk = [{"type": "user", "content": "Go on."}, {"type": "model", "content": "Gone on."}] * 2
    found = gemini_cli.conversation_of([gemini_meta(messages=talk)], FileFacts("session-1"))
    check(found)
    assert said(found) == [("user", "Go on."), ("assistant", "Gone on.")] * 2
    again = read_gemini(*talk, replaced(*talk, {"type": "user", "content": "Done."}))
    assert said(again) == [*said(found), ("user", "Done.")]
    assert {message.key for message in found.messages} < {message.key for message in again.messages}


def test_a_message_that_is_written_again_is_replaced_and_keeps_its_first_time() -> None:
    later = {**ANSWER, "timestamp": "2026-01-02T09:00:00.000Z", "toolCalls": [CALL]}
    _, words, call, result = live(read_gemini(QUESTION, ANSWER, later))
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
def test_what_was_said_to_gemini_is_read(lines: list[Any], talk: list[tuple[str, str]], messages: int) -> None:
    found = read_gemini(*lines)
    assert (said(found), len(found.messages)) == (talk, messages)


def test_pictures_are_files() -> None:
    (question,) = live(read_gemini(gemini_line("u", "user", ["What is it?", PICTURE])))
    assert files_of(question) == [("file.png", "image/png", b"\x89PNG")]


CALLED = {**ANSWER, "toolCalls": [CALL]}
GEMINI = [gemini_meta(), CONTEXT, QUESTION, CALLED, {"$rewindTo": "a1"}, *MORE, replaced(QUESTION, *MORE)]


QWEN_QUESTION = qwen_line("u1", None, "user", {"text": "What is in it?"})
STEP = qwen_line(
    "a1", "u1", "assistant",
    {"text": "I must look.", "thought": True}, {"text": "I look."},
    qwen_call("t1", "ls", path="."), qwen_call("t2", "pwd"),
)  # fmt: skip
TELEMETRY = qwen_line("n1", "a1", "system", subtype="ui_telemetry")
LISTED = qwen_line("x1", "n1", "tool_result", qwen_answer("t1", "ls", output="a.txt"), PICTURE)
PLACED = qwen_line("x2", "x1", "tool_result", qwen_answer("t2", "pwd", error="no such place"))
QWEN_ANSWER = qwen_line("a2", "x2", "assistant", {"text": "One file."})
QWEN = [QWEN_QUESTION, STEP, TELEMETRY, LISTED, PLACED, QWEN_ANSWER]
WORKED = [
    ("user", "What is in it?"),
    ("assistant", "I look."),
    ("tool_use", ""),
    ("tool_result", "a.txt"),
    ("tool_use", ""),
    ("tool_result", "no such place"),
    ("assistant", "One file."),
]


def read_qwen(*lines: Any) -> Any:
    found = qwen_code.conversation_of(lines, FileFacts("s1"))
    check(found)
    return found


def test_words_thoughts_and_calls_with_their_results_are_read() -> None:
    found = read_qwen(*QWEN)
    assert said(found) == WORKED
    _, words, call, result, *_ = live(found)
    assert (words.reasoning, words.model, call.reasoning) == ("I must look.", "qwen3-coder-plus", None)
    assert '"name": "ls"' in (call.tool_calls or "")
    assert (call.tool_call_id, result.tool_call_id) == ("t1", "t1")
    assert (found.source, found.key, found.title, found.skipped) == ("qwen-code", "s1", "What is in it?", ())


def test_a_rewind_leaves_a_branch_also_behind_a_title() -> None:
    title = qwen_line("n2", "a2", "system", subtype="custom_title", systemPayload={"customTitle": "Files"})
    dropped = [qwen_line("u2", "n2", "user", {"text": "And now?"}), qwen_line("a3", "u2", "assistant", {"text": "No."})]
    rewind = qwen_line("r1", "n2", "system", subtype="rewind")
    found = read_qwen(*QWEN, title, *dropped, rewind)
    assert (said(found), found.title) == (WORKED, "Files")
    assert {message.key for message in found.messages} - set(found.live) == {"u2", "a3"}
    again = read_qwen(*QWEN, title, *dropped, rewind, qwen_line("u3", "r1", "user", {"text": "And then?"}))
    assert said(again) == [*WORKED, ("user", "And then?")]


def test_a_rewind_to_the_beginning_leaves_all_before_it() -> None:
    rewind = qwen_line("r1", None, "system", subtype="rewind")
    assert said(read_qwen(*QWEN, rewind, qwen_line("u3", "r1", "user", {"text": "Anew."}))) == [("user", "Anew.")]


def test_a_message_in_several_pieces_is_one() -> None:
    pieces = [
        {**qwen_line("a1", "u1", "assistant", part), "model": model}
        for part, model in (({"text": "Hm.", "thought": True}, None), ({"text": "Ready."}, "qwen3-max"))
    ]
    found = read_qwen(QWEN_QUESTION, *pieces, qwen_line("u2", "a1", "user", {"text": "Good."}))
    assert said(found)[1:] == [("assistant", "Ready."), ("user", "Good.")]
    assert (live(found)[1].reasoning, live(found)[1].model) == ("Hm.", "qwen3-max")


def test_what_the_user_did_not_say_is_left_out() -> None:
    hook = {"text": "<qwen:user-prompt-submit-context>\nIt rains.\n</qwen:user-prompt-submit-context>"}
    shown = qwen_line(
        "u1", None, "user", {"text": "Read @a.txt\nits text"}, PICTURE, systemPayload={"displayText": "Read @a.txt"}
    )
    told = qwen_line("n1", "u1", "user", {"text": "Done."}, subtype="notification")
    between = qwen_line("u2", "n1", "user", {"text": "Wait!"}, hook, subtype="mid_turn_user_message")
    inner = qwen_line("x1", "u2", "tool_result", qwen_answer("t9", "ls", output="a"), subtype="code_mode_tool_result")
    found = read_qwen(shown, told, between, inner, qwen_line("q1", "x1", "quantum", {"text": "?"}))
    assert said(found) == [("user", "Read @a.txt"), ("user", "Wait!")]
    assert [(file.name, file.data) for file in live(found)[0].files] == [("image.png", b"\x89PNG")]
    assert dict(found.skipped) == {"note of the program": 1}
