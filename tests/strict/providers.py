"""The strict providers: one for each protocol, and for each rule of what goes back of thoughts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tests.sdk_types import misfit_of_anthropic, misfit_of_chat, misfit_of_gemini, misfit_of_responses
from tests.strict.chat import (
    GOOGLE,
    HIDDEN,
    MINIMAX,
    MISTRAL,
    OPENROUTER,
    UNKNOWN,
    StrictChat,
    in_field,
    nine_letters,
    own_ids,
    signed_steps,
    split_thoughts,
    unique_details,
)
from tests.strict.claude import StrictClaude
from tests.strict.gemini import StrictGemini
from tests.strict.responses import StrictResponses
from tests.strict.server import NO_ECHO, EchoRule, StrictProtocol

_CONTENT, _REASONING = "reasoning_content", "reasoning"
_BLANK = {_CONTENT: " "}
_DEEPSEEK = "The `reasoning_content` in the thinking mode must be passed back to the API."
_KIMI = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"
_GROQ = "'messages.{place}' : for 'role:assistant' the following must be satisfied[('messages.{place}' : property "
_CEREBRAS = "messages.{place}.assistant.{field}: property 'messages.{place}.assistant.{field}' is unsupported"
_EXTRA = '{{"type":"extra_forbidden","loc":["body","messages",{place},"assistant","{field}"],"msg":'
_MISTRAL = '{{"detail":[' + _EXTRA + '"Extra inputs are not permitted"}}]}}'


class Strict(NamedTuple):
    """A strict provider; ``shows`` says if its thoughts can be read, ``misfit`` why a request is none of its SDK."""

    model: str
    variable: str
    protocol: StrictProtocol
    within_turn: bool = False
    shows: bool = True
    effort: str = ""
    repeats_ids: bool = True
    thinks_once: bool = False
    path: str = "/v1"
    id_of: Callable[[int], str] = "call_{}".format
    misfit: Callable[[Mapping[str, object]], str] = lambda _body: ""

    def environment(self, address: str) -> Mapping[str, str]:
        """Return the variables by which Chorus asks a server at ``address``."""
        prefix = self.variable.removesuffix("_API_BASE").removesuffix("_BASE_URL")
        return {
            self.variable: f"{address}{self.path}",
            f"{prefix}_API_KEY": f"sk-of-nobody-{prefix.lower()}-0123456789",
        }


def _chat(field: str, echo: EchoRule, unknown: str = UNKNOWN) -> StrictChat:
    return StrictChat(in_field(field), echo, frozenset({field}), unknown=unknown)


_LOW_TO_HIGH, _DETAILS = frozenset({"low", "medium", "high"}), frozenset({"reasoning_details"})


def _by_chat(model: str, protocol: StrictChat) -> Strict:
    variable = f"{model.partition('/')[0].upper()}_API_BASE"
    return Strict(model, variable, protocol, within_turn=protocol.echo.within_turn)


_CLAUDE = Strict("anthropic/claude-sonnet-5", "ANTHROPIC_BASE_URL", StrictClaude(), within_turn=True, path="")._replace(
    id_of="toolu_{}".format, misfit=misfit_of_anthropic
)
_GEMINI = Strict(
    *("gemini/gemini-3.1-pro-preview", "GEMINI_API_BASE", StrictGemini(levels=_LOW_TO_HIGH)),
    path="/v1beta",
    misfit=misfit_of_gemini,
)
_TURN_CALLS, _BLANKS = EchoRule(within_turn=True, calls_only=True), EchoRule(blank=_BLANK, sentence=_KIMI)
_ALL_BLANKS = EchoRule(blank=_BLANK, blanks_all=True, sentence=_DEEPSEEK)
_BY_GOOGLE = StrictChat(GOOGLE, _TURN_CALLS, rules=(signed_steps,))
_OPENAI = Strict("openai/gemini-3.1-pro-preview", "OPENAI_BASE_URL", _BY_GOOGLE, shows=False)

PROVIDERS: Mapping[str, Strict] = {
    "deepseek": _by_chat("deepseek/deepseek-v4-flash", _chat(_CONTENT, _ALL_BLANKS)),
    "kimi": _by_chat("moonshot/kimi-k3", _chat(_CONTENT, _BLANKS)),
    "kimi-older": _by_chat("moonshot/kimi-k2.6", _chat(_CONTENT, _BLANKS._replace(calls_only=True))),
    "glm": _by_chat("zai/glm-5.3", _chat(_CONTENT, _TURN_CALLS)),
    "minimax": _by_chat(
        "minimax/MiniMax-M2.7",
        StrictChat(MINIMAX, EchoRule(), _DETAILS, frozenset({"reasoning_split"}), rules=(own_ids, split_thoughts)),
    )._replace(repeats_ids=False, id_of="call_function_{}xyz_1".format),
    "openrouter": _by_chat(
        "openrouter/anthropic/claude-sonnet-5", StrictChat(OPENROUTER, EchoRule(), _DETAILS, rules=(unique_details,))
    ),
    "mistral": _by_chat(
        "mistral/magistral-medium-latest",
        StrictChat(MISTRAL, EchoRule(), unknown=_MISTRAL, unknown_status=422, rules=(nine_letters,)),
    )._replace(id_of="call{:05d}".format),
    "groq": _by_chat("groq/openai/gpt-oss-120b", _chat(_REASONING, _TURN_CALLS, _GROQ + "'{field}' is unsupported)]")),
    "cerebras": _by_chat("cerebras/gpt-oss-120b", _chat(_REASONING, _TURN_CALLS, _CEREBRAS)),
    "openai-chat": _OPENAI._replace(model="openai/gpt-4o", protocol=StrictChat(HIDDEN, NO_ECHO), misfit=misfit_of_chat),
    "vllm": _by_chat("hosted_vllm/qwen3-8b", _chat(_REASONING, _TURN_CALLS)),
    "google-openai": _OPENAI._replace(within_turn=True),
    "claude": _CLAUDE,
    "claude-bound": _CLAUDE._replace(
        model="anthropic/claude-fable-5-2", protocol=StrictClaude(frozenset({"adaptive"}), is_bound=True)
    ),
    "claude-manual": _CLAUDE._replace(
        model="anthropic/claude-sonnet-4-5",
        protocol=StrictClaude(
            frozenset({"enabled", "disabled"}), frozenset(), takes_temperature=True, echo=EchoRule(calls_only=True)
        ),
        within_turn=False,
        effort="low",
        thinks_once=True,
    ),
    "responses": Strict(
        "openai/responses/gpt-5.5", "OPENAI_BASE_URL", StrictResponses(), within_turn=True, misfit=misfit_of_responses
    ),
    "gemini-3": _GEMINI,
    "gemini-2.5": _GEMINI._replace(
        model="gemini/gemini-2.5-flash", protocol=StrictGemini(is_older=True, budgets=range(24_577))
    ),
}
