"""Assembles a conversation from the flat pieces that a format's reader yields: texts, thoughts, calls and results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone, tzinfo
from enum import Enum, auto
from typing import NamedTuple

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.json import values
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, ForeignMessage, Skipped
from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.log.rules.messages import Role, Status

ANOTHER_ZONE = timezone(timedelta(hours=1))
"""A time that is another one in this zone than in UTC was written without a zone."""

_LONGEST_TITLE = 80
_UNNAMED = "tool"


class Kind(Enum):
    """The kinds of pieces of a conversation."""

    USER = auto()
    REPLY = auto()
    CALL = auto()
    RESULT = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of a conversation, as a reader finds it in a file; ``Said(key, Kind.USER, text)`` is a whole message.

    A format without ids takes its keys from ``values.ContentKeys``; a format without times leaves ``timestamp`` out.
    Neighbouring pieces with the same ``node`` make the rows of this node. The rows of the node ``parent`` come before
    them; an empty ``parent`` is the previous node in the file, ``None`` is no node. A piece without a ``kind`` begins a
    node. A node without rows counts as left out if its first piece gives a reason in ``skipped``. If no piece of a node
    has a ``key``, the rows are numbered. A piece that ``is_more`` continues the text before it. ``thoughts`` go to the
    first row of the node, the status and the files of an ``END`` to the last row.

    A ``CALL`` of a ``tool`` holds its ``result`` and the time when it ``ended``, or it has the same id ``call`` as the
    piece with the result. The result's row follows the call's row; if the result ``is_apart``, it has a node of its
    own. A result without a call becomes text of the reply, and so does a call without a result. The second of several
    calls with the same id gets the second result with this id, and so on.
    """

    node: str
    kind: Kind | None = None
    text: str = ""
    timestamp: datetime | None = None
    model: str | None = None
    parent: str | None = ""
    key: str = ""
    status: Status | None = None
    files: tuple[ForeignFile, ...] = ()
    call: str = ""
    tool: str = ""
    arguments: object = None
    thoughts: str = ""
    result: str | None = None
    ended: datetime | None = None
    is_apart: bool = False
    is_more: bool = False
    is_hidden: bool = False
    skipped: str = ""


class FileFacts(NamedTuple):
    """The name of a file without its suffix, and the zone for times without a zone (``None``: the system's)."""

    name: str
    zone: tzinfo | None = None


def zone_guess(program: str, zone: tzinfo | None) -> str:
    """Return a sentence that says in which zone a program's times without a zone were read."""
    used = f"the zone {zone}" if zone else "the zone of this machine"
    return f"{program} writes times without a zone: Chorus read them in {used}. --timezone names another zone."


def assembled(
    facts: ForeignConversation, said: Iterable[Said | Skipped], leaf: str | None = None
) -> ForeignConversation:
    """Return a conversation with these facts, and with the messages that the pieces ``said`` make.

    A missing title becomes the user's first words, and a missing key the key of the first message. ``leaf`` is the last
    node of the live branch, ``None`` if the format does not name it. Without messages, raise an ``ImportFormatError``.
    """
    nodes, skipped = nodes_of(said)
    messages, live = joined(nodes, leaf)
    if not messages:
        raise ImportFormatError("conversation without messages")
    first = next((message for message in messages if message.role is Role.USER), messages[0])
    title, key = facts.title or values.line(first.content, _LONGEST_TITLE), facts.key or messages[0].key
    return replace(facts, key=key, title=title, messages=messages, live=live, skipped=tuple(skipped.items()))


def nodes_of(pieces: Iterable[Said | Skipped]) -> tuple[list[Node], Counter[str]]:
    """Return the nodes that the pieces make, and how many things were left out for each reason."""
    skipped: Counter[str] = Counter()
    groups: list[list[Said]] = []
    for each in _told_apart([*pieces]):
        if isinstance(each, Skipped):
            skipped[each.reason] += 1
        elif each.kind is None or not groups or groups[-1][0].node != each.node:
            groups.append([each])
        else:
            groups[-1].append(each)
    said = [each for group in groups for each in group]
    results = {each.call: each for each in said if each.kind is Kind.RESULT and each.call}
    calls = {each.call for each in said if each.kind is Kind.CALL}
    nodes: list[Node] = []
    for group in groups:
        rows, first = _rows(group, results, calls), group[0]
        skipped[first.skipped] += bool(first.skipped and not rows)
        before = nodes[-1].key if nodes else None
        nodes.append(Node(first.node, before if first.parent == "" else first.parent, rows))
    return nodes, +skipped


