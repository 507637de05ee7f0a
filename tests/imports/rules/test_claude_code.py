"""Claude Code: rewinds are branches, compactions leave no gap, and only the user's words are the user's."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from chorus_cli.imports.rules.assembly import FileFacts
from chorus_cli.imports.rules.claude_code import conversation_of
from chorus_cli.log.rules.messages import Role, Status
from tests.imports.rules.exports import check, live, said
from tests.imports.rules.sessions import boundary, claude_line, text, tool_result, tool_use

QUESTION = claude_line("u1", None, "user", "Start")
ANSWER = claude_line("a1", "u1", "assistant", [text("Ready")])
PNG = base64.b64encode(b"\x89PNG").decode()
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
REWOUND = [
    QUESTION,
    ANSWER,
    claude_line("b1", "a1", "user", "First attempt"),
    claude_line("b2", "b1", "assistant", [text("First answer")]),
    claude_line("c1", "a1", "user", "Second attempt"),
    claude_line("c2", "c1", "assistant", [text("Second answer")]),
]
KEPT_GOING = [
    ("user", "Start"),
    ("assistant", "Ready"),
    ("user", "Second attempt"),
    ("assistant", "Second answer"),
    ("user", "Go on"),
    ("assistant", "Kept going"),
    ("user", "After"),
]
SUMMARY = claude_line("cs", "cb", "user", "This session is being continued.", isCompactSummary=True)


def read(*lines: Any, name: str = "s1") -> Any:
    found = conversation_of(lines, FileFacts(name))
    check(found)
    return found


def test_where_no_line_names_a_parent_each_follows_the_one_before() -> None:
    conversation = conversation_of([line | {"parentUuid": None} for line in REWOUND], FileFacts("s1"))
    assert conversation.live == ("u1", "a1", "b1", "b2", "c1", "c2")


def test_a_rewind_leaves_a_branch() -> None:
    found = read(*REWOUND)
    assert said(found) == [
        ("user", "Start"),
        ("assistant", "Ready"),
        ("user", "Second attempt"),
        ("assistant", "Second answer"),
    ]
    assert {message.key for message in found.messages} - set(found.live) == {"b1", "b2"}
    assert (found.source, found.key, found.title) == ("claude-code", "s1", "Start")


@pytest.mark.parametrize(("explicit", "last"), [(True, "First answer"), (None, "Second answer")])
def test_a_rewind_that_nothing_followed_yet_is_heeded(*, explicit: bool | None, last: str) -> None:
    mark = {"type": "last-prompt", "leafUuid": "b2", "explicit": explicit, "sessionId": "s1"}
    assert said(read(*REWOUND, mark))[-1] == ("assistant", last)
    assert said(read(*REWOUND, mark, claude_line("d1", "c2", "user", "more")))[-1] == ("user", "more")


@pytest.mark.parametrize("after", ["cs", "g2"])
def test_a_compaction_leaves_no_gap(after: str) -> None:
    """``after`` is the parent of the line after the compaction: the summary, or a message that was preserved."""
    whole = [
        *REWOUND,
        claude_line("g1", "c2", "user", "Go on"),
        claude_line("g2", "g1", "assistant", [text("Kept going")]),
        boundary("cb", "g2"),
        SUMMARY,
        claude_line("p1", after, "user", "After"),
    ]
    found = read(*whole)
    assert said(found) == KEPT_GOING
    assert dict(found.skipped) == {"summary of a compaction": 1}


@pytest.mark.parametrize("is_repeated", [True, False])
def test_messages_that_a_compaction_preserved_stand_where_they_were_said(*, is_repeated: bool) -> None:
    """The last one is written behind the summary, with it as its parent, and maybe before it too."""
    reply = claude_line("g2", "g1", "assistant", [text("Kept going")])
    preserved = {"anchorUuid": "cs", "uuids": ["c2", "g1", "g2"]}
    segment = {"headUuid": "c2", "anchorUuid": "cs", "tailUuid": "g2"}
    found = read(
        *REWOUND,
        claude_line("g1", "c2", "user", "Go on"),
        *([reply] if is_repeated else []),
        boundary("cb", "g2", preservedMessages=preserved, preservedSegment=segment),
        SUMMARY,
        {**reply, "parentUuid": "cs"},
        claude_line("p1", "g2", "user", "After"),
    )
    assert said(found) == KEPT_GOING


def test_a_reply_over_several_lines_is_one_with_its_thoughts_and_calls() -> None:
    parts = [
        [{"type": "thinking", "thinking": "Look first.", "signature": "x"}],
        [text("One")],
        [text("moment.")],
        [tool_use("t1", path="ä")],
    ]
    lines = [claude_line(f"r{n}", f"r{n - 1}" if n else "u1", "assistant", part) for n, part in enumerate(parts)]
    for line in lines:
        line["message"]["id"] = "msg_same"
    result = claude_line("x1", "r3", "user", [tool_result("t1", [text("found"), PICTURE])])
    found = read(QUESTION, *lines, result, claude_line("e1", "x1", "assistant", [text("Done")]))
    _, words, call, answer, last = live(found)
    assert (words.content, words.reasoning, words.model) == ("One\n\nmoment.", "Look first.", "claude")
    assert (call.role, answer.role, answer.content) == (Role.TOOL_USE, Role.TOOL_RESULT, "found\n[image/png]")
    assert (call.tool_call_id, answer.tool_call_id, last.content) == ("t1", "t1", "Done")
    assert '{\\"path\\": \\"ä\\"}' in (call.tool_calls or "")


def test_results_of_calls_made_at_once_are_all_kept() -> None:
    """Each names its own call as its parent, so the chain from the end passes over all but one."""
    first, second = (
        claude_line(f"r{n}", parent, "assistant", [tool_use(f"t{n}")]) for n, parent in ((1, "u1"), (2, "r1"))
    )
    first["message"]["id"] = second["message"]["id"] = "msg_same"
    found = read(
        QUESTION,
        first,
        second,
        claude_line("x1", "r1", "user", [tool_result("t1", "one")]),
        claude_line("x2", "r2", "user", [tool_result("t2", "two")]),
        claude_line("e1", "x2", "assistant", [text("Done")]),
    )
    assert [message.content for message in live(found)] == ["Start", "", "one", "", "two", "Done"]
    assert len(found.live) == len(found.messages)


def test_a_call_or_a_result_alone_is_text() -> None:
    alone = read(QUESTION, claude_line("r1", "u1", "assistant", [tool_use("t1", path="x")]))
    assert said(alone)[1:] == [("assistant", '[Read]\n{"path": "x"}')]
    result = read(QUESTION, claude_line("x1", "u1", "user", [tool_result("gone", "found")]))
    assert said(result)[1:] == [("assistant", "[tool]\nfound")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (claude_line("m", "a1", "user", "A caveat", isMeta=True), "note of the program"),
        (claude_line("m", "a1", "user", "<command-name>/clear</command-name>"), "note of the program"),
        (claude_line("m", "a1", "user", "<local-command-stdout>x</local-command-stdout>"), "note of the program"),
        (claude_line("m", "a1", "user", "Caveat: The messages below were generated by"), "note of the program"),
        (claude_line("m", "a1", "user", [text("[Request interrupted by user]")]), "note of the program"),
        (claude_line("m", "a1", "user", "<system-reminder>cwd changed</system-reminder>"), "note of the program"),
        (claude_line("m", "a1", "assistant", [text("API Error")], isApiErrorMessage=True), "error of the program"),
        (claude_line("m", "a1", "user", "Look there", isSidechain=True), "message of a subagent"),
        ("no object", "line that cannot be read"),
    ],
)
def test_lines_that_nobody_said_are_counted(line: object, reason: str) -> None:
    found = read(QUESTION, ANSWER, line)
    assert len(found.messages) == 2
    assert dict(found.skipped) == {reason: 1}


def test_reminders_are_cut_out_of_the_users_words() -> None:
    words = "Please\n<system-reminder>\ncwd changed\n</system-reminder>\n# Notes"
    assert said(read(claude_line("u1", None, "user", words))) == [("user", "Please\n# Notes")]


def test_words_given_while_the_model_was_at_work_are_kept_once() -> None:
    removed = {"type": "queue-operation", "operation": "remove", "content": "the parser first", "sessionId": "s1"}
    queued = {"type": "queued_command", "prompt": "the parser first"}
    attachment = {**claude_line("q", "a1", "attachment", ""), "attachment": queued}
    found = read(QUESTION, ANSWER, removed, attachment, claude_line("u2", "q", "user", "and?"))
    assert said(found)[2:] == [("user", "the parser first"), ("user", "and?")]


def test_pictures_are_files_and_a_cut_reply_says_so() -> None:
    reply = claude_line("a1", "u1", "assistant", [text("It is")])
    reply["message"]["stop_reason"] = "max_tokens"
    question, answer = live(read(claude_line("u1", None, "user", [text("What is it?"), PICTURE]), reply))
    assert [(file.name, file.media_type, file.data) for file in question.files] == [
        ("image.png", "image/png", b"\x89PNG")
    ]
    assert answer.status is Status.TRUNCATED


@pytest.mark.parametrize(
    ("marks", "title"),
    [
        ([{"type": "summary", "summary": "Of this", "leafUuid": "a1"}], "Of this"),
        ([{"type": "summary", "summary": "Of another", "leafUuid": "elsewhere"}], "Start"),
        ([{"type": "ai-title", "aiTitle": "Made\nup"}, {"type": "custom-title", "customTitle": "Mine"}], "Mine"),
    ],
)
def test_the_title_is_the_users_or_the_programs_or_the_first_words(marks: list[Any], title: str) -> None:
    assert read(*marks, QUESTION, ANSWER).title == title


def test_a_parent_that_is_not_in_the_file_is_the_line_before() -> None:
    assert len(read(QUESTION, ANSWER, claude_line("u2", "gone", "user", "and?")).live) == 3


FULL = [
    *REWOUND,
    claude_line("g1", "c2", "assistant", [text("x"), tool_use("t1"), {"type": "thinking", "thinking": "y"}]),
    claude_line("g2", "g1", "user", [tool_result("t1", [text("z")]), PICTURE]),
    boundary("cb", "g2", preservedMessages={"uuids": ["g1", "g2"]}, preservedSegment={"headUuid": "g1"}),
    SUMMARY,
    {"type": "queue-operation", "operation": "remove", "content": "steer", "sessionId": "s1"},
]
