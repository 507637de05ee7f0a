"""Conversations of llm's log: responses as versions before 0.32 wrote them, and trees of messages as newer ones do."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json import values
from chorus_cli.imports.rules.assembly import Result, call_of, in_words, rows_of_call
from chorus_cli.imports.rules.conversation import (
    ForeignConversation,
    ForeignFile,
    ForeignMessage,
    Node,
    joined,
    path_to,
)
from chorus_cli.log.rules.messages import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from chorus_cli.core.json.values import Record

SOURCE = "llm"

_SYSTEM = "system prompt"
_UNREADABLE = "message that cannot be read"
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL_RESULT}


@dataclass(frozen=True, slots=True)
class Response:
    """A prompt with its reply, as versions before 0.32 stored them.

    ``row`` has the columns of the table. ``fragments`` are the texts that stand before the prompt and
    ``has_system_fragments`` says whether any stand before the system prompt. ``calls`` and ``results`` are rows.
    """

    row: Record
    fragments: Sequence[str] = ()
    has_system_fragments: bool = False
    files: tuple[ForeignFile, ...] = ()
    calls: Sequence[Record] = ()
    results: Sequence[Record] = ()


class Part(NamedTuple):
    """A part of a message: a row of the table, and its text with the fragments put in."""

    row: Record
    text: str
    payload: Record


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of a tree: ``turn`` is the row of the turn that it was first written in."""

    key: str
    parent: str | None
    role: str
    parts: Sequence[Part]
    turn: Record
    files: Mapping[str, ForeignFile] = field(default_factory=dict)


def conversation_of(
    key: str, thread: Record, responses: Sequence[Response], messages: Sequence[StoredMessage]
) -> ForeignConversation:
    """Read a conversation: ``thread`` is its row in either generation, and it may have messages of both.

    Raises:
        ImportFormatError: it has no message that can be read.
    """
    skipped: Counter[str] = Counter()
    old = list(_response_nodes(responses, skipped))
    new = list(_message_nodes(messages, skipped))
    tip = values.text(thread.get("tip_message_hash")) or None
    aliases = _repeated(old, new, tip)
    kept = [
        replace(node, parent=aliases.get(node.parent or "", node.parent)) for node in new if node.key not in aliases
    ]
    leaf = aliases.get(tip or "", tip) or (old[-1].key if old and not new else None)
    tree = joined((*old, *_continued(old, kept)), leaf)
    if not tree.messages:
        raise ImportFormatError("conversation without messages")
    return ForeignConversation(
        SOURCE,
        key,
        values.line(thread.get("name")),
        tree.messages,
        tree.live,
        tree.messages[0].timestamp or values.moment(thread.get("datetime_utc")),
        skipped=tuple(skipped.items()),
    )


def with_fragments(payload: Record, fragments: Mapping[int, str]) -> str:
    """Return the text of a part that refers to fragments."""
    pieces = []
    for piece in values.records(payload.get("text_ref")):
        number = piece.get("fragment")
        pieces.append(fragments.get(number, "") if isinstance(number, int) else values.text(piece.get("literal")))
    return "".join(pieces)


def fragment_numbers(payload: Record) -> list[int]:
    """Return the ids of the fragments that a part refers to."""
    numbers = (piece.get("fragment") for piece in values.records(payload.get("text_ref")))
    return [number for number in numbers if isinstance(number, int)]


def attachment_key(payload: Record) -> str:
    """Return the id of the attachment that a part is, empty if it is none."""
    return values.text(values.record(payload.get("attachment")).get("id"))


def payload_of(value: object) -> Record:
    """Return the payload of a part."""
    try:
        return values.record(json.loads(value)) if isinstance(value, str) else {}
    except (ValueError, RecursionError):
        return {}


def _response_nodes(responses: Sequence[Response], skipped: Counter[str]) -> Iterator[Node]:
    """Yield the responses, each after the one before it."""
    results = {
        values.text(row.get("tool_call_id")): Result(
            values.text(row.get("output")), values.moment(response.row.get("datetime_utc"))
        )
        for response in responses
        for row in response.results
    }
    before: str | None = None
    for response in responses:
        skipped[_SYSTEM] += bool(values.text(response.row.get("system")) or response.has_system_fragments)
        key = values.identifier(response.row.get("id"))
        yield Node(f"{key}:prompt", before, tuple(_prompt(f"{key}:prompt", response)))
        yield Node(key, f"{key}:prompt", tuple(_reply(key, response, results)))
        before = key
    skipped += Counter()


def _prompt(key: str, response: Response) -> Iterator[ForeignMessage]:
    text = "\n".join(filter(None, (*response.fragments, values.text(response.row.get("prompt")))))
    if text or response.files:
        time = values.moment(response.row.get("datetime_utc"))
        yield ForeignMessage(key, None, Role.USER, text, time, files=response.files)


