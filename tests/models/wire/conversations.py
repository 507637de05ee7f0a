"""Requests of every kind that is to be written in a protocol of the wire."""

from __future__ import annotations

from chorus_cli.log.rules.calls import ToolCall
from chorus_cli.models.rules.declaration import Kind, Parameter, Tool
from chorus_cli.models.rules.request import PromptMessage

ECHO = Tool("echo", "Say a text again.", (Parameter("text", "Any text."),))
COUNT = Tool(
    "count",
    "Count.",
    (
        Parameter("most", "The last number.", Kind.NUMBER, is_required=False),
        Parameter("way", "The way.", choices=("up", "down")),
    ),
)
NOW = Tool("now", "Tell the time.")

SYSTEM = PromptMessage("system", "You are Frodo.")
HELLO = PromptMessage("user", "hello")
ANSWER = PromptMessage("assistant", "Let me see.")


def user(text: str) -> PromptMessage:
    return PromptMessage("user", text)


def assistant(text: str) -> PromptMessage:
    return PromptMessage("assistant", text)


def called(id_: str, arguments: str = '{"text": "gold"}') -> PromptMessage:
    return PromptMessage("assistant", "", tool_calls=ToolCall(id_, "echo", arguments).as_json)


def result(id_: str, text: str = "gold") -> PromptMessage:
    return PromptMessage("tool", text, tool_call_id=id_)


ASKED_TOOL = (SYSTEM, HELLO, ANSWER, called("c1"), result("c1"))
TOOL_AFTER_TOOL = (*ASKED_TOOL, called("c2", "{}"), result("c2", "more"))
