"""Chooses the model that answers, gives the reason for the choice, and checks the model names that users type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from chorus_cli.core.errors import ModelNameError
from chorus_cli.core.text.phrases import enumerated, quoted

EMBEDDED, ELIZA = "chorus/", "chorus/eliza"
LOCAL = "local/"
"""The beginning of the names of models in files on this machine."""


def way_on(model: str | None) -> str:
    """Name the command to type after a reply broke off; ``model`` wrote the reply, ``None`` if no words arrived."""
    return "/retry asks again" if model in {None, ELIZA} else "/continue goes on"


class Provider(NamedTuple):
    """A provider; if a variable has its key, ``default_model`` may answer.

    ``key_variable`` is the usual variable. If there are several, ``variables`` has all; the first that is set counts.
    """

    name: str
    key_variable: str
    default_model: str
    variables: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        """The beginning of the names of the provider's models, such as ``openai/``."""
        return f"{self.default_model.partition('/')[0]}/"

    def key_set_in(self, environment: Mapping[str, str]) -> str | None:
        """Return the name of the variable that holds the provider's key, or ``None`` if no key is set."""
        variables = self.variables or (self.key_variable,)
        return next((variable for variable in variables if environment.get(variable, "").strip()), None)


_OF_ANTHROPIC = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
_OF_GOOGLE = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
_OF_PERPLEXITY = ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY")
_OF_TOGETHER = ("TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHERAI_API_KEY", "TOGETHER_AI_TOKEN")
_OF_FIREWORKS = ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY", "FIREWORKSAI_API_KEY", "FIREWORKS_AI_TOKEN")
_FLASH = "accounts/fireworks/models/deepseek-v4p1-flash"

