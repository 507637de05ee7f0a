"""The parameters that differ between providers and models, mostly those for thinking, and refusals of parameters.

If a model lacks a level of ``effort``, the next higher level is sent (``low`` in place of ``none``), or no level.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from chorus_cli.core.json import values
from chorus_cli.models.providers.chat_messages import DENIED
from chorus_cli.models.providers.failures import cut_text, error_in, message_in
from chorus_cli.models.providers.providers import ProtocolName

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from chorus_cli.models.providers.failures import Failure
    from chorus_cli.models.providers.providers import Endpoint
    from chorus_cli.models.rules.request import ModelRequest

# Parameters by level of effort; the parameters under the empty name are for a request without an effort.
_Efforts = dict[str, dict[str, Any]]
_UNSET, _LEVELS = "", ("low", "medium", "high")
_RESPONSES, _GEMINIS = ProtocolName.RESPONSES.value, "thinkingConfig"


class _Row(NamedTuple):
    """The parameters for models of ``provider`` that match ``models``; ``provider`` may name a protocol instead."""

    provider: str
    models: str
    efforts: _Efforts


def _named(none: str = "none", low: str = "low", medium: str = "medium", high: str = "high") -> dict[str, str]:
    return {"none": none, "low": low, "medium": medium, "high": high}


def _effort(*names: str) -> _Efforts:
    return {effort: {"reasoning_effort": name} for effort, name in _named(*names).items()}


def _switch(*, on: dict[str, Any], off: dict[str, Any]) -> _Efforts:
    return {"none": off} | dict.fromkeys(_LEVELS, on)


def _claude(*, by_itself: bool, off: dict[str, Any] | None) -> _Efforts:
    """Return parameters for adaptive thinking. A model may think unasked (``by_itself``) or always (no ``off``)."""
    seen = {"thinking": {"type": "adaptive", "display": "summarized"}}
    levels = {level: seen | {"output_config": {"effort": level}} for level in _LEVELS}
    return {_UNSET: seen if by_itself else {}, "none": levels["low"] if off is None else off, **levels}


def _responses(*names: str) -> _Efforts:
    seen = {"summary": "auto"}
    chosen = {effort: {"reasoning": {"effort": name} | seen} for effort, name in _named(*names).items()}
    return {_UNSET: {"reasoning": seen}, **chosen}


def _gemini(name: str, *values: object) -> _Efforts:
    levels = dict(zip(("none", *_LEVELS), values, strict=True))
    seen = {"includeThoughts": True}
    return {_UNSET: {_GEMINIS: seen}} | {effort: {_GEMINIS: seen | {name: level}} for effort, level in levels.items()}


def _minimax(efforts: _Efforts) -> _Efforts:
    split = {"reasoning_split": True}
    return {effort: split | efforts.get(effort, {}) for effort in (_UNSET, "none", *_LEVELS)}


_DISABLED: dict[str, Any] = {"thinking": {"type": "disabled"}}
_ENABLED: dict[str, Any] = {"thinking": {"type": "enabled"}}
_BUDGET, _LEVEL = "thinkingBudget", "thinkingLevel"

_ROWS: tuple[_Row, ...] = (
    # platform.claude.com/docs/en/build-with-claude: adaptive-thinking, effort, extended-thinking
    _Row("anthropic", r"claude-(?:fable|mythos|opus-5-5)", _claude(by_itself=True, off=None)),
    _Row("anthropic", r"claude-sonnet-5-5", _claude(by_itself=True, off={"thinking": {"type": "between_tools"}})),
    _Row("anthropic", r"claude-(?:opus|sonnet|haiku)-[5-9]", _claude(by_itself=True, off=_DISABLED)),
    _Row("anthropic", r"claude-(?:opus|sonnet|haiku)-4-[6-9](?:\D|$)", _claude(by_itself=False, off={})),
    _Row(
        "anthropic",
        r"claude-(?:3-7|(?:opus|sonnet|haiku)-4)",
        {
            level: {"thinking": {"type": "enabled", "budget_tokens": tokens}}
            for level, tokens in zip(_LEVELS, (2_048, 8_192, 16_384), strict=True)
        },
    ),
    _Row("anthropic", "", {}),
    # developers.openai.com/api/docs/guides/reasoning
    _Row(_RESPONSES, r"gpt-5-pro", _responses("high", "high", "high")),
    _Row(_RESPONSES, r"gpt-.*-pro", _responses("medium", "medium")),
    _Row(_RESPONSES, r"o\d|gpt-5\.1-codex|gpt-6-astra|gpt-6\.1-sol", _responses("low")),
    _Row(_RESPONSES, r"gpt-5(?:-mini|-nano|-codex)?(?:-20|$)", _responses("minimal")),
    _Row(_RESPONSES, "", _responses()),
    _Row("openai", r"o\d", _effort("low")),
    # ai.google.dev/gemini-api/docs/thinking
    _Row("gemini", r"gemini-2\.5-pro", _gemini(_BUDGET, 128, 1_024, 8_192, 24_576)),
    _Row("gemini", r"gemini-2\.5", _gemini(_BUDGET, 0, 1_024, 8_192, 24_576)),
    _Row("gemini", r"gemma", _gemini(_LEVEL, "minimal", "high", "high", "high")),
    _Row("gemini", r"gemini-3-pro", _gemini(_LEVEL, "low", "low", "high", "high")),
    _Row("gemini", r"gemini-(?:3\.[178]|[4-9])", _gemini(_LEVEL, "low", "low", "medium", "high")),
    _Row("gemini", "", _gemini(_LEVEL, "minimal", "low", "medium", "high")),
    # api-docs.deepseek.com/guides/thinking_mode
    _Row("deepseek", "", {"none": _DISABLED} | {level: _ENABLED | {"reasoning_effort": level} for level in _LEVELS}),
    # platform.kimi.ai/docs: guide/use-kimi-k2-thinking-model, guide/use-reasoning-effort
    _Row("moonshot", r"kimi-k2\.[56]", _switch(on=_ENABLED, off=_DISABLED)),
    _Row("moonshot", r"kimi-k2", {}),
    _Row("moonshot", r"kimi-k", _effort("low", "low", "high")),
    # docs.z.ai/guides/capabilities/thinking-mode
    _Row("zai", r"glm-(?:5\.[3-9]|[6-9])", _effort("low", "low", "high")),
    _Row("zai", r"glm-5\.2", _effort()),
    _Row("zai", "", _switch(on=_ENABLED, off=_DISABLED)),
    # platform.minimax.io/docs/api-reference/text-openai-api
    _Row("minimax", r"(?i)minimax-m2", _minimax({})),
    _Row("minimax", "", _minimax(_switch(on={"thinking": {"type": "adaptive"}}, off=_DISABLED))),
    # help.aliyun.com/zh/model-studio/deep-thinking
    _Row("dashscope", "", _switch(on={"enable_thinking": True}, off={"enable_thinking": False})),
    # docs.x.ai/docs/guides/reasoning
    _Row("xai", r"grok-3-mini", _effort("none", "low", "high")),
    _Row("xai", r"grok-4\.3", _effort()),
    _Row("xai", r"grok-4\.[4-9](?!\d)", _effort("low")),
    _Row("xai", "", {}),
    # docs.mistral.ai/capabilities/reasoning
    _Row("mistral", r"mistral-large-4", _effort("low")),
    _Row("mistral", r"magistral-.*-\d", {}),
    _Row("mistral", "", _effort("none", "high", "high")),
    # console.groq.com/docs/reasoning and inference-docs.cerebras.ai/capabilities/reasoning
    _Row("groq", r"qwen", _effort("none", "default", "default", "default")),
    _Row("groq", "", _effort("low")),
    _Row("cerebras", r"gpt-oss", _effort("low")),
    _Row("cerebras", r"kimi-k3|zai-glm-5", _effort("low", "low", "high")),
    _Row("cerebras", "", {"none": {"reasoning_effort": "none"}}),
    # docs.together.ai/docs/reasoning-overview
    _Row("together_ai", "", _effort() | {"none": {"reasoning": {"enabled": False}}}),
    # openrouter.ai/docs/use-cases/reasoning-tokens
    _Row("openrouter", "", {effort: {"reasoning": {"effort": effort}} for effort in ("none", *_LEVELS)}),
    _Row("perplexity", "", {}),
    _Row("", "", _effort()),
)
"""The first row that matches counts. The comments name the pages on which providers publish these parameters."""


class ChosenEffort(NamedTuple):
    """The parameters for an effort; ``optional`` maps their names in errors to names in ``Endpoint.refused``."""

    parameters: dict[str, Any]
    optional: dict[str, str]


NO_EFFORT = ChosenEffort({}, {})


def chosen_effort(request: ModelRequest, endpoint: Endpoint) -> ChosenEffort:
    """Return the parameters for the effort of a request, except any that the server has refused."""
    provider = _RESPONSES if endpoint.protocol is ProtocolName.RESPONSES else endpoint.provider
    told = f"effort {request.effort}" if request.effort else ""
    told = "" if told in endpoint.refused else told
    rows = (row for row in _ROWS if row.provider in {provider, ""} and re.match(row.models, endpoint.model))
    found = next(rows).efforts.get(request.effort if request.effort and told else _UNSET, {})
    parameters = {name: value for name, value in found.items() if name not in endpoint.refused}
    names = ((each, told or name) for name, value in parameters.items() for each in _error_names(name, value))
    return ChosenEffort(parameters, dict(names))


def _error_names(name: str, value: object) -> Iterator[str]:
    yield name
    if name == _GEMINIS:
        yield "thinking"
    for inner in value if isinstance(value, dict) else ():
        yield f"{name}.{inner}"
        yield re.sub(r"(?=[A-Z])", "_", inner).lower()


_STREAM_OPTIONS, _TEMPERATURE = frozenset({"stream_options"}), frozenset({"temperature"})
_TOOLS = frozenset({"tools", "tool_choice"})


class Dialect(NamedTuple):
    """A model's parameters: ``reply_limit`` is its name for the limit of a reply, and ``omitted`` are not sent."""

    reply_limit: str = "max_tokens"
    omitted: frozenset[str] = frozenset()


