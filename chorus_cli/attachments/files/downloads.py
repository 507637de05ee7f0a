"""Files on the web that the user attaches: fetched once, within limits of time and size."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from chorus_cli.attachments.rules.recognition import LARGEST_BYTES, refuse_large
from chorus_cli.core.errors import AttachmentError
from chorus_cli.machine.unpacking import AS_IT_IS, unpacked

if TYPE_CHECKING:
    import httpx

_MOST_REDIRECTS = 5
_PATIENCE_SECONDS = 60.0


async def download(address: str, patience_seconds: float = _PATIENCE_SECONDS) -> tuple[str, bytes]:
    """Return the name and the bytes of a file on the web.

    Raises:
        AttachmentError: there is none, it is too large, or the server took too long.
    """
    import httpx  # noqa: PLC0415 - it takes long, and few runs need it

    try:
        async with asyncio.timeout(patience_seconds):
            # Reading the certificates takes a while.
            client = await asyncio.to_thread(
                httpx.AsyncClient,
                follow_redirects=True,
                max_redirects=_MOST_REDIRECTS,
                headers={"Accept-Encoding": AS_IT_IS},
            )
            async with client, client.stream("GET", address) as response:
                return await _taken(address, response)
    except TimeoutError:
        raise AttachmentError(f"{address} was not there within {patience_seconds:g} s.") from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError) as error:
        reason = str(error).rstrip(".") or type(error).__name__
        raise AttachmentError(f"{address} cannot be fetched: {reason}.") from None


async def _taken(address: str, response: httpx.Response) -> tuple[str, bytes]:
    if not response.is_success:
        raise AttachmentError(f"{address} cannot be fetched: the server answered {response.status_code}.")
    name = unquote(urlsplit(address).path.rpartition("/")[2]) or urlsplit(address).netloc
    refuse_large(name, int(response.headers.get("Content-Length", "0")))
    data = bytearray()
    async for piece in unpacked(response.aiter_raw(), response.headers.get("Content-Encoding", "")):
        data += piece
        if len(data) > LARGEST_BYTES:
            # The server has not said how much is to come.
            raise AttachmentError(f"{name} has over {LARGEST_BYTES / 1e6:g} MB, which is too large to be attached.")
    return name, bytes(data)
