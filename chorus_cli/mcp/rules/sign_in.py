"""The addresses of a sign-in, and the answer that the browser brings: pure functions."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import parse_qs, urlsplit

from chorus_cli.core.errors import SignInError
from chorus_cli.core.text.phrases import shortened

_LONGEST_CODE = 40


def check_address(address: str, server: str) -> None:
    """Raise a ``SignInError`` unless requests to ``address``, which the server at ``server`` names, are encrypted.

    A server on this machine may name unencrypted addresses on this machine.
    """
    try:
        parts, own = urlsplit(address), urlsplit(server)
        is_safe = parts.scheme == "https" and bool(parts.hostname)
        is_here = parts.scheme == "http" and _is_loopback(parts.hostname) and _is_loopback(own.hostname)
        shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    except ValueError as error:
        raise SignInError("it names an address that cannot be read") from error
    if not (is_safe or is_here):
        raise SignInError(f"the connection to {shorter(shown)} is not encrypted (https)")


def host(address: str) -> str:
    """Return the host of an address, cut if it is long."""
    return shorter(urlsplit(address).hostname or address)


def shorter(text: str) -> str:
    """Cut words of a server to 200 characters."""
    return shortened(text, 200)


def state_of(address: str) -> str:
    """Return the parameter ``state`` in the address of a sign-in page."""
    # The server's address may have a ``state`` already; the library appends its own as the last.
    return parse_qs(urlsplit(address).query).get("state", [""])[-1]


def brought(query: str, state: str) -> Mapping[str, str] | None:
    """Read the ``code``, the ``state`` and the issuer (``iss``) that the browser brings.

    Return ``None`` if they belong to another sign-in, which has another ``state``. Raise a ``SignInError`` if there is
    no code.
    """
    found: Mapping[str, list[str]] = parse_qs(query)
    texts = {name: values[0] for name, values in found.items()}
    if not hmac.compare_digest(texts.get("state", "").encode(), state.encode()):
        return None
    if fault := texts.get("error"):
        reason = fault if fault.isascii() and fault.replace("_", "").isalnum() else "error"
        raise SignInError(f"the page in the browser refused ({reason[:_LONGEST_CODE]})")
    if not texts.get("code"):
        raise SignInError("the browser brought no code")
    return {name: texts[name] for name in ("code", "state", "iss") if name in texts}


def _is_loopback(name: str | None) -> bool:
    if name == "localhost":
        return True
    try:
        return ip_address(name or "").is_loopback
    except ValueError:
        return False
