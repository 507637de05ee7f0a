"""Which model answers, and why: the first of several places that names one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ELIZA = "chorus/eliza"


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider that is recognised by its key in the environment, and the model that is then used."""

    name: str
    key_variable: str
    default_model: str


PROVIDERS: tuple[Provider, ...] = (
    Provider("Anthropic", "ANTHROPIC_API_KEY", "anthropic/claude-sonnet-5"),
    Provider("OpenAI", "OPENAI_API_KEY", "openai/gpt-5.4-mini"),
    Provider("Google", "GEMINI_API_KEY", "gemini/gemini-2.5-flash"),
    Provider("Mistral", "MISTRAL_API_KEY", "mistral/mistral-large-latest"),
    Provider("DeepSeek", "DEEPSEEK_API_KEY", "deepseek/deepseek-chat"),
)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model as litellm names it, and where the choice comes from."""

    model: str
    reason: str


def chosen_model(
    option: str | None, environment: Mapping[str, str], persona_model: str | None, persona_source: str
) -> ModelChoice:
    """Return the first that is set: the option, the environment, the settings, a provider's key, else ELIZA.

    ``persona_source`` says which file the setting stands in.
    """
    if option:
        return ModelChoice(option, "chosen for this run")
    if environment.get("CHORUS_MODEL"):
        return ModelChoice(environment["CHORUS_MODEL"], "from CHORUS_MODEL")
    if persona_model:
        return ModelChoice(persona_model, f"from {persona_source}")
    for provider in PROVIDERS:
        if environment.get(provider.key_variable):
            return ModelChoice(provider.default_model, f"because {provider.key_variable} is set")
    return ModelChoice(ELIZA, "embedded: no provider's key is set")
