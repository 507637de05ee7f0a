"""Conversations of a ChatGPT data export: a tree of nodes, each with a message or none."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json import values
from chorus_cli.imports.rules.branches import Node, joined
from chorus_cli.imports.rules.chatgpt_content import Content, content_of
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignMessage
from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.log.rules.messages import Role, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chorus_cli.core.json.values import Record

SOURCE = "chatgpt"

_FARTHEST_THOUGHT = 40
"""The most nodes between a reply and the thoughts before it."""

_ROLES = frozenset({"user", "assistant", "tool"})
_HIDDEN = "hidden note of the program to the model"
_BROKEN = "message that cannot be read"
_ENDINGS = {"interrupted": Status.INTERRUPTED, "max_tokens": Status.TRUNCATED}
_MARKED = re.compile("\ue200([^\ue200\ue201]{0,4000})\ue201|[\ue200-\ue206]")


def is_conversation(value: object) -> bool:
    """Return whether a value has the form of a conversation of ChatGPT."""
    return isinstance(values.record(value).get("mapping"), dict)


def conversation_of(value: object) -> ForeignConversation:
    """Read a conversation.

    Raises:
        ImportFormatError: it has no nodes, or none with a message that can be read.
    """
    found = values.record(value)
    mapping = {values.identifier(key): values.record(node) for key, node in values.record(found.get("mapping")).items()}
    reader = _Reader(mapping)
    tree = joined(reader.nodes(), values.identifier(found.get("current_node")) or None)
    if not tree.messages:
        raise ImportFormatError("conversation without messages")
    key = values.identifier(found.get("conversation_id")) or values.identifier(found.get("id"))
    return ForeignConversation(
        SOURCE,
        key or tree.messages[0].key,
        values.line(found.get("title")),
        tree.messages,
        tree.live,
        values.moment(found.get("create_time")),
        skipped=tuple(reader.skipped.items()),
    )


class _Reader:
    """Reads the nodes of a conversation; ``skipped`` counts those left out, by their reason."""

    def __init__(self, mapping: Mapping[str, Record]) -> None:
        self.skipped: Counter[str] = Counter()
        self._parents = {key: values.identifier(node.get("parent")) or None for key, node in mapping.items()}
        self._messages = {key: values.record(node.get("message")) for key, node in mapping.items()}
        self._contents = {key: content_of(message) for key, message in self._messages.items()}
        self._call_of = self._answered_calls()
        self._calls = frozenset(self._call_of.values())

    def nodes(self) -> list[Node]:
        """Return the nodes in the order of the file."""
        return [Node(key, self._parents[key], self._read(key)) for key in self._messages]

    def _answered_calls(self) -> dict[str, str]:
        """Return the nodes that are results of calls, with the node of their call, which is the one before."""
        called: dict[str, str] = {}
        for key, message in self._messages.items():
            parent = self._parents[key]
            if _role(message) != "tool" or parent is None or not (self._is_shown(key) and self._is_shown(parent)):
                continue
            if _addressee(self._messages[parent]):
                called[key] = parent
        return called

    def _read(self, key: str) -> tuple[ForeignMessage, ...]:
        if self._is_shown(key):
            return (self._message(key),)
        message, content = self._messages[key], self._contents[key]
        if _is_hidden(message, content):
            if content.text:
                self.skipped[_HIDDEN] += 1
        elif message and _role(message) not in _ROLES:
            self.skipped[_BROKEN] += 1
        return ()

    def _is_shown(self, key: str) -> bool:
        """Return whether a node becomes a message: thoughts belong to the reply after them."""
        message, content = self._messages.get(key), self._contents.get(key)
        if message is None or content is None or _role(message) not in _ROLES or _is_hidden(message, content):
            return False
        return bool(content.text.strip() or content.files) and not (content.thoughts or content.is_recap)

    def _message(self, key: str) -> ForeignMessage:
        message, content = self._messages[key], self._contents[key]
        role, text, call, result_of = Role.USER, content.text, None, self._call_of.get(key)
        tool = _addressee(message)
        if result_of is not None:
            # No model takes a result without text, such as a picture that was made.
            role, text = Role.TOOL_RESULT, text or ", ".join(file.name for file in content.files)
        elif key in self._calls:
            role, text, result_of = Role.TOOL_USE, "", key
            call = ToolCall(key, tool, _arguments(content.text)).as_json
        elif _role(message) != "user":
            speaker = tool or (_role(message) == "tool" and (_name(message) or "tool"))
            role, text = Role.ASSISTANT, f"[{speaker}]\n{text}" if speaker else _without_marks(text)
        data = values.record(message.get("metadata"))
        is_reply = role is Role.ASSISTANT
        return ForeignMessage(
            key,
            None,
            role,
            text,
            values.moment(message.get("create_time")),
            None if role is Role.USER else values.line(data.get("model_slug")) or None,
            _status(data) if is_reply else None,
            call,
            result_of,
            self._thoughts(key) if is_reply else None,
            content.files,
        )

    def _thoughts(self, key: str) -> str | None:
        """Return the thoughts in the nodes directly before a reply."""
        found: list[str] = []
        before = self._parents[key]
        for _ in range(_FARTHEST_THOUGHT):
            if before is None or before not in self._contents:
                break
            content = self._contents[before]
            if not (content.thoughts or content.is_recap):
                break
            found.append(content.thoughts)
            before = self._parents[before]
        return "\n\n".join(filter(None, reversed(found))) or None


def _role(message: Record) -> str:
    role = values.record(message.get("author")).get("role")
    return role if isinstance(role, str) else ""


def _name(message: Record) -> str:
    return values.line(values.record(message.get("author")).get("name"))


def _addressee(message: Record) -> str:
    """Return the tool that a message of the model is for, empty if it is for the user."""
    recipient = values.line(message.get("recipient"))
    return recipient if recipient not in {"", "all"} and _role(message) == "assistant" else ""


def _is_hidden(message: Record, content: Content) -> bool:
    is_marked = values.record(message.get("metadata")).get("is_visually_hidden_from_conversation") is True
    return is_marked or content.is_context or _role(message) == "system"


def _status(data: Record) -> Status | None:
    ending = values.record(data.get("finish_details")).get("type")
    return _ENDINGS.get(ending) if isinstance(ending, str) else None


def _arguments(text: str) -> str:
    """Return the arguments of a call as JSON text; code is the one argument ``input``."""
    try:
        is_object = isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        is_object = False
    return text if is_object else json.dumps({"input": text}, ensure_ascii=False)


def _without_marks(text: str) -> str:
    """Return a reply without citations, which stand as names between private-use characters."""
    return _MARKED.sub(_in_words, text) if "\ue200" in text else text


def _in_words(mark: re.Match[str]) -> str:
    kind, *rest = (mark[1] or "").split("\ue202")
    if kind == "url" and rest:
        return rest[0]
    if kind != "entity" or not rest:
        return ""
    try:
        entity = json.loads(rest[0])
    except (ValueError, RecursionError):
        return ""
    match entity:
        case [_, str(name), *_]:
            return name
    return ""
