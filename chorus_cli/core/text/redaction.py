"""Keeps keys out of errors, logs and crash files.

A provider's error may quote the key it was sent, and a key may stand in an address. Keys are found
by their exact values, where this process was given them, and by the shapes of well-known keys.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REDACTED = "[redacted]"

_SHORTEST_SECRET = 6
_SECRET_SUFFIXES = ("_API_KEY", "_ACCESS_KEY", "_TOKEN", "_SECRET", "_PASSWORD")

_KEY_SHAPES = re.compile(
    r"\bsk-[A-Za-z0-9_*-]{8,}"  # OpenAI, Anthropic (sk-ant-), OpenRouter (sk-or-); a * is the provider's own mask
    r"|\bAIza[A-Za-z0-9_-]{10,}"  # Google
    r"|\b(?:gh[a-z]|github_pat)_[A-Za-z0-9_]{10,}"  # GitHub
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{12,}"  # Amazon
)
_LABELLED_SECRETS = re.compile(
    r"(?P<label>"
    r"\bBearer\s+(?=[^\s\"']{8})"
    r"|(?:\b|_)(?:api)?(?:key|token|secret|password)="
    r"|api[-_]key[\"']?\s*:\s*[\"']?(?=[^\s\"']{8})"
    r")(?!\[redacted\])[^\s\"'&,;)\]}]+",
    re.IGNORECASE,
)


def redact(text: str, secrets: Sequence[str]) -> str:
    """Return ``text`` with ``secrets`` and everything that is shaped like a key replaced by ``[redacted]``."""
    longest_first = sorted(filter(None, secrets), key=len, reverse=True)
    if longest_first:
        text = re.sub("|".join(map(re.escape, longest_first)), REDACTED, text)
    text = _KEY_SHAPES.sub(REDACTED, text)
    return _LABELLED_SECRETS.sub(rf"\g<label>{REDACTED}", text)


def is_shaped_like_key(text: str) -> bool:
    """Return whether a whole text has the shape of a well-known key."""
    return _KEY_SHAPES.fullmatch(text.strip()) is not None


def secrets_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of the variables named like secrets, without those too short to be secrets."""
    values = (value.strip() for name, value in environment.items() if f"_{name.upper()}".endswith(_SECRET_SUFFIXES))
    return tuple(dict.fromkeys(value for value in values if len(value) >= _SHORTEST_SECRET))
