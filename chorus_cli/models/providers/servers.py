"""Model servers: their addresses and keys, short questions to them, Ollama's models, and the models' context limits.

Each question has a strict deadline, which includes the name lookup. Questions use no proxy and follow no redirect.
"""

from __future__ import annotations

import ipaddress
import json
import re
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from chorus_cli.core.json import values
from chorus_cli.models.providers import providers
from chorus_cli.models.providers.model_files import has_litellm
from chorus_cli.models.rules.budget import Limit
from chorus_cli.models.rules.choice import ELIZA, EMBEDDED, LOCAL
from chorus_cli.models.rules.costs import FREE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from chorus_cli.models.providers.model_map import ModelMap
    from chorus_cli.models.rules.costs import Prices

_Found = TypeVar("_Found")

PATIENCE_SECONDS = 0.3
_SCHEME_PORTS = {"http": 80, "https": 443}
_THIS_MACHINE = {4: "127.0.0.1", 6: "::1"}
# A list of a thousand models takes half a megabyte, so no expected answer is longer than this.
_LONGEST_ANSWER_BYTES = 4_000_000
_OK = 200


def within(patience_seconds: float, ask: Callable[[float], _Found]) -> _Found | None:
    """Return the result of ``ask``, ``None`` if it fails or is late. A thread asks: name lookups have no timeout."""
    deadline = time.monotonic() + patience_seconds
    found: SimpleQueue[_Found | None] = SimpleQueue()

    def find() -> None:
        try:
            found.put(ask(deadline))
        except (OSError, ValueError, RecursionError):
            # The server refused or was silent, it is no model server, or its answer was nested too deep.
            found.put(None)

    threading.Thread(target=find, name="question", daemon=True).start()
    with suppress(Empty):
        return found.get(timeout=patience_seconds)
    return None


def json_answer(address: str, path: str, deadline: float, *, body: object = None, key: str = "") -> object:
    """Return a server's JSON answer to a POST of ``body``, or to a GET without a body; `within` catches errors."""
    from http.client import HTTPConnection, HTTPException, HTTPSConnection  # slow to import, and few starts ask

    server, seconds_left = urlsplit(address), deadline - time.monotonic()
    if server.scheme not in _SCHEME_PORTS or not server.hostname or not key.isascii() or seconds_left <= 0:
        raise ValueError(address)
    connect = HTTPSConnection if server.scheme == "https" else HTTPConnection
    connection = connect(_connectable(server.hostname), server.port, timeout=seconds_left)
    posted = {} if body is None else {"Content-Type": "application/json"}
    headers = {"Accept": "application/json", "Connection": "close", **posted}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    written = None if body is None else json.dumps(body).encode("ascii")
    try:
        connection.request("GET" if body is None else "POST", server.path.rstrip("/") + path, written, headers)
        answer = connection.getresponse()
        content = answer.read(_LONGEST_ANSWER_BYTES + 1)
    except HTTPException as error:
        raise ValueError(address) from error
    finally:
        connection.close()
    if answer.status != _OK or len(content) > _LONGEST_ANSWER_BYTES:
        raise ValueError(address)
    return json.loads(content)


def _connectable(host: str) -> str:
    """Return the host to connect to for a server at ``host``: this machine if ``host`` is 0.0.0.0, ``::`` or empty."""
    address = _ip(host)
    if address is not None and address.is_unspecified:
        return _THIS_MACHINE[address.version]
    return host or _THIS_MACHINE[4]


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


_DEFAULT_ADDRESS, _DEFAULT_PORT = "http://localhost:11434", 11434
_NEVER = datetime.min.replace(tzinfo=UTC)
_HIGHEST_PORT, _PORT_DIGITS = 65_535, 5
# litellm has two prefixes for Ollama: this one sends messages with roles, ``ollama/`` sends a text to continue.
_PREFIX = "ollama_chat/"
# Older servers list no capabilities, so embedding models are recognised by their family or name.
_EMBEDDING_FAMILY, _EMBEDDING_NAMES = "bert", ("embed", "rerank")
# Ollama's lists, each with the time by which it is sorted. A model stays in memory for a fixed time after its last use,
# so the model that expires last was used last.
_IN_MEMORY, _STORED = ("/api/ps", "expires_at"), ("/api/tags", "modified_at")


