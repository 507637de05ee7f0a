"""Reads files that the user names: documents for the memory, and attachments, also from the web."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from chorus_cli.attachments.rules.recognition import LARGEST_BYTES, refuse_large
from chorus_cli.core import limits
from chorus_cli.core.errors import AttachmentError, CommandError
from chorus_cli.core.text.redaction import redact
from chorus_cli.machine.unpacking import AS_IT_IS, unpacked
from chorus_cli.storage.files import read_within

if TYPE_CHECKING:
    import httpx

ENDINGS = frozenset({".md", ".markdown", ".txt"})

_MOST_REDIRECTS = 5
_PATIENCE_SECONDS = 60.0


def read(typed: str) -> tuple[str, str]:
    """Return the name and the text of the file at a path; raise a ``CommandError`` if it cannot be read as UTF-8."""
    name, content = _read(typed, limits.MEMORY_DOCUMENT, CommandError)
    try:
        return name, content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandError(f"{typed} is not UTF-8 (byte {error.start + 1}). Convert it first, with iconv.") from None


def read_bytes(typed: str) -> tuple[str, bytes]:
    """Return the name and the bytes of the file at a path; raise an ``AttachmentError`` if it cannot be read."""
    return _read(typed, limits.ATTACHMENT, AttachmentError)


def is_file(typed: str) -> bool:
    """Return whether there is a regular file at a path; ``~`` is the home folder."""
    try:
        return Path(typed).expanduser().is_file()
    except (OSError, ValueError, RuntimeError):
        return False


def _read(typed: str, limit: limits.Limit, refusal: type[CommandError | AttachmentError]) -> tuple[str, bytes]:
    try:
        path = Path(typed).expanduser()
        return path.name, read_within(path, limit)
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        way_out = " Use only the part that matters." if getattr(error, "errno", 0) == errno.EFBIG else ""
        raise refusal(f"{typed} cannot be read: {reason}.{way_out}") from error


async def download(address: str, patience_seconds: float = _PATIENCE_SECONDS) -> tuple[str, bytes]:
    """Return the name and the bytes of a file on the web; raise an ``AttachmentError`` if that fails or takes long."""
    import httpx  # noqa: PLC0415 - it takes long, and few runs need it

    try:
        async with asyncio.timeout(patience_seconds):
            # Reading the certificates takes a while.
            client = await asyncio.to_thread(
                httpx.AsyncClient,
                follow_redirects=True,
                max_redirects=_MOST_REDIRECTS,
                headers={"Accept-Encoding": AS_IT_IS},
                event_hooks={"request": [partial(_refuse_leading_home, address)]},
            )
            async with client, client.stream("GET", address) as response:
                return await _taken(address, response)
    except TimeoutError:
        raise AttachmentError(f"{redact(address, ())} could not be fetched within {patience_seconds:g} s.") from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError) as error:
        reason = str(error).rstrip(".") or type(error).__name__
        raise AttachmentError(f"{redact(address, ())} cannot be fetched: {reason}.") from None


async def _refuse_leading_home(address: str, request: httpx.Request) -> None:
    """Refuse a redirect from the web to this machine or its network, because the pages there are not for a model."""
    first, host = urlsplit(address).hostname or "", request.url.host
    if host != first and await _is_near(host) and not await _is_near(first):
        raise AttachmentError(
            f"{redact(address, ())} leads to {request.url}, on this machine or its network, so Chorus fetched nothing. "
            f"If you want that page: /attach {request.url}"
        )


async def _is_near(host: str) -> bool:
    """Return whether a host is on this machine or its network; a name that only a proxy can resolve is not."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None)
    except (OSError, ValueError):
        return False
    return any(not ipaddress.ip_address(str(each[0]).partition("%")[0]).is_global for *_, each in found)


async def _taken(address: str, response: httpx.Response) -> tuple[str, bytes]:
    if not response.is_success:
        raise AttachmentError(f"{redact(address, ())} cannot be fetched: the server answered {response.status_code}.")
    name = unquote(urlsplit(address).path.rpartition("/")[2]) or urlsplit(address).hostname or ""
    refuse_large(name, int(response.headers.get("Content-Length", "0")))
    data = bytearray()
    async for piece in unpacked(response.aiter_raw(), response.headers.get("Content-Encoding", "")):
        data += piece
        if len(data) > LARGEST_BYTES:
            # The server may send no Content-Length, or one that counts compressed bytes.
            raise AttachmentError(
                f"{name} is larger than {LARGEST_BYTES / 1e6:g} MB, which is too large to be attached."
            )
    return name, bytes(data)
