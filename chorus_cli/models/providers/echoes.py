"""Rules for sending thoughts back to their provider, and records of the parts that it wants back word for word."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from chorus_cli.core.json import values
from chorus_cli.log.rules.calls import ToolCall, stored_calls
from chorus_cli.models.providers.providers import PROVIDERS, Endpoint, ProtocolName
from chorus_cli.models.rules.request import NO_ECHO, Echo, PromptMessage, Span

OWN_SERVER = "your own server"
GATEWAYS = ("fireworks_ai", "novita", "together_ai", "deepinfra", "nebius", "nvidia_nim", "sambanova", OWN_SERVER)


class Filler(Enum):
    """Which replies without thoughts are sent with a blank in place of thoughts."""

    NONE = "none"
    CALLS = "with calls"
    ALL = "all"


class EchoRule(NamedTuple):
    """A row of `ECHO_RULES`: ``echo`` says which thoughts go back to the models of ``providers`` that match ``names``.

    Thoughts go back in ``field``; if it is empty, in the field in which they came. The documents print ``title``, a
    name for the models, and ``source``, the provider's page with the rule.
    """

    title: str
    providers: tuple[str, ...]
    names: str
    echo: Echo
    source: str
    field: str = ""
    filler: Filler = Filler.NONE


_EVER, _EVER_WITH_CALLS, _TURN = Echo(Span.EVER, calls_only=False), Echo(Span.EVER), Echo(Span.TURN)
_CONTENT, _TEXT, _DETAILS = "reasoning_content", "reasoning", "reasoning_details"
# If a turn stopped at a tool and a question follows, these models still want the thoughts with which the turn began.
_CLAUDES_TO_4_5 = r"claude-(?:3|(?:opus|sonnet|haiku)-4(?:-[0-5](?!\d)|-2025|$))"
_RESPONSES = ProtocolName.RESPONSES.value

_CLAUDE_OLD = "platform.claude.com/docs/en/build-with-claude/extended-thinking"
_CLAUDE = "platform.claude.com/docs/en/build-with-claude/adaptive-thinking"
_OPENAI = "developers.openai.com/api/docs/guides/reasoning"
_GEMINI = "ai.google.dev/gemini-api/docs/thought-signatures"
_MISTRAL = "docs.mistral.ai/capabilities/reasoning"
_DEEPSEEK = "api-docs.deepseek.com/guides/thinking_mode"
_KIMI_OLD = "platform.kimi.ai/docs/guide/use-kimi-k2-thinking-model"
_KIMI = "platform.kimi.ai/docs/guide/use-reasoning-effort"
_GLM = "docs.z.ai/guides/capabilities/thinking-mode"
_MINIMAX = "platform.minimax.io/docs/api-reference/text-openai-api"
_VLLM = "docs.vllm.ai/en/latest/features/reasoning_outputs"


def _in(field: str, title: str, provider: str, echo: Echo, source: str) -> EchoRule:
    return EchoRule(title, (provider,), "", echo, source, field)


def _elsewhere(title: str, names: str, echo: Echo, source: str) -> EchoRule:
    return EchoRule(title, GATEWAYS, names, echo, source)


ECHO_RULES: tuple[EchoRule, ...] = (
    EchoRule("Claude up to 4.5", ("anthropic",), _CLAUDES_TO_4_5, _EVER_WITH_CALLS, _CLAUDE_OLD),
    EchoRule("Claude", ("anthropic",), "", Echo(Span.TURN, is_bound=True), _CLAUDE),
    EchoRule("OpenAI, by responses", (_RESPONSES,), "", _TURN, _OPENAI),
    EchoRule("Gemini", ("gemini",), "", _EVER, _GEMINI),
    EchoRule("Mistral", ("mistral",), "", _EVER, _MISTRAL, "content"),
    _in(_CONTENT, "DeepSeek", "deepseek", _EVER, _DEEPSEEK)._replace(filler=Filler.ALL),
    _in(_CONTENT, "Kimi K2 to K2.6", "moonshot", _EVER_WITH_CALLS, _KIMI_OLD)._replace(
        names=r"kimi-k2(?:\.[0-6]|-)", filler=Filler.CALLS
    ),
    _in(_CONTENT, "later Kimi", "moonshot", _EVER, _KIMI)._replace(names="kimi-k", filler=Filler.CALLS),
    _in(_CONTENT, "GLM", "zai", _TURN, _GLM),
    # MiniMax refuses calls with ids that it did not give itself.
    _in(_DETAILS, "MiniMax", "minimax", _EVER._replace(own_calls_only=True), _MINIMAX),
    _in(_DETAILS, "OpenRouter", "openrouter", _EVER, "openrouter.ai/docs/use-cases/reasoning-tokens"),
    _in(_TEXT, "Groq", "groq", _TURN, "console.groq.com/docs/reasoning"),
    _in(_TEXT, "Cerebras", "cerebras", _TURN, "inference-docs.cerebras.ai/capabilities/reasoning"),
    _elsewhere("DeepSeek elsewhere", "deepseek.*(?:v[4-9]|flash)", _EVER, _DEEPSEEK)._replace(filler=Filler.ALL),
    _elsewhere("Kimi elsewhere", "kimi-k", _EVER_WITH_CALLS, _KIMI_OLD)._replace(filler=Filler.CALLS),
    _elsewhere("MiniMax elsewhere", "minimax-m", _EVER, _MINIMAX),
    _elsewhere("GLM elsewhere", "glm-", _TURN, _GLM),
    EchoRule("others at your own server", (OWN_SERVER,), "", _TURN, _VLLM),
)
"""The first row that matches counts; a model without a row is sent no thoughts."""

NO_RULE = EchoRule("", (), "", NO_ECHO, "")


@lru_cache(maxsize=16)
def echo_rule(endpoint: Endpoint) -> EchoRule:
    """Return the first rule that fits the model of an endpoint, or ``NO_RULE``."""
    provider = PROVIDERS[endpoint.provider]
    is_own = provider.is_local or (endpoint.provider == "openai" and endpoint.address != provider.address)
    is_by_responses = endpoint.protocol is ProtocolName.RESPONSES
    name = _RESPONSES if is_by_responses else OWN_SERVER if is_own else endpoint.provider
    rules = (rule for rule in ECHO_RULES if name in rule.providers)
    return next((rule for rule in rules if re.search(rule.names, endpoint.model, re.IGNORECASE)), NO_RULE)


SAID, CALLED = "said", "called"


class Said(NamedTuple):
    """A piece of a reply's text; ``own`` has the fields that the provider added to the piece."""

    text: str
    own: Mapping[str, object]


