"""The providers that Chorus asks directly, without litellm: their protocols, addresses and keys.

The prefixes of model names and the environment variables are litellm's own, so that its users need change nothing.
litellm asks the models of all other providers, and the models that ``WireProvider.elsewhere`` matches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from chorus_cli.models.rules.choice import PROVIDERS as KNOWN_BY_KEYS

# If this variable is ``true``, litellm sends every request to a LiteLLM proxy.
_LITELLM_PROXY = "USE_LITELLM_PROXY"
_OPENAI, _RESPONSES, _CHAT = "openai", "responses/", "-chat"
_ANTHROPIC_LOGIN = "sk-ant-oat"
_LOGIN_HEADERS = (("anthropic-beta", "oauth-2025-04-20"), ("anthropic-dangerous-direct-browser-access", "true"))


class ProtocolName(Enum):
    """The protocols in which Chorus asks providers directly."""

    CHAT_COMPLETIONS = "OpenAI's chat completions"
    RESPONSES = "OpenAI's responses"
    ANTHROPIC = "Anthropic's messages"
    GEMINI = "Gemini's generateContent"


class WireProvider(NamedTuple):
    """A provider that Chorus asks directly. The first address variable that is set counts, and the first key variable.

    Every address ends in ``path``. Every model's name begins with ``folder``, which users may leave out. ``elsewhere``
    is a pattern for models that need another protocol. An ``is_local`` provider is the user's own server and needs no
    key. If ``login_variable`` is set and no key is set, litellm logs in and asks the models.
    """

    address: str
    address_variables: tuple[str, ...] = ()
    key_variables: tuple[str, ...] = ()
    protocol: ProtocolName = ProtocolName.CHAT_COMPLETIONS
    path: str = ""
    folder: str = ""
    elsewhere: str = ""
    is_local: bool = False
    login_variable: str = ""


class Endpoint(NamedTuple):
    """Where to ask a model: litellm's prefix for the provider, the model's name without it, the base URL and the key.

    ``headers`` are further headers that the account needs, with names in lower case; one may hold a token in place of
    ``key``. ``refused`` are parameters that the server has refused, so requests leave them out.
    """

    provider: str
    model: str
    address: str
    key: str
    headers: tuple[tuple[str, str], ...] = ()
    refused: frozenset[str] = frozenset()
    protocol: ProtocolName = ProtocolName.CHAT_COMPLETIONS


def _usual(name: str, address: str, *keys: str, is_local: bool = False) -> WireProvider:
    """Return a provider with the variables ``NAME_API_BASE`` and, unless ``keys`` are given, ``NAME_API_KEY``."""
    return WireProvider(address, (f"{name}_API_BASE",), keys or (f"{name}_API_KEY",), is_local=is_local)


PROVIDERS: Mapping[str, WireProvider] = {
    "anthropic": WireProvider(
        "https://api.anthropic.com",
        ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        ProtocolName.ANTHROPIC,
        elsewhere=r"claude-(?:2|instant-1\.)",
        login_variable="ANTHROPIC_FEDERATION_RULE_ID",
    ),
    "openai": _usual("OPENAI", "https://api.openai.com/v1")._replace(
        address_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"), elsewhere=r".*-instruct|(?:babbage|davinci)-"
    ),
    "gemini": _usual(
        "GEMINI", "https://generativelanguage.googleapis.com/v1beta", "GOOGLE_API_KEY", "GEMINI_API_KEY"
    )._replace(protocol=ProtocolName.GEMINI),
    "mistral": WireProvider(
        "https://api.mistral.ai/v1",
        ("MISTRAL_API_BASE", "MISTRAL_AZURE_API_BASE"),
        ("MISTRAL_AZURE_API_KEY", "MISTRAL_API_KEY"),
        path="/v1",
    ),
    "deepseek": _usual("DEEPSEEK", "https://api.deepseek.com/beta"),
    "xai": _usual("XAI", "https://api.x.ai/v1")._replace(elsewhere=r".*multi-agent"),
    "moonshot": _usual("MOONSHOT", "https://api.moonshot.ai/v1"),
    "zai": _usual("ZAI", "https://api.z.ai/api/paas/v4"),
    "minimax": _usual("MINIMAX", "https://api.minimax.io/v1")._replace(path="/v1"),
    "dashscope": _usual("DASHSCOPE", "https://dashscope.aliyuncs.com/compatible-mode/v1"),
    # A name with a slash is an agent of Perplexity, or a model of another provider that Perplexity asks.
    "perplexity": _usual(
        "PERPLEXITY", "https://api.perplexity.ai", "PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"
    )._replace(elsewhere=r".*/"),
    "groq": _usual("GROQ", "https://api.groq.com/openai/v1"),
    "cerebras": _usual("CEREBRAS", "https://api.cerebras.ai/v1"),
    "together_ai": _usual("TOGETHER_AI", "https://api.together.ai/v1")._replace(
        key_variables=("TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHERAI_API_KEY", "TOGETHER_AI_TOKEN")
    ),
    "fireworks_ai": _usual("FIREWORKS", "https://api.fireworks.ai/inference/v1")._replace(
        key_variables=("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY", "FIREWORKSAI_API_KEY", "FIREWORKS_AI_TOKEN"),
        folder="accounts/fireworks/models/",
    ),
    "deepinfra": _usual("DEEPINFRA", "https://api.deepinfra.com/v1/openai"),
    "sambanova": _usual("SAMBANOVA", "https://api.sambanova.ai/v1"),
    "nebius": _usual("NEBIUS", "https://api.studio.nebius.ai/v1"),
    "novita": _usual("NOVITA", "https://api.novita.ai/v3/openai"),
    "openrouter": _usual("OPENROUTER", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "OR_API_KEY"),
    "nvidia_nim": _usual("NVIDIA_NIM", "https://integrate.api.nvidia.com/v1"),
    "lm_studio": _usual("LM_STUDIO", "http://localhost:1234/v1", is_local=True),
    "hosted_vllm": _usual("HOSTED_VLLM", "http://localhost:8000/v1", is_local=True),
    "llamafile": _usual("LLAMAFILE", "http://127.0.0.1:8080/v1", is_local=True),
}

# These names need no prefix, as in litellm. A name with ``@``, or Claude's with ``:``, belongs to another one.
_BARE_NAMES = (("openai", re.compile(r"(?:(?:ft:)?gpt-|o\d)[^/@]*$")), ("anthropic", re.compile(r"claude-[^/:@]+$")))


# The key of a provider X that is not listed here is in X_API_KEY.
_KEY_VARIABLES = {
    **{provider.prefix.removesuffix("/"): provider.key_variable for provider in KNOWN_BY_KEYS},
    "bedrock": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "bedrock_converse": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "ollama_chat": "OLLAMA_API_KEY",
    "vertex_ai": "GOOGLE_APPLICATION_CREDENTIALS",
}


class Named(NamedTuple):
    """The two parts of a model's name; ``provider`` is empty if the provider is not in `PROVIDERS`."""

    provider: str
    model: str


