"""Sessions of Codex CLI: each message stands in them twice, as the model reads it and as the person saw it."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json import values
from chorus_cli.imports.rules.conversation import (
    ForeignConversation,
    ForeignFile,
    ForeignMessage,
    Joined,
    Node,
    Result,
    call_of,
    in_words,
    joined,
    rows_of_call,
)
from chorus_cli.log.rules.messages import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from chorus_cli.core.json.values import Record

_PICTURE_MARK = re.compile(r"</?image\b[^<>]*>\s*")
_OWN_KINDS = ("user_instructions", "environment_context")


class Kind(Enum):
    """The kind of a line of the conversation."""

    USER = auto()
    REPLY = auto()
    THOUGHT = auto()
    CALL = auto()
    RESULT = auto()
    MODEL = auto()
    ROLLBACK = auto()
    SUMMARY = auto()


@dataclass(frozen=True, slots=True)
class Said:
    """A line: ``is_event`` if the person saw it, otherwise the model read or wrote it.

    ``call`` is the id of a call or of the call that a result belongs to; ``text`` is the model's name, the name of a
    called tool or the text of a result where the line is one. ``turns`` is the number of turns taken back.
    """

    kind: Kind
    text: str = ""
    timestamp: datetime | None = None
    is_event: bool = False
    files: tuple[ForeignFile, ...] = ()
    call: str = ""
    arguments: object = None
    turns: int = 0

    @property
    def result(self) -> Result:
        """The result that the line is."""
        return Result(self.text, self.timestamp)


def said_in(kind: str, payload: Record, timestamp: datetime | None) -> Said | None:
    """Return the part of the conversation in a line, ``None`` if there is none."""
    if kind == "turn_context":
        return Said(Kind.MODEL, values.line(payload.get("model")))
    if kind == "compacted":
        return Said(Kind.SUMMARY)
    return _event(payload, timestamp) if kind == "event_msg" else _item(payload, timestamp)


def _event(payload: Record, timestamp: datetime | None) -> Said | None:
    item = values.record(payload.get("item"))
    match payload.get("type"), item.get("type"):
        case "user_message", _ if payload.get("kind") not in _OWN_KINDS:
            pictures = [{"type": "input_image", "image_url": url} for url in values.items(payload.get("images"))]
            return Said(
                Kind.USER, _trimmed(payload.get("message")), timestamp, is_event=True, files=tuple(_files(pictures))
            )
        case "agent_message", _:
            return Said(Kind.REPLY, _trimmed(payload.get("message")), timestamp, is_event=True)
        case "agent_reasoning", _:
            return Said(Kind.THOUGHT, _trimmed(payload.get("text")), timestamp)
        case "item_completed", "UserMessage":
            return Said(Kind.USER, _words(item.get("content")), timestamp, is_event=True)
        case "item_completed", "AgentMessage":
            return Said(Kind.REPLY, _words(item.get("content")), timestamp, is_event=True)
        case "thread_rolled_back", _:
            return Said(Kind.ROLLBACK, turns=values.whole_number(payload.get("num_turns")))
    return None


def _item(payload: Record, timestamp: datetime | None) -> Said | None:
    kind = payload.get("type")
    if kind == "message":
        role = {"user": Kind.USER, "assistant": Kind.REPLY}.get(str(payload.get("role")))
        content = payload.get("content")
        return role and Said(role, _words(content), timestamp, files=tuple(_files(values.records(content))))
    if kind == "reasoning":
        return Said(Kind.THOUGHT, _words(payload.get("summary")), timestamp)
    if not isinstance(kind, str):
        return None
    call = values.identifier(payload.get("call_id"))
    if kind.endswith("_call_output"):
        return Said(Kind.RESULT, _output(payload.get("output")), timestamp, call=call)
    if kind.endswith("_call"):
        named = payload.get("name") or kind.removesuffix("_call")
        given = next((payload[field] for field in ("arguments", "input", "action") if field in payload), None)
        return Said(Kind.CALL, values.line(named), timestamp, call=call, arguments=given)
    return None


def _words(content: object) -> str:
    """Return the text of parts; marks of the places of pictures are none."""
    parts: Sequence[Record] = [{"text": content}] if isinstance(content, str) else values.records(content)
    texts = (_PICTURE_MARK.sub("", values.text(part.get("text"))) for part in parts)
    return "\n".join(filter(str.strip, texts)).strip()


def _trimmed(text: object) -> str:
    return values.text(text).strip()


def _files(parts: Sequence[Record]) -> Iterator[ForeignFile]:
    for part in parts:
        if part.get("type") == "input_image":
            found = values.from_data_url(part.get("image_url"))
            media_type, data = found or ("", None)
            suffix = media_type.rpartition("/")[2]
            yield ForeignFile(f"image{'.' + suffix if suffix else ''}", media_type, data=data)


def _output(output: object) -> str:
    """Return the output of a tool, which older versions wrote as JSON in a text, with facts beside it."""
    if isinstance(output, str):
        try:
            inner = values.record(json.loads(output)).get("output") if output.startswith("{") else None
        except (ValueError, RecursionError):
            inner = None
        return values.text(inner if isinstance(inner, str) else output)
    if isinstance(output, dict):
        return _output(output.get("content"))
    return _words(output)


SOURCE = "codex"

FORK = "A fork of Codex CLI has only the messages after it; those before it are in the session it was forked from."

_BROKEN = "line that cannot be read"
_CONTEXT = "note of the program"
_SUMMARY = "summary of a compaction"
_CONTEXT_TEXT = re.compile(r"\s*(?:<[a-z_]+(?: [a-z_]+)*>|# AGENTS\.md instructions)")
# A tuple: a value that is sought in it may be a list, which no set takes.
_LEGACY = ("message", "reasoning", "function_call", "function_call_output")


def is_beginning(first: Sequence[object]) -> bool:
    """Return whether a file with these first values is a session: it begins with facts about it."""
    if not first:
        return False
    beginning = values.record(first[0])
    if beginning.get("type") == "session_meta":
        return isinstance(beginning.get("payload"), dict)
    following = (values.record(value) for value in first[1:])
    is_legacy = "type" not in beginning and {"id", "timestamp"} <= beginning.keys()
    return is_legacy and any(value.get("type") in _LEGACY or "record_type" in value for value in following)


def conversation_of(lines: Iterable[object], name: str) -> ForeignConversation:
    """Read a session from its lines; ``name`` is that of the file, for one that does not say its id.

    Raises:
        ImportFormatError: it has no message that can be read, or is that of a subagent.
    """
    session = _Session()
    for line in lines:
        session.take(line)
    if "subagent" in values.record(session.facts.get("source")):
        raise ImportFormatError("session of a subagent")
    branches = _Branches(session.said)
    tree = branches.joined(session.said)
    if not tree.messages:
        raise ImportFormatError("conversation without messages")
    asked = next((message.content for message in tree.messages if message.role is Role.USER), tree.messages[0].content)
    return ForeignConversation(
        SOURCE,
        values.identifier(session.facts.get("id")) or name,
        session.title or values.line(asked, 80),
        tree.messages,
        tree.live,
        values.moment(session.facts.get("timestamp")) or tree.messages[0].timestamp,
        guesses=(FORK,) if "forked_from_ordinal_exclusive" in session.facts else (),
        skipped=tuple((session.skipped + branches.skipped).items()),
    )


class _Session:
    """The lines of a session as they are read; ``facts`` are those of the first line."""

    def __init__(self) -> None:
        self.facts: Record = {}
        self.title = ""
        self.said: list[Said] = []
        self.skipped: Counter[str] = Counter()

    def take(self, value: object) -> None:
        """Take the next line."""
        line = values.record(value)
        if not line:
            self.skipped[_BROKEN] += 1
            return
        kind, payload = line.get("type"), values.record(line.get("payload"))
        if "payload" not in line:
            kind, payload = ("session_meta" if "type" not in line else "response_item"), line
        if kind == "session_meta":
            self.facts = self.facts or payload
        elif kind in ("response_item", "event_msg", "turn_context", "compacted"):
            self.title = values.line(payload.get("thread_name")) or self.title
            found = said_in(kind, payload, values.moment(line.get("timestamp")))
            if found is not None:
                self.said.append(found)


class _Branches:
    """The nodes of a session: a message that stands twice is one node, and turns taken back are another branch."""

    def __init__(self, said: Sequence[Said]) -> None:
        self.skipped: Counter[str] = Counter()
        self._keys = values.ContentKeys()
        self._nodes: dict[str, Node] = {}
        self._tip: str | None = None
        self._before_prompts: list[str | None] = []
        self._model: str | None = None
        self._thoughts: dict[str, None] = {}
        self._awaited: dict[Kind, tuple[str, Said]] = {}
        self._prompts = {each.text for each in said if each.kind is Kind.USER and each.is_event}
        self._are_replies_shown = any(each.kind is Kind.REPLY and each.is_event for each in said)
        self._calls = {each.call for each in said if each.kind is Kind.CALL}
        self._results = {each.call: each.result for each in said if each.kind is Kind.RESULT and each.call}

    def joined(self, said: Iterable[Said]) -> Joined:
        """Return the messages with the branch that the session ended with."""
        for each in said:
            self._take(each)
        return joined(self._nodes.values(), self._tip)

    def _take(self, said: Said) -> None:
        match said.kind:
            case Kind.MODEL:
                self._model = said.text or self._model
            case Kind.THOUGHT if said.text:
                self._thoughts[said.text] = None
            case Kind.USER | Kind.REPLY:
                self._take_message(said)
            case Kind.CALL:
                row = self._row(said, Role.ASSISTANT, "", "call", said.call)
                call = call_of(said.call or row.key, said.text, said.arguments)
                self._append(row.key, rows_of_call(row, call, self._results.get(said.call)))
            case Kind.RESULT if said.call not in self._calls:
                row = self._row(said, Role.ASSISTANT, in_words("", said.text), "result", said.call)
                self._append(row.key, (row,))
            case Kind.SUMMARY:
                self._take_summary()
            case Kind.ROLLBACK if said.turns:
                self._tip = self._before_prompts[-said.turns :][0] if self._before_prompts else None
                del self._before_prompts[-said.turns :]

    def _take_message(self, said: Said) -> None:
        """Take a message, or the other writing of the one before it, which may be the one that has its pictures."""
        if said.kind is Kind.USER and not said.is_event and self._is_context(said.text):
            self.skipped[_CONTEXT] += 1
            return
        key, first = self._awaited.pop(said.kind, ("", None))
        if first is not None and first.is_event is not said.is_event and first.text == said.text:
            if said.files and not first.files:
                node = self._nodes[key]
                self._nodes[key] = replace(node, messages=(replace(node.messages[0], files=said.files),))
            return
        if not said.text and not said.files:
            return
        role = Role.USER if said.kind is Kind.USER else Role.ASSISTANT
        row = replace(self._row(said, role, said.text, role, said.text), files=said.files)
        self._awaited[said.kind] = (row.key, said)
        if role is Role.USER:
            self._before_prompts.append(self._tip)
        self._append(row.key, (row,))

    def _take_summary(self) -> None:
        """Leave out the reply that a compaction has just asked for: nobody was shown it."""
        self.skipped[_SUMMARY] += 1
        key, reply = self._awaited.pop(Kind.REPLY, ("", None))
        if reply is not None and not reply.is_event and self._are_replies_shown and key == self._tip:
            self._tip = self._nodes.pop(key).parent

    def _is_context(self, text: str) -> bool:
        """Return whether a message with the role of the user was written by the program."""
        return text not in self._prompts if self._prompts else bool(_CONTEXT_TEXT.match(text))

    def _row(self, said: Said, role: Role, content: str, *parts: str) -> ForeignMessage:
        key = self._keys.of(*parts, str(said.timestamp))
        row = ForeignMessage(key, None, role, content, said.timestamp)
        if role is Role.USER:
            return row
        reasoning, self._thoughts = "\n\n".join(self._thoughts) or None, {}
        return replace(row, model=self._model, reasoning=reasoning)

    def _append(self, key: str, rows: tuple[ForeignMessage, ...]) -> None:
        self._nodes[key] = Node(key, self._tip, rows)
        self._tip = key
