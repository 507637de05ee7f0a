"""Sessions of Claude Code: lines that name their parents, among them many that nobody said."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json import values
from chorus_cli.imports.rules.conversation import (
    ForeignConversation,
    ForeignFile,
    ForeignMessage,
    Node,
    Result,
    call_of,
    in_words,
    joined,
    path_to,
    rows_of_call,
)
from chorus_cli.log.rules.messages import Role, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from chorus_cli.core.json.values import Record

_PROGRAM = "note of the program"
_SUMMARY = "summary of a compaction"
_ERROR = "error of the program"
_SYNTHETIC = "<synthetic>"
# One that does not end reaches to the end of the text, so that no end is looked for again.
_ADDED = tuple(
    re.compile(rf"<{name}>(?:.*?(?P<end></{name}>)\s*|.*)", re.DOTALL)
    for name in ("system-reminder", "ide_opened_file", "ide_selection")
)
_NOT_SAID = re.compile(
    r"\s*(?:<(?:command-(?:name|message|args|contents)|local-command-[a-z]+|bash-[a-z]+|task-notification"
    r"|teammate-message|user-prompt-submit-hook|user-memory-input|new-diagnostics)\b"
    r"|Caveat: The messages below were generated|\[Request interrupted by user)"
)
_MEDIA = ("image", "document")


class _Block(NamedTuple):
    """A block of a reply, the key of the row that it may become, and the time of its line."""

    key: str
    timestamp: datetime | None
    block: Record


@dataclass(slots=True)
class _Reply:
    """The lines of one reply, each with a block or more; ``key`` is the first one's."""

    key: str
    model: str | None
    blocks: list[_Block] = field(default_factory=list)
    is_cut: bool = False


class Words:
    """The messages of a session, by the key of the line in which each begins; ``skipped`` counts the lines without."""

    def __init__(self) -> None:
        self.skipped: Counter[str] = Counter()
        self._messages: dict[str, list[ForeignMessage]] = {}
        self._replies: dict[str, _Reply] = {}
        self._calls: set[str] = set()
        self._results: dict[str, Result] = {}
        self._answers: list[tuple[str, str]] = []
        self._queued: set[str] = set()

    def take(self, key: str, line: Record) -> None:
        """Take a line."""
        kind, message = line.get("type"), values.record(line.get("message"))
        if kind == "assistant":
            self._take_reply(key, line, message)
        elif kind == "user":
            self._take_prompt(key, line, message)
        elif kind == "attachment":
            attachment = values.record(line.get("attachment"))
            if attachment.get("type") == "queued_command":
                self._say(key, attachment.get("prompt"), line)

    def take_queued(self, line: Record, before: str | None) -> None:
        """Take the words that the user gave the model while it was at work; the line has no place of its own."""
        if before is not None and line.get("operation") == "remove":
            self._say(before, line.get("content"), line)

    def finish(self) -> None:
        """Make the replies, once all results are known."""
        for reply in self._replies.values():
            self._messages[reply.key] = [*_reply_rows(reply, self._results), *self._messages.get(reply.key, ())]
        for key, call in self._answers:
            if call not in self._calls:
                content, time = self._results[call]
                row = ForeignMessage(f"{key}/result", None, Role.ASSISTANT, in_words("", content), time)
                self._messages.setdefault(key, []).append(row)

    def messages_of(self, key: str) -> tuple[ForeignMessage, ...]:
        """Return the messages that begin in a line."""
        return tuple(self._messages.get(key, ()))

    def _take_reply(self, key: str, line: Record, message: Record) -> None:
        if line.get("isApiErrorMessage") is True or message.get("model") == _SYNTHETIC:
            self.skipped[_ERROR] += 1
            return
        new = _Reply(key, values.line(message.get("model")) or None)
        reply = self._replies.setdefault(values.identifier(message.get("id")) or key, new)
        reply.model = reply.model or new.model
        reply.is_cut = message.get("stop_reason") == "max_tokens"
        time, known = values.moment(line.get("timestamp")), [each.block for each in reply.blocks]
        for number, block in enumerate(_blocks(message)):
            if block not in known:
                reply.blocks.append(_Block(f"{key}/{number}" if number else key, time, block))
            if block.get("type") == "tool_use":
                self._calls.add(values.identifier(block.get("id")))

    def _take_prompt(self, key: str, line: Record, message: Record) -> None:
        blocks = _blocks(message)
        said = [block for block in blocks if block.get("type") != "tool_result"]
        for block in blocks:
            if block.get("type") == "tool_result":
                call = values.identifier(block.get("tool_use_id"))
                self._results[call] = Result(_words_of(block), values.moment(line.get("timestamp")))
                self._answers.append((key, call))
        if line.get("isCompactSummary") is True:
            self.skipped[_SUMMARY] += 1
        elif said and line.get("isMeta") is True:
            self.skipped[_PROGRAM] += 1
        elif said:
            self._say(key, said, line)

    def _say(self, key: str, content: object, line: Record) -> None:
        """Keep words of the user, unless they are the program's."""
        blocks = _blocks({"content": content})
        words = (_without_additions(values.text(block.get("text"))).strip("\n") for block in blocks)
        text = "\n\n".join(piece for piece in words if piece.strip() and not _NOT_SAID.match(piece))
        files = tuple(_files(blocks))
        if not text and not files:
            self.skipped[_PROGRAM] += 1
            return
        time = values.moment(line.get("timestamp"))
        if line.get("type") != "user":
            if text in self._queued:
                return
            self._queued.add(text)
            key_of_row = f"{key}/queued/{len(self._queued)}"
        else:
            key_of_row = key
        row = ForeignMessage(key_of_row, None, Role.USER, text, time, files=files)
        self._messages.setdefault(key, []).append(row)