def most_recent_model(environment: Mapping[str, str], patience_seconds: float = PATIENCE_SECONDS) -> str | None:
    """Return litellm's name of the model that Ollama used last, else of the newest stored model, else ``None``."""
    return next(iter(_answered(environment, patience_seconds, (_IN_MEMORY, _STORED))), None)


def models(environment: Mapping[str, str], patience_seconds: float = PATIENCE_SECONDS) -> tuple[str, ...]:
    """Return litellm's names of all Ollama models that can chat, the newest first; none without an answer."""
    return _answered(environment, patience_seconds, (_STORED,))


def ollama_address(environment: Mapping[str, str]) -> str:
    """Return the address in ``OLLAMA_API_BASE``, else in ``OLLAMA_HOST`` by Ollama's own rules, else the default."""
    address = environment.get("OLLAMA_API_BASE", "").strip().rstrip("/")
    if address:
        return address
    host = environment.get("OLLAMA_HOST", "").strip().strip("\"'")
    if not host:
        return _DEFAULT_ADDRESS
    # These are the rules of Ollama's own ``envconfig``.
    scheme, separator, rest = host.partition("://") if "://" in host else ("http", "", host)
    default_port = _SCHEME_PORTS.get(scheme, _DEFAULT_PORT) if separator else _DEFAULT_PORT
    place, _, path = rest.partition("/")
    name, port = _host_and_port(place, default_port)
    shown = f"[{name}]" if ":" in name else name
    return f"{scheme}://{shown}:{port}/{path}".rstrip("/")


def _host_and_port(place: str, default_port: int) -> tuple[str, int]:
    """Split ``host:port``. An IPv6 address may be in brackets, and must be in brackets if a port follows."""
    if _ip(place.strip("[]")) is not None:
        return _connectable(place.strip("[]")), default_port
    host, _, port = place.rpartition(":") if ":" in place else (place, "", "")
    is_port = port.isascii() and port.isdigit() and len(port) <= _PORT_DIGITS and int(port) <= _HIGHEST_PORT
    return _connectable(host.strip("[]")), int(port) if is_port else default_port


