"""Names, sizes and prices of models, and names of providers, from litellm's own files, without importing litellm.

A model that the map does not list takes the facts of the listed model that its name is the nearest to.
"""

from __future__ import annotations

import importlib.util
import json
import re
import threading
from functools import partial
from itertools import filterfalse
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from chorus_cli.core.errors import ModelError
from chorus_cli.models.rules.costs import Prices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


def package_folder(name: str) -> Path | None:
    """Return the folder of an installed package without importing it; ``None`` if it is not installed."""
    spec = importlib.util.find_spec(name)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def installation_folder() -> Path:
    """Return the folder of the installed litellm without importing it.

    Raises:
        ModelError: it is not installed.
    """
    folder = package_folder("litellm")
    if folder is None:
        raise ModelError(
            "litellm is not installed, and every model but chorus/eliza needs it. Install it with: pip install litellm."
        )
    return folder


_MODELS = "model_prices_and_context_window_backup.json"
# Providers are declared in two places: those with code of their own, and those that only need an address.
_PROVIDERS_WITH_CODE = "types/utils.py"
_PROVIDERS_BY_ADDRESS = "llms/openai_like/providers.json"
_PROVIDER_CLASS = re.compile(r"^class LlmProviders\b.*?(?=^\S)", re.MULTILINE | re.DOTALL)
_PROVIDER_NAME = re.compile(r'^ +[A-Z]\w* = "([^"]+)"', re.MULTILINE)

# litellm uses the Responses API for the second kind, with the same results as a chat.
_CHAT_MODES = ("chat", "responses")
# Made for a single purpose, which the map does not tell.
_FOR_ONE_WORK = re.compile(r"computer-use|robotics|-tts$")
# The providers whose models litellm also finds by their bare names; of the others it wants the prefix.
_FOUND_BY_BARE_NAME = frozenset(
    {"openai", "anthropic", "bedrock", "bedrock_converse", "vertex_ai-language-models", "cohere_chat", "ai21"}
)
_LAID_OUT = b'{\n    "'
"""The beginning of a map with lines of their own for each entry, indented by at most four blanks, as litellm's."""
_INDENT = 4


_Fact = TypeVar("_Fact")


class _Entry(NamedTuple):
    """One entry of litellm's map; ``input_cost`` is USD per token.

    ``converses`` is false for models of speech, music or research, which the map lists as chat models. ``alias_of`` is
    the name of the entry whose facts these are, if the map has another name for it.
    """

    provider: str
    chats: bool
    converses: bool
    calls_functions: bool
    caches_prompts: bool
    limit_tokens: int | None
    output_tokens: int | None
    input_cost: float | None
    prices: Prices | None
    takes_temperature: bool
    takes_system_messages: bool
    sees_pictures: bool
    reads_pdfs: bool
    thinks: bool
    alias_of: str


class _Knowledge(NamedTuple):
    entries: dict[str, _Entry]
    providers: frozenset[str]


