"""Conversations of Open WebUI: a tree of messages whose thoughts and calls of tools stand inside of their text."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.imports import values
from chorus_cli.core.imports.branches import Node, joined
from chorus_cli.core.imports.conversation import ForeignConversation, ForeignFile, ForeignMessage
from chorus_cli.core.log.messages import Role, Status
from chorus_cli.core.tools.calls import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from chorus_cli.core.imports.values import Record

SOURCE = "open-webui"

_HIDDEN = "system prompt"
_BROKEN = "message that cannot be read"
_EMPTY = "reply that failed or is empty"
_DETAILS = re.compile(r'<details\b[^<>]{0,200}?\btype="(reasoning|tool_calls|code_interpreter)"[^<>]*+>')
_DETAILS_END = "</details>"
_ATTRIBUTE = re.compile(r'\b([a-z]+)="([^"]*)"')
_SUMMARY = re.compile(r"\A\s*<summary>[^<]*</summary>\s*")
_QUOTED = re.compile(r"^> ?", re.MULTILINE)


def is_conversation(value: object) -> bool:
    """Return whether a value has the form of a conversation of Open WebUI."""
    chat = _chat(values.record(value))
    has_tree = isinstance(values.record(chat.get("history")).get("messages"), dict)
    return has_tree or ("chat" in values.record(value) and isinstance(chat.get("messages"), list))


def conversation_of(value: object) -> ForeignConversation:
    """Read a conversation.

    Raises:
        ImportFormatError: it has no message that can be read.
    """
    found = values.record(value)
    chat = _chat(found)
    history = values.record(chat.get("history"))
    messages = _messages(history, chat)
    parents = _parents(messages)
    nodes = [Node(key, parents[key], tuple(_rows(key, message))) for key, message in messages.items()]
    tree = joined(nodes, values.identifier(history.get("currentId")) or None)
    if not tree.messages:
        raise ImportFormatError("conversation without messages")
    created = values.moment(found.get("created_at")) or values.moment(chat.get("timestamp"))
    return ForeignConversation(
        SOURCE,
        values.identifier(found.get("id")) or values.identifier(chat.get("id")) or tree.messages[0].key,
        values.line(found.get("title")) or values.line(chat.get("title")),
        tree.messages,
        tree.live,
        created,
        skipped=tuple(_skipped(messages, nodes)),
    )


def _chat(found: Record) -> Record:
    """Return the chat of an exported row; its database holds the chat alone."""
    return values.record(found.get("chat")) or (found if "history" in found else values.record(None))


def _messages(history: Record, chat: Record) -> dict[str, Record]:
    """Return the messages by their ids: those of the history, or where it is missing those of the live path."""
    found = values.record(history.get("messages"))
    if found:
        return {values.identifier(key): values.record(message) for key, message in found.items()}
    messages: dict[str, Record] = {}
    before = None
    keys = values.ContentKeys()
    for message in values.records(chat.get("messages")):
        own = (values.line(message.get("role")), values.text(message.get("content")))
        key = values.identifier(message.get("id")) or keys.of(*own)
        messages[key] = {"parentId": before, **message}
        before = key
    return messages


def _parents(messages: Mapping[str, Record]) -> dict[str, str | None]:
    """Return the parents of the messages; those without one are looked up among the children of all."""
    by_child = {
        values.identifier(child): key
        for key, message in messages.items()
        for child in values.items(message.get("childrenIds"))
    }
    return {key: values.identifier(message.get("parentId")) or by_child.get(key) for key, message in messages.items()}


def _skipped(messages: Mapping[str, Record], nodes: Sequence[Node]) -> Iterator[tuple[str, int]]:
    left_out = [values.line(messages[node.key].get("role")) for node in nodes if not node.messages]
    hidden = sum(role == "system" for role in left_out)
    empty = sum(role in {"user", "assistant"} for role in left_out)
    counts = {_HIDDEN: hidden, _EMPTY: empty, _BROKEN: len(left_out) - hidden - empty}
    yield from ((reason, count) for reason, count in counts.items() if count)


def _rows(key: str, message: Record) -> Iterator[ForeignMessage]:
    role = values.line(message.get("role"))
    if role not in {"user", "assistant"}:
        return
    files = tuple(_files(message))
    text = _content(message.get("content"))
    first = ForeignMessage(key, None, Role(role), text, values.moment(message.get("timestamp")), files=files)
    if role == "assistant":
        is_cut = message.get("done") is False
        first = replace(
            first,
            model=values.line(message.get("model")) or None,
            status=Status.INTERRUPTED if is_cut else None,
        )
        rows = _reply(first)
        yield from (replace(row, key=f"{key}/{number}" if number else key) for number, row in enumerate(rows))
    elif text.strip() or files:
        yield first


def _content(content: object) -> str:
    if isinstance(content, str):
        return values.text(content)
    return "\n".join(filter(None, (values.text(part.get("text")) for part in values.records(content))))


def _reply(first: ForeignMessage) -> list[ForeignMessage]:
    """Return the rows of a reply: text, calls each with their result, and more text; the first has the thoughts."""
    rows: list[ForeignMessage] = []
    thoughts: list[str] = []
    for piece in _pieces(first.content):
        if isinstance(piece, str):
            rows += [replace(first, content=piece, files=())] if piece else []
        elif piece["type"] == "reasoning":
            thoughts.append(_QUOTED.sub("", html.unescape(piece["body"])).strip())
        else:
            rows += _call(replace(first, status=None, files=()), f"{first.key}/{len(rows)}", piece)
    if not rows and (thoughts or first.files):
        rows = [replace(first, content="")]
    if rows:
        rows[-1] = replace(rows[-1], files=first.files)
        rows[0] = replace(rows[0], reasoning="\n\n".join(filter(None, thoughts)) or None)
    return rows


def _pieces(text: str) -> Iterator[str | Mapping[str, str]]:
    """Yield the text and, in their places, the details: their attributes and their body."""
    position = 0
    while found := _DETAILS.search(text, position):
        end = text.find(_DETAILS_END, found.end())
        if end < 0:
            break
        yield text[position : found.start()].strip()
        body = _SUMMARY.sub("", text[found.end() : end])
        yield {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(found[0])} | {"body": body}
        position = end + len(_DETAILS_END)
    yield text[position:].strip()


def _call(first: ForeignMessage, key: str, details: Mapping[str, str]) -> Iterator[ForeignMessage]:
    """Yield a call and its result; one without a result is text, for no model would accept it."""
    is_code = details["type"] == "code_interpreter"
    name = "code_interpreter" if is_code else values.line(details.get("name")) or "tool"
    arguments = values.json_text({"code": details["body"].strip()}) if is_code else _unquoted(details, "arguments")
    result = _unquoted(details, "output" if is_code else "result") or (details["body"].strip() if not is_code else "")
    if not result:
        yield replace(first, content=f"[{name}]\n{arguments}")
        return
    call = ToolCall(key, name, arguments or "{}").as_json
    yield replace(first, role=Role.TOOL_USE, content="", tool_calls=call, tool_call_id=key)
    yield replace(first, role=Role.TOOL_RESULT, content=result, tool_call_id=key)


def _unquoted(details: Mapping[str, str], name: str) -> str:
    """Return an attribute that holds JSON, which is written once or twice."""
    written = details.get(name, "")
    try:
        found: object = json.loads(written)
    except (ValueError, RecursionError):
        return values.text(written)
    return values.text(found) if isinstance(found, str) else values.json_text(found)


def _files(message: Record) -> Iterator[ForeignFile]:
    for number, listed in enumerate(values.records(message.get("files")), start=1):
        file = values.record(listed.get("file"))
        name = values.line(listed.get("name")) or values.line(file.get("filename"))
        media_type = values.line(values.record(file.get("meta")).get("content_type"))
        inline = values.from_data_url(listed.get("url"))
        if inline is not None:
            yield ForeignFile(name or f"image {number}", inline[0], data=inline[1])
            continue
        yield ForeignFile(name or values.line(listed.get("url"), 60) or "file", media_type)
        text = values.text(values.record(file.get("data")).get("content"))
        if text:
            yield ForeignFile(f"{name or 'file'}.txt", "text/plain", data=text.encode())
