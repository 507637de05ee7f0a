"""A conversation of another program: its messages, files and branches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.log.rules.messages import Role, Thought

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from chorus_cli.log.rules.messages import Status

_LONGEST_THOUGHT_SECONDS = 1e9

NO_TIME = "Some messages have no time: it is guessed from the messages around them, or from the time of this import."


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A file of a message: its name, its media type, and where its bytes are.

    ``entry`` names the bytes in the export (an entry of the archive, a file beside it, or a key of the reader's own);
    ``data`` holds them if they stood in the message itself. Without both the export has only the name.
    """

    name: str
    media_type: str = ""
    entry: str = ""
    data: bytes | None = None


def unnamed_file(kind: str, media_type: str, data: bytes | None) -> ForeignFile:
    """Return a file that has no name in its program: it is named after its kind and its media type."""
    suffix = media_type.rpartition("/")[2]
    return ForeignFile(f"{kind}{'.' + suffix if suffix else ''}", media_type, data=data)


@dataclass(frozen=True, slots=True)
class ForeignMessage:
    """A message: ``key`` is its id within the conversation, ``parent`` that of the message before it on its branch.

    ``timestamp`` is aware UTC; ``None`` means that the program wrote none, and that of the message before it is taken.
    ``tool_calls`` is JSON text in the shape of the OpenAI API, ``tool_call_id`` names the call of a result.
    ``reasoning``, the thoughts of the model, is kept beside the message and never sent; ``thought_parts`` is JSON of
    the provider's own parts of them. One that ``is_hidden`` was not sent to the model there.
    """

    key: str
    parent: str | None
    role: Role
    content: str
    timestamp: datetime | None = None
    model: str | None = None
    status: Status | None = None
    tool_calls: str | None = None
    tool_call_id: str | None = None
    reasoning: str | None = None
    files: tuple[ForeignFile, ...] = ()
    is_hidden: bool = False
    thought_parts: str | None = None
    thought: Thought | None = None


@dataclass(frozen=True, slots=True)
class ForeignConversation:
    """A conversation: ``source`` names the program, ``key`` the conversation within it.

    ``messages`` stand parents first; those on the branch it ended with are ``live``, by their keys, in their order.
    ``guesses`` are sentences for the user about the assumptions of a reader, such as a time zone; ``skipped`` counts
    the parts left out, by their reason. ``persona`` is the slug of the persona it was held with, if the source has any,
    ``character`` the name of a character, whose persona there may be.
    """

    source: str
    key: str
    title: str
    messages: tuple[ForeignMessage, ...]
    live: tuple[str, ...]
    created_at: datetime | None = None
    guesses: tuple[str, ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()
    persona: str | None = None
    character: str = ""


def dated(conversation: ForeignConversation, now: datetime) -> ForeignConversation:
    """Return a conversation with a beginning: its own, else its earliest message's, else ``now``.

    If its first message has no time, the user is told that times are guessed.
    """
    if not conversation.messages:
        return conversation
    times = [each.timestamp for each in conversation.messages if each.timestamp is not None]
    told = () if conversation.messages[0].timestamp else (NO_TIME,)
    begun = conversation.created_at or min(times, default=now)
    return replace(conversation, created_at=begun, guesses=(*conversation.guesses, *told))


class Skipped(NamedTuple):
    """A conversation, a file or a line that was left out, and the reason, in a few words that can be counted."""

    reason: str


def thought_of(seconds: object, tokens: object) -> Thought | None:
    """Return how long a model thought and in how many tokens; ``None`` if neither is known."""
    time, count = None, None
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds <= _LONGEST_THOUGHT_SECONDS:
        time = float(seconds)
    if isinstance(tokens, int) and not isinstance(tokens, bool) and 0 <= tokens < 2**63:
        count = tokens
    return None if time is count is None else Thought(time, count)


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a tree of messages: a foreign message, which may become several of ours or none.

    The first of ``messages`` follows the last one of the nearest node before it that has any, each other one its
    predecessor: ``joined`` sets their parents.
    """

    key: str
    parent: str | None = None
    messages: tuple[ForeignMessage, ...] = ()


class Joined(NamedTuple):
    """The messages of a tree, parents first, and the keys of those on the path that it ended with."""

    messages: tuple[ForeignMessage, ...]
    live: tuple[str, ...]


def joined(nodes: Iterable[Node], leaf: str | None = None) -> Joined:
    """Join nodes to a tree that ended with ``leaf``, or if no message leads there, with its newest leaf.

    A missing parent makes a root, and so does the one node of a cycle that comes first. Of several nodes with one
    key the last holds, of messages of several nodes the first; a node without a key is left out.
    """
    tree = {node.key: node for node in nodes if node.key}
    parents = _parents_first({key: node.parent for key, node in tree.items()})
    messages: dict[str, ForeignMessage] = {}
    # For each node the last message of it or of those before it, and the newest time on its path.
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
    return Joined(tuple(messages.values()), path_to(end, {key: each.parent for key, each in messages.items()}))


def path_to(leaf: str | None, parents: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the keys from the root to ``leaf``; a cycle is left where it closes."""
    path: dict[str, None] = {}
    while leaf is not None and leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return tuple(reversed(path))


def _parents_first(parents: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the parents without missing ones and cycles, in the order of the keys but parents first."""
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