class ModelMap:
    """litellm's map of models, read from its files when first needed; unreadable files count as empty.

    Facts of single models are looked up in the text of the map, which is 30 times as fast as to read all of it.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """Read below ``folder``, or where litellm is installed."""
        self._folder = folder
        self._knowledge: _Knowledge | None = None
        self._text: bytes | None = None
        self._looked_up: dict[str, _Entry | None] = {}
        self._relatives: dict[str, str | None] = {}
        self._reading = threading.Lock()

    def relative(self, model: str) -> str | None:
        """Return the listed model whose facts are taken for those of ``model``, for which the map has no limit.

        It is the nearest of its family; ``None`` if there is none, or the map lists ``model`` with a limit. Prices are
        never taken.
        """
        if any(entry.limit_tokens for entry in self._entries_for(model)):
            return None
        if model not in self._relatives:
            names = relatives(model, self._names_of_family(family(model)))
            entries = ((name, self._entry(name)) for name in names)
            self._relatives[model] = next((name for name, entry in entries if entry and _is_telling(entry)), None)
        return self._relatives[model]

    def meant(self, model: str) -> str:
        """Return the model for which an alias such as ``anthropic/claude-sonnet-latest`` stands; any other as it is."""
        alias_of = next((entry.alias_of for entry in self._entries_for(model)), "")
        prefix, slash, _ = model.partition("/")
        return f"{prefix}/{alias_of}" if slash and alias_of and "/" not in alias_of else alias_of or model

    def limit_tokens(self, model: str) -> int | None:
        """Return the context limit of ``model``, or of its relative, in input tokens; ``None`` if none is known."""
        return _first((*self._entries_for(model), *self._entries_of_relative(model)), lambda entry: entry.limit_tokens)

    def input_cost(self, model: str) -> float | None:
        """Return the price of one input token, in USD, or ``None`` if the map has none.

        It is the standard price, without a discount for caching or a surcharge for very long requests.
        """
        return _first(self._entries_for(model), lambda entry: entry.input_cost)

    def prices(self, model: str) -> Prices | None:
        """Return the prices of ``model``, or ``None`` if the map has none; they are standard prices, as above."""
        return _first(self._entries_for(model), lambda entry: entry.prices)

    def output_tokens(self, model: str) -> int | None:
        """Return the longest reply of ``model``, or of its relative, in tokens; ``None`` if none is known."""
        return _first((*self._entries_for(model), *self._entries_of_relative(model)), lambda entry: entry.output_tokens)

    def caches_prompts(self, model: str) -> bool:
        """Return whether ``model``, or its relative, supports prompt caching, according to the map."""
        return any(entry.caches_prompts for entry in self._described(model))

    def takes_temperature(self, model: str) -> bool:
        """Return whether ``model`` takes a temperature, unless the map denies that of it or its relative."""
        return all(entry.takes_temperature for entry in self._described(model))

    def calls_functions(self, model: str) -> bool | None:
        """Return whether ``model`` supports function calling; ``None`` if neither it nor a relative is listed."""
        return self._is_said(model, lambda entry: entry.calls_functions)

    def takes_system_messages(self, model: str) -> bool | None:
        """Return whether ``model`` takes a system message; ``None`` as above."""
        return self._is_said(model, lambda entry: entry.takes_system_messages)

    def sees_pictures(self, model: str) -> bool | None:
        """Return whether ``model`` takes pictures; ``None`` as above."""
        return self._is_said(model, lambda entry: entry.sees_pictures)

    def reads_pdfs(self, model: str) -> bool | None:
        """Return whether ``model`` takes PDF files; ``None`` as above."""
        return self._is_said(model, lambda entry: entry.reads_pdfs)

    def thinks(self, model: str) -> bool | None:
        """Return whether ``model`` can reason before it answers; ``None`` as above."""
        return self._is_said(model, lambda entry: entry.thinks)

    def names(self) -> frozenset[str]:
        """Return the names of all chat models, with a provider or bare, as litellm accepts them."""
        return self._names_of(lambda entry: entry.chats)

    def conversation_names(self) -> frozenset[str]:
        """Return the names of the models made for general conversation."""
        return frozenset(filterfalse(_FOR_ONE_WORK.search, self._names_of(lambda entry: entry.converses)))

    def providers(self) -> frozenset[str]:
        """Return the prefixes that litellm accepts as providers; none if its list cannot be read."""
        return self._read().providers

    def _entries_for(self, model: str) -> Iterator[_Entry]:
        """Yield the map's entry for ``model``, and then that for its name without the provider.

        Many entries lack the provider: ``anthropic/claude-x`` is found under ``claude-x`` if that
        entry's provider is ``anthropic`` or one of its kinds, as ``vertex_ai-language-models`` is of ``vertex_ai``.
        """
        # The name of a protocol is no part of a model's.
        model = model.replace("openai/responses/", "openai/", 1)
        entry = self._entry(model)
        if entry is not None:
            yield entry
        prefix, _, name = model.partition("/")
        entry = self._entry(name) if name else None
        if entry is not None and (entry.provider == prefix or entry.provider.startswith((f"{prefix}-", f"{prefix}_"))):
            yield entry

    def _entries_of_relative(self, model: str) -> tuple[_Entry, ...]:
        relative = self.relative(model)
        entry = self._entry(relative) if relative else None
        return () if entry is None else (entry,)

    def _described(self, model: str) -> tuple[_Entry, ...]:
        """Return the entries for ``model``, else that of its relative."""
        return tuple(self._entries_for(model)) or self._entries_of_relative(model)

    def _is_said(self, model: str, fact: Callable[[_Entry], bool]) -> bool | None:
        said = [fact(entry) for entry in self._described(model) if entry.chats]
        return any(said) if said else None

    def _entry(self, name: str) -> _Entry | None:
        if name not in self._looked_up and (text := self._laid_out()):
            self._looked_up[name] = _entry_of(name, partial(_value_in, text))
        return self._looked_up[name] if name in self._looked_up else self._read().entries.get(name)

    def _names_of_family(self, beginning: str) -> Iterable[str]:
        """Return at least the names of a family that begin as the pattern ``beginning``; none if that is empty."""
        if not beginning:
            return ()
        text = self._laid_out()
        return _names_in(text, beginning) if text else self._read().entries

    def _laid_out(self) -> bytes:
        """Return the text of a map that single entries are found in; empty if all of it was read, or is to be."""
        with self._reading:
            if self._knowledge is not None:
                return b""
            self._text = _text_in(self._folder) if self._text is None else self._text
            return self._text if self._text.startswith(_LAID_OUT) else b""

    def _names_of(self, is_meant: Callable[[_Entry], bool]) -> frozenset[str]:
        entries, providers = self._read()
        typed = (_typed(name, entry, providers) for name, entry in entries.items() if is_meant(entry))
        return frozenset(name for names in typed for name in names)

    def _read(self) -> _Knowledge:
        with self._reading:
            if self._knowledge is None:
                self._knowledge = _knowledge_in(self._folder)
                self._text = None
            return self._knowledge


def _first(entries: Iterable[_Entry], fact: Callable[[_Entry], _Fact | None]) -> _Fact | None:
    """Return a fact of the first entry that has it."""
    return next((found for entry in entries if (found := fact(entry)) is not None), None)


def _is_telling(entry: _Entry) -> bool:
    """Return whether an entry tells of a model for general use: those without functions are for a single purpose."""
    return entry.chats and entry.calls_functions and entry.limit_tokens is not None


def _typed(name: str, entry: _Entry, providers: frozenset[str]) -> tuple[str, ...]:
    """Return the forms of ``name`` that litellm accepts; none for price classes and models that it would not find."""
    if "/" in name:
        return (name,) if not providers or name.partition("/")[0] in providers else ()
    with_provider = f"{entry.provider}/{name}"
    if entry.provider in _FOUND_BY_BARE_NAME:
        known = (name, with_provider) if entry.provider in providers else (name,)
        # These entries price the fine-tuned variants of a model.
        return () if name.startswith("ft:") else known
    # A bare name without a size is a class of models with one price.
    return (with_provider,) if entry.limit_tokens else ()


def _text_in(folder: Path | None) -> bytes:
    """Return the text of the map; empty if it cannot be read."""
    try:
        return ((folder or installation_folder()) / _MODELS).read_bytes()
    except (OSError, ModelError):
        return b""


def _value_in(text: bytes, name: str) -> object:
    """Return an entry's JSON in a map that is laid out line by line; of two with the same name the last counts."""
    key = f"{json.dumps(name)}: {{".encode()
    start = text.rfind(key)
    while start >= 0 and not _begins_entry(text, start):
        start = text.rfind(key, 0, start)
    if start < 0:
        return None
    begin = start + len(key) - 1
    try:
        return json.loads(text[begin : text.index(b"\n    }", begin) + len(b"\n    }")])
    except ValueError:
        return None


