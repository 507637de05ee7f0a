"""Claude Code: rewinds are branches, compactions leave no gap, and only the user's words are the user's."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from chorus_cli.imports.rules.assembly import FileFacts
from chorus_cli.imports.rules.claude_code import conversation_of
from chorus_cli.log.rules.messages import Role, Status
from tests.imports.rules.exports import check, files_of, live, others, said
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
REWOUND_TALK = [
    *(("user", "Start"), ("assistant", "Ready")),
    *(("user", "Second attempt"), ("assistant", "Second answer")),
]
KEPT_GOING = [*REWOUND_TALK, ("user", "Go on"), ("assistant", "Kept going"), ("user", "After")]
GO_ON = claude_line("g1", "c2", "user", "Go on")
GOING = claude_line("g2", "g1", "assistant", [text("Kept going")])
PRESERVED = boundary(
    "cb",
    "g2",
    preservedMessages={"anchorUuid": "cs", "uuids": ["c2", "g1", "g2"]},
    preservedSegment={"headUuid": "c2", "anchorUuid": "cs", "tailUuid": "g2"},
)
SUMMARY = claude_line("cs", "cb", "user", "This session is being continued.", isCompactSummary=True)
# The last message that was preserved is written behind the summary, with it as its parent, and maybe before it too.
KEPT = [PRESERVED, SUMMARY, {**GOING, "parentUuid": "cs"}, claude_line("p1", "g2", "user", "After")]
SUMMED_UP = {"summary of a compaction": 1}
REMOVED = {"type": "queue-operation", "operation": "remove", "content": "the parser first", "sessionId": "s1"}
QUEUED = {"attachment": {"type": "queued_command", "prompt": "the parser first"}}
REMINDED = "Please\n<system-reminder>\ncwd changed\n</system-reminder>\n# Notes"


def read(*lines: Any, name: str = "s1") -> Any:
    found = conversation_of(lines, FileFacts(name))
    check(found)
    return found


def mark(*, explicit: bool | None) -> dict[str, Any]:
    """The mark of a rewind that nothing followed yet."""
    return {"type": "last-prompt", "leafUuid": "b2", "explicit": explicit, "sessionId": "s1"}


def after_a_compaction(parent: str) -> list[Any]:
    return [*REWOUND, GO_ON, GOING, boundary("cb", "g2"), SUMMARY, claude_line("p1", parent, "user", "After")]


TALKS: dict[str, tuple[list[Any], list[tuple[str, str]], dict[str, int]]] = {
    "a rewind leaves a branch": (REWOUND, REWOUND_TALK, {}),
    "one that nothing followed is heeded": ([*REWOUND, mark(explicit=True)], [("assistant", "First answer")], {}),
    "if it was asked for": ([*REWOUND, mark(explicit=None)], [("assistant", "Second answer")], {}),
    "and if something followed": (
        [*REWOUND, mark(explicit=True), claude_line("d1", "c2", "user", "more")], [("user", "more")], {},
    ),
    "a compaction leaves no gap before its summary": (after_a_compaction("cs"), KEPT_GOING, SUMMED_UP),
    "nor before a message that was preserved": (after_a_compaction("g2"), KEPT_GOING, SUMMED_UP),
    "messages that were preserved stand where they were said": ([*REWOUND, GO_ON, *KEPT], KEPT_GOING, SUMMED_UP),
    "also if they are repeated": ([*REWOUND, GO_ON, GOING, *KEPT], KEPT_GOING, SUMMED_UP),
    "a call alone is text": (
        [QUESTION, claude_line("r1", "u1", "assistant", [tool_use("t1", path="x")])],
        [("user", "Start"), ("assistant", '[Read]\n{"path": "x"}')], {},
    ),
    "results alone are texts": (
        [QUESTION, claude_line("x1", "u1", "user", [tool_result("gone", "one"), tool_result("too", "two")])],
        [("user", "Start"), ("assistant", "[tool]\none"), ("assistant", "[tool]\ntwo")], {},
    ),
    "reminders are cut out": ([claude_line("u1", None, "user", REMINDED)], [("user", "Please\n# Notes")], {}),
    "words given meanwhile are kept once": (
        [QUESTION, ANSWER, REMOVED, claude_line("q", "a1", "attachment", "") | QUEUED,
         claude_line("u2", "q", "user", "and?")],
        [*REWOUND_TALK[:2], ("user", "the parser first"), ("user", "and?")], {},
    ),
    "a parent that is not there is the line before": (
        [QUESTION, ANSWER, claude_line("u2", "gone", "user", "and?")], [*REWOUND_TALK[:2], ("user", "and?")], {},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "end", "skipped"), TALKS.values(), ids=TALKS)
def test_what_was_said_is_read(lines: list[Any], end: list[tuple[str, str]], skipped: dict[str, int]) -> None:
    found = read(*lines)
    assert (said(found)[-len(end) :], dict(found.skipped)) == (end, skipped)
    assert len(said(found)) == len(end) or len(end) == 1


def test_where_no_line_names_a_parent_each_follows_the_one_before() -> None:
    conversation = conversation_of([line | {"parentUuid": None} for line in REWOUND], FileFacts("s1"))
    assert conversation.live == ("u1", "a1", "b1", "b2", "c1", "c2")


def test_a_session_is_known_by_its_id_and_keeps_other_branches() -> None:
    found = read(*REWOUND)
    assert others(found) == ["First attempt", "First answer"]
    assert (found.source, found.key, found.title) == ("claude-code", "s1", "Start")


def test_a_reply_over_several_lines_is_one_with_its_thoughts_and_calls() -> None:
    thinking = {"type": "thinking", "thinking": "Look first.", "signature": "x"}
    parts = [[thinking], [text("One")], [text("moment.")], [tool_use("t1", path="ä")]]
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


PROGRAM = "note of the program"
NOTES = (
    "<command-name>/clear</command-name>",
    "<local-command-stdout>x</local-command-stdout>",
    "Caveat: The messages below were generated by",
    "<system-reminder>cwd changed</system-reminder>",
)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (claude_line("m", "a1", "user", "A caveat", isMeta=True), PROGRAM),
        (claude_line("m", "a1", "user", [text("[Request interrupted by user]")]), PROGRAM),
        *((claude_line("m", "a1", "user", words), PROGRAM) for words in NOTES),
        (claude_line("m", "a1", "assistant", [text("API Error")], isApiErrorMessage=True), "error of the program"),
        (claude_line("m", "a1", "user", "Look there", isSidechain=True), "message of a subagent"),
        ("no object", "line that cannot be read"),
    ],
)
def test_lines_that_nobody_said_are_counted(line: object, reason: str) -> None:
    found = read(QUESTION, ANSWER, line)
    assert len(found.messages) == 2
    assert dict(found.skipped) == {reason: 1}


def test_pictures_are_files_and_a_cut_reply_says_so() -> None:
    reply = claude_line("a1", "u1", "assistant", [text("It is")])
    reply["message"]["stop_reason"] = "max_tokens"
    question, answer = live(read(claude_line("u1", None, "user", [text("What is it?"), PICTURE]), reply))
    assert files_of(question) == [("image.png", "image/png", b"\x89PNG")]
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


FULL = [
    *REWOUND,
    claude_line("g1", "c2", "assistant", [text("x"), tool_use("t1"), {"type": "thinking", "thinking": "y"}]),
    claude_line("g2", "g1", "user", [tool_result("t1", [text("z")]), PICTURE]),
    boundary("cb", "g2", preservedMessages={"uuids": ["g1", "g2"]}, preservedSegment={"headUuid": "g1"}),
    SUMMARY,
    {"type": "queue-operation", "operation": "remove", "content": "steer", "sessionId": "s1"},
]
