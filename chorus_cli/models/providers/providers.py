"""The providers that are asked directly: their protocols, addresses and keys.

Prefixes and variables are litellm's, so that nothing changes for its users. Models of all other providers, and those
that need another protocol than their provider's usual one, are asked through litellm.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# With this variable litellm sends every request to a proxy of its own.
_LITELLM_PROXY = "USE_LITELLM_PROXY"
_OPENAI, _RESPONSES, _CHAT = "openai", "responses/", "-chat"
_ANTHROPIC_LOGIN = "sk-ant-oat"
_ANTHROPIC_LOGIN_HEADERS = (
    ("anthropic-beta", "oauth-2025-04-20"),
    ("anthropic-dangerous-direct-browser-access", "true"),
)


class ProtocolName(Enum):
    """The protocols of the wire."""

    CHAT_COMPLETIONS = "OpenAI's chat completions"
    RESPONSES = "OpenAI's responses"
    ANTHROPIC = "Anthropic's messages"
    GEMINI = "Gemini's generateContent"


class WireProvider(NamedTuple):
    """A provider that is asked directly.

    ``address`` is its base URL, ``address_variables`` may name another; ``key_variables`` hold its API key. In both the
    first that is set counts. ``path`` is the end of every address of it, ``folder`` the beginning of its models' names,
    which users may leave out. ``elsewhere`` matches the names of its models that need another protocol. The server of
    an ``is_local`` provider is the user's own and needs no key. With ``login_variable`` and no key, litellm logs in.
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
    """Where a model is asked.

    ``provider`` is the prefix of its name as litellm has it (``openai``), ``model`` its name without that prefix,
    ``address`` the base URL without a slash at its end, ``key`` the API key, empty if none is needed. ``headers`` are
    those that the account needs beyond the key, in lower case; they may hold a token in the key's place. ``refused``
    are the parameters that the server has refused by name, which are left out. ``protocol`` is the one by which this
    model is asked.
    """

    provider: str
    model: str
    address: str
    key: str
    headers: tuple[tuple[str, str], ...] = ()
    refused: frozenset[str] = frozenset()
    protocol: ProtocolName = ProtocolName.CHAT_COMPLETIONS


PROVIDERS: Mapping[str, WireProvider] = {
    "anthropic": WireProvider(
        "https://api.anthropic.com",
        ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        ProtocolName.ANTHROPIC,
        elsewhere=r"claude-(?:2|instant-1\.)",
        login_variable="ANTHROPIC_FEDERATION_RULE_ID",
    ),
    "openai": WireProvider(
        "https://api.openai.com/v1",
        ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        ("OPENAI_API_KEY",),
        elsewhere=r".*-instruct|(?:babbage|davinci)-",
    ),
    "gemini": WireProvider(
        "https://generativelanguage.googleapis.com/v1beta",
        ("GEMINI_API_BASE",),
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        ProtocolName.GEMINI,
    ),
    "mistral": WireProvider(
        "https://api.mistral.ai/v1",
        ("MISTRAL_API_BASE", "MISTRAL_AZURE_API_BASE"),
        ("MISTRAL_AZURE_API_KEY", "MISTRAL_API_KEY"),
        path="/v1",
    ),
    "deepseek": WireProvider("https://api.deepseek.com/beta", ("DEEPSEEK_API_BASE",), ("DEEPSEEK_API_KEY",)),
    "xai": WireProvider("https://api.x.ai/v1", ("XAI_API_BASE",), ("XAI_API_KEY",), elsewhere=r".*multi-agent"),
    "moonshot": WireProvider("https://api.moonshot.ai/v1", ("MOONSHOT_API_BASE",), ("MOONSHOT_API_KEY",)),
    "zai": WireProvider("https://api.z.ai/api/paas/v4", ("ZAI_API_BASE",), ("ZAI_API_KEY",)),
    "minimax": WireProvider("https://api.minimax.io/v1", ("MINIMAX_API_BASE",), ("MINIMAX_API_KEY",), path="/v1"),
    "dashscope": WireProvider(
        "https://dashscope.aliyuncs.com/compatible-mode/v1", ("DASHSCOPE_API_BASE",), ("DASHSCOPE_API_KEY",)
    ),
    "perplexity": WireProvider(
        "https://api.perplexity.ai",
        ("PERPLEXITY_API_BASE",),
        ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
        # Its agents, and the models of others that it passes on, have names with a slash.
        elsewhere=r".*/",
    ),
    "groq": WireProvider("https://api.groq.com/openai/v1", ("GROQ_API_BASE",), ("GROQ_API_KEY",)),
    "cerebras": WireProvider("https://api.cerebras.ai/v1", ("CEREBRAS_API_BASE",), ("CEREBRAS_API_KEY",)),
    "together_ai": WireProvider(
        "https://api.together.ai/v1",
        ("TOGETHER_AI_API_BASE",),
        ("TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHERAI_API_KEY", "TOGETHER_AI_TOKEN"),
    ),
    "fireworks_ai": WireProvider(
        "https://api.fireworks.ai/inference/v1",
        ("FIREWORKS_API_BASE",),
        ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY", "FIREWORKSAI_API_KEY", "FIREWORKS_AI_TOKEN"),
        folder="accounts/fireworks/models/",
    ),
    "deepinfra": WireProvider("https://api.deepinfra.com/v1/openai", ("DEEPINFRA_API_BASE",), ("DEEPINFRA_API_KEY",)),
    "sambanova": WireProvider("https://api.sambanova.ai/v1", ("SAMBANOVA_API_BASE",), ("SAMBANOVA_API_KEY",)),
    "nebius": WireProvider("https://api.studio.nebius.ai/v1", ("NEBIUS_API_BASE",), ("NEBIUS_API_KEY",)),
    "novita": WireProvider("https://api.novita.ai/v3/openai", ("NOVITA_API_BASE",), ("NOVITA_API_KEY",)),
    "openrouter": WireProvider(
        "https://openrouter.ai/api/v1", ("OPENROUTER_API_BASE",), ("OPENROUTER_API_KEY", "OR_API_KEY")
    ),
    "nvidia_nim": WireProvider(
        "https://integrate.api.nvidia.com/v1", ("NVIDIA_NIM_API_BASE",), ("NVIDIA_NIM_API_KEY",)
    ),
    "lm_studio": WireProvider(
        "http://localhost:1234/v1", ("LM_STUDIO_API_BASE",), ("LM_STUDIO_API_KEY",), is_local=True
    ),
    "hosted_vllm": WireProvider(
        "http://localhost:8000/v1", ("HOSTED_VLLM_API_BASE",), ("HOSTED_VLLM_API_KEY",), is_local=True
    ),
    "llamafile": WireProvider(
        "http://127.0.0.1:8080/v1", ("LLAMAFILE_API_BASE",), ("LLAMAFILE_API_KEY",), is_local=True
    ),
}