def named(model: str) -> Named:
    """Return the provider of ``model``, and the rest of its name without OpenAI's ``responses/``."""
    prefix, slash, name = model.partition("/")
    if slash:
        name = name.removeprefix(_RESPONSES) if prefix == _OPENAI else name
        return Named(prefix if prefix in PROVIDERS else "", name)
    return Named(next((provider for provider, names in _BARE_NAMES if names.match(model)), ""), model)


def prefixed(model: str) -> str:
    """Return the name of ``model`` with the prefix of its provider, which a bare name such as ``gpt-5`` lacks."""
    provider = "" if "/" in model else named(model).provider
    return f"{provider}/{model}" if provider else model


def endpoint(
    model: str, environment: Mapping[str, str], thinks: Callable[[str], bool | None] = lambda _model: None
) -> Endpoint | None:
    """Return the endpoint of ``model``; ``None`` if Chorus does not ask one of `PROVIDERS` for it itself.

    ``thinks`` returns whether a model can think.
    """
    prefix, name = named(model)
    if not prefix or environment.get(_LITELLM_PROXY, "").strip().lower() == "true":
        return None
    provider = PROVIDERS[prefix]
    logs_in = not provider_key(prefix, environment) and first_set((provider.login_variable,), environment)
    if logs_in or (provider.elsewhere and re.match(provider.elsewhere, name)):
        return None
    if not name.startswith("accounts/") and "#" not in name:
        name = f"{provider.folder}{name}"
    key, headers = _credentials(prefix, environment)
    found = Endpoint(prefix, name, base_address(prefix, environment), key, headers, protocol=provider.protocol)
    is_at_openai = prefix == _OPENAI and found.address == provider.address
    if model.startswith(f"{_OPENAI}/{_RESPONSES}") or (is_at_openai and _CHAT not in name and thinks(model)):
        return found._replace(protocol=ProtocolName.RESPONSES)
    return found


