"""A server of the Model Context Protocol on standard input and output, by the official SDK.

The SDK takes over a second to import. While it serves, it redirects other output of Chorus to standard error.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeAlias, TypeVar

import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from chorus_cli import __version__
from chorus_cli.core.errors import ChorusError, ToolError
from chorus_cli.core.time import timestamps
from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.mcp.history import ADDRESS, TOOLS, Seen, newest_threads, read_thread
from chorus_cli.models.rules.declaration import Arguments, ReadCall

T = TypeVar("T")

_TEXT = "text/plain"
_INSTRUCTIONS = (
    "Chorus keeps all conversations of its user with language models. Search them when the user refers to something "
    "that was said or decided before. You can only read."
)
Opened: TypeAlias = "Callable[[], AbstractAsyncContextManager[Seen]]"


class _Reading:
    """Answers requests from the log that ``opened`` opens; ``report_bug`` stores a traceback and returns a sentence."""

    def __init__(self, opened: Opened, report_bug: Callable[[Exception], str]) -> None:
        self._opened = opened
        self._report_bug = report_bug

    async def tools(self, *_request: object) -> types.ListToolsResult:
        hints = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
        return types.ListToolsResult(
            tools=[
                types.Tool(name=tool.name, description=tool.description, input_schema=tool.schema, annotations=hints)
                for tool, _ in TOOLS
            ]
        )

    async def call(self, _context: object, asked: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            told, is_error = await self._read(lambda seen: _answer(seen, asked)), False
        except MCPError as error:
            told, is_error = error.message, True
        return types.CallToolResult(content=[types.TextContent(text=told)], is_error=is_error)

    async def templates(self, *_request: object) -> types.ListResourceTemplatesResult:
        told = "A thread by its persona and its number, such as frodo/3: its newest messages."
        template = types.ResourceTemplate(
            uri_template=f"{ADDRESS}{{persona}}/{{number}}", name="thread", description=told, mime_type=_TEXT
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def threads(self, *_request: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=f"{ADDRESS}{name}",
                    name=name,
                    title=thread.title or f"Thread {name}",
                    description=f"last active {timestamps.local(thread.last_active):%Y-%m-%d %H:%M}",
                    mime_type=_TEXT,
                )
                for name, thread in await self._read(newest_threads)
            ]
        )

    async def thread(self, _context: object, asked: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        arguments = Arguments({"id": asked.uri})
        text = await self._read(lambda seen: read_thread.handler(seen, arguments))
        contents = types.TextResourceContents(uri=asked.uri, mime_type=_TEXT, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def _read(self, work: Callable[[Seen], Awaitable[T]]) -> T:
        """Open the log for ``work``; turn each error into an `MCPError` with a sentence, so that the server goes on."""
        try:
            async with self._opened() as seen:
                return await work(seen)
        except ChorusError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        except Exception as error:
            raise MCPError(types.INTERNAL_ERROR, self._report_bug(error)) from error


async def _answer(seen: Seen, asked: types.CallToolRequestParams) -> str:
    found = next((each for each in TOOLS if each.tool.name == asked.name), None)
    if found is None:
        known = ", ".join(each.tool.name for each in TOOLS)
        raise ToolError(f"Chorus has no tool {asked.name!r} for other programs. It has: {known}.")
    return await found.handler(
        seen, ReadCall(ToolCall("", asked.name, ""), found.tool, asked.arguments or {}).arguments()
    )


async def serve(opened: Opened, report_bug: Callable[[Exception], str]) -> None:
    """Answer the requests of another program until standard input ends."""
    reading = _Reading(opened, report_bug)
    server = Server(
        "chorus",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=reading.tools,
        on_call_tool=reading.call,
        on_list_resources=reading.threads,
        on_list_resource_templates=reading.templates,
        on_read_resource=reading.thread,
    )
    # The SDK's type demands a file, but the SDK only iterates over its lines.
    lines: Any = _lines_of_input()
    async with stdio_server(lines) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


async def _lines_of_input() -> AsyncIterator[str]:
    """Yield the lines of standard input; with the SDK's own reader, a signal would wait for the next line."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str | None]()

    def read() -> None:
        # The loop may be closed by now.
        with os.fdopen(os.dup(0), encoding="utf-8", errors="replace") as file, suppress(RuntimeError):
            for line in file:
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, name="requests", daemon=True).start()
    while (line := await lines.get()) is not None:
        yield line
