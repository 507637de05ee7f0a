"""A program that is a server of the official library, over stdio or HTTP, and of the age that its arguments name."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from base64 import b64decode
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

NO_SUCH_METHOD = -32601
_PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def refuse_first_question() -> None:
    """Refuse the first question on standard input, after which the library would serve no handshake."""
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(0, 1)
    error = {"code": NO_SUCH_METHOD, "message": "no such method"}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"], "error": error}) + "\n")
    sys.stdout.flush()


async def old_age(ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
    """Refuse, over HTTP, the question with which the age of 2026 begins."""
    if ctx.method == "server/discover":
        raise MCPError(NO_SUCH_METHOD, "no such method")
    return await call_next(ctx)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def picture() -> list[str | Image]:
    """Return a picture."""
    return ["Here.", Image(data=b64decode(_PICTURE), format="png")]


def weather(city: str) -> dict[str, str]:
    """Return a structure."""
    return {"city": city, "sky": "blue"}


def fail() -> str:
    """Fail."""
    raise ToolError("no such city")


async def work(seconds: float, context: Context[Any, Any], *, reports: bool = True) -> str:
    """Work for some seconds."""
    for tenth in range(int(seconds * 10)):
        await asyncio.sleep(0.1)
        if reports:
            await context.report_progress(tenth, seconds * 10)
    return "done"


def served(age: str) -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer("library", log_level="ERROR", middleware=[old_age] if age == "2025" else [])
    tools: tuple[Callable[..., Any], ...] = (add, picture, weather, fail, work)
    for tool in tools:
        server.add_tool(tool)
    return server


if __name__ == "__main__":
    transport, age, *port = sys.argv[1:]
    if transport == "stdio":
        if age == "2025":
            refuse_first_question()
        served(age).run()
    else:
        served(age).run("streamable-http", port=int(port[0]))
