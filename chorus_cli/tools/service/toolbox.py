"""The toolbox: the tools that a model is offered, and the answers to its calls."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from chorus_cli.core import limits
from chorus_cli.core.errors import ChorusError, StorageError
from chorus_cli.core.text.cutting import cut_to_characters
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time import timestamps
from chorus_cli.models.rules.arguments import read_call
from chorus_cli.models.rules.declaration import NO_OFFER, ToolOffer
from chorus_cli.storage import meta_rows
from chorus_cli.tools.service.built_in import BUILT_IN, Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from chorus_cli.log.rules.calls import ToolCall
    from chorus_cli.machine.ports import Clock, TokenCounter
    from chorus_cli.models.rules.arguments import ReadCall
    from chorus_cli.models.rules.budget import Limit
    from chorus_cli.personas.rules.target import Target
    from chorus_cli.storage.store import Store
    from chorus_cli.tools.service.built_in import BuiltIn, Caller, ToolServices

MOST_CALLS = limits.CALLS.most
"""The most calls of a reply that are carried out."""

LONGEST_RESULT = limits.TOOL_RESULT.most
"""The most characters of a result."""

_LARGEST_SHARE = 1 / 10
"""The share of the model's limit that the declarations of tools may take; a smaller model is offered none."""

_REFUSAL_HOLDS = timedelta(days=30)
"""A model that refused tools is offered some again after that, because models learn."""

_NOTHING = "(no result)"


@dataclass(frozen=True, slots=True)
class Toolbox:
    """Carries out calls. ``report_bug`` keeps the traceback of a tool that failed."""

    services: ToolServices
    report_bug: Callable[[Exception], object]
    built_in: Sequence[BuiltIn] = BUILT_IN

    async def read(self, calls: Sequence[ToolCall]) -> list[ReadCall]:
        """Read the arguments of a reply's calls, in a thread: to repair long ones takes a second."""
        return await asyncio.to_thread(self._read, calls)

    def _read(self, calls: Sequence[ToolCall]) -> list[ReadCall]:
        tools = {each.tool.name: each.tool for each in self.built_in}
        return [read_call(call, tools, repairs=number < MOST_CALLS) for number, call in enumerate(calls)]

    async def answer(self, call: ReadCall, caller: Caller) -> Answer:
        """Carry out a call; an error is told to the model as the answer."""
        answer = await self._answer(call, caller)
        words = (call.note, cut_to_characters(answer.text, LONGEST_RESULT))
        return Answer("\n\n".join(filter(None, words)) or _NOTHING, answer.outcome)

    async def _answer(self, call: ReadCall, caller: Caller) -> Answer:
        handler = next((each.handler for each in self.built_in if each.tool is call.tool), None)
        if handler is None:
            known = ", ".join(each.tool.name for each in self.built_in)
            return Answer(f"There is no tool {call.call.name!r}. The tools are: {known}.", "no such tool")
        try:
            return await handler(self.services, caller, call.arguments())
        except ChorusError as error:
            return Answer(str(error), shortened(str(error)))
        except Exception as error:  # noqa: BLE001 - the model is told, and the turn goes on
            self.report_bug(error)
            return Answer(
                f"The tool {call.call.name} failed because of a mistake in Chorus. Go on without it.", "failed"
            )


@dataclass(slots=True)
class ToolOffers:
    """Decides which tools a model is offered, and remembers the models that refuse them.

    ``takes_tools`` returns whether a model takes tools, as far as is known before it is asked.
    """

    store: Store
    clock: Clock
    counter: TokenCounter
    takes_tools: Callable[[str], bool]
    built_in: Sequence[BuiltIn] = BUILT_IN
    _offer: ToolOffer | None = field(default=None, init=False)
    _takes: dict[str, bool] = field(default_factory=dict, init=False)

    async def of_target(self, target: Target, limit: Limit) -> ToolOffer:
        """Return the tools that are offered to the model of a target, which has the given limit."""
        model = target.choice.model
        if not target.persona.settings.tools:
            return NO_OFFER
        if model not in self._takes:
            self._takes[model] = await self._ask_whether_taken(model)
        if not self._takes[model]:
            return NO_OFFER
        most_tokens = limit.tokens * _LARGEST_SHARE
        if not self.counter.is_ready:
            bounded = self._measured(self.counter.at_most)
            if bounded.tokens <= most_tokens:
                return bounded
        if self._offer is None:
            self._offer = await asyncio.to_thread(self._measured, self.counter.count)
        return self._offer if self._offer.tokens <= most_tokens else NO_OFFER

    async def refused(self, model: str) -> str:
        """Remember that a model refused tools, and return the notice for the user."""
        self._takes[model] = False
        now = timestamps.to_text(self.clock.now())
        # What cannot be stored now, the next run finds out again.
        with suppress(StorageError):
            await self.store.write(meta_rows.store, meta_rows.tools_refused_key(model), now)
        return f"{model} takes no tools, so it is asked without them from now on."

    async def _ask_whether_taken(self, model: str) -> bool:
        written = await self.store.read(meta_rows.value, meta_rows.tools_refused_key(model))
        has_refused = written is not None and self._holds(written)
        # The first question reads a large file.
        return not has_refused and await asyncio.to_thread(self.takes_tools, model)

    def _holds(self, written: str) -> bool:
        try:
            return self.clock.now() - timestamps.from_text(written) < _REFUSAL_HOLDS
        except ValueError:
            return False

    def _measured(self, count: Callable[[str], int]) -> ToolOffer:
        tools = tuple(each.tool for each in self.built_in)
        return ToolOffer(tools, sum(count(json.dumps(tool.declaration)) for tool in tools))
