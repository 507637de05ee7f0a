"""Sessions of Codex CLI: each message stands in them twice, as the model reads it and as the person saw it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json import values
from chorus_cli.imports.rules.assembly import Kind, Result, Said, Talk, assembled
from chorus_cli.imports.rules.conversation import ForeignFile, Skipped
from chorus_cli.imports.rules.forms import Lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from chorus_cli.core.json.values import Record
    from chorus_cli.imports.rules.conversation import ForeignConversation
    from chorus_cli.imports.rules.forms import FileFacts

SOURCE = "codex"

FORK = "A fork of Codex CLI has only the messages after it; those before it are in the session it was forked from."

_BROKEN = "line that cannot be read"
_CONTEXT = "note of the program"
_SUMMARY = "summary of a compaction"
_CONTEXT_TEXT = re.compile(r"\s*(?:<[a-z_]+(?: [a-z_]+)*>|# AGENTS\.md instructions)")
# A tuple: a value that is sought in it may be a list, which no set takes.
_LEGACY = ("message", "reasoning", "function_call", "function_call_output")
_PICTURE_MARK = re.compile(r"</?image\b[^<>]*>\s*")
_OWN_KINDS = ("user_instructions", "environment_context")


class _Mark(Enum):
    """A line that is no message."""

    THOUGHT = auto()
    MODEL = auto()
    ROLLBACK = auto()
    SUMMARY = auto()


@dataclass(frozen=True, slots=True)
class _Line:
    """A line: ``is_event`` if the person saw it, otherwise the model read or wrote it.

    ``call`` is the id of a call or of the call that a result belongs to; ``text`` is the model's name, the name of a
    called tool or the text of a result where the line is one. ``turns`` is the number of turns taken back.
    """

    kind: Kind | _Mark
    text: str = ""
    timestamp: datetime | None = None
    is_event: bool = False
    files: tuple[ForeignFile, ...] = ()
    call: str = ""
    arguments: object = None
    turns: int = 0


def _line(kind: str, payload: Record, timestamp: datetime | None) -> _Line | None:
    """Return the part of the conversation in a line, ``None`` if there is none."""
    if kind == "turn_context":
        return _Line(_Mark.MODEL, values.line(payload.get("model")))
    if kind == "compacted":
        return _Line(_Mark.SUMMARY)
    return _event(payload, timestamp) if kind == "event_msg" else _item(payload, timestamp)


def _event(payload: Record, timestamp: datetime | None) -> _Line | None:
    item = values.record(payload.get("item"))
    match payload.get("type"), item.get("type"):
        case "user_message", _ if payload.get("kind") not in _OWN_KINDS:
            pictures = [{"type": "input_image", "image_url": url} for url in values.items(payload.get("images"))]
            text = _trimmed(payload.get("message"))
            return _Line(Kind.USER, text, timestamp, is_event=True, files=tuple(_files(pictures)))
        case "agent_message", _:
            return _Line(Kind.REPLY, _trimmed(payload.get("message")), timestamp, is_event=True)
        case "agent_reasoning", _:
            return _Line(_Mark.THOUGHT, _trimmed(payload.get("text")))
        case "item_completed", "UserMessage":
            return _Line(Kind.USER, _words(item.get("content")), timestamp, is_event=True)
        case "item_completed", "AgentMessage":
            return _Line(Kind.REPLY, _words(item.get("content")), timestamp, is_event=True)
        case "thread_rolled_back", _:
            return _Line(_Mark.ROLLBACK, turns=values.whole_number(payload.get("num_turns")))
    return None


def _item(payload: Record, timestamp: datetime | None) -> _Line | None:
    kind = payload.get("type")
    if kind == "message":
        role = {"user": Kind.USER, "assistant": Kind.REPLY}.get(str(payload.get("role")))
        content = payload.get("content")
        return role and _Line(role, _words(content), timestamp, files=tuple(_files(values.records(content))))
    if kind == "reasoning":
        return _Line(_Mark.THOUGHT, _words(payload.get("summary")))
    if not isinstance(kind, str):
        return None
    call = values.identifier(payload.get("call_id"))
    if kind.endswith("_call_output"):
        return _Line(Kind.RESULT, _output(payload.get("output")), timestamp, call=call)
    if kind.endswith("_call"):
        named = payload.get("name") or kind.removesuffix("_call")
        given = next((payload[field] for field in ("arguments", "input", "action") if field in payload), None)
        return _Line(Kind.CALL, values.line(named), timestamp, call=call, arguments=given)
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


def conversation_of(lines: Iterable[object], file: FileFacts) -> ForeignConversation:
    """Read a session from its lines; one that does not say its id has the name of its file.

    Raises:
        ImportFormatError: it is that of a subagent.
    """
    session = _Session()
    for line in lines:
        session.take(line)
    if "subagent" in values.record(session.facts.get("source")):
        raise ImportFormatError("session of a subagent")
    branches = _Branches(session.lines)
    for each in session.lines:
        branches.take(each)
    talk = Talk(
        SOURCE,
        values.identifier(session.facts.get("id")) or file.name,
        session.title or None,
        values.moment(session.facts.get("timestamp")),
        branches.tip,
        (FORK,) if "forked_from_ordinal_exclusive" in session.facts else (),
    )
    return assembled(talk, (*session.skipped, *branches.skipped, *branches.said.values()))


class _Session:
    """The lines of a session as they are read; ``facts`` are those of the first line."""

    def __init__(self) -> None:
        self.facts: Record = {}
        self.title = ""
        self.lines: list[_Line] = []
        self.skipped: list[Skipped] = []

    def take(self, value: object) -> None:
        """Take the next line."""
        line = values.record(value)
        if not line:
            self.skipped.append(Skipped(_BROKEN))
            return
        kind, payload = line.get("type"), values.record(line.get("payload"))
        if "payload" not in line:
            kind, payload = ("session_meta" if "type" not in line else "response_item"), line
        if kind == "session_meta":
            self.facts = self.facts or payload
        elif kind in ("response_item", "event_msg", "turn_context", "compacted"):
            self.title = values.line(payload.get("thread_name")) or self.title
            if found := _line(kind, payload, values.moment(line.get("timestamp"))):
                self.lines.append(found)


class _Branches:
    """The pieces of a session: a message that stands twice is one, and turns taken back are another branch."""

    def __init__(self, lines: Sequence[_Line]) -> None:
        self.skipped: list[Skipped] = []
        self.said: dict[str, Said] = {}
        self.tip: str | None = None
        self._keys = values.ContentKeys()
        self._before_prompts: list[str | None] = []
        self._model: str | None = None
        self._thoughts: dict[str, None] = {}
        self._awaited: dict[Kind, tuple[str, _Line]] = {}
        self._prompts = {each.text for each in lines if each.kind is Kind.USER and each.is_event}
        self._are_replies_shown = any(each.kind is Kind.REPLY and each.is_event for each in lines)
        self._calls = {each.call for each in lines if each.kind is Kind.CALL}
        results = (each for each in lines if each.kind is Kind.RESULT and each.call)
        self._results = {each.call: Result(each.text, each.timestamp) for each in results}

    def take(self, line: _Line) -> None:
        """Take the next line."""
        match line.kind:
            case _Mark.MODEL:
                self._model = line.text or self._model
            case _Mark.THOUGHT if line.text:
                self._thoughts[line.text] = None
            case Kind.USER | Kind.REPLY:
                self._take_message(line, line.kind)
            case Kind.CALL:
                result = self._results.get(line.call)
                self._append(
                    Said("", Kind.CALL, tool=line.text, arguments=line.arguments, result=result),
                    line,
                    "call",
                    line.call,
                )
            case Kind.RESULT if line.call not in self._calls:
                self._append(Said("", Kind.RESULT, line.text), line, "result", line.call)
            case _Mark.SUMMARY:
                self._take_summary()
            case _Mark.ROLLBACK if line.turns:
                self.tip = self._before_prompts[-line.turns :][0] if self._before_prompts else None
                del self._before_prompts[-line.turns :]

    def _take_message(self, line: _Line, kind: Kind) -> None:
        """Take a message, or the other writing of the one before it, which may be the one that has its pictures."""
        if kind is Kind.USER and not line.is_event and self._is_context(line.text):
            self.skipped.append(Skipped(_CONTEXT))
            return
        key, first = self._awaited.pop(kind, ("", None))
        if first is not None and first.is_event is not line.is_event and first.text == line.text:
            if line.files and not first.files:
                self.said[key] = replace(self.said[key], files=line.files)
            return
        if not line.text and not line.files:
            return
        if kind is Kind.USER:
            self._before_prompts.append(self.tip)
        role = "user" if kind is Kind.USER else "assistant"
        key = self._append(Said("", kind, line.text, files=line.files), line, role, line.text)
        self._awaited[kind] = (key, line)

    def _take_summary(self) -> None:
        """Leave out the reply that a compaction has just asked for: nobody was shown it."""
        self.skipped.append(Skipped(_SUMMARY))
        key, reply = self._awaited.pop(Kind.REPLY, ("", None))
        if reply is not None and not reply.is_event and self._are_replies_shown and key == self.tip:
            self.tip = self.said.pop(key).parent

    def _is_context(self, text: str) -> bool:
        """Return whether a message with the role of the user was written by the program."""
        return text not in self._prompts if self._prompts else bool(_CONTEXT_TEXT.match(text))

    def _append(self, said: Said, line: _Line, *parts: str) -> str:
        """Add a piece after the last one and return its key, which its parts and its time make."""
        key = self._keys.of(*parts, str(line.timestamp))
        said = replace(said, node=key, key=key, call=line.call, timestamp=line.timestamp, parent=self.tip)
        if said.kind is not Kind.USER:
            said = replace(said, model=self._model, thoughts="\n\n".join(self._thoughts))
            self._thoughts = {}
        self.said[key] = said
        self.tip = key
        return key


FORM = Lines(
    SOURCE,
    "sessions of Codex CLI",
    "~/.codex/sessions, a folder in it or a session",
    is_beginning,
    (b'"session_meta"', b'"payload"'),
    conversation_of,
)
