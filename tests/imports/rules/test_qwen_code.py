"""Qwen Code: thoughts stand beside replies, calls with their results, and a rewind leaves a branch."""

from __future__ import annotations

import base64
from typing import Any

from chorus_cli.imports.rules.assembly import FileFacts
from chorus_cli.imports.rules.qwen_code import conversation_of
from tests.imports.rules.exports import check, live, said
from tests.imports.rules.sessions import qwen_answer, qwen_call, qwen_line

PNG = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(b"\x89PNG").decode()}}
QUESTION = qwen_line("u1", None, "user", {"text": "What is in it?"})
STEP = qwen_line(
    "a1", "u1", "assistant",
    {"text": "I must look.", "thought": True}, {"text": "I look."},
    qwen_call("t1", "ls", path="."), qwen_call("t2", "pwd"),
)  # fmt: skip
TELEMETRY = qwen_line("n1", "a1", "system", subtype="ui_telemetry")
LISTED = qwen_line("x1", "n1", "tool_result", qwen_answer("t1", "ls", output="a.txt"), PNG)
PLACED = qwen_line("x2", "x1", "tool_result", qwen_answer("t2", "pwd", error="no such place"))
ANSWER = qwen_line("a2", "x2", "assistant", {"text": "One file."})
FULL = [QUESTION, STEP, TELEMETRY, LISTED, PLACED, ANSWER]
WORKED = [
    ("user", "What is in it?"),
    ("assistant", "I look."),
    ("tool_use", ""),
    ("tool_result", "a.txt"),
    ("tool_use", ""),
    ("tool_result", "no such place"),
    ("assistant", "One file."),
]


def read(*lines: Any, name: str = "s1") -> Any:
    found = conversation_of(lines, FileFacts(name))
    check(found)
    return found


def titled(key: str, parent: str, title: str) -> dict[str, Any]:
    return qwen_line(key, parent, "system", subtype="custom_title", systemPayload={"customTitle": title})


def test_words_thoughts_and_calls_with_their_results_are_read() -> None:
    found = read(*FULL)
    assert said(found) == WORKED
    _, words, call, result, *_ = live(found)
    assert (words.reasoning, words.model, call.reasoning) == ("I must look.", "qwen3-coder-plus", None)
    assert '"name": "ls"' in (call.tool_calls or "")
    assert (call.tool_call_id, result.tool_call_id) == ("t1", "t1")
    assert (found.source, found.key, found.title, found.skipped) == ("qwen-code", "s1", "What is in it?", ())


def test_a_rewind_leaves_a_branch_also_behind_a_title() -> None:
    title = titled("n2", "a2", "Files")
    dropped = [qwen_line("u2", "n2", "user", {"text": "And now?"}), qwen_line("a3", "u2", "assistant", {"text": "No."})]
    rewind = qwen_line("r1", "n2", "system", subtype="rewind")
    found = read(*FULL, title, *dropped, rewind)
    assert (said(found), found.title) == (WORKED, "Files")
    assert {message.key for message in found.messages} - set(found.live) == {"u2", "a3"}
    again = read(*FULL, title, *dropped, rewind, qwen_line("u3", "r1", "user", {"text": "And then?"}))
    assert said(again) == [*WORKED, ("user", "And then?")]


def test_a_rewind_to_the_beginning_leaves_all_before_it() -> None:
    rewind = qwen_line("r1", None, "system", subtype="rewind")
    assert said(read(*FULL, rewind, qwen_line("u3", "r1", "user", {"text": "Anew."}))) == [("user", "Anew.")]


def test_a_message_in_several_pieces_is_one() -> None:
    pieces = [
        {**qwen_line("a1", "u1", "assistant", part), "model": model}
        for part, model in (({"text": "Hm.", "thought": True}, None), ({"text": "Ready."}, "qwen3-max"))
    ]
    found = read(QUESTION, *pieces, qwen_line("u2", "a1", "user", {"text": "Good."}))
    assert said(found)[1:] == [("assistant", "Ready."), ("user", "Good.")]
    assert (live(found)[1].reasoning, live(found)[1].model) == ("Hm.", "qwen3-max")


def test_what_the_user_did_not_say_is_left_out() -> None:
    hook = {"text": "<qwen:user-prompt-submit-context>\nIt rains.\n</qwen:user-prompt-submit-context>"}
    shown = qwen_line(
        "u1", None, "user", {"text": "Read @a.txt\nits text"}, PNG, systemPayload={"displayText": "Read @a.txt"}
    )
    told = qwen_line("n1", "u1", "user", {"text": "Done."}, subtype="notification")
    between = qwen_line("u2", "n1", "user", {"text": "Wait!"}, hook, subtype="mid_turn_user_message")
    inner = qwen_line("x1", "u2", "tool_result", qwen_answer("t9", "ls", output="a"), subtype="code_mode_tool_result")
    found = read(shown, told, between, inner, qwen_line("q1", "x1", "quantum", {"text": "?"}))
    assert said(found) == [("user", "Read @a.txt"), ("user", "Wait!")]
    assert [(file.name, file.data) for file in live(found)[0].files] == [("image.png", b"\x89PNG")]
    assert dict(found.skipped) == {"note of the program": 1}
