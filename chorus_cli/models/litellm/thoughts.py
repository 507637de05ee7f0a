"""Thoughts through litellm: which of them it hands on, in the forms that it has for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.models.providers.echoes import NO_RULE, EchoRule, Pieces, echo_rule, replayed
from chorus_cli.models.providers.efforts import chosen_effort
from chorus_cli.models.providers.providers import PROVIDERS, Endpoint, ProtocolName, endpoint
from chorus_cli.models.wire.chat_completions import AssistantForm, with_thoughts
from chorus_cli.models.wire.received import objects_at, text_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chorus_cli.models.providers.echoes import PartsRecord
    from chorus_cli.models.rules.request import ModelRequest, PromptMessage
    from chorus_cli.models.wire.received import JsonObject

FORM = "litellm"
_CLAUDE, _BLOCKS = "claude", "thinking_blocks"
_ANTHROPIC, _DROPPED, _OPENAI = "anthropic", "mistral", "openai"


def rule_of(model: str, environment: Mapping[str, str]) -> EchoRule:
    """Return what ``model`` is sent of its thoughts: fields of chat completions, or Claude's blocks."""
    if _CLAUDE in model:
        return NO_RULE._replace(echo=echo_rule(Endpoint(_ANTHROPIC, model, "", "")).echo)
    asked = endpoint(model, environment)
    if asked is None or asked.protocol is not ProtocolName.CHAT_COMPLETIONS or asked.provider == _DROPPED:
        return NO_RULE
    return echo_rule(asked)


def effort_arguments(request: ModelRequest, environment: Mapping[str, str]) -> dict[str, object]:
    """Return litellm's arguments for the effort of a request.

    It drops or refuses the effort of many providers that speak chat completions, so they get the wire's parameters. At
    OpenAI an effort may make it change to the newer protocol, by which everything is stored unless that is forbidden.
    """
    asked = endpoint(request.model, environment)
    if asked is not None and asked.protocol is ProtocolName.CHAT_COMPLETIONS and asked.provider != _OPENAI:
        parameters = chosen_effort(request, asked).parameters
        return {"extra_body": parameters} if parameters else {}
    told: dict[str, object] = {} if request.effort is None else {"reasoning_effort": request.effort}
    may_store = asked is not None and (
        asked.protocol is ProtocolName.RESPONSES or asked.address == PROVIDERS[_OPENAI].address
    )
    return told | {"store": False} if may_store else told


def with_own_thoughts(message: PromptMessage, shaped: dict[str, object], rule: EchoRule) -> dict[str, object]:
    """Return a message in litellm's form with its thoughts."""
    if rule.providers:
        return with_thoughts(message, shaped, AssistantForm(rule))
    if rule is NO_RULE:
        return shaped
    if message.tool_calls and not message.content:
        # In place of an empty text litellm writes one of its own for Claude.
        shaped = shaped | {"content": None}
    blocks = [part for part in replayed(message, FORM) if isinstance(part, dict)] if message.thoughts else []
    return shaped | {_BLOCKS: blocks} if blocks else shaped


class ThinkingBlocks:
    """Joins Claude's blocks in ``own``, which litellm hands on in the pieces in which they came."""

    def __init__(self, own: PartsRecord) -> None:
        self._own = own
        self._block: JsonObject = {}
        self._growing: Pieces | None = None

    def take(self, delta: JsonObject) -> None:
        """Take the pieces in a chunk; a signature ends a block."""
        for piece in objects_at(delta, _BLOCKS):
            if piece.get("type") != "thinking":
                self._own.add(piece)
                continue
            if self._growing is None:
                self._growing = Pieces()
                self._block = {"type": "thinking", "thinking": self._growing}
                self._own.add(self._block)
            self._growing.append(text_at(piece, "thinking"))
            if piece.get("signature"):
                self._block["signature"], self._growing = piece["signature"], None
