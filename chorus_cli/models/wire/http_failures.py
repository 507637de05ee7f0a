"""Failures as httpx reports them, and errors that a provider answers with."""

from __future__ import annotations

import socket
import ssl
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

import httpx

from chorus_cli.core import limits
from chorus_cli.machine.unpacking import UnpackingError, unpacked
from chorus_cli.models.providers.failures import Failure, Trouble, decoded

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

_LOST = "connection lost"


def failure_of(error: Exception) -> Failure:
    """Return the failure that an error of httpx means."""
    match error:
        case httpx.TimeoutException():
            return Failure(Trouble.UNANSWERED)
        case UnpackingError():
            return Failure(Trouble.INVALID_RESPONSE, words=str(error))
        case OSError():
            return Failure(Trouble.UNREACHABLE, words=_words(error))
        case httpx.TransportError() if not isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
            return Failure(Trouble.UNREACHABLE, words=_words(error))
        case _:
            # An address or a header that cannot be sent: its words may quote the key.
            return Failure(words=type(error).__name__)


def body_of(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """Return the body of a response in pieces of a bounded size.

    Raises:
        UnpackingError: it is compressed otherwise than once by gzip or deflate.
    """
    encoding = response.headers.get("Content-Encoding", "")
    if encoding:
        return unpacked(response.aiter_raw(), encoding)
    # Each piece of a reply would pass through for nothing; the library does not say that this is a generator.
    return cast("AsyncGenerator[bytes, None]", response.aiter_raw())


async def refusal(response: httpx.Response) -> Failure:
    """Return the error that the provider answers with."""
    if response.has_redirect_location:
        return Failure(status=response.status_code, words=f"redirected to {response.headers['location']}")
    headers = {name.lower(): value for name, value in response.headers.items()}
    try:
        return Failure(status=response.status_code, body=decoded(await _beginning(response)), headers=headers)
    except UnpackingError as error:
        return Failure(status=response.status_code, headers=headers, words=f"its answer is {error}")


async def _beginning(response: httpx.Response) -> bytes:
    """Return the body of a response, as far as an error is read."""
    content = bytearray()
    async with aclosing(body_of(response)) as pieces:
        async for piece in pieces:
            content += piece
            if len(content) > limits.ERROR_BODY.most:
                break
    return bytes(content)


def _words(error: BaseException) -> str:
    """Return the cause of a failed connection in a few words."""
    for cause in _with_causes(error):
        match cause:
            case ConnectionRefusedError():
                return "connection refused"
            case socket.gaierror():
                return "host name not found"
            case ssl.SSLCertVerificationError():
                return f"its certificate is not trusted: {cause.verify_message}"
            case ConnectionError():
                return _LOST
            case ssl.SSLError(reason="WRONG_VERSION_NUMBER"):
                return "it does not speak TLS"
            case OSError(strerror=str(words)):
                return words
    return str(error) if type(error).__name__.startswith(("Connect", "Proxy")) else _LOST


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        # A group has the errors of all addresses of the host.
        group = error if isinstance(error, BaseExceptionGroup) else None
        error = group.exceptions[0] if group else error.__cause__ or error.__context__
