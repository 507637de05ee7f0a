"""Sessions of Gemini CLI: lines that add a message, write it again, take messages back or replace all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json import values
from chorus_cli.imports.rules.assembly import FileFacts, Kind, Said, assembled, nodes_of
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, Reason, Skipped, unnamed_file

SOURCE = "gemini-cli"

_NOT_SAID = re.compile(r"\s*(?:<(?:session_context|hook_context|state_snapshot)>|/[a-z-]+(?:\s|$))")
_REPLIES = {"gemini", "model"}
_SAID = {"user", *_REPLIES}


def is_beginning(first: Sequence[object]) -> bool:
    """Return whether a file with these first values is a session."""
    return any({"sessionId", "projectHash"} <= values.record(value).keys() for value in first[:1])


def conversation_of(lines: Iterable[object], file: FileFacts) -> ForeignConversation:
    """Read a session from its lines, or from the one object that older versions wrote."""
    session = _Session()
    for line in lines:
        session.take(line)
    if session.facts.get("kind") == "subagent":
        raise ImportFormatError(Reason.SUBAGENT)
    facts = ForeignConversation(
        SOURCE,
        values.identifier(session.facts.get("sessionId")) or file.name,
        values.line(session.facts.get("summary")),
        created_at=values.moment(session.facts.get("startTime")),
    )
    return assembled(facts, session.said(), session.leaf)


class _Session:
    """The contents of the lines taken so far; ``facts`` are about the session as a whole."""

    def __init__(self) -> None:
        self.facts: dict[str, object] = {}
        self._skipped: list[Skipped] = []
        self._keys = values.ContentKeys()
        self._records: dict[str, values.Record] = {}
        self._parents: dict[str, str | None] = {}
        self._live: list[str] = []

    @property
    def leaf(self) -> str | None:
        """The key of the message that the session ended with."""
        return self._live[-1] if self._live else None

    def take(self, value: object) -> None:
        line = values.record(value)
        if not line:
            self._skipped.append(value if isinstance(value, Skipped) else Skipped(Reason.BROKEN_LINE))
        elif "$rewindTo" in line:
            key = values.identifier(line["$rewindTo"])
            del self._live[self._live.index(key) if key in self._live else 0 :]
        elif "$set" in line:
            self._learn(values.record(line["$set"]))
        elif key := _key(line, self._keys):
            self._add(key, line)
        else:
            self._learn(line)

    def said(self) -> Iterator[Said | Skipped]:
        """Yield the pieces of messages; a message's parent is the live message that was written before it."""
        yield from self._skipped
        for key, record in self._records.items():
            skipped = Reason.NOTE if values.line(record.get("type")) in _SAID else ""
            yield Said(key, parent=self._parents[key], skipped=skipped)
            yield from _pieces(key, record)

    def _learn(self, facts: values.Record) -> None:
        """Take facts of the session, perhaps with a list of its messages.

        Live messages missing at the start of the list were summarised and stay live. Live messages missing at its end
        were taken back and leave the live branch.
        """
        start = self.facts.get("startTime")
        self.facts.update({name: fact for name, fact in facts.items() if name != "messages"})
        if start is not None:
            self.facts["startTime"] = start
        keys = values.ContentKeys()
        written = {_key(each, keys): each for each in values.records(facts.get("messages"))}
        written.pop("", None)
        pieces = {key: _pieces(key, self._records[key]) for key in self._live if key in written}
        known = [key for key, said in pieces.items() if any(node.messages for node in nodes_of(said)[0])]
        if known:
            del self._live[self._live.index(known[-1]) + 1 :]
        behind = list(written)[list(written).index(known[-1]) + 1 :] if known else written
        for key in behind:
            self._add(key, self._records.get(key, written[key]))

    def _add(self, key: str, record: values.Record) -> None:
        first = self._records.get(key, {})
        self._records[key] = {**record, "timestamp": first.get("timestamp", record.get("timestamp"))}
        if key not in self._live:
            self._parents[key] = self.leaf
            self._live.append(key)


def _key(record: values.Record, keys: values.ContentKeys) -> str:
    """Return a record's id, or a key made of the content of a message without an id; empty for any other record."""
    key = values.identifier(record.get("id"))
    if key or values.line(record.get("type")) not in _SAID:
        return key
    return keys.of(*(values.json_text(record.get(name)) for name in ("type", "timestamp", "content")))


def _pieces(key: str, record: values.Record) -> Iterator[Said]:
    content = values.parts(record.get("content"))
    said = Said(key, Kind.USER, "", values.moment(record.get("timestamp")), key=key)
    if record.get("type") == "user":
        text = _words(values.parts(record.get("displayContent")) or content)
        files = tuple(_files(content))
        if files or not _NOT_SAID.match(text):
            yield replace(said, text=text, files=files)
    elif values.line(record.get("type")) in _REPLIES:
        said = replace(said, kind=Kind.REPLY, model=values.line(record.get("model")) or None)
        thoughts = "\n\n".join(filter(None, map(_thought, values.records(record.get("thoughts")))))
        yield replace(said, text=_words(content), thoughts=thoughts)
        for number, call in enumerate(values.records(record.get("toolCalls")), 1):
            result = call.get("result")
            yield replace(
                said,
                kind=Kind.CALL,
                key=f"{key}/{number}",
                call=values.identifier(call.get("id")),
                tool=values.line(call.get("name")),
                arguments=call.get("args"),
                result=None if result is None else words_of_result(values.parts(result)),
                ended=values.moment(call.get("timestamp")),
            )


def _words(parts: Sequence[values.Record]) -> str:
    return "".join(values.text(part.get("text")) for part in parts if part.get("thought") is not True)


def words_of_result(parts: Sequence[values.Record]) -> str:
    """Return the text of a result, whose parts are text or responses of functions."""
    pieces = []
    for part in parts:
        answer = values.record(values.record(part.get("functionResponse")).get("response"))
        output = answer.get("output", answer.get("error"))
        pieces.append(
            values.text(part.get("text")) or values.text(output) or (values.json_text(answer) if answer else "")
        )
    return "\n".join(filter(None, pieces))


def _thought(thought: values.Record) -> str:
    words = (values.text(thought.get(name)).strip() for name in ("subject", "description"))
    return ": ".join(filter(None, words))


def _files(parts: Sequence[values.Record]) -> Iterator[ForeignFile]:
    for part in parts:
        found = values.record(part.get("inlineData"))
        if found:
            media_type = values.line(found.get("mimeType"))
            yield unnamed_file("file", media_type, values.decoded(found.get("data")))