_USUAL = Dialect()
_REASONING = Dialect("max_completion_tokens", _TEMPERATURE)

# For a provider, the first row whose pattern matches the model counts.
_DIALECTS = (
    ("openai", r"o\d", _REASONING),
    ("openai", r"gpt-5-chat", _USUAL),
    ("openai", r"gpt-5.*search", Dialect("max_completion_tokens", _TEMPERATURE | _TOOLS)),
    ("openai", r"gpt-5\.[124](?!.*chat)", Dialect("max_completion_tokens")),
    ("openai", r"gpt-[56]", _REASONING),
    ("moonshot", r"kimi-(?:k2\.[5-9]|k[3-9])", Dialect(omitted=_TEMPERATURE)),
    *((provider, "", Dialect(omitted=_STREAM_OPTIONS)) for provider in ("mistral", "cerebras", "nvidia_nim")),
    ("deepinfra", "", Dialect(omitted=_STREAM_OPTIONS | {"tool_choice"})),
    ("perplexity", "", Dialect(omitted=_STREAM_OPTIONS | _TOOLS)),
)


def dialect(endpoint: Endpoint) -> Dialect:
    """Return how the model of ``endpoint`` takes its parameters."""
    of_provider = ((names, spoken) for provider, names, spoken in _DIALECTS if provider == endpoint.provider)
    return next((spoken for names, spoken in of_provider if re.match(names, endpoint.model)), _USUAL)


