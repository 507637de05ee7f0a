"""Which model answers, and why: the first of several places that names one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ELIZA = "chorus/eliza"
LOCAL = "local/"
"""The beginning of the names of models in files on this machine."""


class Provider(NamedTuple):
    """A provider that its key selects, which may be in ``other_variables``, and the model that is then used."""

    name: str
    key_variable: str
    default_model: str
    other_variables: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        """The beginning of its models' names."""
        return f"{self.default_model.partition('/')[0]}/"

    def key_set_in(self, environment: Mapping[str, str]) -> str | None:
        """Return the name of the variable that holds the provider's key, ``None`` if none does."""
        variables = (self.key_variable, *self.other_variables)
        return next((variable for variable in variables if environment.get(variable, "").strip()), None)


_OF_TOGETHER = ("TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHER_AI_TOKEN")
_OF_FIREWORKS = ("FIREWORKS_API_KEY", "FIREWORKSAI_API_KEY", "FIREWORKS_AI_TOKEN")
_FLASH = "accounts/fireworks/models/deepseek-v4p1-flash"

# The first whose key is set answers. Each model is one of the provider's usual ones for a chat, not its most expensive.
PROVIDERS: tuple[Provider, ...] = (
    Provider("Anthropic", "ANTHROPIC_API_KEY", "anthropic/claude-sonnet-5", ("ANTHROPIC_AUTH_TOKEN",)),
    Provider("OpenAI", "OPENAI_API_KEY", "openai/gpt-5.4-mini"),
    Provider("Google", "GEMINI_API_KEY", "gemini/gemini-3.8-flash", ("GOOGLE_API_KEY",)),
    Provider("Mistral", "MISTRAL_API_KEY", "mistral/mistral-large-latest"),
    Provider("DeepSeek", "DEEPSEEK_API_KEY", "deepseek/deepseek-v4-flash"),
    Provider("xAI", "XAI_API_KEY", "xai/grok-4.3"),
    Provider("Cohere", "COHERE_API_KEY", "cohere_chat/command-r-08-2024", ("CO_API_KEY",)),
    Provider("Moonshot", "MOONSHOT_API_KEY", "moonshot/kimi-k2.6"),
    Provider("Z.ai", "ZAI_API_KEY", "zai/glm-5.3-flash"),
    Provider("MiniMax", "MINIMAX_API_KEY", "minimax/MiniMax-M3"),
    Provider("Alibaba Cloud", "DASHSCOPE_API_KEY", "dashscope/qwen-plus"),
    Provider("Perplexity", "PERPLEXITYAI_API_KEY", "perplexity/sonar", ("PERPLEXITY_API_KEY",)),
    Provider("Groq", "GROQ_API_KEY", "groq/openai/gpt-oss-120b"),
    Provider("Cerebras", "CEREBRAS_API_KEY", "cerebras/gpt-oss-120b"),
    Provider("Together", "TOGETHERAI_API_KEY", "together_ai/openai/gpt-oss-120b", _OF_TOGETHER),
    Provider("Fireworks", "FIREWORKS_AI_API_KEY", f"fireworks_ai/{_FLASH}", _OF_FIREWORKS),
    Provider("DeepInfra", "DEEPINFRA_API_KEY", "deepinfra/openai/gpt-oss-120b"),
    Provider("SambaNova", "SAMBANOVA_API_KEY", "sambanova/gpt-oss-120b"),
    Provider("Nebius", "NEBIUS_API_KEY", "nebius/openai/gpt-oss-120b"),
    Provider("Novita", "NOVITA_API_KEY", "novita/openai/gpt-oss-120b"),
)


class ModelChoice(NamedTuple):
    """A model as litellm names it, and where the choice comes from."""

    model: str
    reason: str


_ELIZA_ALONE = ELIZA.rpartition("/")[2]
_WAYS = "For a language model set a provider's key, such as OPENAI_API_KEY, start Ollama, or download a GGUF file"
_NOBODY_ELSE = ModelChoice(ELIZA, "embedded: no provider's key is set and no Ollama answered")


class Naming(NamedTuple):
    """The sources of a model's name besides the persona's files; ``ask_ollama`` returns the model that it used last."""

    option: str | None
    environment: Mapping[str, str]
    ask_ollama: Callable[[], str | None]

    def named(self, persona_model: str | None, sources: Mapping[str, str]) -> ModelChoice | None:
        """Return the first that is set: the option, the environment, the settings, a provider's key.

        ``sources`` names the file and line of each setting. ``None`` means that an Ollama is to be asked.
        """
        if self.option:
            return ModelChoice(in_full(self.option), "chosen for this run")
        if self.environment.get("CHORUS_MODEL"):
            return ModelChoice(in_full(self.environment["CHORUS_MODEL"]), "from CHORUS_MODEL")
        if persona_model:
            # The file's name and line say enough; its folder would fill the line.
            return ModelChoice(in_full(persona_model), f"from {sources.get('model', '').rpartition('/')[2]}")
        found = _key_in(self.environment)
        return ModelChoice(found[0].default_model, f"because {found[1]} is set") if found else None


def in_full(model: str) -> str:
    """Return the whole name of a model; ``eliza`` alone is the embedded one."""
    return ELIZA if model.casefold() == _ELIZA_ALONE else model


def missing_key(model: str, environment: Mapping[str, str]) -> str:
    """Name the variable in which ``model`` wants a key; empty if one is set, or for a server of the user's own."""
    provider = next((provider for provider in PROVIDERS if model.startswith(provider.prefix)), None)
    if provider is None or provider.key_set_in(environment):
        return ""
    addresses = tuple(provider.prefix[:-1].upper() + ending for ending in ("_API_BASE", "_BASE_URL"))
    if any(environment.get(variable) for variable in addresses):
        return ""
    return f"There is no key for {provider.name}, so messages will fail. Set {provider.key_variable}."


def detected_model(ollama_model: str | None) -> ModelChoice:
    """Return what answers when nothing names a model: the Ollama model that was used last, or else ELIZA."""
    return ModelChoice(ollama_model, "a running Ollama's most recently used model") if ollama_model else _NOBODY_ELSE


def way_to_a_model(choice: ModelChoice, environment: Mapping[str, str]) -> str:
    """Say how to have a language model answer instead of ELIZA; empty if one does."""
    if choice.model != ELIZA:
        return ""
    found = _key_in(environment)
    if found:
        provider, variable = found
        return f"{variable} is set: /model {provider.default_model} switches to a language model."
    names = f"ollama/NAME or /model {LOCAL}FILE.gguf" if choice == _NOBODY_ELSE else "NAME"
    return f"{_WAYS}; then say /model {names}."


def _key_in(environment: Mapping[str, str]) -> tuple[Provider, str] | None:
    keys = ((provider, provider.key_set_in(environment)) for provider in PROVIDERS)
    return next(((provider, variable) for provider, variable in keys if variable), None)