def _without_additions(text: str) -> str:
    """Return what the user said of a text, without what the program has put into it between marks."""
    for added in _ADDED:
        text = added.sub(lambda found: "" if found["end"] else found[0], text)
    return text


def _blocks(message: Record) -> Sequence[Record]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else values.records(content)


def _reply_rows(reply: _Reply, results: dict[str, Result]) -> Iterator[ForeignMessage]:
    """Yield the rows of a reply: its text, then each call with its result, and text behind it in a row of its own."""
    thoughts = "\n\n".join(filter(str.strip, (values.text(each.block.get("thinking")) for each in reply.blocks)))
    time = reply.blocks[0].timestamp if reply.blocks else None
    blank = ForeignMessage(reply.key, None, Role.ASSISTANT, "", time, reply.model, reasoning=thoughts or None)
    rows: list[ForeignMessage] = []
    for key, time, block in reply.blocks:
        text = values.text(block.get("text")) if block.get("type") == "text" else ""
        if block.get("type") == "tool_use":
            identity = values.identifier(block.get("id"))
            call = call_of(identity or key, block.get("name"), block.get("input"))
            rows += rows_of_call(
                replace(blank, key=key, timestamp=time), call, results.get(identity) if identity else None
            )
        elif text.strip() and rows and rows[-1].role is Role.ASSISTANT:
            # The key is that of the last text: a session that goes on may add to a message imported before.
            rows[-1] = replace(rows[-1], key=key, content=f"{rows[-1].content}\n\n{text}")
        elif text.strip():
            rows.append(replace(blank, key=key, timestamp=time, content=text))
    if not rows and thoughts:
        rows.append(blank)
    if rows and rows[-1].role is Role.ASSISTANT and reply.is_cut:
        rows[-1] = replace(rows[-1], status=Status.TRUNCATED)
    yield from (row if not number else replace(row, reasoning=None) for number, row in enumerate(rows))


def _words_of(result: Record) -> str:
    """Return the text of a result; a picture in it is named."""
    content = result.get("content")
    if isinstance(content, str):
        return values.text(content)
    pieces = (values.text(block.get("text")) or _named(block) for block in values.records(content))
    return "\n".join(filter(None, pieces))


def _named(block: Record) -> str:
    media_type = values.line(values.record(block.get("source")).get("media_type"))
    return f"[{media_type or 'image'}]" if block.get("type") in _MEDIA else ""


def _files(blocks: Sequence[Record]) -> Iterator[ForeignFile]:
    for block in blocks:
        if block.get("type") in _MEDIA:
            source = values.record(block.get("source"))
            media_type = values.line(source.get("media_type"))
            suffix = media_type.rpartition("/")[2]
            name = values.line(block.get("title")) or f"{block['type']}{'.' + suffix if suffix else ''}"
            yield ForeignFile(name, media_type, data=values.decoded(source.get("data")))


SOURCE = "claude-code"

_BROKEN = "line that cannot be read"
_SUBAGENTS = "message of a subagent"
_KEPT = ("type", "subtype", "isCompactSummary", "logicalParentUuid", "compactMetadata")
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
_BETTER_TITLES = ("custom-title", "ai-title", "summary")
# A tuple: a value that is sought in it may be a list, which no set takes.
_MARKS = ("summary", "queue-operation", "file-history-snapshot", "permission-mode", "last-prompt", "mode")


class Line(NamedTuple):
    """A line with an id: its parent and the fields that are needed. ``before`` is the key of the line above."""

    key: str
    parent: str | None
    before: str | None
    record: Record


def is_line(value: object) -> bool:
    """Return whether a value has the form of a line of Claude Code."""
    found = values.record(value)
    if "parentUuid" in found:
        return "sessionId" in found
    return found.get("type") in _MARKS and bool(found.keys() & {"sessionId", "leafUuid", "messageId"})


