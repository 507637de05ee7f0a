"""Branches: parents come first, the path it ended with is whole, and no tree is too broken to be read."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.imports.rules.assembly import Joined, Kind, Node, Said, assembled, joined
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignMessage
from chorus_cli.log.rules.messages import Role


def message(key: str, second: int | None = None) -> ForeignMessage:
    time = None if second is None else datetime(2024, 1, 1, 0, 0, second, tzinfo=UTC)
    return ForeignMessage(key, None, Role.USER, key, time)


def node(key: str, parent: str | None = None, second: int | None = None) -> Node:
    return Node(key, parent, (message(key, second),))


def parents_of(tree: Joined) -> dict[str, str | None]:
    return {each.key: each.parent for each in tree.messages}


@pytest.mark.parametrize(
    ("nodes", "leaf", "live"),
    [
        ([node("a"), node("b", "a"), node("c", "b")], "c", "abc"),
        ([node("c", "b"), node("b", "a"), node("a")], "c", "abc"),
        ([node("a"), node("b", "a", 1), node("c", "a", 2)], "b", "ab"),
        ([node("a"), node("b", "a", 2), node("c", "a", 1)], None, "ab"),
        ([node("a"), node("b", "a", 2), node("c", "b"), node("d", "a", 1)], None, "abc"),
        ([node("a"), node("b", "a"), node("c", "a")], "gone", "ac"),
        ([node("a"), Node("b", "a"), node("c", "b")], "c", "ac"),
        ([node("a"), Node("b", "a"), node("c", "b")], "b", "a"),
        ([node("a", "gone"), node("b", "a")], "b", "ab"),
        ([node("a", "c"), node("b", "a"), node("c", "b")], "b", "ab"),
        ([node("a", "b"), node("b", "c"), node("c", "b")], "a", "ba"),
        ([node("a", "a")], "a", "a"),
        ([Node("a")], "a", ""),
        ([Node("a"), node("b", "a")], "a", "b"),
        ([node("a"), Node("", "a", (message("b"),))], "", "a"),
        ([], None, ""),
    ],
)
def test_the_live_path_leads_from_the_root_to_the_leaf(nodes: list[Node], leaf: str | None, live: str) -> None:
    assert "".join(joined(nodes, leaf).live) == live


def test_a_node_of_several_messages_is_a_chain() -> None:
    tree = joined([Node("a", None, (message("a1"), message("a2"))), node("b", "a"), node("c", "a")], "b")
    assert parents_of(tree) == {"a1": None, "a2": "a1", "b": "a2", "c": "a2"}
    assert tree.live == ("a1", "a2", "b")


def test_messages_without_branches_follow_each_other() -> None:
    found = assembled(ForeignConversation("fake"), [Said(key, Kind.USER, key) for key in "abc"])
    assert {each.key: each.parent for each in found.messages} == {"a": None, "b": "a", "c": "b"}
    assert found.live == ("a", "b", "c")


def test_a_conversation_may_be_a_hundred_thousand_messages_long() -> None:
    nodes = [node(str(number), str(number - 1)) for number in range(100_000)]
    assert len(joined(reversed(nodes)).live) == 100_000


KEYS = st.sampled_from("abcdefg")
NODES = st.builds(
    Node,
    KEYS,
    st.none() | st.sampled_from("abcdefgh"),
    st.lists(st.builds(message, KEYS, st.none() | st.integers(0, 3)), max_size=2).map(tuple),
)


@given(st.lists(NODES, max_size=10), st.none() | KEYS)
def test_any_tree_has_parents_first_and_one_path(nodes: list[Node], leaf: str | None) -> None:
    tree = joined(nodes, leaf)
    parents = parents_of(tree)
    keys = list(parents)
    assert len(keys) == len(tree.messages)
    assert {each.key for of in {one.key: one for one in nodes}.values() for each in of.messages} == set(keys)
    for position, key in enumerate(keys):
        assert parents[key] is None or parents[key] in keys[:position]
    assert [parents[key] for key in tree.live[:1]] == [None] * len(tree.live[:1])
    assert all(parents[after] == before for before, after in pairwise(tree.live))
