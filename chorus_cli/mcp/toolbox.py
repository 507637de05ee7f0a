"""Offers built-in tools and servers' tools to a model, and carries out the model's calls."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from chorus_cli.core import limits
from chorus_cli.core.errors import ChorusError, StorageError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time import timestamps
from chorus_cli.models.rules.declaration import NO_OFFER, Tool, ToolOffer, read_call
from chorus_cli.storage import meta_rows
from chorus_cli.tools.service import BUILT_IN, Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from chorus_cli.log.rules.calls import ToolCall
    from chorus_cli.machine.ports import TokenCounter
    from chorus_cli.mcp.service import ServerTools
    from chorus_cli.models.rules.budget import Limit
    from chorus_cli.models.rules.declaration import ReadCall
    from chorus_cli.models.rules.events import PermissionAsked
    from chorus_cli.personas.rules.persona import Target
    from chorus_cli.tools.service import BuiltIn, Caller, ToolServices

MOST_CALLS = limits.CALLS.most
"""The most calls of one reply that Chorus carries out."""

_LARGEST_SHARE = 1 / 10
"""The share of the model's token limit that the built-in tools may take; if they take more, none of them is offered."""

_SHARE_WITH_SERVERS = 1 / 4
"""The share that built-in tools and servers' tools may take together; servers' tools that do not fit are left out."""

_REFUSAL_HOLDS = timedelta(days=30)
"""After this time a model that refused tools is offered tools again, because its provider may now support them."""

_NOTHING = "(no result)"


