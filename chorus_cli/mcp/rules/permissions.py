"""The user's permissions for calls of servers' tools: which calls need a permission, and how Chorus asks the user."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from chorus_cli.core.text.safe_text import safe_line
from chorus_cli.mcp.rules.configuration import Server
from chorus_cli.models.rules.declaration import Origin

REFUSED = "The user did not allow this call. Do not try it again unless the user asks for it."
NOBODY_ASKED = "This call needs the user's permission, and nobody can be asked here. Go on without it."

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_HASH_DIGITS = 16


class Grant(NamedTuple):
    """A permission for a tool. The ``digest`` is a hash of the tool's declaration and the server's place."""

    server: str
    tool: str
    digest: str


def grant_of(server: Server, origin: Origin) -> Grant:
    """Return the permission that a call of a tool needs."""
    needed = json.dumps([server.place, origin.digest])
    return Grant(server.name, origin.tool, hashlib.sha256(needed.encode()).hexdigest()[:_HASH_DIGITS])


def is_allowed(server: Server, origin: Origin, granted: Collection[Grant]) -> bool:
    """Return whether a tool needs no question. A new declaration, or a new place of its server, ends a permission."""
    grant = grant_of(server, origin)
    return server.trust or server.allow.get(origin.tool) == grant.digest or grant in granted


def question(server: Server, origin: Origin, arguments: Mapping[str, object], *, says_it_only_reads: bool) -> str:
    """Return the question for the user: the server, the tool, and each argument as JSON in its own line."""
    was_allowed = origin.tool in server.allow
    lines = [
        f"The model wants to run {shown_name(origin.tool)} of the server {server.name}"
        + (", which says that it only reads" if says_it_only_reads else "")
        + (":" if arguments else ", without arguments."),
        *(f"  {shown_name(name)}: {_value(value)}" for name, value in arguments.items()),
        *(("Its declaration or the place of its server has changed since you allowed it.",) if was_allowed else ()),
    ]
    return "\n".join(lines)


def lasting(grant: Grant, *, is_private: bool) -> str:
    """Return the notice after the user has allowed a tool for always."""
    label = f"{grant.server}.{shown_name(grant.tool)}"
    end = " until the private chat ends" if is_private else ""
    return f"{label} now runs without asking{end}; /tools ask {label} ends that."


def shown_name(name: str) -> str:
    """Return a name for the screen: as JSON with escapes, unless all its characters are plain."""
    return name if _PLAIN_NAME.fullmatch(name) else json.dumps(name)


def _value(value: object) -> str:
    written = json.dumps(value, ensure_ascii=False)
    # Escapes show the characters that the terminal would hide, break or reorder.
    return written if safe_line(written) == written else json.dumps(value)


def refusal(why: str) -> str:
    """Return the text for the model about a call that the user refused."""
    return f"{REFUSED} The user says: {why}" if why else REFUSED
