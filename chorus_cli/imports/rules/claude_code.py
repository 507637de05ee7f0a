"""Sessions of Claude Code: lines that name their parents, among them many that nobody said."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json import values
from chorus_cli.imports.rules.branches import Node, joined, path_to
from chorus_cli.imports.rules.claude_code_words import Words
from chorus_cli.imports.rules.conversation import ForeignConversation
from chorus_cli.log.rules.messages import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from chorus_cli.core.json.values import Record

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
