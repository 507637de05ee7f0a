"""Branches of a conversation: its nodes in an order with parents first, and the path it ended with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from chorus_cli.imports.rules.conversation import ForeignMessage


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

    @property
    def branches(self) -> int:
        """The number of paths from a root to a leaf."""
        return len({message.key for message in self.messages} - {message.parent for message in self.messages})


def joined(nodes: Iterable[Node], leaf: str | None = None) -> Joined:
    """Join nodes to a tree that ended with ``leaf``, or if no message leads there, with its newest leaf.

    A missing parent makes a root, and so does the one node of a cycle that comes first. Of several nodes with one
    key the last holds, of messages of several nodes the first; a node without a key is left out.
    """
    tree = {node.key: node for node in nodes if node.key}
    order, parents = _parents_first({key: node.parent for key, node in tree.items()})
    messages, last = _linked(tree, order, parents)
    end = last.get(leaf or "") or last.get(_newest_leaf(tree, order, parents, last) or "")
    followed = {key: message.parent for key, message in messages.items()}
    return Joined(tuple(messages.values()), path_to(end, followed))


def chain(messages: Iterable[ForeignMessage]) -> Joined:
    """Join messages of a format without branches: each follows the one before it; the last of equal keys holds."""
    unique = {message.key: message for message in messages}
    before = (None, *unique)
    linked = (replace(message, parent=parent) for message, parent in zip(unique.values(), before, strict=False))
    return Joined(tuple(linked), tuple(unique))


def path_to(leaf: str | None, parents: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the keys from the root to ``leaf``; a cycle is left where it closes."""
    path: dict[str, None] = {}
    while leaf is not None and leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return tuple(reversed(path))


def _parents_first(parents: Mapping[str, str | None]) -> tuple[tuple[str, ...], dict[str, str | None]]:
    """Return the keys in their order but parents first, and the parents without missing ones and cycles."""
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
    return tuple(order), order


def _linked(
    tree: Mapping[str, Node], order: Iterable[str], parents: Mapping[str, str | None]
) -> tuple[dict[str, ForeignMessage], dict[str, str | None]]:
    """Return the messages by their keys, and for each node the last message of it or of those before it."""
    messages: dict[str, ForeignMessage] = {}
    last: dict[str, str | None] = {}
    for key in order:
        parent = parents[key]
        before = None if parent is None else last[parent]
        for message in tree[key].messages:
            if message.key not in messages:
                messages[message.key] = message if message.parent == before else replace(message, parent=before)
                before = message.key
        last[key] = before
    return messages, last


def _newest_leaf(
    tree: Mapping[str, Node],
    order: Iterable[str],
    parents: Mapping[str, str | None],
    last: Mapping[str, str | None],
) -> str | None:
    """Return the leaf whose path has the newest message, the last of equal ones."""
    inner = set(parents.values())
    times: dict[str, float] = {}
    for key in order:
        parent = parents[key]
        own = [message.timestamp.timestamp() for message in tree[key].messages if message.timestamp is not None]
        times[key] = max([*own, 0.0 if parent is None else times[parent]])
    leaves = [(times[key], position, key) for position, key in enumerate(order) if key not in inner and last[key]]
    return max(leaves)[2] if leaves else None
