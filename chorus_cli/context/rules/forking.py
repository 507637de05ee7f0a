"""Forking a thread: the part of its view that another thread begins with, and the title of that thread."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from chorus_cli.core.errors import JournalError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.log.rules.messages import Status, is_written, turns

if TYPE_CHECKING:
    from collections.abc import Collection

    from chorus_cli.context.rules.view import View

_MARK = re.compile(r" \(fork(?: \d+)?\)\Z")
_LONGEST_TITLE = 60


def forkable(view: View, through_id: int | None = None) -> View:
    """Return the view without turns in progress, and only up to the turn of message ``through_id`` if that is given.

    The summary stays where it stands for the beginning of the messages still.

    Raises:
        JournalError: nothing is left.
    """
    if through_id is not None:
        view = view.through(_end_of_turn(view, through_id))
    running = {row.turn_id for row in view.messages if row.status is Status.STREAMING}
    if through_id is not None and any(row.id == through_id and row.turn_id in running for row in view.messages):
        raise JournalError(
            f"The turn of message #{through_id} is still being answered. Fork it when the reply is there."
        )
    complete = tuple(row for row in view.messages if row.turn_id not in running)
    if not any(map(is_written, complete)):
        reason = "only a turn that is still being answered is in context" if running else "nothing is in context here"
        raise JournalError(f"There is nothing to fork: {reason}. /thread new opens an empty thread.")
    is_whole = complete[: view.folded_number] == view.folded
    return replace(view if is_whole else replace(view, summary=None, folded_number=0), messages=complete)


def title_of_fork(title: str, taken: Collection[str]) -> str:
    """Return the title of a fork: ``Rome (fork)``, or with a number if that title is among those ``taken``."""
    base = _MARK.sub("", " ".join(title.split()))
    number, mark = 1, "(fork)"
    while True:
        found = f"{shortened(base, _LONGEST_TITLE - len(mark) - 1)} {mark}".lstrip()
        if found not in taken:
            return found
        number += 1
        mark = f"(fork {number})"


def _end_of_turn(view: View, message_id: int) -> int:
    """Return the number of messages up to the end of the turn that a message of the view stands in."""
    end = 0
    for turn in turns(view.messages):
        end += len(turn)
        if any(row.id == message_id for row in turn):
            return end
    raise JournalError(
        f"Message #{message_id} is not in context here, so nothing was forked. /search shows the numbers of messages, "
        "/context edit brings one back into context."
    )