def _answered(environment: Mapping[str, str], patience: float, lists: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    def ask(deadline: float) -> tuple[str, ...]:
        address = ollama_address(environment)
        answers = ((json_answer(address, path, deadline), moment) for path, moment in lists)
        return next(filter(None, (_names(document, moment) for document, moment in answers)), ())

    return within(patience, ask) or ()


def _names(document: object, moment: str) -> tuple[str, ...]:
    entries = values.records(values.record(document).get("models"))
    entries.sort(key=lambda entry: values.moment(entry.get(moment)) or _NEVER, reverse=True)
    found = ((values.text(entry.get("model") or entry.get("name")), entry) for entry in entries)
    sound = ((name, entry) for name, entry in found if name and name.isprintable() and " " not in name)
    return tuple(_PREFIX + name for name, entry in sound if _can_chat(name, entry))


def _can_chat(name: str, entry: Mapping[str, object]) -> bool:
    if capabilities := values.items(entry.get("capabilities")):
        return "completion" in capabilities
    family = values.record(entry.get("details")).get("family")
    return _EMBEDDING_FAMILY not in str(family) and not any(word in name.casefold() for word in _EMBEDDING_NAMES)


def is_ollama(model: str) -> bool:
    """Return whether Ollama serves ``model``."""
    return model.startswith(("ollama/", _PREFIX))


def prices(model: str, model_map: ModelMap) -> Prices | None:
    """Return the prices of ``model`` in USD per token, ``None`` if unknown; ELIZA, local files and Ollama are free."""
    is_free = model.startswith((EMBEDDED, LOCAL)) or is_ollama(model)
    return FREE if is_free else model_map.prices(model)


def ollama_endpoint(model: str, environment: Mapping[str, str]) -> providers.Endpoint:
    """Return Ollama's endpoint for OpenAI's protocol, with vLLM's rules; no request there can set the context size."""
    key = environment.get("OLLAMA_API_KEY", "").strip()
    return providers.Endpoint("hosted_vllm", model.partition("/")[2], f"{ollama_address(environment)}/v1", key)


def request_address(model: str, environment: Mapping[str, str]) -> str:
    """Return the address that the user set for ``model``, or a local server's address; empty for other servers."""
    if is_ollama(model):
        return ollama_address(environment)
    prefix = providers.named(model).provider
    if not prefix or not (providers.PROVIDERS[prefix].is_local or providers.address_variable(prefix, environment)):
        return ""
    return providers.base_address(prefix, environment)


def server_address(model: str, environment: Mapping[str, str]) -> str:
    """Return the address of the user's Ollama or OpenAI-compatible server for ``model``; empty for other servers."""
    prefix = providers.named(model).provider
    is_of_any_make = is_ollama(model) or prefix == "openai" or (bool(prefix) and providers.PROVIDERS[prefix].is_local)
    return request_address(model, environment) if is_of_any_make else ""


def request_problem(model: str, environment: Mapping[str, str]) -> str:
    """Return a sentence for the user if the address or key set for ``model`` cannot be used, else an empty text."""
    address = request_address(model, environment)
    if address and not _is_url(address):
        variable = providers.first_set(("OLLAMA_API_BASE", "OLLAMA_HOST"), environment)
        if not is_ollama(model):
            variable = providers.address_variable(providers.named(model).provider, environment)
            address = environment[variable].strip()
        return f"The address of {model}, {address}, is not an http:// or https:// URL. Correct {variable}."
    key = providers.provider_key(providers.named(model).provider, environment)
    if key.isascii() and key.isprintable():
        return ""
    variable = providers.key_variable(model, environment)
    return f"The key for {model} has characters that no key has, so it cannot be sent. Set {variable} again."


def is_on_this_machine(address: str) -> bool:
    """Return whether ``address``, with or without a scheme, means this machine."""
    host = _host(address if "//" in address else f"//{address}")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    number = _ip(host)
    # Users often write 0.0.0.0 for a server that listens everywhere; the address means this machine.
    return number is not None and (number.is_loopback or number.is_unspecified)


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _is_url(address: str) -> bool:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return False
    is_named = parts.scheme in _SCHEME_PORTS and bool(parts.hostname) and port != 0
    return is_named and not any(character.isspace() for character in address)


DEFAULT_LIMIT_TOKENS, LOOPBACK_LIMIT_TOKENS = 128_000, 8192
SECONDS_UNTIL_ASKED_AGAIN = 60.0
LIMIT_PATIENCE_SECONDS = 0.5
# A loaded model takes the memory for its whole context, and few machines have enough for 128k tokens.
MOST_LOADED_TOKENS = 16_384
# Ollama's own default for a context. A request in OpenAI's protocol cannot ask for more.
OLLAMAS_OWN_TOKENS = 4096
# Limits outside these bounds are mistakes.
_FEWEST_TOKENS, _MOST_TOKENS = 256, 100_000_000
_NUM_CTX = re.compile(r"^num_ctx\s+([0-9]{1,9})\s*$", re.MULTILINE)


def server_limit(
    model: str,
    environment: Mapping[str, str],
    patience_seconds: float = LIMIT_PATIENCE_SECONDS,
    has_litellm: Callable[[], bool] = has_litellm,
) -> Limit | None:
    """Return the limit that the user's own server reports; ``None`` without such a server or an answer in time."""
    address = server_address(model, environment)
    host = _host(address)
    if not address or host == "openai.com" or host.endswith(".openai.com"):
        return None
    prefix, name = providers.named(model)
    if is_ollama(model):
        key = environment.get("OLLAMA_API_KEY", "").strip()
        most = MOST_LOADED_TOKENS if has_litellm() else OLLAMAS_OWN_TOKENS
        return within(patience_seconds, lambda deadline: _shown(address, name, key, deadline, most))
    key = providers.provider_key(prefix, environment)
    return within(patience_seconds, lambda deadline: _listed(address, name, key, deadline))


def _shown(address: str, name: str, key: str, deadline: float, most: int) -> Limit | None:
    """Ask Ollama for the user's num_ctx; if unset, take the model's training context, but no more than ``most``."""
    shown = values.record(json_answer(address, "/api/show", deadline, body={"model": name}, key=key))
    known = values.record(shown.get("model_info"))
    could_hold = _tokens(known.get(f"{known.get('general.architecture')}.context_length"))
    line = _NUM_CTX.search(values.text(shown.get("parameters")))
    chosen = _tokens(int(line[1])) if line else None
    if chosen is not None:
        # Ollama gives no model a longer context than it was trained for, even if num_ctx is larger.
        return Limit(min(chosen, could_hold or chosen), "num_ctx in Ollama's Modelfile")
    if could_hold is None:
        return None
    asked = min(could_hold, most)
    share = f", {asked:,} of {could_hold:,}" if asked < could_hold else ""
    return Limit(asked, f"Ollama's /api/show{share}")


def _listed(address: str, name: str, key: str, deadline: float) -> Limit | None:
    """Ask an OpenAI-compatible server for its list of models, in which vLLM and llama.cpp give limits."""
    entries = values.records(values.record(json_answer(address, "/models", deadline, key=key)).get("data"))
    meant = [entry for entry in entries if entry.get("id") == name]
    # llama.cpp has one model, which answers to any name.
    for entry in meant or (entries if len(entries) == 1 else []):
        meta = values.record(entry.get("meta"))
        for source, figure in ("max_model_len", entry), ("n_ctx", meta), ("n_ctx_train", meta):
            if tokens := _tokens(figure.get(source)):
                return Limit(tokens, f"the server's {source}")
    return None


def _tokens(figure: object) -> int | None:
    tokens = values.whole_number(figure)
    return tokens if _FEWEST_TOKENS <= tokens <= _MOST_TOKENS else None


class ModelLimits:
    """Context limits of models. A server's answer is cached; a server that is silent is asked again after a minute."""

    def __init__(
        self,
        environment: Mapping[str, str],
        model_map: ModelMap,
        ask: Callable[[str, Mapping[str, str]], Limit | None] = server_limit,
        monotonic: Callable[[], float] = time.monotonic,
        of_file: Callable[[str], Limit | None] = lambda _model: None,
        has_litellm: Callable[[], bool] = has_litellm,
    ) -> None:
        self._environment = environment
        self._model_map = model_map
        self._of_file = of_file
        self._has_litellm = has_litellm
        self._ask = ask
        self._monotonic = monotonic
        self._said: dict[str, Limit] = {}
        self._silent_until: dict[str, float] = {}
        self._asking = threading.Lock()

    def of_model(self, model: str) -> Limit:
        """Return the context limit of ``model``. This may take half a second, so call it from a thread."""
        if model == ELIZA:
            return Limit(DEFAULT_LIMIT_TOKENS, "the embedded ELIZA")
        if model.startswith(LOCAL):
            return self._of_file(model) or Limit(LOOPBACK_LIMIT_TOKENS, "a model on this machine")
        tokens = self._model_map.limit_tokens(model)
        # The map knows what a model could hold, but Ollama gives it less.
        if tokens is not None and not is_ollama(model) and self._model_map.relative(model) is None:
            return Limit(tokens, "litellm's model map")
        return self._from_server(model) or self._likely(model)

    def _from_server(self, model: str) -> Limit | None:
        """Return the cached limit, or ask the server; concurrent callers wait for the same answer."""
        with self._asking:
            if model in self._said or self._monotonic() < self._silent_until.get(model, 0.0):
                return self._said.get(model)
            limit = self._ask(model, self._environment)
            if limit is None:
                self._silent_until[model] = self._monotonic() + SECONDS_UNTIL_ASKED_AGAIN
            else:
                self._said[model] = limit
            return limit

    def _likely(self, model: str) -> Limit:
        if is_on_this_machine(server_address(model, self._environment)):
            is_fixed = is_ollama(model) and not self._has_litellm()
            tokens = OLLAMAS_OWN_TOKENS if is_fixed else LOOPBACK_LIMIT_TOKENS
            return Limit(tokens, "a server on this machine", is_assumed=True)
        relative, listed = self._model_map.relative(model) or "", self._model_map.limit_tokens(model)
        if listed is None:
            return Limit(DEFAULT_LIMIT_TOKENS, "the default", is_assumed=True)
        return Limit(listed, f"the limit of {relative or model}", is_assumed=True, relative=relative)