def _begins_entry(text: bytes, start: int) -> bool:
    """Return whether an entry begins at ``start``: a few are not indented, and objects within entries are further."""
    indent = text[text.rfind(b"\n", 0, start) + 1 : start]
    return len(indent) <= _INDENT and not indent.strip()


def _names_in(text: bytes, beginning: str) -> list[str]:
    """Return the names of a map that is laid out line by line, with prefixes, in which a pattern is found."""
    found = re.findall(rb'\n {0,%d}"([^"]*%s[^"]*)": \{' % (_INDENT, beginning.encode()), text)
    return [name.decode("utf-8", "replace") for name in found]


def _knowledge_in(folder: Path | None) -> _Knowledge:
    try:
        folder = folder or installation_folder()
    except ModelError:
        # The first request reports that litellm is missing.
        return _Knowledge({}, frozenset())
    try:
        document = json.loads(_text_in(folder))
    except ValueError:
        # The limit can be set by hand, and the first request reports the problem with litellm.
        document = {}
    listed = document if isinstance(document, dict) else {}
    found = ((name, _entry_of(name, listed.get)) for name in listed)
    return _Knowledge({name: entry for name, entry in found if entry is not None}, _providers_in(folder))


def _entry_of(name: str, value_of: Callable[[str], object]) -> _Entry | None:
    """Read one entry, or the one that it is an alias of; ``None`` if nothing in it is needed here."""
    value, alias_of = value_of(name), ""
    if isinstance(value, dict) and isinstance(value.get("alias_of"), str):
        alias_of = value["alias_of"]
        value = value_of(alias_of)
    if not isinstance(value, dict):
        return None
    chats = value.get("mode") in _CHAT_MODES
    limit_tokens = _tokens(value.get("max_input_tokens")) or _tokens(value.get("max_tokens"))
    input_cost = _price(value.get("input_cost_per_token"))
    if not chats and limit_tokens is None and input_cost is None:
        return None

    def supports(name: str) -> bool:
        return value.get(f"supports_{name}") is True

    return _Entry(
        provider=intern(str(value.get("litellm_provider", ""))),
        chats=chats,
        converses=value.get("mode") == "chat" and supports("function_calling"),
        calls_functions=supports("function_calling"),
        caches_prompts=supports("prompt_caching"),
        limit_tokens=limit_tokens,
        output_tokens=_tokens(value.get("max_output_tokens")),
        input_cost=input_cost,
        prices=_prices(value, input_cost),
        takes_temperature=value.get("supports_sampling_params") is not False,
        takes_system_messages=supports("system_messages"),
        sees_pictures=supports("vision"),
        reads_pdfs=supports("pdf_input"),
        thinks=supports("reasoning"),
        alias_of=alias_of,
    )


