"""Sessions of Claude Code: lines that name their parents; many lines are notes of the program."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json import values
from chorus_cli.imports.rules.assembly import FileFacts, Kind, Said, assembled, path_to
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, Reason, Skipped, unnamed_file
from chorus_cli.log.rules.messages import Status

SOURCE = "claude-code"

_SUBAGENTS = "message of a subagent"
_ERROR = "error of the program"
_SYNTHETIC = "<synthetic>"
# Without an end tag, a match reaches to the end of the text, so that the tag is searched for only once.
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
# The kinds of titles, the best first.
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
_MARKS = {"summary", "queue-operation", "file-history-snapshot", "permission-mode", "last-prompt", "mode"}


class _Line(NamedTuple):
    """A line with an id: its parent, the key of the line above, and whether it may be the root of a tree."""

    parent: str | None
    before: str | None
    begins: bool


@dataclass(slots=True)
class _Reply:
    """The lines of one reply; all pieces belong to the first line, and a block in several lines is read once."""

    key: str
    model: str | None = None
    blocks: list[values.Record] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    is_cut: bool = False


def is_beginning(first: Sequence[object]) -> bool:
    """Return whether one of a file's first values is a line of Claude Code."""
    lines = [*map(values.record, first)]
    marks = (line for line in lines if "parentUuid" not in line and values.line(line.get("type")) in _MARKS)
    is_linked = any({"parentUuid", "sessionId"} <= line.keys() for line in lines)
    return is_linked or any(mark.keys() & {"sessionId", "leafUuid", "messageId"} for mark in marks)


def conversation_of(lines: Iterable[object], file: FileFacts, source: str = SOURCE) -> ForeignConversation:
    """Read a session of ``source``; the key is the file's name or, if no session id is this name, the last id."""
    session = _Session()
    for line in lines:
        session.take(line)
    ids, name = session.ids, file.name
    facts = ForeignConversation(source, name if name in ids or not ids else ids[-1], session.title)
    try:
        return assembled(facts, session.said(), session.leaf)
    except ImportFormatError:
        if Skipped(_SUBAGENTS) in session.skipped:
            raise ImportFormatError(Reason.SUBAGENT) from None
        raise


