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
    """Raise a ``SignInError`` unless an address that ``server`` names is encrypted.

    A server on this machine may name addresses on this machine that are not encrypted.
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
    """Return the host of an address, for a sentence."""
    return shorter(urlsplit(address).hostname or address)


def shorter(text: str) -> str:
    """Return words of a server for a sentence, cut if they are long."""
    return shortened(text, 200)


def state_of(address: str) -> str:
    """Return the state in the address of a page to sign in."""
    # The library writes its own parameters behind those that a server's address has.
    return parse_qs(urlsplit(address).query).get("state", [""])[-1]


def brought(query: str, state: str) -> Mapping[str, str] | None:
    """Read the ``code``, the ``state`` and the issuer (``iss``) that the browser brings.

    Return ``None`` if they belong to another sign-in than the one with ``state``; without a code, raise a
    ``SignInError``.
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
