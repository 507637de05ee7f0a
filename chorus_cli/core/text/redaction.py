"""Keeps keys out of errors, notices, logs and the environment of other programs.

A provider's error may quote the key it was sent, and a key may stand in an address. Keys are found by their exact
values, where this process was given them, by the shapes of well-known keys, and by the words before them.
What the user and the models say to each other is never changed.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from chorus_cli.core.text.key_shapes import without_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

REDACTED = "[redacted]"

_SHORTEST_SECRET = 6
_SHORTEST_WORD = 8
"""A secret of letters only is at least as long: a shorter one is likely to be a word of the sentence."""

# A word of a name ends with one of these: OPENAI_API_KEY, WATSONX_APIKEY, PGPASSWORD, AWS_SECRET_ACCESS_KEY_2.
_SECRET_NAME = re.compile(
    r"(?:KEY|KEYS|TOKEN|TOKENS|SECRET|SECRETS|PASSWORD|PASSWORDS|PASSWD|PASSPHRASE|CREDENTIAL|CREDENTIALS|JWT|COOKIE)"
    r"[0-9]*(?:_|\Z)|_(?:PWD|PASS|PAT|AUTH)\Z"
)
_NAME_OF_COUNT = re.compile(r"(?:KEY|TOKEN)S[0-9]*(?:_|\Z)")
_NAME_OF_PATH = re.compile(r"KEY|CREDENTIAL|COOKIE")
_NUMBER = re.compile(r"[0-9.,_]+")
_PATH = re.compile(r"(?:[A-Za-z]:|~|\.{1,2})?(?:[/\\][\w.@ -]+)+")
_ORDINARY = frozenset(
    {"changeme", "disabled", "enabled", "password", "passphrase", "required", "undefined", "your-api-key", "xxxxxxxx"}
)

_LABELLED_SECRETS = re.compile(
    r"(?P<label>"
    r"\b(?:Bearer|Basic|Token)\s{1,8}(?=[^\s\"']{8})"
    r"|(?:\b|_)(?:api)?(?:key|token|secret|password|passwd|pwd|credential|jwt|sig|signature)="
    r"|(?:api[-_]?key|[-_]token|secret|password|passwd)[\"']?\s{0,8}:\s{0,8}[\"']?(?=[^\s\"']{8})"
    r")(?!\[redacted\])[^\s\"'&,;)\]}]+",
    re.IGNORECASE,
)
_KEY_IN_ADDRESS = re.compile(r"(?<=://)[^\s/@\"'<>]+@")


def redact(text: str, secrets: Sequence[str]) -> str:
    """Return ``text`` with ``secrets`` and everything that looks like a key replaced by ``[redacted]``.

    It takes time proportional to the length of the text.
    """
    spellings = {spelling for secret in secrets if secret for spelling in _spellings(secret)}
    if spellings:
        longest_first = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
        text = re.sub("|".join(map(re.escape, longest_first)), REDACTED, text)
    text = without_keys(text, REDACTED)
    text = _KEY_IN_ADDRESS.sub(f"{REDACTED}@", text)
    return _LABELLED_SECRETS.sub(rf"\g<label>{REDACTED}", text)


def is_secret_name(name: str) -> bool:
    """Return whether a variable of the environment is named like a secret."""
    return _SECRET_NAME.search(name.upper()) is not None


def secrets_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of the variables named like secrets, without short and ordinary ones.

    Ordinary are counts (``MAX_TOKENS``), paths of files with keys, and words: to replace them would only make
    sentences harder to read.
    """
    found = (value.strip() for name, value in environment.items() if _holds_secret(name.upper(), value.strip()))
    return tuple(dict.fromkeys(found))


def _holds_secret(name: str, value: str) -> bool:
    if _SECRET_NAME.search(name) is None or len(value) < _SHORTEST_SECRET or value.lower() in _ORDINARY:
        return False
    if value.isalpha() and len(value) < _SHORTEST_WORD:
        return False
    if _NAME_OF_COUNT.search(name) and _NUMBER.fullmatch(value):
        return False
    may_be_path = _NAME_OF_PATH.search(name) and not re.search("SECRET|TOKEN|PASS", name)
    return not (may_be_path and _PATH.fullmatch(value))


def _spellings(secret: str) -> Iterator[str]:
    """Yield a secret as it may stand in a text: as it is, in an address, and in JSON."""
    yield secret
    yield quote(secret, safe="")
    yield json.dumps(secret)[1:-1]