@dataclass(slots=True)
class Toolbox:
    """Decides which tools a model is offered, remembers the models that refuse them, and carries out calls.

    ``takes_tools`` says whether a model probably accepts tools; the first request shows whether it does.
    ``report_bug`` stores the traceback of a tool that failed by a bug.
    """

    services: ToolServices
    counter: TokenCounter
    takes_tools: Callable[[str], bool]
    report_bug: Callable[[Exception], object]
    servers: ServerTools
    built_in: Sequence[BuiltIn] = BUILT_IN
    _counts: dict[Tool, int] = field(default_factory=dict, init=False)
    _takes: dict[str, bool] = field(default_factory=dict, init=False)
    _without_servers: set[str] = field(default_factory=set, init=False)

    async def read(self, calls: Sequence[ToolCall], offered: Sequence[Tool]) -> list[ReadCall]:
        """Read the arguments of calls of ``offered`` tools, in a thread because repairing JSON may take a second."""
        tools = {tool.name: tool for tool in offered}
        read = (read_call(call, tools, repairs=number < MOST_CALLS) for number, call in enumerate(calls))
        return await asyncio.to_thread(list, read)

    def asked(self, call: ReadCall, caller: Caller) -> PermissionAsked | None:
        """Return the question that the user has to answer before a call is carried out; ``None`` if there is none."""
        origin = call.tool.origin if call.tool and not call.problem else None
        return self.servers.asked(call, origin, caller) if origin else None

    async def answer(self, call: ReadCall, caller: Caller) -> Answer:
        """Carry out a call and return its answer; if the call fails, the answer tells the model the error."""
        answer = await self._answer(call, caller)
        nothing = "" if answer.attachments else _NOTHING
        return answer._replace(text="\n\n".join(filter(None, (call.note, answer.text))) or nothing)

    async def _answer(self, call: ReadCall, caller: Caller) -> Answer:
        if call.tool is None:
            return Answer(call.problem, "no such tool", was_refused=True)
        try:
            arguments = call.arguments()
            if origin := call.tool.origin:
                return await self.servers.answer(call, origin, caller)
            handler = next(each.handler for each in self.built_in if each.tool is call.tool)
            return await handler(self.services, caller, arguments)
        except ChorusError as error:
            return Answer(str(error), shortened(str(error)), was_refused=True)
        except Exception as error:  # noqa: BLE001 - the model is told, and the turn goes on
            self.report_bug(error)
            return Answer(
                f"The tool {call.call.name} failed because of a mistake in Chorus. Go on without it.", "failed"
            )

    async def of_target(self, target: Target, limit: Limit) -> ToolOffer:
        """Return the tools to offer to a target's model within ``limit``; none if a setting or the model forbids it."""
        model = target.choice.model
        if not target.persona.settings.tools:
            return NO_OFFER
        if model not in self._takes:
            self._takes[model] = await self._ask_whether_taken(model)
        if not self._takes[model]:
            return NO_OFFER
        outside = self.of_servers(target)
        if not self.counter.is_ready:
            bounded = self._fitting(outside, limit.tokens, self._at_most)
            if bounded.tools and not bounded.left_out:
                return bounded
        if any(tool not in self._counts for tool in (*outside, *(each.tool for each in self.built_in))):
            return await asyncio.to_thread(self._fitting, outside, limit.tokens, self._counted)
        return self._fitting(outside, limit.tokens, self._counted)

    def connecting(self, target: Target) -> tuple[str, ...]:
        """Begin to connect to the persona's servers; return the names of those that a message should wait for."""
        return self.servers.connecting(target.persona.slug) if self._takes_servers(target) else ()

    async def connected(self, target: Target) -> list[str]:
        """Wait for the persona's servers; return a sentence about each missing one that no earlier call reported."""
        return await self.servers.connected(target.persona.slug) if self._takes_servers(target) else []

    def of_servers(self, target: Target) -> Sequence[Tool]:
        """Return the tools of servers that may be offered to a target's model."""
        return self.servers.tools(target.persona.slug) if self._takes_servers(target) else ()

    def _takes_servers(self, target: Target) -> bool:
        model = target.choice.model
        return target.persona.settings.tools and self._takes.get(model, False) and model not in self._without_servers

    async def refused(self, model: str, kept: ToolOffer) -> str:
        """Remember that a model refused all tools but those ``kept``, and return the notice for the user."""
        if kept.tools:
            self._without_servers.add(model)
            return f"{model} refused the tools of servers, so it gets none until you quit."
        self._takes[model] = False
        now = timestamps.to_text(self.services.clock.now())
        # If this cannot be stored, the next run finds it out again.
        with suppress(StorageError):
            await self.services.store.write(meta_rows.store, meta_rows.TOOLS_REFUSED + model, now)
        return f"{model} takes no tools, so Chorus sends it none."

    async def _ask_whether_taken(self, model: str) -> bool:
        written = await self.services.store.read(meta_rows.value, meta_rows.TOOLS_REFUSED + model)
        with suppress(ValueError):
            if written is not None and self.services.clock.now() - timestamps.from_text(written) < _REFUSAL_HOLDS:
                return False
        # The first call of ``takes_tools`` reads a large file.
        return await asyncio.to_thread(self.takes_tools, model)

    def _fitting(self, outside: Sequence[Tool], limit_tokens: int, count: Callable[[Tool], int]) -> ToolOffer:
        """Offer the built-in tools, and the tools of servers for which there is room."""
        tools = [each.tool for each in self.built_in]
        counts = [count(tool) for tool in tools]
        if sum(counts) > limit_tokens * _LARGEST_SHARE:
            tools, counts = [], []
        left_out: list[Tool] = []
        room_tokens = int(limit_tokens * _SHARE_WITH_SERVERS) - sum(counts)
        for tool in outside:
            tokens = count(tool)
            if tokens > room_tokens or len(tools) >= limits.OFFERED_TOOLS.most:
                left_out.append(tool)
                continue
            room_tokens -= tokens
            tools.append(tool)
            counts.append(tokens)
        return ToolOffer(tuple(tools), tuple(counts), tuple(left_out))

    def _at_most(self, tool: Tool) -> int:
        return self.counter.at_most(json.dumps(tool.declaration))

    def _counted(self, tool: Tool) -> int:
        if tool not in self._counts:
            self._counts[tool] = self.counter.count(json.dumps(tool.declaration))
        return self._counts[tool]
