"""LibreChat: a tree or a list of messages, with branches, thoughts and calls of tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chorus_cli.imports.rules.librechat import conversation_of
from chorus_cli.log.rules.messages import Status
from tests.imports.rules.exports import found_in, live, said

ROOT = "00000000-0000-0000-0000-000000000000"


def message(key: str, parent: str, text: str, second: int, **more: Any) -> dict[str, Any]:
    is_user = more.pop("isCreatedByUser", False)
    return {
        "_id": f"65f0{key}",
        "messageId": key,
        "conversationId": "c-1",
        "parentMessageId": parent,
        "sender": "User" if is_user else "GPT-4",
        "text": text,
        "isCreatedByUser": is_user,
        "error": False,
        "unfinished": False,
        "model": None if is_user else "gpt-4o",
        "createdAt": f"2024-03-12T09:00:{second:02}.000Z",
        **more,
    }


QUESTION = message(
    "q", ROOT, "What is mate?", 1, isCreatedByUser=True, files=[{"filename": "a.png", "type": "image/png"}]
)
OLD = message("a1", "q", "A friend.", 2)
CALL = {"id": "t1", "name": "search", "args": '{"q":"mate"}', "output": "a tea", "type": "tool_call"}
CONTENT = [
    {"type": "think", "think": "Tea or friend?"},
    {"type": "text", "text": "I look."},
    {"type": "tool_call", "tool_call": CALL},
    {"type": "text", "text": {"value": "A tea."}},
]
NEW = message("a2", "q", "", 4, content=CONTENT, unfinished=True)
FAILED = message("a3", "a2", '{"error": "no key"}', 3, error=True)
FACTS = {"conversationId": "c-1", "endpoint": "openAI", "title": "Mate", "exportAt": "09:05:00 GMT+0000"}
LIST = {**FACTS, "branches": True, "recursive": False, "messages": [QUESTION, OLD, NEW, FAILED]}
TREE = {
    **FACTS,
    "branches": True,
    "recursive": True,
    "messagesTree": [{**QUESTION, "children": [{**OLD, "children": []}, {**NEW, "children": [FAILED]}]}],
}


@pytest.mark.parametrize("export", [LIST, TREE])
def test_a_conversation_comes_with_branches_thoughts_and_calls(tmp_path: Path, export: dict[str, Any]) -> None:
    path = tmp_path / "Mate.json"
    path.write_text(json.dumps(export, separators=(",", ":")), encoding="utf-8")
    ((found,), _) = found_in(path)
    assert (found.source, found.key, found.title) == ("librechat", "c-1", "Mate")
    question, words, *_, end = live(found)
    talk = [("assistant", "I look."), ("tool_use", ""), ("tool_result", "a tea"), ("assistant", "A tea.")]
    assert (said(found)[1:], words.reasoning) == (talk, "Tea or friend?")
    assert (question.files[0].name, end.model, end.status) == ("a.png", "gpt-4o", Status.INTERRUPTED)
    (other,) = (each for each in found.messages if each.key not in found.live)
    assert (other.content, other.parent) == ("A friend.", "q")
    assert dict(found.skipped) == {"reply that failed or is empty": 1}


def test_without_branches_the_list_is_the_conversation() -> None:
    found = conversation_of({**LIST, "messages": [QUESTION, OLD]})
    assert said(found) == [("user", "What is mate?"), ("assistant", "A friend.")]
