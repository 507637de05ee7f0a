"""Small exports of other programs, written after their formats, and checks that hold for each reader."""

from __future__ import annotations

import copy
from datetime import tzinfo
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from chorus_cli.imports.files.reading import sources
from chorus_cli.imports.files.source import Source
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignMessage, Skipped

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
"""Any value of JSON, lone surrogates and NUL among them."""

SOUND: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=8,
)
"""Any value of JSON that can be written and is read back the same."""


@st.composite
def spoiled(draw: st.DrawFn, sound: Any) -> Any:
    """Return a copy of a value with up to three of its values replaced by any other, or left out."""
    value = copy.deepcopy(sound)
    for _ in range(draw(st.integers(1, 3))):
        holder, key = draw(st.sampled_from(list(_places(value)) or [({}, "")]))
        if isinstance(holder, dict) and draw(st.booleans()):
            holder.pop(key, None)
        else:
            holder[key] = draw(ANYTHING)
    return value


def _places(value: Any) -> Any:
    listed = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in listed:
        yield value, key
        yield from _places(inner)


def check(conversation: ForeignConversation) -> None:
    """Assert that a conversation can be stored: parents first, one live path, and text that can be encoded."""
    parents = {message.key: message.parent for message in conversation.messages}
    keys = list(parents)
    assert len(keys) == len(conversation.messages) > 0
    assert conversation.key
    assert "\n" not in conversation.title
    for position, message in enumerate(conversation.messages):
        assert message.parent is None or message.parent in keys[:position]
        for text in (message.content, message.model, message.tool_calls, message.reasoning, message.key):
            (text or "").encode()
        assert message.timestamp is None or message.timestamp.utcoffset() is not None
    assert [parents[key] for key in conversation.live[:1]] == [None]
    assert all(parents[after] == before for before, after in pairwise(conversation.live))


def source_of(path: Path, zone: tzinfo | None = None) -> Source:
    (found,) = sources(path, zone)
    assert not isinstance(found, Skipped)
    return found


def found_in(path: Path, zone: tzinfo | None = None) -> tuple[list[ForeignConversation], list[str]]:
    """Return the conversations of a file or a folder, and the reasons for those that were skipped."""
    found: list[ForeignConversation | Skipped] = []
    for source in sources(path, zone):
        found += [source] if isinstance(source, Skipped) else source.conversations()
    conversations = [each for each in found if isinstance(each, ForeignConversation)]
    for each in conversations:
        check(each)
    return conversations, [each.reason for each in found if isinstance(each, Skipped)]


def live(conversation: ForeignConversation) -> list[ForeignMessage]:
    by_key = {message.key: message for message in conversation.messages}
    return [by_key[key] for key in conversation.live]


def said(conversation: ForeignConversation) -> list[tuple[str, str]]:
    """Return the live path as pairs of role and text."""
    return [(message.role.value, message.content) for message in live(conversation)]


def others(conversation: ForeignConversation) -> list[str]:
    """Return the texts of other branches."""
    return [message.content for message in conversation.messages if message.key not in conversation.live]


def files_of(message: ForeignMessage) -> list[tuple[str, str, bytes | None]]:
    return [(file.name, file.media_type, file.data) for file in message.files]


def chatgpt_node(key: str, parent: str | None, role: str, text: Any, **more: Any) -> dict[str, Any]:
    content = text if isinstance(text, dict) else {"content_type": "text", "parts": [text]}
    message = {
        "id": key,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": 1700000000.0 + ord(key[-1]),
        "content": content,
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": {"model_slug": "gpt-4o"} if role == "assistant" else {},
        "recipient": "all",
    }
    return {"id": key, "message": {**message, **more}, "parent": parent, "children": []}


def chatgpt(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    root: dict[str, Any] = {"id": "root", "message": None, "parent": None, "children": []}
    hidden = chatgpt_node("hidden", "root", "system", "", metadata={"is_visually_hidden_from_conversation": True})
    return {
        "id": "talk-1",
        "conversation_id": "talk-1",
        "title": "Tea",
        "create_time": 1700000000.25,
        "mapping": {node["id"]: node for node in (root, hidden, *nodes)},
        "current_node": nodes[-1]["id"] if nodes else None,
        "is_archived": False,
        **more,
    }


def claude_message(key: str, parent: str | None, sender: str, text: str, **more: Any) -> dict[str, Any]:
    time = f"2024-05-01T10:00:{ord(key[-1]) % 60:02}.123456Z"
    message: dict[str, Any] = {
        "uuid": key,
        "sender": sender,
        "text": text,
        "content": [{"type": "text", "text": text, "start_timestamp": time, "stop_timestamp": time}],
        "created_at": time,
        "attachments": [],
        "files": [],
    }
    return {**message, **({} if parent is None else {"parent_message_uuid": parent}), **more}


def claude(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "uuid": "talk-2",
        "name": "Coffee",
        "created_at": "2024-05-01T09:59:00.000001Z",
        "account": {"uuid": "me"},
        "chat_messages": list(messages),
        **more,
    }


def web_message(key: str, parent: str | None, role: str, content: str, **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"id": key, "parentId": parent, "childrenIds": [], "role": role, "content": content}
    model = {"model": "llama3", "done": True} if role == "assistant" else {}
    return {**message, **model, "timestamp": 1700000000 + ord(key[-1]), **more}


def web(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    history = {"currentId": messages[-1]["id"], "messages": {message["id"]: message for message in messages}}
    chat = {"title": "Mate", "models": ["llama3"], "history": history, "messages": [], "timestamp": 1700000000500}
    return {"id": "talk-3", "user_id": "me", "title": "Mate", "chat": chat, "created_at": 1700000000, **more}