def conversation_of(lines: Iterable[object], name: str, source: str = SOURCE) -> ForeignConversation:
    """Read a session of a program from its lines; ``name`` is that of the file, which is the session's id.

    Raises:
        ImportFormatError: it has no message that can be read, or is that of a subagent.
    """
    session = _Session()
    for line in lines:
        session.take(line)
    session.words.finish()
    tree = joined(session.nodes(), session.leaf)
    if not tree.messages:
        is_subagent = session.skipped[_SUBAGENTS]
        raise ImportFormatError("session of a subagent" if is_subagent else "conversation without messages")
    said = next((message.content for message in tree.messages if message.role is Role.USER), "")
    ids = session.ids
    return ForeignConversation(
        source,
        name if name in ids or not ids else ids[-1],
        session.title or values.line(said, 80),
        tree.messages,
        tree.live,
        tree.messages[0].timestamp,
        skipped=tuple((session.skipped + session.words.skipped).items()),
    )


class _Session:
    """The lines of a session as they are read."""

    def __init__(self) -> None:
        self.words = Words()
        self.skipped: Counter[str] = Counter()
        self.ids: list[str] = []
        self.leaf: str | None = None
        self._lines: dict[str, Line] = {}
        self._titles: dict[str, tuple[str, str]] = {}
        self._last: str | None = None

    def take(self, value: object) -> None:
        """Take the next line of the file."""
        if not isinstance(value, dict):
            self.skipped[_BROKEN] += 1
            return
        kind, key = value.get("type"), values.identifier(value.get("uuid"))
        session = values.line(value.get("sessionId"))
        if session and session not in self.ids:
            self.ids.append(session)
        if value.get("isSidechain") is True:
            self.skipped[_SUBAGENTS] += kind in ("user", "assistant")
        elif isinstance(kind, str) and kind in _TITLES:
            self._titles[kind] = (values.line(value.get(_TITLES[kind])), values.text(value.get("leafUuid")))
        elif kind == "last-prompt" and value.get("explicit") is True:
            # A rewind after which nothing was said yet.
            self.leaf = leaf if (leaf := values.identifier(value.get("leafUuid"))) in self._lines else self.leaf
        elif kind == "queue-operation":
            self.words.take_queued(value, self._last)
        elif key and key not in self._lines:
            self._keep(key, value)

    @property
    def title(self) -> str:
        """The title: the user's, else the program's, else a summary of a line of this session."""
        for kind in _BETTER_TITLES:
            title, leaf = self._titles.get(kind, ("", ""))
            if title and (not leaf or leaf in self._lines):
                return title
        return ""

    def nodes(self) -> Iterator[Node]:
        """Yield the lines with their true parents and the messages that begin in them."""
        for key, parent in self._parents().items():
            yield Node(key, parent, self.words.messages_of(key))

    def _keep(self, key: str, value: Record) -> None:
        parent = values.identifier(value.get("parentUuid")) or None
        record = {field: value[field] for field in _KEPT if field in value}
        self._lines[key] = Line(key, parent, self._last, record)
        self._last = key
        self.words.take(key, value)
        if value.get("type") in ("user", "assistant"):
            self.leaf = key

    def _parents(self) -> dict[str, str | None]:
        """Return the parent of each line, with the gaps of compactions closed.

        A line whose parent is not in the file follows the one before it, and so does one without a parent that is no
        message of the user, who alone can begin anew; where no line names a parent, each does.
        """
        are_linked = any(line.parent for line in self._lines.values())
        parents: dict[str, str | None] = {}
        boundaries: list[Line] = []
        for line in self._lines.values():
            begins = line.record.get("type") == "user" and not line.record.get("isCompactSummary")
            known = line.parent in self._lines or (line.parent is None and begins and are_linked)
            parents[line.key] = line.parent if known else line.before
            if line.record.get("subtype") == "compact_boundary":
                boundaries.append(line)
        for boundary in boundaries:
            self._close_gap(boundary, parents)
        return parents

    def _close_gap(self, boundary: Line, parents: dict[str, str | None]) -> None:
        """Let what follows a compaction follow what went before it.

        Messages that the compaction preserved are written behind its summary: they follow each other as before.
        """
        metadata = values.record(boundary.record.get("compactMetadata"))
        preserved = values.items(values.record(metadata.get("preservedMessages")).get("uuids"))
        keys = [key for key in map(values.identifier, preserved) if key in self._lines]
        parents.update((later, earlier) for earlier, later in pairwise(keys))
        segment = values.record(metadata.get("preservedSegment"))
        head, anchor = (values.identifier(segment.get(name)) for name in ("headUuid", "anchorUuid"))
        if head in self._lines and parents[head] == anchor:
            parents[head] = boundary.before
        logical = values.identifier(boundary.record.get("logicalParentUuid"))
        parents[boundary.key] = logical if logical in self._lines else boundary.before
        if boundary.key in path_to(parents[boundary.key], parents):
            parents[boundary.key] = boundary.before