# If a server refuses the first name, the limit of the reply is sent under the second name.
NEWER_NAMES = {"max_tokens": "max_completion_tokens"}

_STATUSES = frozenset({400, 404, 422, 500, 501})
_ALSO_DENIED = re.compile(
    r"(?i)extra[_ ](?:inputs|forbidden)|unexpected|unknown|deprecated|invalid (?:field|parameter)|isn.t allowed"
)
# Words that refuse a parameter's value. Chorus leaves out a refused effort, but shows any other refusal to the user.
_VALUE_DENIED = re.compile(
    r"(?i)must be one of|input should be|invalid (?:value|reasoning)|is mandatory|is invalid|to turn thinking off"
)
_ABOUT_EFFORT = re.compile("effort|reasoning|thinking", re.IGNORECASE)


def refused_parameter(failure: Failure, optional: Iterable[str]) -> str | None:
    """Return the first ``optional`` parameter that an error refuses by name, or ``None``."""
    if failure.trouble is not None or failure.status not in _STATUSES:
        return None
    error = values.record(error_in(failure.body))
    signs = (each for each in (error.get("code"), error.get("type")) if isinstance(each, str))
    text = " ".join((cut_text(message_in(failure.body)), *signs))
    if not DENIED.search(text) and not _ALSO_DENIED.search(text):
        optional = filter(_ABOUT_EFFORT.search, optional) if _VALUE_DENIED.search(text) else ()
    patterns = {name: re.escape(name).replace("_", "[ _-]") for name in optional}
    if error.get("param") in [*patterns]:
        return str(error["param"])
    named = {name: re.search(rf"\b{pattern}\b", text, re.IGNORECASE) for name, pattern in patterns.items()}
    places = {name: (match.start(), -len(name)) for name, match in named.items() if match}
    return min(places, key=lambda name: places[name], default=None)
