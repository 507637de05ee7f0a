"""Conversations of a ChatGPT data export: a tree of nodes, each with a message or none."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json import values
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, ForeignMessage, Node, joined
from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.log.rules.messages import Role, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from chorus_cli.core.json.values import Record

_CONTEXTS = {"user_editable_context", "model_editable_context"}
_QUOTES = {"tether_quote", "tether_browsing_display", "tether_browsing_code"}
_FILE_ID = re.compile(r"file[-_][\w-]{2,100}", re.ASCII)
_POINTERS = {
    "image_asset_pointer": "image",
    "audio_asset_pointer": "audio",
    "video_container_asset_pointer": "video",
}


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a message. ``is_context`` marks the profile and the memory that the program adds by itself."""

    text: str = ""
    files: tuple[ForeignFile, ...] = ()
    thoughts: str = ""
    is_recap: bool = False
    is_context: bool = False


def content_of(message: Record) -> Content:
    """Read the content of a message; an unknown type is read for its text."""
    content = values.record(message.get("content"))
    match content.get("content_type"):
        case "thoughts":
            return Content(thoughts=_thoughts(content) or "…")
        case "reasoning_recap":
            return Content(is_recap=True)
        case str(kind) if kind in _CONTEXTS:
            return Content(is_context=True, text=_plain(content))
        case "code" if _is_for_user(message):
            return Content(_fenced(content), _attached(message))
        case str(kind) if kind in _QUOTES:
            return Content(_quoted(content))
    pointers = list(_pointers(content))
    return Content(_plain(content), tuple(_with_names(pointers, message)))


def _is_for_user(message: Record) -> bool:
    return values.line(message.get("recipient")) in {"", "all"}


def _plain(content: Record) -> str:
    """Return the texts among the parts, or the one text that the content has under another name."""
    parts = [_part(part) for part in values.items(content.get("parts"))]
    joined = "\n".join(filter(None, parts))
    names = ("text", "result", "content", "user_profile", "user_instructions")
    return joined or next((found for name in names if (found := values.text(content.get(name)))), "")


def _part(part: object) -> str:
    if isinstance(part, str):
        return values.text(part)
    return values.text(values.record(part).get("text"))


def _fenced(content: Record) -> str:
    code = values.text(content.get("text")) or _plain(content)
    language = values.line(content.get("language"))
    return f"```{'' if language == 'unknown' else language}\n{code}\n```" if code.strip() else ""


def _quoted(content: Record) -> str:
    heading = [values.line(content.get(name)) for name in ("title", "url", "domain")]
    body = [values.text(content.get(name)) for name in ("text", "summary", "result")]
    return "\n".join(dict.fromkeys(filter(None, heading + body)))


def _thoughts(content: Record) -> str:
    each = (
        "\n".join(filter(None, (values.text(thought.get("summary")), values.text(thought.get("content")))))
        for thought in values.records(content.get("thoughts"))
    )
    return "\n\n".join(filter(None, each))


def _pointers(content: Record) -> Iterator[ForeignFile]:
    for part in values.records(content.get("parts")):
        yield from _pointer(part)
        # A spoken message holds the pointers to its sound and its picture in one part.
        for name in ("audio_asset_pointer", "video_container_asset_pointer"):
            yield from _pointer(values.record(part.get(name)))


def _pointer(part: Record) -> Iterator[ForeignFile]:
    address = values.line(part.get("asset_pointer"))
    if not address:
        return
    entry = _id(address.rpartition("://")[2].partition("#")[0].partition("?")[0])
    kind = part.get("content_type")
    name = _POINTERS.get(kind, "file") if isinstance(kind, str) else "file"
    yield ForeignFile(f"{name} {entry}".strip(), entry=entry)


def _id(written: str) -> str:
    """Return the id of a file; any other text might name a file of the user's that lies beside the export."""
    return written if _FILE_ID.fullmatch(written) else ""


def _with_names(pointers: list[ForeignFile], message: Record) -> Iterator[ForeignFile]:
    """Yield the files of a message: the attachments by their names, then pointers that no attachment names."""
    attached = _attached(message)
    yield from attached
    known = {file.entry for file in attached if file.entry}
    yield from (file for file in pointers if file.entry not in known)


def _attached(message: Record) -> tuple[ForeignFile, ...]:
    listed = values.records(values.record(message.get("metadata")).get("attachments"))
    return tuple(
        ForeignFile(
            values.line(file.get("name")) or "file",
            values.line(file.get("mime_type") or file.get("mimeType")),
            _id(values.identifier(file.get("id"))),
        )
        for file in listed
    )


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