def _reply(key: str, response: Response, results: Mapping[str, Result]) -> Iterator[ForeignMessage]:
    row = response.row
    model = values.line(row.get("resolved_model")) or values.line(row.get("model")) or None
    reasoning = values.text(row.get("reasoning")) or None
    blank = ForeignMessage(key, None, Role.ASSISTANT, "", values.moment(row.get("datetime_utc")), model)
    text = values.text(row.get("response"))
    if text.strip() or (reasoning and not response.calls):
        yield replace(blank, content=text, reasoning=reasoning)
        reasoning = None
    for number, call in enumerate(response.calls, 1):
        written = call_of(
            values.text(call.get("tool_call_id")) or f"{key}/{number}", call.get("name"), call.get("arguments")
        )
        base = replace(blank, key=f"{key}/{number}", reasoning=reasoning if number == 1 else None)
        yield from rows_of_call(base, written, results.get(written.id))


def _message_nodes(messages: Sequence[StoredMessage], skipped: Counter[str]) -> Iterator[Node]:
    calls = {_call_id(part) for message in messages for part in message.parts if part.row.get("type") == "tool_call"}
    results = {
        _call_id(part): Result(values.text(part.payload.get("output")), values.moment(message.turn.get("datetime_utc")))
        for message in messages
        for part in message.parts
        if part.row.get("type") == "tool_result"
    }
    for message in messages:
        role = _ROLES.get(message.role)
        if role is None:
            skipped[_SYSTEM if message.role == "system" else _UNREADABLE] += 1
        rows = () if role is None else _rows(message, role, calls, results)
        yield Node(message.key, message.parent, tuple(rows))


def _rows(
    message: StoredMessage, role: Role, calls: set[str], results: Mapping[str, Result]
) -> Iterator[ForeignMessage]:
    turn = message.turn
    model = values.line(turn.get("resolved_model")) or values.line(turn.get("model")) or None
    blank = ForeignMessage(message.key, None, role, "", values.moment(turn.get("datetime_utc")))
    if role is Role.USER:
        attached = (attachment_key(part.payload) for part in message.parts)
        files = tuple(message.files[key] for key in attached if key in message.files)
        text = _joined_texts(message, "text")
        return iter([replace(blank, content=text, files=files)] if text or files else [])
    blank = replace(blank, role=Role.ASSISTANT, model=model)
    if role is Role.TOOL_RESULT:
        return _unpaired(blank, message.parts, calls)
    return _reply_rows(blank, message, results)


def _reply_rows(
    blank: ForeignMessage, message: StoredMessage, results: Mapping[str, Result]
) -> Iterator[ForeignMessage]:
    text, reasoning = _joined_texts(message, "text"), _joined_texts(message, "reasoning") or None
    wanted = [part for part in message.parts if part.row.get("type") == "tool_call"]
    if text.strip() or (reasoning and not wanted):
        yield replace(blank, content=text, reasoning=reasoning)
        reasoning = None
    for number, part in enumerate(wanted, 1):
        name = part.payload.get("name", part.row.get("tool_name"))
        call = call_of(_call_id(part) or f"{message.key}/{number}", name, part.payload.get("arguments"))
        base = replace(blank, key=f"{message.key}/{number}", reasoning=reasoning if number == 1 else None)
        yield from rows_of_call(base, call, results.get(call.id))


def _unpaired(blank: ForeignMessage, parts: Iterable[Part], calls: set[str]) -> Iterator[ForeignMessage]:
    for number, part in enumerate(parts):
        if part.row.get("type") == "tool_result" and _call_id(part) not in calls:
            output = in_words(values.line(part.row.get("tool_name")), values.text(part.payload.get("output")))
            yield replace(blank, key=f"{blank.key}/{number}", content=output)


def _joined_texts(message: StoredMessage, kind: str) -> str:
    return "\n\n".join(part.text for part in message.parts if part.row.get("type") == kind and part.text)


def _call_id(part: Part) -> str:
    return values.text(part.payload.get("tool_call_id"))


def _repeated(old: Sequence[Node], new: Sequence[Node], tip: str | None) -> dict[str, str]:
    """Return the nodes of a thread that repeat responses before it, with the keys of those.

    When llm goes on with a conversation of an older version, it writes the messages of it again, without their times.
    """
    by_key = {node.key: node for node in new}
    path = path_to(tip, {node.key: node.parent for node in new})
    repeated: dict[str, str] = {}
    said = [(node.key, _words(node)) for node in old if node.messages]
    written = [(key, _words(by_key[key])) for key in path if by_key[key].messages]
    equal = takewhile(lambda pair: pair[0][1] == pair[1][1], zip(said, written, strict=False))
    repeated.update((copy[0], original[0]) for original, copy in equal)
    return repeated


def _words(node: Node) -> list[tuple[Role, str]]:
    return [(message.role, message.content) for message in node.messages]


def _continued(old: Sequence[Node], new: Sequence[Node]) -> Iterator[Node]:
    """Yield new nodes; roots among them go on from the end of the old ones."""
    known = {node.key for node in (*old, *new)}
    for node in new:
        yield node if node.parent in known or not old else replace(node, parent=old[-1].key)