class _Session:
    def __init__(self) -> None:
        self.skipped: list[Skipped] = []
        self.ids: list[str] = []
        self.leaf: str | None = None
        self._lines: dict[str, _Line] = {}
        self._titles: dict[str, tuple[str, str]] = {}
        self._boundaries: dict[str, values.Record] = {}
        self._last: str | None = None
        self._said: defaultdict[str, list[Said]] = defaultdict(list)
        self._replies: dict[str, _Reply] = {}
        self._queued: set[str] = set()

    def take(self, value: object) -> None:
        if not isinstance(value, dict):
            self.skipped.append(value if isinstance(value, Skipped) else Skipped(Reason.BROKEN_LINE))
            return
        kind, key = value.get("type"), values.identifier(value.get("uuid"))
        session = values.line(value.get("sessionId"))
        if session and session not in self.ids:
            self.ids.append(session)
        if value.get("isSidechain") is True:
            self.skipped += [Skipped(_SUBAGENTS)] * (kind in ("user", "assistant"))
        elif isinstance(kind, str) and kind in _TITLES:
            self._titles[kind] = (values.line(value.get(_TITLES[kind])), values.text(value.get("leafUuid")))
        elif kind == "last-prompt" and value.get("explicit") is True:
            # The user went back to an earlier line and has said nothing since.
            self.leaf = leaf if (leaf := values.identifier(value.get("leafUuid"))) in self._lines else self.leaf
        elif kind == "queue-operation":
            # The user said this while the model was at work; the line before gets the words.
            if self._last is not None and value.get("operation") == "remove":
                self._say(self._last, value.get("content"), value)
        elif key and key not in self._lines:
            self._keep(key, value)

    @property
    def title(self) -> str:
        """The title: the user's, else the program's, else a summary of a line of this session."""
        for kind in _TITLES:
            title, leaf = self._titles.get(kind, ("", ""))
            if title and (not leaf or leaf in self._lines):
                return title
        return ""

    def said(self) -> Iterator[Said | Skipped]:
        """Yield each line with its true parent, followed by the pieces that begin in the line."""
        replies = {reply.key: reply for reply in self._replies.values()}
        yield from self.skipped
        for key, parent in self._parents().items():
            yield Said(key, parent=parent, key=key)
            if reply := replies.get(key):
                yield from (replace(each, model=reply.model) for each in reply.said)
                yield Said(key, Kind.END, status=Status.TRUNCATED if reply.is_cut else None)
            yield from self._said[key]

    def _keep(self, key: str, value: values.Record) -> None:
        parent = values.identifier(value.get("parentUuid")) or None
        begins = value.get("type") == "user" and not value.get("isCompactSummary")
        self._lines[key] = _Line(parent, self._last, begins)
        if value.get("subtype") == "compact_boundary":
            self._boundaries[key] = value
        self._last = key
        match value.get("type"):
            case "assistant":
                self._take_reply(key, value, values.record(value.get("message")))
                self.leaf = key
            case "user":
                self._take_prompt(key, value)
                self.leaf = key
            case "attachment":
                attachment = values.record(value.get("attachment"))
                if attachment.get("type") == "queued_command":
                    self._say(key, attachment.get("prompt"), value)

    def _take_reply(self, key: str, line: values.Record, message: values.Record) -> None:
        if line.get("isApiErrorMessage") is True or message.get("model") == _SYNTHETIC:
            self.skipped.append(Skipped(_ERROR))
            return
        reply = self._replies.setdefault(values.identifier(message.get("id")) or key, _Reply(key))
        reply.model = reply.model or values.line(message.get("model")) or None
        reply.is_cut = message.get("stop_reason") == "max_tokens"
        time, known = values.moment(line.get("timestamp")), list(reply.blocks)
        for number, block in enumerate(values.parts(message.get("content"))):
            if block not in known:
                reply.blocks.append(block)
                said = Said(reply.key, Kind.REPLY, timestamp=time, key=f"{key}/{number}" if number else key)
                reply.said.append(_piece(said, block))

    def _take_prompt(self, key: str, line: values.Record) -> None:
        blocks = values.parts(values.record(line.get("message")).get("content"))
        said = [block for block in blocks if block.get("type") != "tool_result"]
        if line.get("isCompactSummary") is True:
            self.skipped.append(Skipped(Reason.SUMMARY))
        elif said and line.get("isMeta") is True:
            self.skipped.append(Skipped(Reason.NOTE))
        elif said:
            self._say(key, said, line)
        time = values.moment(line.get("timestamp"))
        results = (block for block in blocks if block.get("type") == "tool_result")
        for number, block in enumerate(results):
            call, own = values.identifier(block.get("tool_use_id")), f"{key}/result{f'/{number}' if number else ''}"
            self._said[key].append(Said(key, Kind.RESULT, _words_of(block), time, key=own, call=call))

    def _say(self, key: str, content: object, line: values.Record) -> None:
        """Keep the user's words in ``content``, without the program's words."""
        blocks = values.parts(content)
        words = (_without_additions(values.text(block.get("text"))).strip("\n") for block in blocks)
        text = "\n\n".join(piece for piece in words if piece.strip() and not _NOT_SAID.match(piece))
        said = Said(key, Kind.USER, text, values.moment(line.get("timestamp")), key=key, files=tuple(_files(blocks)))
        if not text and not said.files:
            self.skipped.append(Skipped(Reason.NOTE))
        elif line.get("type") == "user":
            self._said[key].append(said)
        elif text not in self._queued:
            self._queued.add(text)
            self._said[key].append(replace(said, key=f"{key}/queued/{len(self._queued)}"))

    def _parents(self) -> dict[str, str | None]:
        """Return the parent of each line, with the gaps of compactions closed.

        A line whose parent is missing in the file follows the line before it. So does a line that names no parent,
        unless it is a message of the user and other lines name parents: then it begins a new tree.
        """
        are_linked = any(line.parent for line in self._lines.values())
        parents: dict[str, str | None] = {}
        for key, line in self._lines.items():
            is_known = line.parent in self._lines or (line.parent is None and line.begins and are_linked)
            parents[key] = line.parent if is_known else line.before
        for key, boundary in self._boundaries.items():
            self._close_gap(key, boundary, parents)
        return parents

    def _close_gap(self, key: str, boundary: values.Record, parents: dict[str, str | None]) -> None:
        """Let the lines after a compaction follow the lines before it.

        Messages that the compaction preserved come after its summary in the file. They get their old order back.
        """
        metadata = values.record(boundary.get("compactMetadata"))
        preserved = values.items(values.record(metadata.get("preservedMessages")).get("uuids"))
        keys = [key for key in map(values.identifier, preserved) if key in self._lines]
        parents.update((later, earlier) for earlier, later in pairwise(keys))
        segment = values.record(metadata.get("preservedSegment"))
        head, anchor = (values.identifier(segment.get(name)) for name in ("headUuid", "anchorUuid"))
        if head in self._lines and parents[head] == anchor:
            parents[head] = self._lines[key].before
        logical = values.identifier(boundary.get("logicalParentUuid"))
        if logical in self._lines and key not in path_to(logical, parents):
            parents[key] = logical
        else:
            parents[key] = self._lines[key].before


def _without_additions(text: str) -> str:
    """Return a text without the tagged parts that the program has put into it."""
    for added in _ADDED:
        text = added.sub(lambda found: "" if found["end"] else found[0], text)
    return text


def _piece(said: Said, block: values.Record) -> Said:
    if block.get("type") == "tool_use":
        call = values.identifier(block.get("id"))
        tool = values.line(block.get("name"))
        return replace(said, kind=Kind.CALL, call=call, tool=tool, arguments=block.get("input"))
    # A row has the key of its last text: if the session adds text after an import, the longer row is imported as new.
    text = values.text(block.get("text")) if block.get("type") == "text" else ""
    return replace(said, text=text, thoughts=values.text(block.get("thinking")), is_more=True)


def _words_of(result: values.Record) -> str:
    """Return the text of a result, with the media type in place of a picture or a document."""
    pieces: list[str] = []
    for block in values.parts(result.get("content")):
        media_type = values.line(values.record(block.get("source")).get("media_type")) or "image"
        pieces.append(values.text(block.get("text")) or (f"[{media_type}]" if block.get("type") in _MEDIA else ""))
    return "\n".join(filter(None, pieces))


def _files(blocks: Sequence[values.Record]) -> Iterator[ForeignFile]:
    for block in blocks:
        if block.get("type") in _MEDIA:
            source = values.record(block.get("source"))
            media_type = values.line(source.get("media_type"))
            unnamed = unnamed_file(str(block["type"]), media_type, values.decoded(source.get("data")))
            yield replace(unnamed, name=values.line(block.get("title")) or unnamed.name)
