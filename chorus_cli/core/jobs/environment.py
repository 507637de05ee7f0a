"""The environment of a job: the user's own, without keys and passwords."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chorus_cli.core.models.choice import PROVIDERS
from chorus_cli.core.text.redaction import is_shaped_like_key

if TYPE_CHECKING:
    from collections.abc import Mapping

# A word of a name ends with one of these: OPENAI_API_KEY, WATSONX_APIKEY, PGPASSWORD, AWS_SECRET_ACCESS_KEY_2.
_SECRET_WORD = re.compile(
    r"(?:KEY|KEYS|TOKEN|TOKENS|SECRET|SECRETS|PASSWORD|PASSWORDS|PASSWD|PASSPHRASE|CREDENTIAL|CREDENTIALS|JWT)"
    r"[0-9]*(?:_|\Z)|_(?:PWD|PASS|PAT)\Z"
)


def withheld_names(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the variables that a job is not given: keys of providers, and all that look like secrets."""
    known = {name for provider in PROVIDERS for name in (provider.key_variable, *provider.other_variables)}
    return tuple(
        sorted(
            name
            for name, value in environment.items()
            if name in known or _SECRET_WORD.search(name.upper()) or is_shaped_like_key(value)
        )
    )


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a job."""
    withheld = set(withheld_names(environment))
    return {name: value for name, value in environment.items() if name not in withheld}
