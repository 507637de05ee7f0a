"""A data export of ChatGPT of any size, in shards as the site makes them, always the same for the same size."""

from __future__ import annotations

import json
import zipfile
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.prose import prose

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SHARD_CONVERSATIONS = 100
_PARAGRAPHS = 400
_TURNS = 25
_REPEATED = 5
_BEGAN = 1_600_000_000.0
_SECONDS_BETWEEN = 30.0


class Written(NamedTuple):
    """The size of an export: JSON in bytes, conversations, their messages, and those that are on other branches."""

    json_bytes: int
    conversations: int
    messages: int
    superseded: int


def write_export(path: Path, least_bytes: int, turns: int = _TURNS) -> Written:
    """Write an archive with shards of at least so many bytes together; each conversation has so many turns.

    Each fifth reply was made a second time, so that the first one is on another branch.
    """
    chance = Random(1)  # noqa: S311 - a benchmark draws no secrets
    paragraphs = [prose(chance, 20 + number * 2 % 480) for number in range(_PARAGRAPHS)]
    superseded = len(range(0, turns, _REPEATED))
    size = conversations = 0
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("user.json", "{}")
        while size < least_bytes:
            begun = conversations
            with archive.open(f"conversations-{conversations // _SHARD_CONVERSATIONS:03}.json", "w") as shard:
                while size < least_bytes and conversations < begun + _SHARD_CONVERSATIONS:
                    drawn = chance.choices(paragraphs, k=2 * turns + superseded)
                    data = json.dumps(_conversation(conversations, turns, iter(drawn)), ensure_ascii=False).encode()
                    size += shard.write((b"," if conversations > begun else b"[") + data)
                    conversations += 1
                shard.write(b"]")
    return Written(size, conversations, conversations * (2 * turns + superseded), conversations * superseded)


def _conversation(number: int, turns: int, texts: Iterator[str]) -> dict[str, object]:
    began = _BEGAN + number * turns * _SECONDS_BETWEEN
    nodes = [_Node(f"{number}-root", None), _Node(f"{number}-hidden", f"{number}-root", "system")]
    last = nodes[-1].key
    for turn in range(turns):
        time = began + turn * _SECONDS_BETWEEN
        question, reply = f"{number}-{turn}-question", f"{number}-{turn}-reply"
        nodes.append(_Node(question, last, "user", next(texts), time))
        if turn % _REPEATED == 0:
            nodes.append(_Node(f"{reply}-first", question, "assistant", next(texts), time + 1))
        nodes.append(_Node(reply, question, "assistant", next(texts), time + 2))
        last = reply
    return {
        "conversation_id": f"talk-{number}",
        "title": f"Talk {number} 🍵",
        "create_time": began,
        "current_node": last,
        "mapping": {node.key: node.as_json() for node in nodes},
    }


class _Node(NamedTuple):
    """A node of a conversation; one without a role has no message."""

    key: str
    parent: str | None
    role: str = ""
    text: str = ""
    time: float | None = None

    def as_json(self) -> dict[str, object]:
        """Return the node as the site writes it."""
        message: dict[str, object] = {
            "id": self.key,
            "author": {"role": self.role, "name": None, "metadata": {}},
            "create_time": self.time,
            "content": {"content_type": "text", "parts": [self.text]},
            "status": "finished_successfully",
            "weight": 1.0,
            "metadata": {"model_slug": "gpt-4o"} if self.role == "assistant" else {},
            "recipient": "all",
        }
        return {"id": self.key, "message": message if self.role else None, "parent": self.parent, "children": []}
