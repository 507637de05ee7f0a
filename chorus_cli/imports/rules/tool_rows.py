"""Calls of tools in foreign conversations: a row of each with its result, or text where one of the two is missing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.json import values
from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.log.rules.messages import Role

if TYPE_CHECKING:
    from datetime import datetime

    from chorus_cli.imports.rules.conversation import ForeignMessage

_UNNAMED = "tool"


class Result(NamedTuple):
    """The result of a call: its text and its time."""

    content: str
    timestamp: datetime | None = None


def rows_of_call(row: ForeignMessage, call: ToolCall, result: Result | None) -> tuple[ForeignMessage, ...]:
    """Return a call and its result as two rows made after ``row``; a call without a result is text of the reply.

    That text has a key of its own, because a later export may have the result.
    """
    if result is None:
        return (replace(row, key=f"{row.key}/alone", role=Role.ASSISTANT, content=in_words(call.name, call.arguments)),)
    use = replace(row, role=Role.TOOL_USE, content="", tool_calls=call.as_json, tool_call_id=call.id)
    answer = replace(
        row,
        key=f"{row.key}/result",
        role=Role.TOOL_RESULT,
        content=result.content,
        timestamp=result.timestamp or row.timestamp,
        tool_call_id=call.id,
        model=None,
        reasoning=None,
    )
    return (use, answer)


def call_of(key: str, name: object, arguments: object) -> ToolCall:
    """Return a call whose arguments are a JSON object: text or any other value becomes its one field ``input``."""
    return ToolCall(key, values.line(name) or _UNNAMED, _as_object(arguments))


def in_words(name: str, content: str) -> str:
    """Return a call without a result, or a result without a call, as text."""
    return f"[{name or _UNNAMED}]\n{content}"


def _as_object(arguments: object) -> str:
    read = _parsed(arguments) if isinstance(arguments, str) else arguments
    if isinstance(read, dict):
        return values.json_text(read)
    return values.json_text({} if arguments in (None, "") else {"input": arguments})


def _parsed(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None
