"""Codex CLI: each message is read once, as the person saw it, from every generation of the format."""

from __future__ import annotations

from typing import Any

import pytest

from chorus_cli.imports.rules.assembly import FileFacts
from chorus_cli.imports.rules.codex import FORK, conversation_of, is_beginning
from chorus_cli.log.rules.messages import Role
from tests.imports.rules.exports import check, files_of, live, said
from tests.imports.rules.sessions import codex_event, codex_item, codex_line, codex_meta

CONTEXT = codex_item("user", "<environment_context>\n  <cwd>/home/frodo</cwd>\n</environment_context>")
ASKED = [("user", "Where is Rome?"), ("assistant", "In Latium.")]
PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw=="}


def completed(kind: str, words: str, second: int = 0) -> dict[str, Any]:
    item = {"type": kind, "id": "i", "content": [{"type": "text", "text": words}]}
    return codex_line("event_msg", second, type="item_completed", item=item)


def call(key: str, kind: str = "function_call", **more: Any) -> dict[str, Any]:
    return codex_line("response_item", 5, type=kind, call_id=key, **more)


def output(key: str, value: object, kind: str = "function_call_output") -> dict[str, Any]:
    return codex_line("response_item", 6, type=kind, call_id=key, output=value)


def read(*lines: Any) -> Any:
    found = conversation_of(lines, FileFacts("rollout-1"))
    check(found)
    return found


META = codex_meta()
ITEMS = [codex_item("user", "Where is Rome?", 1), codex_item("assistant", "In Latium.", 2)]
EVENTS = [codex_event("user_message", "Where is Rome?", 1), codex_event("agent_message", "In Latium.", 2)]
COMPLETED = [completed("UserMessage", "Where is Rome?", 1), completed("AgentMessage", "In Latium.", 2)]
GENERATIONS = {
    "since 2026: items, then completed items as events": [META, CONTEXT, ITEMS[0], *COMPLETED, ITEMS[1]],
    "2025: events, then items": [META, CONTEXT, EVENTS[0], ITEMS[0], EVENTS[1], ITEMS[1]],
    "events alone": [META, *EVENTS],
    "items alone": [META, CONTEXT, *ITEMS],
    "the first versions: bare items": [
        {"id": "s1", "timestamp": "2026-01-02T03:04:00Z"},
        {"record_type": "state"},
        *(each["payload"] for each in (CONTEXT, *ITEMS)),
    ],
}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_each_message_is_read_once(generation: str) -> None:
    found = read(*GENERATIONS[generation])
    assert is_beginning(GENERATIONS[generation])
    assert said(found) == ASKED
    assert (found.source, found.key, found.title) == ("codex", "s1", "Where is Rome?")


def test_the_same_words_twice_are_two_messages() -> None:
    twice = [codex_item("user", "go on", 1), completed("UserMessage", "go on", 1)] * 2
    assert said(read(codex_meta(), *twice)) == [("user", "go on")] * 2


def test_calls_stand_with_their_results_and_the_thoughts_before_them() -> None:
    thought = codex_line("response_item", type="reasoning", summary=[{"type": "summary_text", "text": "Look first."}])
    found = read(
        codex_meta(),
        codex_line("turn_context", model="gpt-5"),
        codex_event("user_message", "List"),
        thought,
        call("c1", name="exec_command", arguments='{"cmd": "ls"}'),
        output("c1", '{"output": "a.txt", "metadata": {"exit_code": 0}}'),
        call("c2", "custom_tool_call", name="apply_patch", input="*** Begin Patch"),
        output("c2", [{"type": "output_text", "text": "Done!"}], "custom_tool_call_output"),
        codex_event("agent_message", "One file."),
    )
    _, first, listing, second, patched, reply = live(found)
    assert (first.role, first.reasoning, first.model) == (Role.TOOL_USE, "Look first.", "gpt-5")
    assert (listing.role, listing.content, listing.tool_call_id) == (Role.TOOL_RESULT, "a.txt", "c1")
    assert '{\\"input\\": \\"*** Begin Patch\\"}' in (second.tool_calls or "")
    assert (patched.content, reply.content, reply.reasoning) == ("Done!", "One file.", None)


def test_a_call_or_a_result_alone_is_text() -> None:
    found = read(codex_meta(), call("", "web_search_call", action={"query": "Rome"}), output("gone", "found"))
    assert said(found) == [("assistant", '[web_search]\n{"query": "Rome"}'), ("assistant", "[tool]\nfound")]


def test_the_picture_of_a_message_is_kept_from_whichever_writing_has_it() -> None:
    first, last = ({"type": "input_text", "text": mark} for mark in ("<image name=[Image #1]>", "</image>"))
    marks = [first, PICTURE, last]
    for lines in (
        [codex_item("user", "What is it?", 1, *marks), completed("UserMessage", "What is it?", 1)],
        [codex_event("user_message", "What is it?", 1), codex_item("user", "What is it?", 1, *marks)],
    ):
        (question,) = live(read(codex_meta(), *lines))
        assert question.content == "What is it?"
        assert files_of(question) == [("image.png", "image/png", b"\x89PNG")]


def test_turns_that_were_taken_back_are_a_branch() -> None:
    def turn(number: int) -> list[dict[str, Any]]:
        return [codex_event("user_message", f"q{number}", number), codex_event("agent_message", f"a{number}", number)]

    back = codex_line("event_msg", type="thread_rolled_back", num_turns=2)
    found = read(codex_meta(), *turn(1), *turn(2), *turn(3), back, *turn(4))
    assert said(found) == [("user", "q1"), ("assistant", "a1"), ("user", "q4"), ("assistant", "a4")]
    assert len(found.messages) == 8


def test_the_summary_of_a_compaction_is_no_reply() -> None:
    found = read(
        META,
        *EVENTS,
        codex_item("assistant", "They talked about Rome."),
        codex_line("compacted", message="Summary", replacement_history=[]),
        codex_event("user_message", "And Oslo?"),
    )
    assert said(found) == [*ASKED, ("user", "And Oslo?")]
    assert dict(found.skipped) == {"summary of a compaction": 1}


def test_a_fork_without_its_beginning_says_so() -> None:
    found = read(codex_meta(forked_from_id="s0", forked_from_ordinal_exclusive=64), codex_event("user_message", "x"))
    assert found.guesses == (FORK,)


def test_lines_that_cannot_be_read_are_counted() -> None:
    found = read(codex_meta(), None, codex_event("user_message", "x"), codex_line("future_record"), "{cut")
    assert dict(found.skipped) == {"line that cannot be read": 2}


FULL = [
    *GENERATIONS["since 2026: items, then completed items as events"],
    codex_line("turn_context", model="gpt-5"),
    codex_line("response_item", type="reasoning", summary=[{"type": "summary_text", "text": "x"}]),
    call("c1", name="shell", arguments="{}"),
    output("c1", "done"),
    codex_item("user", "y", 7, PICTURE),
    codex_line("event_msg", type="thread_rolled_back", num_turns=1),
    codex_line("compacted", message="z"),
    codex_event("agent_message", "end"),
]
