"""The address of a log on a server: checks it, takes out its password, and names the log for the user."""

from __future__ import annotations

import re
from hashlib import sha256
from urllib.parse import parse_qsl, unquote, urlencode

from chorus_cli.core.errors import SettingsError

LOCAL = "local"
"""The word in place of an address for the log in this machine's own file."""

_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[\w.%-]*)(?::[0-9]+)?"
_ADDRESS = re.compile(
    r"postgres(?:ql)?://"
    r"(?:(?P<user>[^@/?:]*)(?P<password>:[^@/?]*)?@)?"
    rf"(?P<host>{_HOST}(?:,{_HOST})*)"
    r"(?:/(?P<dbname>[^@/?]*))?"
    r"(?:\?(?P<query>.*))?"
)
_PASSWORDS = frozenset({"password", "sslpassword"})
_OF_A_LOG = ("host", "hostaddr", "port", "service", "dbname", "options")
_DIGEST_CHARACTERS = 16


def checked(text: str, source: str) -> str:
    """Return an address, or "" for `LOCAL`; for any other text, raise a ``SettingsError`` that names ``source``."""
    if text == LOCAL:
        return ""
    if _ADDRESS.fullmatch(text) is None:
        # The error does not quote the text, because a password may be anywhere in it.
        raise SettingsError(
            f'{source} must be "{LOCAL}" or the address of a PostgreSQL server, such as postgresql://host/chorus. '
            "In a name or a password, write @ as %40, / as %2F, : as %3A and ? as %3F."
        )
    return text


def refuse_password(url: str, source: str) -> None:
    """Raise a ``SettingsError`` if an address in the settings file has a password; ``source`` is its place there."""
    if without_password(url) != url:
        raise SettingsError(
            f"{source} has a password, but Chorus reads no password from settings. "
            "Put it into ~/.pgpass, into the service that PGSERVICE names, or into PGPASSWORD."
        )


def without_password(url: str) -> str:
    """Return an address without its password; "" if the text is no address."""
    found = _ADDRESS.fullmatch(url)
    if found is None:
        return ""
    query = parse_qsl(found["query"] or "", keep_blank_values=True)
    kept = [(name, value) for name, value in query if name not in _PASSWORDS]
    start, end = found.span("password") if found["password"] else (len(url), len(url))
    if kept == query:
        return url[:start] + url[end:]
    beginning = url[: found.start("query") - 1]
    return beginning[:start] + beginning[end:] + (f"?{urlencode(kept)}" if kept else "")


def named(url: str) -> str:
    """Return the host and the database of an address, without the user and the password."""
    parts = _parts(url)
    host = parts.get("host") or parts.get("hostaddr") or parts.get("service") or "this machine"
    return f"{host}/{parts['dbname']}" if parts.get("dbname") else host


def digest(url: str) -> str:
    """Return a hash of a log's address; user, password, capitals in the host and ``:5432`` after it do not matter."""
    parts = _parts(url)
    host = parts.get("host", "").lower().removesuffix(":5432")
    words = (f"{name}={host if name == 'host' else parts.get(name, '')}" for name in _OF_A_LOG)
    return sha256("\n".join(words).encode()).hexdigest()[:_DIGEST_CHARACTERS]


def _parts(url: str) -> dict[str, str]:
    found = _ADDRESS.fullmatch(url)
    if found is None:
        return {}
    said = {name: unquote(found[name]) for name in ("host", "dbname") if found[name]}
    return said | dict(parse_qsl(found["query"] or ""))