def _tokens(value: object) -> int | None:
    """Return a number of tokens; the map's sample entry has sentences instead of figures."""
    return value if isinstance(value, int) and value > 0 else None


def _price(value: object) -> float | None:
    """Return USD per token; a dollar or more per token is a mistake in the map."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1 else None


def _prices(entry: Mapping[str, object], input_cost: float | None) -> Prices | None:
    """Return the prices of an entry; one without a price for cached tokens has that of others."""
    output_cost = _price(entry.get("output_cost_per_token"))
    if input_cost is None or output_cost is None:
        return None
    cached = _price(entry.get("cache_read_input_token_cost"))
    # Of some providers the map says that storing in the cache is free, where they mean that it costs nothing more.
    written = _price(entry.get("cache_creation_input_token_cost")) or input_cost
    return Prices(input_cost, output_cost, input_cost if cached is None else cached, written)


def _providers_in(folder: Path) -> frozenset[str]:
    """Return all providers or none: with half a list the other half would count as unknown."""
    try:
        source = (folder / _PROVIDERS_WITH_CODE).read_text(encoding="utf-8")
        by_address = json.loads((folder / _PROVIDERS_BY_ADDRESS).read_bytes())
    except (OSError, ValueError):
        return frozenset()
    declaration = _PROVIDER_CLASS.search(source)
    if declaration is None or not isinstance(by_address, dict):
        return frozenset()
    return frozenset(_PROVIDER_NAME.findall(declaration.group())) | frozenset(by_address)


# By the beginnings of their models' names: the prefixes under which the map lists those of the maker.
# OpenAI's names have a number, names of others such as gpt-oss do not.
_FAMILIES = {"claude-": "", "gemini-": "gemini/", r"gpt-\d": "", "grok-": "xai/", r"o\d": ""}
# Bedrock separates the vendor from the model by a dot.
_NAME = re.compile(rf"(?P<prefix>.*[/.]|)(?P<name>(?:{'|'.join(_FAMILIES)})[^/]*)")
# Dates and states of a model, Bedrock's versions, and what gateways add after a colon.
_SNAPSHOT = re.compile(
    r"[-@](?:latest|preview|exp|experimental|default|\d{4}-\d\d-\d\d|\d\d-\d{4}|\d{3,}|(?<=\d-)v\d+)(?![a-z\d.])|:.*"
)
# Other numbers are sizes, as in gpt-4-32k.
_VERSION = re.compile(r"\d{1,3}(?:[.-]\d{1,3}(?![\da-z]))*")


class _Member(NamedTuple):
    """A model's name, taken apart: its words without the version, which is empty if there is none.

    ``is_own`` says that it is the name at the maker, not at another provider.
    """

    family: str
    words: tuple[str, ...]
    version: tuple[int, ...]
    is_own: bool


def family(model: str) -> str:
    """Return a pattern for the beginning of all names of the family of ``model``; empty if it is of no known one."""
    found = _member(model)
    return found.family if found else ""


def relatives(model: str, listed: Iterable[str]) -> list[str]:
    """Return the ``listed`` models whose facts may be those of ``model``, the likeliest first.

    The model itself comes first, as another snapshot or at another provider; then the maker's models, the newest by the
    versions in their names first, those of the same kind (``haiku``) before all others. None is newer than ``model``,
    because the provider would refuse a limit that is too high.
    """
    asked = _member(model)
    if asked is None:
        return []
    ranked = [(_rank(name, found, asked), name) for name in listed if (found := _member(name)) is not None]
    return [name for rank, name in sorted(ranked, reverse=True) if rank]


def _rank(name: str, found: _Member, asked: _Member) -> tuple[object, ...]:
    """Return how near a listed model is to the one asked for; empty if its facts are not to be taken."""
    is_same = found[:3] == asked[:3]
    is_newer = bool(asked.version) and found.version > asked.version
    if found.family != asked.family or not found.version or not (is_same or (found.is_own and not is_newer)):
        return ()
    is_of_kind, is_similar = found.words == asked.words, found.words == asked.words[:2]
    # Of equal ones the shortest name is no snapshot, and fewer prefixes are nearer to the maker.
    return is_same, is_of_kind, is_similar, found.version, found.is_own, -name.count("/"), -len(name)


def _member(model: str) -> _Member | None:
    parts = _NAME.fullmatch(model.lower())
    if parts is None:
        return None
    beginning = next(beginning for beginning in _FAMILIES if re.match(beginning, parts["name"]))
    name = _SNAPSHOT.sub("", parts["name"])
    numbers = _VERSION.search(name)
    version = tuple(map(int, re.findall(r"\d+", numbers[0]))) if numbers else ()
    return _Member(beginning, tuple(re.findall(r"[a-z]+", name)), version, parts["prefix"] == _FAMILIES[beginning])
