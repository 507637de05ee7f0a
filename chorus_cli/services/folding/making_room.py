"""When conversations are folded: at once where a request is too large, behind the talk before it comes to that."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ChorusError, ModelError, StorageError
from chorus_cli.core.log.runs import expanded
from chorus_cli.services.uninterrupted import finished

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from chorus_cli.core.context.summary import Summary
    from chorus_cli.services.folding.folding import Folding
    from chorus_cli.services.personas.place import Place

_TURNS_OF_REST = 3
_FAILED = "a failed fold"


@dataclass
class _Folds:
    """What became of the folds of a thread: turns to wait before the next try, and what was said already."""

    resting_turns: int = 0
    told: set[str] = field(default_factory=set)


class MakingRoom:
    """Folds when it is time, and says so; what fails is said once, and tried again a few turns later."""

    def __init__(self, folding: Folding, report_bug: Callable[[Exception], object]) -> None:
        self.folding = folding
        self._report_bug = report_bug
        self._tell: Callable[[str], None] | None = None
        self._folds: dict[int, _Folds] = {}
        self._behind: dict[int, asyncio.Task[None]] = {}

    def fold_behind_the_talk(self, tell: Callable[[str], None]) -> None:
        """Fold behind the talk too from now on; ``tell`` says a sentence beside it."""
        self._tell = tell

    def turn_begins(self, place: Place) -> None:
        """Count a turn, for what failed is tried again some turns later."""
        folds = self._of(place)
        folds.resting_turns = max(0, folds.resting_turns - 1)

    async def is_worth_trying(self, place: Place) -> bool:
        """Return whether a fold may help: there is something to fold, a model, and the last try is a while ago."""
        return not self._of(place).resting_turns and await self.folding.is_due(place)

    async def at_once(self, place: Place) -> str:
        """Fold now, unless a fold behind the talk has just made room or failed; return what the user should be told."""
        running = self._behind.get(place.thread_id)
        if running is not None:
            await asyncio.wait({running})
        return "" if self._of(place).resting_turns else await self._folded(place)

    def behind(self, place: Place) -> None:
        """Fold behind the talk if it is time, unless that is being done already."""
        running = self._behind.get(place.thread_id)
        if self._tell is None or (running is not None and not running.done()):
            return
        self._behind[place.thread_id] = asyncio.create_task(self._fold_behind(place, self._tell))

    def news(self, place: Place, shortfalls: Mapping[str, str]) -> list[str]:
        """Return of the sentences about a request, by what they speak of, those that were not so of the one before."""
        folds = self._of(place)
        new = [sentence for subject, sentence in shortfalls.items() if subject not in folds.told]
        folds.told = {*shortfalls, *(folds.told & {_FAILED})}
        return new

    async def close(self) -> None:
        """Give up what is being folded; the summaries before stand."""
        tasks = {task for task in self._behind.values() if not task.done()}
        for task in tasks:
            task.cancel()
        if tasks:
            await finished(asyncio.wait(tasks))

    async def _fold_behind(self, place: Place, tell: Callable[[str], None]) -> None:
        try:
            if not await self.is_worth_trying(place):
                return
            notice = await self._folded(place)
        except ChorusError:
            # Whatever keeps it from being looked at is told to whoever talks next.
            return
        except Exception as error:  # noqa: BLE001 - nobody waits for this task, and the talk goes on without it
            self._report_bug(error)
            return
        if notice:
            tell(notice)

    async def _folded(self, place: Place) -> str:
        try:
            summary = await self.folding.fold(place)
        except (ModelError, StorageError) as error:
            return self._failed(place, error)
        if summary is None:
            return ""
        self._of(place).told.clear()
        return folded_text(summary)

    def _failed(self, place: Place, error: ChorusError) -> str:
        self._of(place).resting_turns = _TURNS_OF_REST
        if _FAILED in self._of(place).told:
            return ""
        self._of(place).told.add(_FAILED)
        return f"The older part of the conversation could not be summarised: {error} It is tried again by itself."

    def _of(self, place: Place) -> _Folds:
        return self._folds.setdefault(place.thread_id, _Folds())


def folded_text(summary: Summary) -> str:
    """Say what was folded, how to look at it, and how to take it back."""
    number = len(expanded(summary.stands_for))
    return (
        f"The oldest {number:,} messages in context are summarised now. /context summary shows how; "
        f"/context undo {summary.operation_id} takes it back."
    )
