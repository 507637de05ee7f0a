"""Notices on arrival at a persona: flaws of its files, unused texts, messages outside the window, broken replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.context.rows.window_counts import window_fill
from chorus_cli.core.text.phrases import enumerated, shortened
from chorus_cli.core.time.timeline import age
from chorus_cli.core.time.window import MAXIMUM_CONTEXT_HOURS, cutoff, window_reaching
from chorus_cli.log.rows import interrupted_replies as orphans
from chorus_cli.storage.drafts import KEPT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from chorus_cli.context.rows.window_counts import WindowFill
    from chorus_cli.log.rows.interrupted_replies import BrokenOff
    from chorus_cli.personas.rules.target import Target
    from chorus_cli.storage.store import Store

SHARED = "Another Chorus is open in this thread."


async def notices(store: Store, target: Target, now: datetime) -> tuple[str, ...]:
    """Return the warnings about the persona's files, and the notices about messages outside the window and the reply.

    The latter names the question if the last reply of the thread was interrupted.
    """
    hours = target.persona.settings.context_hours
    fill = await store.read(
        window_fill, target.persona.slug, target.thread_id, cutoff(now, hours), cutoff(now, MAXIMUM_CONTEXT_HOURS)
    )
    question = await store.read(orphans.interrupted_question, target.persona.slug, target.thread_id, cutoff(now, hours))
    found = (window_notice(fill, hours, now), "" if question is None else _interrupted(question))
    return (*target.persona.warnings, *filter(None, found))


def _interrupted(question: str) -> str:
    return f'The reply to "{shortened(question)}" was interrupted; /retry asks again.'


def interrupted_elsewhere(target: Target, interrupted: Sequence[BrokenOff]) -> tuple[str, ...]:
    """Return a sentence that names the interrupted replies outside the thread that the user comes to."""
    others = [
        f"thread #{each.thread_number}" + ("" if each.persona == target.persona.slug else f" of {each.persona}")
        for each in interrupted
        if not _is_in(target, each)
    ]
    if not others:
        return ()
    begun = f"The reply in {others[0]} was" if len(others) == 1 else f"The replies in {enumerated(others)} were"
    return (f"{begun} interrupted; /retry there asks again.",)


def question_in(target: Target, interrupted: Sequence[BrokenOff]) -> str:
    """Return the message that the interrupted reply in the thread that the user comes to answers; empty without one."""
    return next((each.question for each in interrupted if _is_in(target, each)), "")


def _is_in(target: Target, reply: BrokenOff) -> bool:
    return (reply.persona, reply.thread_number) == (target.persona.slug, target.thread_number)


def unused_notices(edits: Sequence[Path], unsent: int) -> tuple[str, ...]:
    """Return sentences about edits that were not used, the newest last, and about the number of unsent messages."""
    return (*_edits_notice(edits), *_unsent_notice(unsent))


def _edits_notice(kept: Sequence[Path]) -> tuple[str, ...]:
    if not kept:
        return ()
    if len(kept) == 1:
        once = "delete the file if you do not want it."
        return (f"An edit that was not used is kept in {kept[0]} for {KEPT.days} days; {once}",)
    newest = f"the newest is {kept[-1].name}. Delete the files that you do not want."
    return (f"{len(kept):,} edits that were not used are kept in {kept[-1].parent} for {KEPT.days} days; {newest}",)


def _unsent_notice(count: int) -> tuple[str, ...]:
    if not count:
        return ()
    are = "A message that was not sent is" if count == 1 else f"{count:,} messages that were not sent are"
    return (f"{are} kept for {KEPT.days} days; /rescue shows {'it' if count == 1 else 'them'}.",)


def window_notice(fill: WindowFill, hours: int, now: datetime) -> str:
    """Return a sentence that says how much the window leaves out, and which window has all; empty if it has all."""
    if fill.last_spoken is None or (fill.held == fill.reachable > 0):
        return ""
    talked = f"Last talked {age(now - fill.last_spoken)} ago"
    if fill.oldest is None:
        return (
            f"{talked}; the {hours}h window is empty, and no window reaches back that far. "
            "Nothing is lost: /context edit brings back what you choose, chorus log prints it all."
        )
    wider = window_reaching(now - fill.oldest)
    return (
        f"{talked}; the {hours}h window holds {fill.held:,} of {fill.reachable:,} messages. "
        f"/context {wider}h brings them back."
    )
