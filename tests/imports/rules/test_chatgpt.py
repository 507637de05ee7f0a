"""ChatGPT: the path from the current node is live, other branches are kept, and nothing hidden is said."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from chorus_cli.imports.rules.chatgpt import conversation_of
from chorus_cli.log.rules.messages import Role, Status
from tests.imports.rules.exports import chatgpt, chatgpt_node, check, live, others, said

PICTURE = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-ab12", "size_bytes": 9}
THOUGHTS = {"content_type": "thoughts", "thoughts": [{"summary": "Water", "content": "It must boil."}]}
RECAP = {"content_type": "reasoning_recap", "content": "Thought for 38s"}
ATTACHED = {"attachments": [{"id": "file-ab12", "name": "pot.png", "mime_type": "image/png", "size": 9}]}
LOOK = {"content_type": "multimodal_text", "parts": ["look", PICTURE]}
SUM = {"content_type": "code", "language": "python", "text": "1+1"}
PYTHON = {"role": "tool", "name": "python"}

FULL = chatgpt(
    chatgpt_node("a", "hidden", "user", LOOK, metadata=ATTACHED),
    chatgpt_node("b", "a", "assistant", THOUGHTS),
    chatgpt_node("c", "b", "assistant", SUM, recipient="python"),
    chatgpt_node("d", "c", "tool", {"content_type": "execution_output", "text": "2"}, author=PYTHON),
    chatgpt_node("e", "d", "assistant", RECAP),
    chatgpt_node("f", "e", "assistant", "It is \ue200cite\ue202turn0search0\ue201two."),
    chatgpt_node("g", "d", "assistant", "Three."),
    current_node="f",
)  # fmt: skip


def test_a_conversation_is_read_along_its_current_branch() -> None:
    found = conversation_of(FULL)
    check(found)
    assert said(found) == [("user", "look"), ("tool_use", ""), ("tool_result", "2"), ("assistant", "It is two.")]
    assert (found.source, found.key, found.title) == ("chatgpt", "talk-1", "Tea")
    assert found.created_at == datetime(2023, 11, 14, 22, 13, 20, 250000, tzinfo=UTC)
    assert others(found) == ["Three."]


def test_files_calls_thoughts_and_models_are_kept() -> None:
    question, call, result, reply = live(conversation_of(FULL))
    assert [(file.name, file.media_type, file.entry) for file in question.files] == [
        ("pot.png", "image/png", "file-ab12")
    ]
    assert '"name": "python"' in (call.tool_calls or "")
    assert "1+1" in (call.tool_calls or "")
    assert call.tool_call_id == result.tool_call_id == "c"
    assert call.reasoning == "Water\nIt must boil."
    assert (reply.model, question.model) == ("gpt-4o", None)
    assert conversation_of(chatgpt(
        chatgpt_node("a", None, "user", "why?"),
        chatgpt_node("b", "a", "assistant", THOUGHTS),
        chatgpt_node("c", "b", "assistant", RECAP),
        chatgpt_node("d", "c", "assistant", "So."),
    )).messages[-1].reasoning == "Water\nIt must boil."  # fmt: skip


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ({"content_type": "text", "parts": ["one", "two"]}, "one\ntwo"),
        ({"content_type": "code", "language": "rust", "text": "fn"}, "```rust\nfn\n```"),
        ({"content_type": "code", "language": "unknown", "text": "x"}, "```\nx\n```"),
        ({"content_type": "tether_quote", "title": "A", "url": "u", "text": "said"}, "A\nu\nsaid"),
        ({"content_type": "tether_browsing_display", "result": "R", "summary": None}, "R"),
        ({"content_type": "multimodal_text", "parts": [{"content_type": "audio_transcription", "text": "hm"}]}, "hm"),
        ({"content_type": "of_next_year", "text": "later"}, "later"),
        ({"parts": ["no type"]}, "no type"),
        ('\ue200entity\ue202["city","Rome"]\ue201 and \ue200url\ue202here\ue202turn1\ue201.', "Rome and here."),
        ("half a mark \ue200cite", "half a mark cite"),
    ],
)  # fmt: skip
def test_each_type_of_content_has_a_text(node: Any, text: str) -> None:
    found = conversation_of(chatgpt(chatgpt_node("a", None, "user", "q"), chatgpt_node("b", "a", "assistant", node)))
    assert found.messages[-1].content == text


@pytest.mark.parametrize(
    "node",
    [
        chatgpt_node("b", "a", "system", "be nice"),
        chatgpt_node("b", "a", "user", "x", metadata={"is_visually_hidden_from_conversation": True}),
        chatgpt_node("b", "a", "user", {"content_type": "user_editable_context", "user_profile": "me"}),
        chatgpt_node("b", "a", "assistant", {"content_type": "model_editable_context", "text": "memory"}),
        chatgpt_node("b", "a", "assistant", ""),
        chatgpt_node("b", "a", "assistant", "x", author=None),
    ],
)
def test_hidden_and_empty_messages_are_left_out(node: dict[str, Any]) -> None:
    found = conversation_of(chatgpt(chatgpt_node("a", None, "user", "q"), node, chatgpt_node("c", "b", "user", "r")))
    check(found)
    assert said(found) == [("user", "q"), ("user", "r")]


def test_a_call_without_a_result_and_a_result_without_a_call_are_text() -> None:
    call = chatgpt_node("b", "a", "assistant", "open()", recipient="canmore")
    result = chatgpt_node("c", "a", "tool", "found", author={"role": "tool", "name": "search"})
    found = conversation_of(chatgpt(chatgpt_node("a", None, "user", "q"), call, result))
    assert [(message.role, message.content) for message in found.messages[1:]] == [
        (Role.ASSISTANT, "[canmore]\nopen()"),
        (Role.ASSISTANT, "[search]\nfound"),
    ]


def test_a_picture_that_was_made_is_the_result_of_a_call() -> None:
    call = chatgpt_node("b", "a", "assistant", '{"prompt": "a pot"}', recipient="dalle.text2im")
    result = chatgpt_node("c", "b", "tool", {"content_type": "multimodal_text", "parts": [PICTURE]})
    found = conversation_of(chatgpt(chatgpt_node("a", None, "user", "draw"), call, result)).messages[-1]
    assert (found.role, found.content) == (Role.TOOL_RESULT, "image file-ab12")
    assert [file.entry for file in found.files] == ["file-ab12"]


def test_an_old_export_without_a_current_node_ends_with_its_newest_leaf() -> None:
    nodes = [
        chatgpt_node("a", None, "user", "q"),
        chatgpt_node("z", "a", "user", "new"),
        chatgpt_node("b", "a", "user", "old"),
    ]
    export = chatgpt(*nodes)
    del export["current_node"]
    assert said(conversation_of(export)) == [("user", "q"), ("user", "new")]


def test_titles_times_and_ids_may_be_missing() -> None:
    node = chatgpt_node("a", None, "user", "q", create_time=None)
    found = conversation_of({"title": None, "mapping": {"a": node}})
    assert (found.title, found.key, found.created_at, found.messages[0].timestamp) == ("q", "a", None, None)


def test_a_reply_that_was_stopped_says_so() -> None:
    for ending, status in (("interrupted", Status.INTERRUPTED), ("max_tokens", Status.TRUNCATED), ("stop", None)):
        node = chatgpt_node("a", None, "assistant", "Well", metadata={"finish_details": {"type": ending}})
        assert conversation_of(chatgpt(node)).messages[0].status is status


@pytest.mark.parametrize("id_", ["id_rsa", "../file-ab12", "file-ab12/../../x", "file-", "", None])
def test_a_pointer_that_is_no_id_of_a_file_leads_nowhere(id_: str | None) -> None:
    pointer = {"content_type": "image_asset_pointer", "asset_pointer": f"file-service://{id_}"}
    look = {"content_type": "multimodal_text", "parts": ["look", pointer]}
    found = conversation_of(chatgpt(chatgpt_node("a", None, "user", look, metadata={"attachments": [{"id": id_}]})))
    assert [file.entry for file in found.messages[0].files] == ["", ""]


def test_an_edit_of_the_first_question_is_a_branch_whatever_the_times_say() -> None:
    empty = chatgpt_node("d", "a", "assistant", "")
    found = conversation_of(chatgpt(
        chatgpt_node("a", "hidden", "user", "first", create_time=1700000038.6),
        chatgpt_node("b", "hidden", "user", "edited", create_time=1700000092.5),
        empty,
        chatgpt_node("e", "d", "assistant", "one", create_time=1700000028.0),
        chatgpt_node("f", "b", "assistant", "two", create_time=1700000082.4),
    ))  # fmt: skip
    check(found)
    assert said(found) == [("user", "edited"), ("assistant", "two")]
    assert [message.content for message in found.messages] == ["first", "edited", "one", "two"]