class Called(NamedTuple):
    """A call of a reply; ``own`` has the fields that the provider added to the call."""

    call: ToolCall
    own: Mapping[str, object]


class Pieces(list[str]):
    """A text that is still arriving, piece by piece; appending a piece copies no earlier piece."""


class PartsRecord:
    """Records the parts of a reply in the order in which they arrive."""

    def __init__(self) -> None:
        self._parts: list[dict[str, object]] = []
        self._has_own = False

    def said(self, text: str, *, is_apart: bool = False) -> None:
        """Record the length of a piece of text; if the piece ``is_apart``, it is not joined to the piece before."""
        newest = self._parts[-1] if self._parts and not is_apart else {}
        if newest.keys() == {SAID}:
            newest[SAID] = int(str(newest[SAID])) + len(text)
        else:
            self._parts.append({SAID: len(text)})

    def called(self, id_: str) -> None:
        """Record a call, by its id."""
        self._parts.append({CALLED: id_})

    def sign(self, kind: str, fields: Mapping[str, object]) -> None:
        """Add the provider's ``fields`` to the newest part if it is of ``kind``, else to a new empty text."""
        newest = self._parts[-1] if self._parts else {}
        if kind not in newest:
            newest = {SAID: 0}
            self._parts.append(newest)
        newest.update(fields)
        self._has_own = True

    def add(self, part: dict[str, object]) -> None:
        """Record a part of another kind, such as a thought; the caller may extend it later, with `Pieces` as texts."""
        self._parts.append(part)
        self._has_own = True

    def written(self, form: str) -> str:
        """Return the parts as the log keeps them, for the protocol ``form``; empty if the provider added nothing."""
        return json.dumps({"form": form, "parts": _joined(self._parts)}) if self._has_own else ""


def _joined(value: object) -> object:
    match value:
        case Pieces():
            return "".join(value)
        case dict():
            return {name: _joined(each) for name, each in value.items()}
        case list():
            return [_joined(each) for each in value]
        case _:
            return value


def replayed(message: PromptMessage, form: str) -> Iterator[Said | Called | dict[str, object]]:
    """Yield the texts and calls of a reply, and its other parts for the protocol ``form``, in the order of arrival."""
    text, calls = message.content, list(stored_calls(message.tool_calls or ""))
    for part in _parts(message, form):
        own = {name: value for name, value in part.items() if name not in {SAID, CALLED}}
        if SAID in part:
            length = values.whole_number(part[SAID])
            piece, text = text[:length], text[length:]
            yield Said(piece, own)
        elif CALLED in part:
            # The log gives an id to a call without an id, and a number to each repeated id.
            sent = re.compile(re.escape(str(part[CALLED]).strip() or "call") + r"(?:_\d+)?")
            found = next((call for call in calls if sent.fullmatch(call.id)), None)
            if found is not None:
                calls.remove(found)
                yield Called(found, own)
        else:
            yield part
    yield from (Called(call, {}) for call in calls)


def _parts(message: PromptMessage, form: str) -> list[dict[str, object]]:
    """Return the recorded parts if they are of the protocol ``form`` and fit the text, else only the text."""
    match values.parsed(message.thoughts and message.thoughts.parts):
        case {"form": str(found), "parts": [*parts]} if found == form:
            known = [part for part in parts if isinstance(part, dict)]
            if sum(values.whole_number(part.get(SAID)) for part in known) == len(message.content):
                return known
    return [{SAID: len(message.content)}] if message.content else []
