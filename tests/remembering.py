"""How a model of the tests remembers: its summary keeps every word with an exclamation mark, and no other."""

from __future__ import annotations

from chorus_cli.turns.rules import task

PREFIX = "Summary:"
_SUMMARISER = task(1)[:60]


def wants_summary(system_message: str) -> bool:
    """Return whether a request that begins so is for a summary, and no part of the talk."""
    return system_message.startswith(_SUMMARISER)


def summary_of(text: str) -> str:
    """Return the words of ``text`` that are remembered, each once."""
    return " ".join([PREFIX, *dict.fromkeys(word for word in text.split() if word.endswith("!"))])