def base_address(prefix: str, environment: Mapping[str, str]) -> str:
    """Return the base URL of the provider ``prefix``, without a slash at its end."""
    provider = PROVIDERS[prefix]
    variable = address_variable(prefix, environment)
    if not variable:
        return provider.address
    address = environment[variable].strip().rstrip("/")
    for ending in ("/chat/completions", "/v1/messages", "/responses"):
        address = address.removesuffix(ending)
    return address if address.endswith(provider.path) else f"{address}{provider.path}"


def address_variable(prefix: str, environment: Mapping[str, str]) -> str:
    """Return the name of the variable that holds the provider's address; empty if none is set."""
    return first_set(PROVIDERS[prefix].address_variables, environment)


def key_variable(model: str, environment: Mapping[str, str]) -> str:
    """Return the name of the variable that has the key for ``model``; if none is set, the usual variable.

    If ``model`` is a bare name whose provider `named` does not know, return words for the user instead.
    """
    prefix = named(model).provider or model.partition("/")[0]
    variables = PROVIDERS[prefix].key_variables if prefix in PROVIDERS else ()
    usual = f"{prefix.upper()}_API_KEY" if "/" in model else "the key of its provider"
    return first_set(variables, environment) or _KEY_VARIABLES.get(prefix, usual)


def provider_key(prefix: str, environment: Mapping[str, str]) -> str:
    """Return the API key of a provider; empty if no key is set, or if ``prefix`` is empty."""
    variable = first_set(PROVIDERS[prefix].key_variables, environment) if prefix else ""
    return environment[variable].strip() if variable else ""


def lacks_key(endpoint: Endpoint) -> bool:
    """Return whether a request would fail because the key is missing; the user's own server may need no key."""
    provider = PROVIDERS[endpoint.provider]
    is_own = provider.is_local or endpoint.address != provider.address
    return not is_own and not endpoint.key and "authorization" not in dict(endpoint.headers)


def first_set(variables: tuple[str, ...], environment: Mapping[str, str]) -> str:
    """Return the name of the first variable that is set and not blank; empty if there is none."""
    return next((variable for variable in variables if environment.get(variable, "").strip()), "")


def _credentials(prefix: str, environment: Mapping[str, str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    key = provider_key(prefix, environment)
    if prefix == _OPENAI:
        organization = first_set(("OPENAI_ORGANIZATION", "OPENAI_ORG_ID"), environment)
        told = (("openai-organization", organization), ("openai-project", "OPENAI_PROJECT_ID"))
        values = ((name, environment.get(variable, "").strip()) for name, variable in told)
        return key, tuple((name, value) for name, value in values if value)
    if prefix != "anthropic" or not key:
        return key, ()
    if key.startswith(_ANTHROPIC_LOGIN):
        return "", (("authorization", f"Bearer {key}"), *_LOGIN_HEADERS)
    is_token = not environment.get("ANTHROPIC_API_KEY", "").strip()
    return ("", (("authorization", f"Bearer {key}"),)) if is_token else (key, ())
