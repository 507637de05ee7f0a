"""Finds keys, so that they stay out of errors, warnings, the log file, and the environment of other programs.

A provider's error may quote the key that was sent, and an address may contain a key. Keys are found by their exact
values in this process's environment, by the shapes of well-known keys, and by the words before them. Messages of the
user and the models are not changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple
from urllib.parse import quote

_GITLEAKS = "rules of gitleaks: "
_TRUFFLEHOG = "detectors of trufflehog: "


class KeyShape(NamedTuple):
    """One kind of key: a prefix, then at least ``fewest`` ``characters``, then ``rest``; ``example`` is no real key."""

    owner: str
    prefixes: tuple[str, ...]
    fewest: int
    source: str
    example: str
    characters: str = "[A-Za-z0-9_-]"
    rest: str = ""

    @property
    def beginnings(self) -> tuple[str, ...]:
        """The prefixes as people write them, with ``…`` where letters differ."""
        return tuple(re.sub(r"\[[^][]*\]|\(\?:[^()]*\)", "…", prefix).replace("\\", "") for prefix in self.prefixes)

    @property
    def patterns(self) -> tuple[str, ...]:
        """A pattern for each prefix."""
        return tuple(f"{prefix}{self.characters}{{{self.fewest},}}{self.rest}" for prefix in self.prefixes)


KEY_SHAPES: tuple[KeyShape, ...] = (
    KeyShape(
        "OpenAI, Anthropic (sk-ant-), OpenRouter (sk-or-), DeepSeek, Langfuse (sk-lf-) and others",
        ("sk-",),
        8,
        _GITLEAKS + "openai-api-key, anthropic-api-key; " + _TRUFFLEHOG + "openrouter, deepseek, langfuse",
        "sk-proj-a1B2c3D4e5",
        "[A-Za-z0-9_*-]",
    ),
    KeyShape("Google", ("AIza",), 10, _GITLEAKS + "gcp-api-key", "AIzaSyA-1234567890_abcdefghijklmnop"),
    KeyShape(
        "Google, sign-in for other programs",
        ("GOCSPX-", r"ya29\."),
        10,
        _TRUFFLEHOG + "googleoauth2; secret scanning of GitHub: google_oauth_client_secret",
        "GOCSPX-abcdefghijklmnopqrstuvwxyz12",
    ),
    KeyShape("Groq", ("gsk_",), 10, _TRUFFLEHOG + "groq", "gsk_0123456789abcdefghij"),
    KeyShape("xAI", ("xai-",), 10, _TRUFFLEHOG + "xai", "xai-0123456789abcdefghij"),
    KeyShape("Cerebras", ("csk-",), 10, "rules of betterleaks: cerebras-api-key", "csk-0123456789abcdefghij"),
    KeyShape("Perplexity", ("pplx-",), 10, _GITLEAKS + "perplexity-api-key", "pplx-0123456789abcdefghij"),
    KeyShape(
        "Fireworks", ("fw_",), 16, "documentation of Fireworks: X-Fireworks-Api-Key", "fw_0123456789abcdefghijklmn"
    ),
    KeyShape("NVIDIA", ("nvapi-",), 10, _TRUFFLEHOG + "nvapi", "nvapi-0123456789abcdefghij"),
    KeyShape(
        "Hugging Face",
        ("hf_", "api_org_"),
        16,
        _GITLEAKS + "huggingface-access-token, huggingface-organization-api-token",
        "hf_abcdefghijklmnopqrstuvwxyz",
    ),
    KeyShape("Replicate", ("r8_",), 16, _TRUFFLEHOG + "replicate", "r8_0123456789abcdefghijklmn"),
    KeyShape("LangSmith", ("lsv2_[ps][tk]_",), 10, _TRUFFLEHOG + "langsmith", "lsv2_pt_0123456789abcdef0123456789"),
    KeyShape("Tavily", ("tvly-",), 10, _TRUFFLEHOG + "tavily", "tvly-dev-0123456789abcdef"),
    KeyShape(
        "GitHub", ("gh[a-z]_", "github_pat_"), 10, _GITLEAKS + "github-pat and its like", "ghp_abcdefghijklmnop0123"
    ),
    KeyShape(
        "GitLab",
        ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glagent-"),
        16,
        _GITLEAKS + "gitlab-pat and its like",
        "glpat-0123456789abcdefghij",
    ),
    KeyShape(
        "Amazon",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        12,
        _GITLEAKS + "aws-access-token",
        "AKIAIOSFODNN7EXAMPLE",
        "[A-Z0-9]",
    ),
    KeyShape(
        "Amazon Bedrock",
        ("ABSK",),
        24,
        _GITLEAKS + "aws-amazon-bedrock-api-key-long-lived",
        "ABSKQmVkcm9ja0FQSUtleS1leGFtcGxl",
        "[A-Za-z0-9+/=]",
    ),
    KeyShape(
        "Slack", ("xox[a-z]-", "xapp-"), 10, _GITLEAKS + "slack-bot-token and its like", "xoxb-0123456789-abcdefghij"
    ),
    KeyShape(
        "Stripe", ("[sr]k_(?:live|test|prod)_",), 10, _GITLEAKS + "stripe-access-token", "sk_live_0123456789abcdef"
    ),
    KeyShape("npm", ("npm_",), 20, _GITLEAKS + "npm-access-token", "npm_0123456789abcdefghijklmnop"),
    KeyShape("PyPI", ("pypi-",), 20, _GITLEAKS + "pypi-upload-token", "pypi-AgEIcHlwaS5vcmcCJDAwMDAw"),
    KeyShape(
        "SendGrid", (r"SG\.",), 16, _GITLEAKS + "sendgrid-api-token", "SG.0123456789abcdef.ghijklm", "[A-Za-z0-9_.-]"
    ),
    KeyShape("DigitalOcean", ("do[opr]_v1_",), 16, _GITLEAKS + "digitalocean-pat", "dop_v1_0123456789abcdef01234567"),
    KeyShape("Databricks", ("dapi",), 24, _GITLEAKS + "databricks-api-token", f"dapi{'0a' * 16}", "[a-f0-9]"),
    KeyShape(
        "JSON Web Tokens",
        ("eyJ",),
        14,
        "RFC 7519; " + _GITLEAKS + "jwt",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl",
        rest=r"(?:\.[A-Za-z0-9_-]*){0,4}",
    ),
)

PRIVATE_KEY_SOURCE = "RFC 7468; " + _GITLEAKS + "private-key"

# This matches a whole private key, or the beginning of one that was cut off.
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[^-]*+(?:-(?!----)[^-]*+)*"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
)


@cache
def _any_key() -> re.Pattern[str]:
    """Return the pattern of a key of any shape; it is compiled late, because that takes milliseconds."""
    return re.compile(rf"\b(?:{'|'.join(pattern for shape in KEY_SHAPES for pattern in shape.patterns)})")


def without_keys(text: str, replacement: str) -> str:
    """Replace every key of a known shape, in time proportional to the length of ``text``."""
    return _any_key().sub(replacement, _PRIVATE_KEY.sub(replacement, text))


def is_shaped_like_key(text: str) -> bool:
    """Return whether a whole text has the shape of a well-known key."""
    text = text.strip()
    return any(pattern.fullmatch(text) for pattern in (_any_key(), _PRIVATE_KEY))


REDACTED = "[redacted]"

_SHORTEST_SECRET = 6
_SHORTEST_WORD = 8
"""The fewest characters of a secret that has only letters: a shorter value is likely to be a word of a sentence."""

# Names of secrets: OPENAI_API_KEY, WATSONX_APIKEY, PGPASSWORD, AWS_SECRET_ACCESS_KEY_2.
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
_PASSWORD_IN_ADDRESS = re.compile(r"://[^\s/@:]*:[^\s/@]+@|[?&](?:ssl)?password=")
_KEY_IN_ADDRESS = re.compile(r"(?<=://)[^\s/@\"'<>]+@")


def redact(text: str, secrets: Sequence[str]) -> str:
    """Replace ``secrets`` and all that looks like a key, in time proportional to the length of ``text``."""
    given = [secret for secret in secrets if secret]
    spellings = {*given, *(quote(secret, safe="") for secret in given), *(json.dumps(secret)[1:-1] for secret in given)}
    if spellings:
        longest_first = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
        text = re.sub("|".join(map(re.escape, longest_first)), REDACTED, text)
    text = without_keys(text, REDACTED)
    text = _KEY_IN_ADDRESS.sub(f"{REDACTED}@", text)
    return _LABELLED_SECRETS.sub(rf"\g<label>{REDACTED}", text)


def has_password(address: str) -> bool:
    """Return whether an address of a server has a password."""
    return _PASSWORD_IN_ADDRESS.search(address) is not None


def is_secret_name(name: str) -> bool:
    """Return whether a variable of the environment is named like a secret."""
    return _SECRET_NAME.search(name.upper()) is not None


def secrets_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of variables named like secrets, except counts, paths, short values and ordinary words."""
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
