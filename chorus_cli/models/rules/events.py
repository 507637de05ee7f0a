"""The interface of model clients, the events of a turn, and the outcome of a reply."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from chorus_cli.core import limits
from chorus_cli.core.errors import ChorusError, ModelError
from chorus_cli.log.rules.messages import Status, Thought

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from chorus_cli.log.rules.calls import ToolCall
    from chorus_cli.models.rules.request import ModelRequest

_ASKS_AGAIN = "/retry asks again."
_MESSAGE, _PART = "Your message is kept", "The part that arrived is kept"
ARRIVED = "What has arrived is kept."
"""Advice after an error within a reply. `TurnDone.complaint` replaces it, because only the turn knows what was kept."""

GOES_ON = f"{_MESSAGE}; /continue asks again."
"""Advice if the continuation of a reply failed or broke off."""

IN_LOG = f"Your message is in the log; {_ASKS_AGAIN}"
"""Advice in the chat if the database did not confirm that it stored a message, but the log has the message."""


@dataclass(frozen=True, slots=True)
class WaitBegun:
    """The turn waits for another reply in the thread before it stores anything; ``text`` tells the user so."""

    text: str


@dataclass(frozen=True, slots=True)
class WaitOver:
    """The turn that had to wait is stored now."""


@dataclass(frozen=True, slots=True)
class ThreadOpened:
    """The message is stored in a new thread with this ``number``."""

    number: int


@dataclass(frozen=True, slots=True)
class Asking:
    """The message is stored and ``model`` is being asked."""

    model: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the reply."""

    text: str


class Fence(TextDelta):
    """The fence of the code block that a continuation begins in; no model wrote it, so only a terminal shows it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """The next piece of the model's thoughts, which mostly come before the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class ReplyEnd:
    """The end of the reply; ``finish_reason`` is the provider's reason, or ``None`` if the stream was cut.

    ``usage`` has the provider's token counts. ``calls`` are the model's tool calls that have arrived, the last one
    perhaps in part. ``thought_parts`` is JSON: the parts that the provider wants back word for word.
    """

    finish_reason: str | None
    usage: Mapping[str, int] = field(default_factory=dict)
    calls: tuple[ToolCall, ...] = ()
    thought_parts: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence for the user about the turn, not part of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """The model called a tool, perhaps after a ``thought``; ``call`` is a line for the user, not yet safe to print."""

    call: str
    thought: Thought | None = None


class Decision(StrEnum):
    """The user's answer to the question whether a tool may run: this once, until Chorus ends, always, or not at all."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"
    NO = "no"


@dataclass(frozen=True, slots=True)
class PermissionAsked:
    """A call waits for the user's permission; ``question`` shows the whole call, and is not yet safe to print.

    ``answer`` takes the decision and, if it is no, a reason for the model. Only the first answer counts. ``is_open``
    returns whether the question still waits. ``is_answered`` returns whether the user answered the question and did not
    stop the turn instead.
    """

    question: str
    answer: Callable[[Decision, str], None]
    is_open: Callable[[], bool]
    is_answered: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Connecting:
    """The message is stored; its request waits until the tool ``servers`` are connected."""

    servers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolUsed:
    """A tool has answered; ``outcome`` is the answer in a few words, such as ``3 messages``.

    If the tool ``has_changed`` something, the user sees its line even where other tools' lines are hidden.
    """

    call: str
    outcome: str
    has_changed: bool = False

    @property
    def line(self) -> str:
        """The call and its outcome in one line for the user, not yet safe to print."""
        return f"{self.call}: {self.outcome}"


@dataclass(frozen=True, slots=True)
class TurnDone:
    """The turn is over and its rows are written; ``error`` says why the reply broke off, if it did.

    ``again`` tells the user how to get a reply after a failed turn or an error within the reply. ``remembered`` names
    the memory items that were captured from the turn.
    """

    message_id: int
    status: Status
    usage: Mapping[str, int] = field(default_factory=dict)
    error: ChorusError | None = None
    again: str = f"{_MESSAGE}; {_ASKS_AGAIN}"
    thought: Thought | None = None
    remembered: str = ""

    @property
    def complaint(self) -> str:
        """Sentences for the user: why the reply broke off, what was kept, and how to get a whole reply."""
        problem, within, advice = str(self.error).partition(ARRIVED)
        if self.status is Status.FAILED:
            told = (problem, advice, self.again)
        else:
            told = (problem, within and self.again.replace(_MESSAGE, _PART), advice)
        return " ".join(filter(None, (each.strip() for each in told)))


_PassedOn = TextDelta | ReasoningDelta | Notice
ModelEvent = _PassedOn | ReplyEnd
_Tool = Connecting | ToolStarted | PermissionAsked | ToolUsed
TurnEvent = _PassedOn | WaitBegun | WaitOver | ThreadOpened | Asking | _Tool | TurnDone


class ModelClient(Protocol):
    """A source of replies: a provider asked directly or through litellm, a local model, ELIZA, or a script in tests."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the reply as it arrives, then ``ReplyEnd``, which may be missing if the stream was cut."""
        ...