def _told_apart(pieces: Sequence[Said | Skipped]) -> Iterator[Said | Skipped]:
    """Yield the pieces; of calls with the same id, all but the first get numbers, and so do their results, in order."""
    calls = Counter(each.call for each in pieces if isinstance(each, Said) and each.kind is Kind.CALL and each.call)
    seen: Counter[tuple[Kind | None, str]] = Counter()
    for each in pieces:
        if isinstance(each, Said) and calls[each.call] > 1:
            seen[each.kind, each.call] += 1
            number = min(seen[each.kind, each.call], calls[each.call])
            yield replace(each, call=f"{each.call}-{number}") if number > 1 else each
        else:
            yield each


def _rows(pieces: Sequence[Said], results: Mapping[str, Said], calls: Container[str]) -> tuple[ForeignMessage, ...]:
    node, is_keyed = pieces[0].node, any(piece.key for piece in pieces)
    rows: list[ForeignMessage] = []
    blank: ForeignMessage | None = None
    for piece in pieces:
        last = rows[-1] if rows and rows[-1] is not blank else None
        row = _row(piece, (piece.key or node) if is_keyed else _key(node, len(rows) if last else 0))
        if not rows and (piece.thoughts.strip() or (piece.files and piece.kind is Kind.END)):
            rows = [blank := replace(row, content="")]
        if piece.kind is Kind.END and rows:
            status = rows[-1].status if rows[-1].role is not Role.ASSISTANT else piece.status or rows[-1].status
            rows[-1] = replace(rows[-1], status=status, files=piece.files or rows[-1].files)
        elif piece.is_more and piece.kind is Kind.REPLY and last and last.role is Role.ASSISTANT:
            if row.content.strip():
                rows[-1] = replace(last, key=row.key, content=f"{last.content}\n\n{row.content}")
        elif made := _rows_of(piece, row, results, calls):
            # The first row of a reply replaces a row before it that has only thoughts.
            rows = [*made] if rows and last is None and made[0].role is not Role.USER else [*rows, *made]
    reasoning = "\n\n".join(piece.thoughts for piece in pieces if piece.thoughts.strip())
    if rows and reasoning:
        rows[0] = replace(rows[0], reasoning=reasoning)
    for number, row in enumerate(rows):
        if not is_keyed and row.key != _key(node, number):
            rows[number] = replace(row, key=_key(node, number))
    return tuple(rows)


def _key(node: str, number: int) -> str:
    return f"{node}/{number}" if number else node


def _row(piece: Said, key: str) -> ForeignMessage:
    role = Role.USER if piece.kind is Kind.USER else Role.ASSISTANT
    return ForeignMessage(
        key,
        None,
        role,
        piece.text,
        piece.timestamp,
        piece.model,
        piece.status,
        files=piece.files,
        is_hidden=piece.is_hidden,
    )


def _rows_of(
    piece: Said, row: ForeignMessage, results: Mapping[str, Said], calls: Container[str]
) -> Sequence[ForeignMessage]:
    """Return the rows of a message, a call or a result; ``row`` is the piece as a message."""
    call = piece.call or row.key
    match piece.kind:
        case Kind.USER | Kind.REPLY if row.content.strip() or row.files:
            return [row]
        case Kind.CALL:
            found = results.get(piece.call)
            text, ended = piece.result, piece.ended
            if text is None and found:
                text, ended = found.text, found.timestamp
            made = ToolCall(call, values.line(piece.tool) or _UNNAMED, _as_object(piece.arguments))
            if text is None:
                # The text gets a key of its own, so that a later export can still bring the call with its result.
                return [replace(row, key=f"{row.key}/alone", content=in_words(made.name, made.arguments))]
            use = replace(row, role=Role.TOOL_USE, content="", tool_calls=made.as_json, tool_call_id=call)
            answer = replace(row, content=text, timestamp=ended or row.timestamp)
            return [use] if found and found.is_apart else [use, _answer(answer, f"{row.key}/result", call)]
        case Kind.RESULT if piece.call in calls and piece.is_apart:
            return [_answer(row, row.key, call)]
        case Kind.RESULT if piece.call not in calls:
            return [replace(row, content=in_words(piece.tool, row.content))]
    return []