# The first provider whose key is set counts. A default model is made for chats and is not its provider's costliest.
PROVIDERS: tuple[Provider, ...] = (
    Provider("Anthropic", "ANTHROPIC_API_KEY", "anthropic/claude-sonnet-5", _OF_ANTHROPIC),
    Provider("OpenAI", "OPENAI_API_KEY", "openai/gpt-5.4-mini"),
    Provider("Google", "GEMINI_API_KEY", "gemini/gemini-3.8-flash", _OF_GOOGLE),
    Provider("Mistral", "MISTRAL_API_KEY", "mistral/mistral-large-latest"),
    Provider("DeepSeek", "DEEPSEEK_API_KEY", "deepseek/deepseek-v4-flash"),
    Provider("xAI", "XAI_API_KEY", "xai/grok-4.3"),
    Provider("Cohere", "COHERE_API_KEY", "cohere_chat/command-r-08-2024", ("COHERE_API_KEY", "CO_API_KEY")),
    Provider("Moonshot", "MOONSHOT_API_KEY", "moonshot/kimi-k2.6"),
    Provider("Z.ai", "ZAI_API_KEY", "zai/glm-5.3-flash"),
    Provider("MiniMax", "MINIMAX_API_KEY", "minimax/MiniMax-M3"),
    Provider("Alibaba Cloud", "DASHSCOPE_API_KEY", "dashscope/qwen-plus"),
    Provider("Perplexity", "PERPLEXITYAI_API_KEY", "perplexity/sonar", _OF_PERPLEXITY),
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
    """A model as litellm names it, and the reason for the choice in words for the user."""

    model: str
    reason: str

    def sentence(self) -> str:
        """Name the model and the reason in a sentence."""
        return _ELIZA_ANSWERS if self == _NOBODY_ELSE else f"Model: {self.model} ({self.reason})."


_ELIZA_ALONE = ELIZA.rpartition("/")[2]
_WAYS = "For a real model: set a key such as OPENAI_API_KEY, start Ollama, or use a GGUF file with"
_NOBODY_ELSE = ModelChoice(ELIZA, "no API key and no Ollama found")
_ELIZA_ANSWERS = "No API key and no Ollama found, so ELIZA (1966) is answering."


class Naming(NamedTuple):
    """The sources of the model's name other than settings; ``ask_ollama`` returns Ollama's most recent model."""

    option: str | None
    environment: Mapping[str, str]
    ask_ollama: Callable[[], str | None]

    def named(self, persona_model: str | None, sources: Mapping[str, str]) -> ModelChoice | None:
        """Return the model that the option sets, else ``CHORUS_MODEL``, else the settings, else a provider's key.

        ``sources`` has the file and line of each setting. If no model is set, return ``None``; then Ollama is asked.
        """
        places = (
            (self.option, "--model"),
            (self.environment.get("CHORUS_MODEL", "").strip(), "from CHORUS_MODEL"),
            # The file's name and line number are enough; its folder would fill a line on the screen.
            (persona_model, f"from {sources.get('model', '').rpartition('/')[2]}"),
        )
        if given := next((ModelChoice(in_full(model), reason) for model, reason in places if model), None):
            return given
        provider, variable = _key_in(self.environment) or (None, "")
        return ModelChoice(in_full(provider.default_model), f"because {variable} is set") if provider else None


def in_full(model: str) -> str:
    """Return the full name of a model: ``chorus/eliza`` for ``eliza``, and any other name unchanged."""
    return ELIZA if model.casefold() == _ELIZA_ALONE else model


def missing_key(model: str, environment: Mapping[str, str]) -> str:
    """Return a sentence if no key, login or server for ``model`` is set, else an empty text."""
    provider = next((provider for provider in PROVIDERS if model.startswith(provider.prefix)), None)
    # Some providers have further keys and servers, such as MISTRAL_AZURE_API_KEY and FIREWORKS_API_BASE.
    beginning = f"{model.partition('/')[0].partition('_')[0].upper()}_"
    endings = ("_API_KEY", "_API_BASE", "_BASE_URL", "_RULE_ID")
    others = (
        value.strip() for name, value in environment.items() if name.startswith(beginning) and name.endswith(endings)
    )
    if provider is None or provider.key_set_in(environment) or any(others):
        return ""
    return f"There is no key for {provider.name}, so messages will fail. Set {provider.key_variable}."


def detected_model(ollama_model: str | None) -> ModelChoice:
    """Return the choice if no source sets a model: Ollama's most recent model, or else ELIZA."""
    return ModelChoice(ollama_model, "the most recent model of a running Ollama") if ollama_model else _NOBODY_ELSE


def way_to_a_model(choice: ModelChoice, environment: Mapping[str, str]) -> str:
    """Return a sentence on how to replace ELIZA by a language model; empty if a language model answers already."""
    if choice.model != ELIZA:
        return ""
    if found := _key_in(environment):
        provider, variable = found
        return f"{variable} is set: /model {provider.default_model} switches to a language model."
    return f"{_WAYS} /model {LOCAL}FILE.gguf."


def _key_in(environment: Mapping[str, str]) -> tuple[Provider, str] | None:
    keys = ((provider, provider.key_set_in(environment)) for provider in PROVIDERS)
    return next(((provider, variable) for provider, variable in keys if variable), None)


_MOST_SUGGESTIONS = 3


def doubt_about(
    name: str, names: AbstractSet[str], providers: AbstractSet[str], likely: Sequence[str] = ()
) -> str | None:
    """Return a warning if ``providers`` are known but lack the provider of ``name``, else ``None``.

    ``names`` and ``providers`` come from litellm. Any model of a known provider is accepted, because new models appear
    every week. An impossible name raises a ``ModelNameError``, which may suggest similar names, ``likely`` ones first.
    """
    if not name:
        raise ModelNameError("Model name missing: write provider/name, such as ollama/llama3.2.")
    if " " in name or not name.isprintable():
        raise ModelNameError(f"Model names contain no spaces and no invisible characters: {quoted(name)}.")
    provider, slash, rest = name.partition("/")
    if name == ELIZA or name in names or not (slash or names):
        return None
    if not slash:
        raise ModelNameError(
            f"There is no model {quoted(name)}. The name of a model begins with its provider: ollama/llama3.2."
            f"{_question(_alike(name, {*names, ELIZA}, likely))}"
        )
    if not provider or not rest:
        problem = "is an incomplete model name: write provider/name, such as ollama/llama3.2."
        raise ModelNameError(f"{quoted(name)} {problem}")
    if name.startswith(EMBEDDED):
        raise ModelNameError(f"There is no model {quoted(name)}: the only embedded model is {ELIZA}.")
    if not providers or provider in providers:
        return None
    from difflib import get_close_matches  # a slow import, and few names are doubtful

    by_spelling = {known.casefold(): known for known in sorted(providers)}
    near = get_close_matches(provider.casefold(), by_spelling, n=1)
    meant = _question([f"{by_spelling[spelling]}/{rest}" for spelling in near])
    return f"Chorus knows no provider {provider!r}, so messages may fail.{meant}"


def _alike(name: str, names: Iterable[str], likely: Sequence[str]) -> list[str]:
    """Return names that differ only in case or prefix; else likely names that contain ``name``; else similar names."""
    from difflib import get_close_matches  # a slow import, and few names are refused

    by_spelling: defaultdict[str, list[str]] = defaultdict(list)
    for known in sorted(names, key=lambda known: (len(known), known)):
        by_spelling[known.casefold().rpartition("/")[2]].append(known)
    typed = name.casefold()
    same = by_spelling.get(typed, [])
    if same:
        same = [*(known for known in likely if known in same), *(known for known in same if known not in likely)]
        exact = [known for known in same if known.casefold() == typed]
        return exact[:1] or same[:_MOST_SUGGESTIONS]
    held = [known for known in likely if typed in known.casefold().rpartition("/")[2]]
    if held:
        return held[:_MOST_SUGGESTIONS]
    return [by_spelling[near][0] for near in get_close_matches(typed, by_spelling, n=_MOST_SUGGESTIONS)]


def _question(suggestions: list[str]) -> str:
    return f" Did you mean {enumerated(suggestions, 'or')}?" if suggestions else ""
