"""Conversations of Open WebUI: a tree of messages, with thoughts and calls in their text or in a list beside it."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json import values
from chorus_cli.imports.rules.conversation import (
    ForeignConversation,
    ForeignFile,
    ForeignMessage,
    Node,
    Result,
    call_of,
    joined,
    rows_of_call,
)
from chorus_cli.log.rules.messages import Role, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from chorus_cli.core.json.values import Record

SOURCE = "open-webui"

_HIDDEN = "system prompt"
_BROKEN = "message that cannot be read"
_EMPTY = "reply that failed or is empty"
_DETAILS = re.compile(r'<details\b[^<>]{0,200}?\btype="(reasoning|tool_calls|code_interpreter)"[^<>]*+>')
_DETAILS_END = "</details>"
_ATTRIBUTE = re.compile(r'\b([a-z]+)="([^"]*)"')
_SUMMARY = re.compile(r"\A\s*<summary>[^<]*</summary>\s*")
_QUOTED = re.compile(r"^> ?", re.MULTILINE)
_CODE = "code_interpreter"


class _Thought(NamedTuple):
    words: str


class _Use(NamedTuple):
    """A call of a tool; the arguments are an object or its JSON, the result is ``None`` if it has none."""

    name: str
    arguments: object
    result: str | None


_Piece: TypeAlias = "str | _Thought | _Use"


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
        rows = _reply(first, _pieces(text, values.records(message.get("output"))))
        yield from (replace(row, key=f"{key}/{number}" if number else key) for number, row in enumerate(rows))
    elif text.strip() or files:
        yield first


def _content(content: object) -> str:
    if isinstance(content, str):
        return values.text(content)
    return "\n".join(filter(None, (values.text(part.get("text")) for part in values.records(content))))


def _reply(first: ForeignMessage, pieces: Iterable[_Piece]) -> list[ForeignMessage]:
    """Return the rows of a reply: text, calls each with their result, and more text; the first has the thoughts."""
    rows: list[ForeignMessage] = []
    thoughts: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            rows += [replace(first, content=piece, files=())] if piece else []
        elif isinstance(piece, _Thought):
            thoughts.append(piece.words)
        else:
            call = call_of(f"{first.key}/{len(rows)}", piece.name, piece.arguments)
            result = None if piece.result is None else Result(piece.result)
            rows += rows_of_call(replace(first, status=None, files=()), call, result)
    if not rows and (thoughts or first.files):
        rows = [replace(first, content="")]
    if rows:
        rows[-1] = replace(rows[-1], files=first.files)
        rows[0] = replace(rows[0], reasoning="\n\n".join(filter(None, thoughts)) or None)
    return rows


def _pieces(text: str, output: Sequence[Record]) -> Sequence[_Piece]:
    """Return the pieces of a reply as the list beside its text has them, or the text if that was edited since."""
    listed, in_text = [*_pieces_of_output(output)], [*_pieces_of_text(text)]
    return listed if listed and _words(in_text) in ("", _words(listed)) else in_text


def _words(pieces: Sequence[_Piece]) -> str:
    """Return the text of pieces without blanks, which are written in one place and not in the other."""
    return "".join("".join(piece.split()) for piece in pieces if isinstance(piece, str))


def _pieces_of_output(output: Sequence[Record]) -> Iterator[_Piece]:
    """Yield the pieces that a list has in the form of OpenAI's Responses API."""
    results = {
        values.identifier(item.get("call_id")): _content(item.get("output"))
        for item in output
        if item.get("type") == "function_call_output"
    }
    for item in output:
        match item.get("type"):
            case "message":
                yield _content(item.get("content")).strip()
            case "reasoning":
                yield _Thought((_content(item.get("content")) or _content(item.get("summary"))).strip())
            case "function_call":
                result = results.get(values.identifier(item.get("call_id")))
                yield _Use(values.line(item.get("name")), item.get("arguments"), result)
            case "open_webui:code_interpreter":
                result = values.json_text(item["output"]) if item.get("output") else None
                yield _Use(_CODE, {"code": values.text(item.get("code"))}, result)


def _pieces_of_text(text: str) -> Iterator[_Piece]:
    """Yield the text and, in their places, the details in it."""
    position = 0
    while found := _DETAILS.search(text, position):
        end = text.find(_DETAILS_END, found.end())
        if end < 0:
            break
        yield text[position : found.start()].strip()
        body = _SUMMARY.sub("", text[found.end() : end])
        attributes = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(found[0])}
        yield _detail(attributes, body)
        position = end + len(_DETAILS_END)
    yield text[position:].strip()


def _detail(attributes: Mapping[str, str], body: str) -> _Thought | _Use:
    if attributes["type"] == "reasoning":
        return _Thought(_QUOTED.sub("", html.unescape(body)).strip())
    if attributes["type"] == _CODE:
        return _Use(_CODE, {"code": body.strip()}, _unquoted(attributes, "output") or None)
    result = _unquoted(attributes, "result") or body.strip() or None
    return _Use(values.line(attributes.get("name")), _unquoted(attributes, "arguments"), result)


def _unquoted(attributes: Mapping[str, str], name: str) -> str:
    """Return an attribute that holds JSON, which is written once or twice."""
    written = attributes.get(name, "")
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
