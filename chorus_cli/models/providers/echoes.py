"""Which thoughts each provider wants back, by its documentation, and its own parts of a reply word for word."""

from __future__ import annotations

import json
import re
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.log.rules.calls import ToolCall, stored_calls
from chorus_cli.models.providers.providers import PROVIDERS, ProtocolName
from chorus_cli.models.rules.request import NO_ECHO, Echo, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from chorus_cli.models.providers.providers import Endpoint
    from chorus_cli.models.rules.request import PromptMessage

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


SAID, CALLED = "said", "called"

_NUMBERED = r"(?:_\d+)?"
_NO_ID = "call"


class Said(NamedTuple):
    """A piece of a reply's text; ``own`` are the provider's fields of it."""

    text: str
    own: Mapping[str, object]


class Called(NamedTuple):
    """A call of a reply; ``own`` are the provider's fields of it."""

    call: ToolCall
    own: Mapping[str, object]


class Pieces(list[str]):
    """A text of a part that is still growing: to append to it does not copy what there is."""


class PartsRecord:
    """Takes the parts of a reply in the order of their arrival."""

    def __init__(self) -> None:
        self._parts: list[dict[str, object]] = []
        self._has_own = False

    def said(self, text: str) -> None:
        """Take a piece of the text."""
        newest = self._parts[-1] if self._parts else {}
        if newest.keys() == {SAID}:
            newest[SAID] = int(str(newest[SAID])) + len(text)
        else:
            self._parts.append({SAID: len(text)})

    def begin_said(self) -> None:
        """Have the next piece of the text begin a part of its own."""
        self._parts.append({SAID: 0})

    def called(self, id_: str) -> None:
        """Take a call."""
        self._parts.append({CALLED: id_})

    def sign(self, kind: str, fields: Mapping[str, object]) -> None:
        """Take the provider's fields of the newest piece of the text, or of the newest call."""
        newest = self._parts[-1] if self._parts else {}
        if kind not in newest:
            newest = {SAID: 0}
            self._parts.append(newest)
        newest.update(fields)
        self._has_own = True

    def add(self, part: dict[str, object]) -> None:
        """Take a part that is neither text nor a call; it may still be completed, and its texts may be `Pieces`."""
        self._parts.append(part)
        self._has_own = True

    def written(self, form: str) -> str:
        """Return the parts as the log keeps them, for the protocol ``form``; empty if nothing in them is its own."""
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
    """Yield the parts of a reply in the order in which they came; those of another protocol are left out.

    All of its text and each of its calls is among them once, whatever the parts say.
    """
    text, calls = message.content, list(stored_calls(message.tool_calls or ""))
    for part in _parts(message, form):
        own = {name: value for name, value in part.items() if name not in {SAID, CALLED}}
        if SAID in part:
            piece, text = text[: _length(part)], text[_length(part) :]
            yield Said(piece, own)
        elif CALLED in part:
            found = next((call for call in calls if _is_named(call.id, str(part[CALLED]))), None)
            if found is not None:
                calls.remove(found)
                yield Called(found, own)
        else:
            yield part
    yield from (Called(call, {}) for call in calls)


def _parts(message: PromptMessage, form: str) -> list[dict[str, object]]:
    """Return the parts of a reply if they are of this protocol and fit its text, else that text alone."""
    plain: list[dict[str, object]] = [{SAID: len(message.content)}] if message.content else []
    try:
        written: object = json.loads(message.thoughts.parts if message.thoughts else "")
    except (ValueError, RecursionError):
        # None, or damaged: a log may be.
        return plain
    match written:
        case {"form": str(found), "parts": [*parts]} if found == form:
            known = [part for part in parts if isinstance(part, dict)]
            return known if sum(map(_length, known)) == len(message.content) else plain
    return plain


def _length(part: Mapping[str, object]) -> int:
    length = part.get(SAID, 0)
    return length if isinstance(length, int) else 0


def _is_named(id_: str, sent: str) -> bool:
    """Return whether the call ``id_`` of the log is the one that came as ``sent``: it may have got a number."""
    return re.fullmatch(re.escape(sent.strip() or _NO_ID) + _NUMBERED, id_) is not None
