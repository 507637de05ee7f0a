"""The schedule of folds: at once where a request is too large, in the background before it comes to that."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from chorus_cli.context.rows import summary_rows
from chorus_cli.core.errors import ChorusError, ModelError, StorageError
from chorus_cli.log.rules.id_ranges import expanded
from chorus_cli.machine.cancellation import run_to_completion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from chorus_cli.context.rules.summaries import Summary
    from chorus_cli.personas.rules.target import Target
    from chorus_cli.storage.store import Store
    from chorus_cli.turns.folding.folding import Folding

_FAILED = "a failed fold"


class FoldSchedule:
    """Decides when to fold; a failure is told once, and tried again a few turns later by any process.

    ``tell`` takes notices of folds in the background; without it there are none. ``told`` are the subjects of the
    notices given already, by the thread.
    """

    def __init__(
        self,
        store: Store,
        folding: Folding,
        report_bug: Callable[[Exception], object],
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._store = store
        self._folding = folding
        self._report_bug = report_bug
        self._tell = tell
        self.has_background = tell is not None
        self.told: dict[int, set[str]] = {}
        self._background: dict[int, asyncio.Task[None]] = {}

    def forget_crowded(self, target: Target) -> None:
        """Forget the notices of crowded requests, because the request of this turn is none."""
        self._told_of(target).intersection_update({_FAILED})

    async def is_worth_trying(self, target: Target) -> bool:
        """Return whether a fold may help: there is something to fold, a model, and the last try is a while ago."""
        return not await self._is_resting(target) and await self._folding.is_due(target)

    async def at_once(self, target: Target) -> str:
        """Fold now, unless a background fold has just made room or failed; return a notice for the user."""
        running = self._background.get(target.thread_id)
        if running is not None:
            await asyncio.wait({running})
        return "" if await self._is_resting(target) else await self._folded(target)

    def begin_in_background(self, target: Target) -> None:
        """Fold in the background if it is time, unless a fold is running already."""
        running = self._background.get(target.thread_id)
        if self._tell is None or (running is not None and not running.done()):
            return
        self._background[target.thread_id] = asyncio.create_task(self._fold_in_background(target, self._tell))

    def news(self, target: Target, shortfalls: Mapping[str, str]) -> list[str]:
        """Return the warnings, by their subjects, that the previous request did not have."""
        told = self._told_of(target)
        new = [sentence for subject, sentence in shortfalls.items() if subject not in told]
        self.told[target.thread_id] = {*shortfalls, *(told & {_FAILED})}
        return new

    async def close(self) -> None:
        """Cancel running folds; the summaries before them stay."""
        tasks = {task for task in self._background.values() if not task.done()}
        for task in tasks:
            task.cancel()
        if tasks:
            await run_to_completion(asyncio.wait(tasks))

    async def _fold_in_background(self, target: Target, tell: Callable[[str], None]) -> None:
        try:
            if not await self.is_worth_trying(target):
                return
            notice = await self._folded(target)
        except ChorusError:
            # The next turn meets the same error and tells it.
            return
        except Exception as error:  # noqa: BLE001 - nothing awaits this task, and the chat goes on without it
            self._report_bug(error)
            return
        if notice:
            tell(notice)

    async def _folded(self, target: Target) -> str:
        try:
            summary = await self._folding.fold(target)
        except (ModelError, StorageError) as error:
            return await self._failed(target, error)
        if summary is None:
            return ""
        self._told_of(target).clear()
        return folded_text(summary)

    async def _failed(self, target: Target, error: ChorusError) -> str:
        # A failure that cannot be stored now is met again by the next turn.
        with suppress(StorageError):
            await self._store.write(summary_rows.store_failure, target.thread_id)
        if _FAILED in self._told_of(target):
            return ""
        self._told_of(target).add(_FAILED)
        return f"The older part of the conversation could not be summarised: {error} It is tried again by itself."

    async def _is_resting(self, target: Target) -> bool:
        return await self._store.read(summary_rows.is_resting, target.thread_id)

    def _told_of(self, target: Target) -> set[str]:
        """Return the subjects of the notices given already in a thread."""
        return self.told.setdefault(target.thread_id, set())


def folded_text(summary: Summary) -> str:
    """Return the notice of a fold: how many messages, how to read the summary, how to undo it."""
    number = len(expanded(summary.stands_for))
    return (
        f"The oldest {number:,} messages in context are summarised now. /context summary shows how; "
        f"/context undo {summary.number} takes it back."
    )
