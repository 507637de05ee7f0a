"""Requests to a model, the thoughts that they repeat, and requests with a history in plain words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

from chorus_cli.log.rules.attachments import Attachment, with_lines
from chorus_cli.log.rules.calls import calls_in_words

if TYPE_CHECKING:
    from chorus_cli.log.rules.messages import Thoughts
    from chorus_cli.models.rules.declaration import Tool

PromptRole = Literal["system", "user", "assistant", "tool"]


class PromptMessage(NamedTuple):
    """One message of a request; ``tool_calls`` is JSON text in the format of the OpenAI API.

    ``tool_call_id`` names the call that a tool message answers. ``attachments`` are of kinds that the model accepts.
    They precede a user's content, or belong to the result of a call. ``thoughts`` are as the model sent them.
    The content may begin or end with the persona's ``note``; later requests put the note into later messages.
    ``preamble`` is the part of the content before the user's own words. If the message ``is_marked``, the provider
    caches the prompt up to this message.
    """

    role: PromptRole
    content: str
    tool_calls: str | None = None
    tool_call_id: str | None = None
    attachments: tuple[Attachment, ...] = ()
    thoughts: Thoughts | None = None
    note: str = ""
    preamble: str = ""
    is_marked: bool = False


class Timeouts(NamedTuple):
    """How long a client waits for the first token of a model, and then for each further chunk."""

    first_token_seconds: float = 300
    gap_seconds: float = 60


USUAL_TIMEOUTS = Timeouts()


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request: a model's name as litellm knows it, the messages, and settings; ``None`` means the default.

    ``context_tokens`` is the limit for request and reply together; ``prompt_tokens`` is the expected size of the
    request. The model may call ``tools`` only if ``may_call``; otherwise they are still declared, because providers
    cache the declarations. ``effort`` is how much the model should think: none, low, medium or high. If the request
    ``goes_on``, its last message is an unfinished reply that the model continues.
    """

    model: str
    messages: tuple[PromptMessage, ...]
    temperature: float | None = None
    max_output_tokens: int | None = None
    context_tokens: int | None = None
    prompt_tokens: int | None = None
    tools: tuple[Tool, ...] = ()
    may_call: bool = True
    effort: str | None = None
    goes_on: bool = False


_GO_ON = (
    "(Go on with your last message exactly where it stopped: write only what comes next in it, repeat nothing, and do "
    "not mention this request.)"
)


def asked_to_go_on(request: ModelRequest) -> ModelRequest:
    """Add a message that asks the model to continue its last reply, for models that do not continue by themselves."""
    return replace(request, messages=(*request.messages, PromptMessage("user", _GO_ON)))


def without_calls(message: PromptMessage) -> PromptMessage:
    """Return a message in which tool calls, or the result of a call, are plain words."""
    if message.role == "tool":
        return PromptMessage("user", f"[tool result: {message.content}]", attachments=message.attachments)
    if message.tool_calls is None:
        return message
    called = f"[tool call: {calls_in_words(message.tool_calls)}]"
    return PromptMessage(message.role, f"{message.content}\n{called}".strip())


_OF_RESULTS = "(These files are the attachments named in the tool results before this message, in the same order.)"


def with_files_after_results(request: ModelRequest) -> ModelRequest:
    """Return a request in which tool results only name their files, and a user's message after them has the files."""
    messages: list[PromptMessage] = []
    for is_result, group in groupby(request.messages, lambda message: message.role == "tool"):
        told = [*group]
        files = tuple(file for message in told for file in message.attachments) if is_result else ()
        if files:
            told = [*map(_with_names, told)]
            told.append(PromptMessage("user", _OF_RESULTS, attachments=files))
        messages += told
    return replace(request, messages=tuple(messages))


def _with_names(message: PromptMessage) -> PromptMessage:
    """Return a message that only names its attachments."""
    return message._replace(content=with_lines(message.content, message.attachments), attachments=())


def with_plain_history(request: ModelRequest) -> ModelRequest:
    """Return a request whose turns before the newest are plain words, without calls, thoughts and attachments.

    Results of tools in the newest turn only name their files, too, because the user did not attach these files.
    """
    asked = max((place for place, message in enumerate(request.messages) if message.role == "user"), default=0)
    earlier = ((without_calls(message), message.attachments) for message in request.messages[:asked])
    plain = (
        PromptMessage(worded.role, with_lines(worded.content, files), note=worded.note) for worded, files in earlier
    )
    newest = (_with_names(each) if each.role == "tool" else each for each in request.messages[asked:])
    return replace(request, messages=(*plain, *newest))


class Span(Enum):
    """For how long requests send a model's thoughts back to it."""

    NEVER = "never"
    TURN = "within the turn"
    EVER = "for ever"


class Echo(NamedTuple):
    """Which thoughts requests send back to a model, and for how long; if ``calls_only``, only of replies with calls.

    If ``is_bound``, thoughts are valid only while all messages before them stay the same. If ``own_calls_only``, the
    model refuses calls that another model made.
    """

    span: Span = Span.NEVER
    calls_only: bool = True
    is_bound: bool = False
    own_calls_only: bool = False


NO_ECHO = Echo()
