"""Which thoughts each provider wants back, by its documentation, and the filler for a reply that has none."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.models.providers.providers import PROVIDERS, ProtocolName
from chorus_cli.models.rules.thoughts import NO_ECHO, Echo, Span

if TYPE_CHECKING:
    from chorus_cli.models.providers.providers import Endpoint

OWN_SERVER = "your own server"
GATEWAYS = ("fireworks_ai", "novita", "together_ai", "deepinfra", "nebius", "nvidia_nim", "sambanova", OWN_SERVER)


class Filler(Enum):
    """The messages without thoughts of their own that need a blank in their place."""

    NONE = "none"
    CALLS = "with calls"
    ALL = "all"


class EchoRule(NamedTuple):
    """A row of the table: the thoughts that go back to some models, called ``title`` together.

    ``providers`` and ``names``, a pattern, tell which models these are. ``field`` of the protocol holds the thoughts;
    without one they go back in the field in which they came. ``form`` says so in the documents, and ``source`` is where
    the provider publishes the rule.
    """

    title: str
    providers: tuple[str, ...]
    names: str
    echo: Echo
    form: str
    source: str
    field: str = ""
    filler: Filler = Filler.NONE


_EVER, _EVER_WITH_CALLS = Echo(Span.EVER, calls_only=False), Echo(Span.EVER)
_TURN = Echo(Span.TURN)
_CONTENT, _TEXT, _DETAILS = "reasoning_content", "reasoning", "reasoning_details"
_AS_IT_CAME = "`reasoning_content` or `reasoning`, as it came"
_DEEPSEEK, _KIMI = (
    "api-docs.deepseek.com/guides/thinking_mode",
    "platform.kimi.ai/docs/guide/use-kimi-k2-thinking-model",
)
_MINIMAX, _GLM = "platform.minimax.io/docs/api-reference/text-openai-api", "docs.z.ai/guides/capabilities/thinking-mode"

ECHO_RULES: tuple[EchoRule, ...] = (
    EchoRule(
        # They refuse a turn that was stopped at a tool, and so is followed by a question, unless it begins with these.
        "Claude up to 4.5",
        ("anthropic",),
        r"claude-(?:3|(?:opus|sonnet|haiku)-4(?:-[0-5](?!\d)|-2025|$))",
        _EVER_WITH_CALLS,
        "`thinking` and `redacted_thinking` blocks, unmodified",
        "platform.claude.com/docs/en/build-with-claude/extended-thinking",
    ),
    EchoRule(
        "Claude",
        ("anthropic",),
        "",
        Echo(Span.TURN, is_bound=True),
        "`thinking` and `redacted_thinking` blocks, unmodified",
        "platform.claude.com/docs/en/build-with-claude/adaptive-thinking",
    ),
    EchoRule(
        "OpenAI, by responses",
        (ProtocolName.RESPONSES.value,),
        "",
        _TURN,
        "`reasoning` items with encrypted content",
        "developers.openai.com/api/docs/guides/reasoning",
    ),
    EchoRule(
        "Gemini",
        ("gemini",),
        "",
        _EVER,
        "signatures, in the parts in which they came",
        "ai.google.dev/gemini-api/docs/thought-signatures",
    ),
    EchoRule(
        "Mistral",
        ("mistral",),
        "",
        _EVER,
        "`thinking` chunks of the content",
        "docs.mistral.ai/capabilities/reasoning",
        "content",
    ),
    EchoRule("DeepSeek", ("deepseek",), "", _EVER, "`reasoning_content`", _DEEPSEEK, _CONTENT, Filler.ALL),
    EchoRule(
        "Kimi K2 to K2.6",
        ("moonshot",),
        r"kimi-k2(?:\.[0-6]|-)",
        _EVER_WITH_CALLS,
        "`reasoning_content`",
        _KIMI,
        _CONTENT,
        Filler.CALLS,
    ),
    EchoRule(
        "later Kimi",
        ("moonshot",),
        "kimi-k",
        _EVER,
        "`reasoning_content`",
        "platform.kimi.ai/docs/guide/use-reasoning-effort",
        _CONTENT,
        Filler.CALLS,
    ),
    EchoRule("GLM", ("zai",), "", _TURN, "`reasoning_content`", _GLM, _CONTENT),
    EchoRule(
        "MiniMax",
        ("minimax",),
        "",
        # It refuses ids of calls that it has not given.
        _EVER._replace(own_calls_only=True),
        "`reasoning_details`",
        _MINIMAX,
        _DETAILS,
    ),
    EchoRule(
        "OpenRouter",
        ("openrouter",),
        "",
        _EVER,
        "`reasoning_details`",
        "openrouter.ai/docs/use-cases/reasoning-tokens",
        _DETAILS,
    ),
    EchoRule("Groq", ("groq",), "", _TURN, "`reasoning`", "console.groq.com/docs/reasoning", _TEXT),
    EchoRule(
        "Cerebras", ("cerebras",), "", _TURN, "`reasoning`", "inference-docs.cerebras.ai/capabilities/reasoning", _TEXT
    ),
    EchoRule(
        "DeepSeek elsewhere", GATEWAYS, "deepseek.*(?:v[4-9]|flash)", _EVER, _AS_IT_CAME, _DEEPSEEK, filler=Filler.ALL
    ),
    EchoRule("Kimi elsewhere", GATEWAYS, "kimi-k", _EVER_WITH_CALLS, _AS_IT_CAME, _KIMI, filler=Filler.CALLS),
    EchoRule("MiniMax elsewhere", GATEWAYS, "minimax-m", _EVER, _AS_IT_CAME, _MINIMAX),
    EchoRule("GLM elsewhere", GATEWAYS, "glm-", _TURN, _AS_IT_CAME, _GLM),
    EchoRule(
        "others at your own server",
        (OWN_SERVER,),
        "",
        _TURN,
        _AS_IT_CAME,
        "docs.vllm.ai/en/latest/features/reasoning_outputs",
    ),
)
"""The first row that matches counts; no other provider is sent any thoughts."""

NO_RULE = EchoRule("", (), "", NO_ECHO, "", "")


@lru_cache(maxsize=16)
def echo_rule(endpoint: Endpoint) -> EchoRule:
    """Return the rule for the model of an endpoint."""
    name = _name(endpoint)
    found = (
        rule for rule in ECHO_RULES if name in rule.providers and re.search(rule.names, endpoint.model, re.IGNORECASE)
    )
    return next(found, NO_RULE)


def _name(endpoint: Endpoint) -> str:
    """Return the name in the table for an endpoint: that of its protocol, its provider, or one's own server."""
    if endpoint.protocol is ProtocolName.RESPONSES:
        return ProtocolName.RESPONSES.value
    provider = PROVIDERS[endpoint.provider]
    is_own = provider.is_local or (endpoint.provider == "openai" and endpoint.address != provider.address)
    return OWN_SERVER if is_own else endpoint.provider