# litellm finds these two providers by the bare names of their models. A colon or an at sign belongs to other providers.
_BARE_NAMES = (
    ("openai", re.compile(r"(?:(?:ft:)?gpt-|o\d)[^/@]*$")),
    ("anthropic", re.compile(r"claude-[^/:@]+$")),
)


class Named(NamedTuple):
    """A model's name, taken apart; ``provider`` is empty for one that is not asked directly."""

    provider: str
    model: str


def named(model: str) -> Named:
    """Return the provider of ``model`` and its name there."""
    prefix, slash, name = model.partition("/")
    if slash:
        name = name.removeprefix(_RESPONSES) if prefix == _OPENAI else name
        return Named(prefix if prefix in PROVIDERS else "", name)
    return Named(next((provider for provider, names in _BARE_NAMES if names.match(model)), ""), model)


def endpoint(
    model: str, environment: Mapping[str, str], thinks: Callable[[str], bool | None] = lambda _model: None
) -> Endpoint | None:
    """Return where ``model`` is asked directly, ``None`` if litellm asks it; ``thinks`` says if OpenAI's model does."""
    prefix, name = named(model)
    if not prefix or environment.get(_LITELLM_PROXY, "").strip().lower() == "true":
        return None
    provider = PROVIDERS[prefix]
    logs_in = not provider_key(prefix, environment) and _first_set((provider.login_variable,), environment)
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


def may_lack_responses(endpoint: Endpoint) -> bool:
    """Return whether a model is asked by OpenAI's newer protocol at an address that is not OpenAI's."""
    return endpoint.protocol is ProtocolName.RESPONSES and endpoint.address != PROVIDERS[endpoint.provider].address


def base_address(prefix: str, environment: Mapping[str, str]) -> str:
    """Return the base URL of a provider of the table, without a slash at its end."""
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
    return _first_set(PROVIDERS[prefix].address_variables, environment)


def key_variable(model: str, environment: Mapping[str, str]) -> str:
    """Return the name of the variable whose key is sent for ``model``; empty if none is set, or none is known here."""
    prefix = named(model).provider
    return _first_set(PROVIDERS[prefix].key_variables, environment) if prefix else ""


def provider_key(prefix: str, environment: Mapping[str, str]) -> str:
    """Return the API key of a provider of the table; empty if none is set."""
    variable = _first_set(PROVIDERS[prefix].key_variables, environment)
    return environment[variable].strip() if variable else ""


def lacks_key(endpoint: Endpoint) -> bool:
    """Return whether a request is in vain for want of a key; a server of the user's own may need none."""
    provider = PROVIDERS[endpoint.provider]
    is_own = provider.is_local or endpoint.address != provider.address
    return not is_own and not endpoint.key and "authorization" not in dict(endpoint.headers)


def _first_set(variables: tuple[str, ...], environment: Mapping[str, str]) -> str:
    return next((variable for variable in variables if environment.get(variable, "").strip()), "")


def _credentials(prefix: str, environment: Mapping[str, str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    key = provider_key(prefix, environment)
    if prefix == _OPENAI:
        return key, _openai_headers(environment)
    if prefix != "anthropic" or not key:
        return key, ()
    if key.startswith(_ANTHROPIC_LOGIN):
        return "", (("authorization", f"Bearer {key}"), *_ANTHROPIC_LOGIN_HEADERS)
    is_token = not environment.get("ANTHROPIC_API_KEY", "").strip()
    return ("", (("authorization", f"Bearer {key}"),)) if is_token else (key, ())


def _openai_headers(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    organization = _first_set(("OPENAI_ORGANIZATION", "OPENAI_ORG_ID"), environment)
    headers = (("openai-organization", organization), ("openai-project", "OPENAI_PROJECT_ID"))
    values = ((name, environment.get(variable, "").strip()) for name, variable in headers)
    return tuple((name, value) for name, value in values if value)
