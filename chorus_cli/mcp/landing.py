"""The page on this machine to which the browser returns at the end of a sign-in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from html import escape

from chorus_cli.core.errors import SignInError
from chorus_cli.mcp.rules.sign_in import Brought, brought

_PATH = "/callback"
_LONGEST_REQUEST_BYTES, _REQUEST_SECONDS = 64_000, 10.0
_OF_ANOTHER = "Chorus did not take this answer: it belongs to another sign-in. Go on in the page that Chorus opened."
_PAGE = "<!doctype html><meta charset=utf-8><title>Chorus</title><p>{told} You can close this page."


class Landing:
    """A page at ``address`` that takes one answer: the first that belongs to the sign-in."""

    def __init__(self) -> None:
        self.address = ""
        self._state = ""
        self._arrived: asyncio.Future[Brought] = asyncio.get_running_loop().create_future()

    def expect(self, state: str) -> None:
        """Take only an answer with this state from now on."""
        self._state = state

    async def brought(self) -> Brought:
        """Wait for the browser; raise a ``SignInError`` if it brings no code for this sign-in."""
        return await self._arrived

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a request."""
        with suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head.decode("latin-1")))
                await writer.drain()
        writer.close()

    def _answer(self, head: str) -> bytes:
        method, target, *_ = [*head.partition("\r\n")[0].split(" "), "", ""]
        path, _, query = target.partition("?")
        # Browsers ask for an icon too.
        if (method, path) != ("GET", _PATH) or self._arrived.done() or not self._state:
            return _response("404 Not Found", "This is no page of Chorus.")
        try:
            found = brought(query, self._state)
        except SignInError as error:
            self._arrived.set_exception(error)
            return _response("400 Bad Request", f"You are not signed in: {error}.")
        if found is None:
            return _response("400 Bad Request", _OF_ANOTHER)
        self._arrived.set_result(found)
        return _response("200 OK", "Chorus has the answer.")


def _response(status: str, told: str) -> bytes:
    body = _PAGE.format(told=escape(told)).encode()
    lines = (
        f"HTTP/1.1 {status}",
        "Content-Type: text/html; charset=utf-8",
        f"Content-Length: {len(body)}",
        # The address of the page has the code.
        "Referrer-Policy: no-referrer",
        "Cache-Control: no-store",
        "Connection: close",
    )
    return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def landing() -> AsyncIterator[Landing]:
    """Serve the page, on this machine alone and at a free port, until the end of the block."""
    page = Landing()
    server = await asyncio.start_server(page.serve, "127.0.0.1", 0, limit=_LONGEST_REQUEST_BYTES)
    try:
        page.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{_PATH}"
        yield page
    finally:
        server.close()
