"""The prompts and the resources of servers, which the user sends and attaches; the model never asks for them."""

from __future__ import annotations

import asyncio
from concurrent.futures import wait
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from chorus_cli.attachments.service.attachments import File
from chorus_cli.core.errors import AttachmentError, CommandError, ToolError
from chorus_cli.mcp.rules.offers import arguments_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    from chorus_cli.mcp.connections import Connection
    from chorus_cli.mcp.rules.offers import Part, Prompt, Resource
    from chorus_cli.mcp.service import ServerTools

_Listed = TypeVar("_Listed")

_LISTING_SECONDS = 5.0


class ServerTexts(NamedTuple):
    """The prompts and the resources of the servers of the persona in focus, whose slug ``in_focus`` returns."""

    servers: ServerTools
    in_focus: Callable[[], str]

    def names(self) -> frozenset[str]:
        """Return the names of the servers, those that are off too."""
        return self.servers.names(self.in_focus())

    def known_prompts(self) -> list[tuple[str, Prompt]]:
        """Return the prompts that are listed now, each with its server; begin to list those of connected servers."""
        found = [(each.server.name, self.servers.connections.prompts(each)) for each in self._ready()]
        return [(name, prompt) for name, listed in found for prompt in _so_far(listed)]

    def known_resources(self, server: str) -> Sequence[Resource]:
        """Return the resources of a connected server that are listed now; begin to list them."""
        found = [self.servers.connections.resources(each) for each in self._ready() if each.server.name == server]
        return [resource for listed in found for resource in _so_far(listed)]

    async def listed(self, most_seconds: float) -> bool:
        """Wait for the lists that have begun and are not there yet; return whether there were any."""
        begun: list[Future[Any] | None] = [of for each in self._ready() for of in (each.prompts, each.resources)]
        waiting = [listed for listed in begun if listed and not listed.done()]
        if waiting:
            await asyncio.to_thread(wait, waiting, most_seconds)
        return bool(waiting)

    async def offered(self) -> Mapping[str, tuple[Sequence[Prompt], Sequence[Resource]]]:
        """List the prompts and the resources of the connected servers; what a server does not tell soon is left out."""
        asked, ready = self.servers.connections, self._ready()
        begun = {each.server.name: (asked.prompts(each), asked.resources(each)) for each in ready}
        await self.listed(_LISTING_SECONDS)
        return {name: (_so_far(prompts), _so_far(resources)) for name, (prompts, resources) in begun.items()}

    async def say(self, name: str, typed: str) -> tuple[Part, ...]:
        """Return what the prompt with the name ``server:prompt`` says with the arguments ``typed``."""
        server, _, word = name.partition(":")
        connection = await self.servers.reached(self.in_focus(), server)
        prompts = await asyncio.wrap_future(self.servers.connections.prompts(connection))
        found = next((each for each in prompts if each.word.casefold() == word.casefold()), None)
        if found is None:
            raise CommandError(f'The server {server} has no prompt "{word}". /tools lists the prompts.')
        return await self.servers.connections.prompt(connection, found.name, arguments_of(found, f"/{name}", typed))

    async def read(self, server: str, uri: str) -> list[File]:
        """Read a resource, which may have several texts and files; raise an ``AttachmentError`` if that fails."""
        try:
            connection = await self.servers.reached(self.in_focus(), server)
            parts = await self.servers.connections.resource(connection, uri)
        except ToolError as error:
            raise AttachmentError(f"{error} Nothing was sent.") from error
        if not parts:
            raise AttachmentError(f"The server {server} has nothing at {uri}. Nothing was sent.")
        return [File(f"{server}:{each.name}", each.data or each.text.encode(), server) for each in parts]

    def _ready(self) -> list[Connection]:
        return self.servers.ready(self.in_focus())


def _so_far(listed: Future[tuple[_Listed, ...]]) -> tuple[_Listed, ...]:
    """Return what is listed; nothing before the server has answered, or if it has failed."""
    is_there = listed.done() and not listed.cancelled() and listed.exception() is None
    return listed.result() if is_there else ()
