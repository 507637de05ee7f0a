"""A small HTTP server that answers every request with the bytes it was given, for faults no mock provider makes."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
JSON_HEAD = STREAM_HEAD.replace(b"text/event-stream", b"application/json")

HTML_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html>Please log in</html>"
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came over the wire; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, object]


@dataclass(slots=True, kw_only=True)
class Server:
    """A running server: where it is, and its connections, each served by a task."""

    address: str = ""
    connections: list[asyncio.StreamWriter] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(writer)
        self._tasks.add(asyncio.get_running_loop().create_task(self.serve(reader, writer)))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        for writer in self.connections:
            writer.transport.abort()
        await asyncio.gather(*self._tasks)


_Server = TypeVar("_Server", bound=Server)


@asynccontextmanager
async def running(server: _Server, context: ssl.SSLContext | None = None) -> AsyncIterator[_Server]:
    """Have a server listen, by TLS if there is a ``context``."""
    listener = await asyncio.start_server(server.connected, "127.0.0.1", 0, ssl=context)
    server.address = f"{'https' if context else 'http'}://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listener.close()
        await server.close()


@dataclass(slots=True)
class FaultServer(Server):
    """A server that tells what it was asked, and whether a client hung up on it."""

    answer: bytes
    hangs: bool
    asked: list[Asked] = field(default_factory=list)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.asked.append(await request_in(reader))
            writer.write(self.answer)
            await writer.drain()
            if self.hangs:
                await reader.read()
                self.hung_up.set()
        except (ConnectionError, asyncio.IncompleteReadError):
            self.hung_up.set()
        finally:
            writer.close()


@asynccontextmanager
async def serving(*pieces: bytes, hangs: bool = False) -> AsyncIterator[FaultServer]:
    """Answer every request with ``pieces`` and close the connection, or keep it open in silence if it ``hangs``."""
    async with running(FaultServer(b"".join(pieces), hangs)) as faulty:
        yield faulty


def event(payload: object) -> bytes:
    """Return one server-sent event."""
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def chunk(text: str | None = None, *, finish_reason: str | None = None, reasoning: str | None = None) -> bytes:
    """Return one chunk of a reply in the shape of the OpenAI API."""
    delta = {"content": text, "reasoning_content": reasoning}
    given = {name: value for name, value in delta.items() if value is not None}
    choice = {"index": 0, "delta": given, "finish_reason": finish_reason}
    return event({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})


def usage_chunk(prompt_tokens: int, completion_tokens: int) -> bytes:
    """Return the chunk that reports the tokens and has no choice."""
    names, total = ("prompt_tokens", "completion_tokens", "total_tokens"), prompt_tokens + completion_tokens
    usage = dict(zip(names, (prompt_tokens, completion_tokens, total), strict=True))
    whole = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": usage}
    return event(whole)


def chunked(body: bytes) -> bytes:
    """Return ``body`` as the beginning of a transfer whose end is still to come."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + f"{len(body):x}\r\n".encode() + body + b"\r\n"


def byte_by_byte(body: bytes) -> bytes:
    """Return an answer each of whose bytes is a piece of its own."""
    head = STREAM_HEAD.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")
    return head + b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"


def compressed(body: bytes) -> bytes:
    """Return an answer with ``body`` as gzip."""
    return encoded("gzip") + gzip.compress(body)


def encoded(names: str) -> bytes:
    """Return the head of an answer whose body is said to be compressed in these ways."""
    return STREAM_HEAD.replace(b"\r\n\r\n", f"\r\nContent-Encoding: {names}\r\n\r\n".encode())


def failure(status: int, body: object, *, retry_after: str | None = None) -> bytes:
    """Return an HTTP error; a ``body`` of bytes is sent as HTML, anything else as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = "text/html" if isinstance(body, bytes) else "application/json"
    headers = [f"HTTP/1.1 {status} No", f"Content-Type: {kind}", f"Content-Length: {len(content)}", "Connection: close"]
    if retry_after is not None:
        headers.append(f"Retry-After: {retry_after}")
    return "\r\n".join(headers).encode() + b"\r\n\r\n" + content


async def request_in(reader: asyncio.StreamReader) -> Asked:
    """Read one request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    pairs = (line.partition(":") for line in head[1:] if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(head[0].split(" ")[1], headers, json.loads(body or b"{}"))
