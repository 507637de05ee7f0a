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


_CLAUDE = Strict(
    "anthropic/claude-sonnet-5",
    "ANTHROPIC_BASE_URL",
    StrictClaude(),
    within_turn=True,
    path="",
    id_of="toolu_{}".format,
    misfit=misfit_of_anthropic,
)
_TURN_CALLS = EchoRule(within_turn=True, calls_only=True)

PROVIDERS: Mapping[str, Strict] = {
    "deepseek": Strict(
        "deepseek/deepseek-v4-flash",
        "DEEPSEEK_API_BASE",
        _chat(_CONTENT, EchoRule(blank=_BLANK, blanks_all=True, sentence=_DEEPSEEK)),
    ),
    "kimi": Strict("moonshot/kimi-k3", "MOONSHOT_API_BASE", _chat(_CONTENT, EchoRule(blank=_BLANK, sentence=_KIMI))),
    "kimi-older": Strict(
        "moonshot/kimi-k2.6",
        "MOONSHOT_API_BASE",
        _chat(_CONTENT, EchoRule(calls_only=True, blank=_BLANK, sentence=_KIMI)),
    ),
    "glm": Strict("zai/glm-5.3", "ZAI_API_BASE", _chat(_CONTENT, _TURN_CALLS), within_turn=True),
    "minimax": Strict(
        "minimax/MiniMax-M2.7",
        "MINIMAX_API_BASE",
        StrictChat(
            MINIMAX,
            EchoRule(),
            frozenset({"reasoning_details"}),
            frozenset({"reasoning_split"}),
            rules=(own_ids, split_thoughts),
        ),
        repeats_ids=False,
        id_of="call_function_{}xyz_1".format,
    ),
    "openrouter": Strict(
        "openrouter/anthropic/claude-sonnet-5",
        "OPENROUTER_API_BASE",
        StrictChat(OPENROUTER, EchoRule(), frozenset({"reasoning_details"}), rules=(unique_details,)),
    ),
    "mistral": Strict(
        "mistral/magistral-medium-latest",
        "MISTRAL_API_BASE",
        StrictChat(MISTRAL, EchoRule(), unknown=_MISTRAL, unknown_status=422, rules=(nine_letters,)),
        id_of="call{:05d}".format,
    ),
    "groq": Strict(
        "groq/openai/gpt-oss-120b",
        "GROQ_API_BASE",
        _chat(_REASONING, _TURN_CALLS, _GROQ + "'{field}' is unsupported)]"),
        within_turn=True,
    ),
    "cerebras": Strict(
        "cerebras/gpt-oss-120b", "CEREBRAS_API_BASE", _chat(_REASONING, _TURN_CALLS, _CEREBRAS), within_turn=True
    ),
    "openai-chat": Strict(
        "openai/gpt-4o", "OPENAI_BASE_URL", StrictChat(HIDDEN, NO_ECHO), shows=False, misfit=misfit_of_chat
    ),
    "vllm": Strict("hosted_vllm/qwen3-8b", "HOSTED_VLLM_API_BASE", _chat(_REASONING, _TURN_CALLS), within_turn=True),
    "google-openai": Strict(
        "openai/gemini-3.1-pro-preview",
        "OPENAI_BASE_URL",
        StrictChat(GOOGLE, _TURN_CALLS, rules=(signed_steps,)),
        within_turn=True,
        shows=False,
    ),
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
    "gemini-3": Strict(
        "gemini/gemini-3.1-pro-preview",
        "GEMINI_API_BASE",
        StrictGemini(levels=frozenset({"low", "medium", "high"})),
        path="/v1beta",
        misfit=misfit_of_gemini,
    ),
    "gemini-2.5": Strict(
        "gemini/gemini-2.5-flash",
        "GEMINI_API_BASE",
        StrictGemini(is_older=True, budgets=range(24_577)),
        path="/v1beta",
        misfit=misfit_of_gemini,
    ),
}
