"""Sessions of Codex CLI: they hold each message twice, as the model read or wrote it and as the user saw it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json import values
from chorus_cli.imports.rules.assembly import FileFacts, Kind, Said, assembled
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, Reason, Skipped, unnamed_file

SOURCE = "codex"

FORK = "A forked session of Codex CLI has only the messages after the fork; the original session has those before it."

_CONTEXT_TEXT = re.compile(r"\s*(?:<[a-z_]+(?: [a-z_]+)*>|# AGENTS\.md instructions)")
_LEGACY = {"message", "reasoning", "function_call", "function_call_output"}
_PICTURE_MARK = re.compile(r"</?image\b[^<>]*>\s*")
_OWN_KINDS = ("user_instructions", "environment_context")


class _Line(NamedTuple):
    kind: object
    payload: values.Record
    timestamp: datetime | None


class _Message(NamedTuple):
    """A message as the user saw it, if it ``is_shown``, or else as the model read or wrote it."""

    kind: Kind
    text: str
    files: tuple[ForeignFile, ...] = ()
    is_shown: bool = False


def is_beginning(first: Sequence[object]) -> bool:
    """Return whether a file with these first values is a session, which begins with facts about itself."""
    if not first:
        return False
    beginning = values.record(first[0])
    if beginning.get("type") == "session_meta":
        return isinstance(beginning.get("payload"), dict)
    following = (values.record(value) for value in first[1:])
    is_legacy = "type" not in beginning and {"id", "timestamp"} <= beginning.keys()
    return is_legacy and any(values.line(value.get("type")) in _LEGACY or "record_type" in value for value in following)


def conversation_of(lines: Iterable[object], file: FileFacts) -> ForeignConversation:
    """Read a session from its lines; its key is its id, or the name of its file if no line states the id."""
    read = [_Line(line, {}, None) if isinstance(line, Skipped) else _line(values.record(line)) for line in lines]
    facts = next((each.payload for each in read if each.kind == "session_meta" and each.payload), {})
    if "subagent" in values.record(facts.get("source")):
        raise ImportFormatError(Reason.SUBAGENT)
    names = [values.line(each.payload.get("thread_name")) for each in read]
    branches = _Branches([each for line in read if (each := _message(line))])
    for line in read:
        branches.take(line)
    conversation = ForeignConversation(
        SOURCE,
        values.identifier(facts.get("id")) or file.name,
        next(filter(None, reversed(names)), ""),
        created_at=values.moment(facts.get("timestamp")),
        guesses=(FORK,) if "forked_from_ordinal_exclusive" in facts else (),
    )
    return assembled(conversation, (*branches.skipped, *branches.said.values()), branches.tip)


def _line(line: values.Record) -> _Line:
    """Read a line; older versions wrote only the payload."""
    if "payload" in line or not line:
        return _Line(line.get("type"), values.record(line.get("payload")), values.moment(line.get("timestamp")))
    kind = "session_meta" if "type" not in line else "response_item"
    return _Line(kind, line, values.moment(line.get("timestamp")))


def _message(line: _Line) -> _Message | None:
    payload, item = line.payload, values.record(line.payload.get("item"))
    match line.kind, payload.get("type"), item.get("type"):
        case "event_msg", "user_message", _ if payload.get("kind") not in _OWN_KINDS:
            pictures = [{"type": "input_image", "image_url": url} for url in values.items(payload.get("images"))]
            return _Message(
                Kind.USER, values.text(payload.get("message")).strip(), tuple(_files(pictures)), is_shown=True
            )
        case "event_msg", "agent_message", _:
            return _Message(Kind.REPLY, values.text(payload.get("message")).strip(), is_shown=True)
        case "event_msg", "item_completed", "UserMessage":
            return _Message(Kind.USER, _words(item.get("content")), is_shown=True)
        case "event_msg", "item_completed", "AgentMessage":
            return _Message(Kind.REPLY, _words(item.get("content")), is_shown=True)
        case "response_item", "message", _:
            kind = {"user": Kind.USER, "assistant": Kind.REPLY}.get(str(payload.get("role")))
            content = payload.get("content")
            return kind and _Message(kind, _words(content), tuple(_files(values.records(content))))
    return None


def _words(content: object) -> str:
    """Return the text of parts, without the marks that stand for pictures."""
    texts = (_PICTURE_MARK.sub("", values.text(part.get("text"))) for part in values.parts(content))
    return "\n".join(filter(str.strip, texts)).strip()


def _files(parts: Sequence[values.Record]) -> Iterator[ForeignFile]:
    for part in parts:
        if part.get("type") == "input_image":
            found = values.from_data_url(part.get("image_url"))
            yield unnamed_file("image", *(found or ("", None)))


def _output(output: object) -> str:
    """Return the output of a tool; older versions wrote JSON text with the output and other facts."""
    if isinstance(output, str):
        inner = values.record(values.parsed(output)).get("output")
        return values.text(inner if isinstance(inner, str) else output)
    if isinstance(output, dict):
        return _output(output.get("content"))
    return _words(output)


class _Branches:
    """Collects the pieces of a session. A message in both forms is one piece; rolled-back turns are another branch."""

    def __init__(self, messages: Sequence[_Message]) -> None:
        self.skipped: list[Skipped] = []
        self.said: dict[str, Said] = {}
        self.tip: str | None = None
        self._keys = values.ContentKeys()
        self._before_prompts: list[str | None] = []
        self._model: str | None = None
        self._thoughts: dict[str, None] = {}
        self._awaited: dict[Kind, tuple[str, _Message]] = {}
        self._prompts = {each.text for each in messages if each.kind is Kind.USER and each.is_shown}
        self._are_replies_shown = any(each.kind is Kind.REPLY and each.is_shown for each in messages)

    def take(self, line: _Line) -> None:
        if message := _message(line):
            self._take_message(message, line.timestamp)
            return
        payload, call = line.payload, values.identifier(line.payload.get("call_id"))
        match line.kind, payload.get("type"):
            case None | Skipped() as broken, _ if not payload:
                self.skipped.append(broken or Skipped(Reason.BROKEN_LINE))
            case "turn_context", _:
                self._model = values.line(payload.get("model")) or self._model
            case "compacted", _:
                self._take_summary()
            case "event_msg", "agent_reasoning":
                self._thoughts[values.text(payload.get("text")).strip()] = None
            case "response_item", "reasoning":
                self._thoughts[_words(payload.get("summary"))] = None
            case "event_msg", "thread_rolled_back" if turns := values.whole_number(payload.get("num_turns")):
                self.tip = self._before_prompts[-turns:][0] if self._before_prompts else None
                del self._before_prompts[-turns:]
            case "response_item", str(kind) if kind.endswith("_call_output"):
                self._append(Said("", Kind.RESULT, _output(payload.get("output"))), line.timestamp, "result", call)
            case "response_item", str(kind) if kind.endswith("_call"):
                tool = values.line(payload.get("name") or kind.removesuffix("_call"))
                given = next((payload[field] for field in ("arguments", "input", "action") if field in payload), None)
                self._append(Said("", Kind.CALL, tool=tool, arguments=given), line.timestamp, "call", call)

    def _take_message(self, message: _Message, timestamp: datetime | None) -> None:
        """Take a message; from the second form of a message, take only pictures that the first form lacks."""
        kind, text, files, is_shown = message
        # Some messages with the role of the user are the program's.
        is_said = text in self._prompts if self._prompts else not _CONTEXT_TEXT.match(text)
        if kind is Kind.USER and not is_shown and not is_said:
            self.skipped.append(Skipped(Reason.NOTE))
            return
        key, first = self._awaited.pop(kind, ("", None))
        if first is not None and first.is_shown is not is_shown and first.text == text:
            if files and not first.files:
                self.said[key] = replace(self.said[key], files=files)
            return
        if not text and not files:
            return
        if kind is Kind.USER:
            self._before_prompts.append(self.tip)
        role = "user" if kind is Kind.USER else "assistant"
        self._awaited[kind] = self._append(Said("", kind, text, files=files), timestamp, role, text), message

    def _take_summary(self) -> None:
        """Leave out the summary that a compaction got as a reply, if the user never saw it."""
        self.skipped.append(Skipped(Reason.SUMMARY))
        key, reply = self._awaited.pop(Kind.REPLY, ("", None))
        if reply is not None and not reply.is_shown and self._are_replies_shown and key == self.tip:
            self.tip = self.said.pop(key).parent

    def _append(self, said: Said, timestamp: datetime | None, sort: str, content: str) -> str:
        """Add a piece after the last piece; return its key, made of its sort, content and time."""
        key = self._keys.of(sort, content, str(timestamp))
        said = replace(said, node=key, key=key, timestamp=timestamp, parent=self.tip)
        if said.kind in {Kind.CALL, Kind.RESULT}:
            said = replace(said, call=content)
        if said.kind is not Kind.USER:
            said = replace(said, model=self._model, thoughts="\n\n".join(filter(None, self._thoughts)))
            self._thoughts = {}
        self.said[key] = said
        self.tip = key
        return key