def _answer(row: ForeignMessage, key: str, call: str) -> ForeignMessage:
    return replace(row, key=key, role=Role.TOOL_RESULT, tool_call_id=call, model=None)


def words_of(content: object, between: str = "\n") -> str:
    """Join the texts in the parts of a message's content; leave out other parts."""
    return between.join(filter(None, (values.text(part.get("text")) for part in values.parts(content))))


def texts_of(found: values.Record, *names: str) -> Iterator[str]:
    """Yield the texts in these fields, except empty texts."""
    return filter(None, (values.text(found.get(name)) for name in names))


def in_words(name: str, content: str) -> str:
    """Return a call without a result, or a result without a call, as text."""
    return f"[{name or _UNNAMED}]\n{content}"


def _as_object(arguments: object) -> str:
    """Return arguments as the text of a JSON object; a value of another kind becomes its only field, ``input``."""
    read = values.parsed(arguments) if isinstance(arguments, str) else arguments
    if isinstance(read, dict):
        return values.json_text(read)
    return values.json_text({} if arguments in (None, "") else {"input": arguments})


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a tree: a message of another program, which may become several messages here or none.

    ``joined`` sets the parents of ``messages``. The parent of the first message is the last message of the nearest
    ancestor with messages; the parent of any other message is the message before it.
    """

    key: str
    parent: str | None = None
    messages: tuple[ForeignMessage, ...] = ()


def joined(nodes: Iterable[Node], leaf: str | None = None) -> tuple[tuple[ForeignMessage, ...], tuple[str, ...]]:
    """Join nodes to a tree; return its messages, parents first, and the keys of the messages on the live branch.

    The live branch ends at ``leaf``, or at the newest leaf if no message is on the path to ``leaf``. A node with a
    missing parent becomes a root; so does one node of a cycle. Of nodes with the same key the last is taken, of
    messages with the same key the first. A node without a key is left out.
    """
    tree = {node.key: node for node in nodes if node.key}
    parents = _parents_first({key: node.parent for key, node in tree.items()})
    messages: dict[str, ForeignMessage] = {}
    # For each node: the last message on the path to the node, and the newest time on that path.
    last: dict[str, str | None] = {}
    newest: dict[str, float] = {}
    for key, parent in parents.items():
        before = None if parent is None else last[parent]
        times = [0.0 if parent is None else newest[parent]]
        for message in tree[key].messages:
            times += [] if message.timestamp is None else [message.timestamp.timestamp()]
            if message.key not in messages:
                messages[message.key] = message if message.parent == before else replace(message, parent=before)
                before = message.key
        last[key], newest[key] = before, max(times)
    inner = set(parents.values())
    leaves = [(newest[key], position, key) for position, key in enumerate(parents) if key not in inner and last[key]]
    end = last.get(leaf or "") or (last[max(leaves)[2]] if leaves else None)
    return tuple(messages.values()), path_to(end, {key: each.parent for key, each in messages.items()})


def path_to(leaf: str | None, parents: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the keys from the root to ``leaf``; a cycle is cut where it closes."""
    path: dict[str, None] = {}
    while leaf is not None and leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return tuple(reversed(path))


def _parents_first(parents: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return each key's parent; missing parents and cycles are cut. Keys keep their order, but parents come first."""
    order: dict[str, str | None] = {}
    for key in parents:
        climbed: dict[str, None] = {}
        current: str | None = key
        while current is not None and current in parents and current not in order and current not in climbed:
            climbed[current] = None
            current = parents[current]
        if current in climbed:
            order[current] = None
        for each in reversed(climbed):
            parent = parents[each]
            order.setdefault(each, parent if parent in order else None)
    return order