PAUSES_SECONDS = (1.0, 3.0)
LONGEST_PAUSE_SECONDS = 60.0

_CUT = "The reply of {model} broke off (the connection was cut)."
_NOTHING = (
    "The model sent no reply and no end of the stream. If you set the address of its server, check that the server "
    "speaks the API of this provider."
)
_EMPTY = "The model sent an empty reply. If that happens again, choose another model with /model."
_ADDED_NOTHING = "The model added nothing to its reply."
_LENGTH = "The reply was cut off at the model's output limit."
_FILTERED = "The provider's content filter stopped the reply."
_ONLY_CALLS = (
    "The model went on calling tools instead of answering. Ask again in other words, or turn tools off with "
    "/set tools false."
)


@dataclass(slots=True)
class Lengths:
    """The characters of a reply and its thoughts so far, counted to stop an endless reply."""

    said: int = 0
    thought: int = 0

    def take(self, event: object) -> None:
        """Count the characters of the next event; raise a ``ModelError`` beyond a limit."""
        self.said += len(event.text) if isinstance(event, TextDelta) else 0
        self.thought += len(event.text) if isinstance(event, ReasoningDelta) else 0
        if self.said > limits.REPLY.most:
            raise ModelError(f"Chorus stopped the reply at {limits.REPLY.size}.", advice=ARRIVED)
        if self.thought > limits.THOUGHTS.most:
            raise ModelError(f"Chorus stopped the model because its thoughts are longer than {limits.THOUGHTS.size}.")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The status of a reply, and the error that explains why the reply is not complete."""

    status: Status
    error: ModelError | None = None


def calls_to_answer(request: ModelRequest, end: ReplyEnd) -> tuple[ToolCall, ...]:
    """Return the calls to carry out; none if calls are not allowed or the reply was cut, perhaps within a call."""
    is_cut = end.finish_reason in {None, "length", "max_tokens", "content_filter"}
    return end.calls if request.tools and request.may_call and not is_cut else ()


def outcome(
    request: ModelRequest, text: str, end: ReplyEnd, failure: ModelError | None, *, has_thought: bool = False
) -> Outcome:
    """Judge a reply that has no calls to carry out: by its text, its end and, if it failed, the failure."""
    is_empty = not text.strip() and not end.calls
    match end.finish_reason:
        case None:
            sentence = _NOTHING if is_empty and not has_thought else _CUT
        case "length" | "max_tokens":
            sentence = _LENGTH
        case "content_filter":
            sentence = _FILTERED
        case _ if is_empty:
            sentence = _ADDED_NOTHING if request.goes_on else _EMPTY
        case _:
            sentence = _ONLY_CALLS if end.calls else ""
    advice = ARRIVED if sentence == _CUT else ""
    error = failure or (ModelError(sentence.format(model=request.model), advice=advice) if sentence else None)
    if error is None:
        return Outcome(Status.COMPLETE)
    return Outcome(Status.TRUNCATED if text.strip() else Status.FAILED, error)


def pause_before_retry(error: ModelError, failures: int) -> float | None:
    """Return the seconds before the next try, at least as many as the provider asks for; ``None`` means give up."""
    if not error.retryable or failures > len(PAUSES_SECONDS):
        return None
    wanted = error.retry_after_seconds
    if wanted is not None and wanted > LONGEST_PAUSE_SECONDS:
        return None
    return max(PAUSES_SECONDS[failures - 1], wanted or 0.0)
