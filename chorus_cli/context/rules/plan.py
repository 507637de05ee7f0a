"""The snapshot that a request is computed from, and the plan that follows, with a reason for everything left out.

One system message comes first (system prompt, documents, summary, HOT memory items), then the view, word for word. A
request that would be too large leaves out whole turns from the oldest until it takes half of the model's limit, but
keeps the last two; those that follow it begin where it does until that has no room either, for a provider knows that
beginning.
What is still too large is cut in the middle, the longest messages first; the newest user message stays whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.context.rules.fitting import fitting
from chorus_cli.context.rules.memory import block_tokens
from chorus_cli.context.rules.rounds import messages_of, of_newest_turn, reply_of, thought_tokens, weighed
from chorus_cli.context.rules.view import Reason
from chorus_cli.log.rules.attachments import ALL_SENT
from chorus_cli.log.rules.messages import Message, Role, Status, is_filled
from chorus_cli.memory.rules.recall import hot_block
from chorus_cli.models.rules.budget import (
    LARGEST_FACTOR,
    LEAD_TOKENS,
    TOKENS_PER_MESSAGE,
    Budget,
    Calibration,
    Limit,
    Meter,
    budget,
    needs_lead,
    own_tokens,
    tokens_of,
    total_tokens,
)
from chorus_cli.models.rules.declaration import NO_OFFER, ToolOffer
from chorus_cli.models.rules.request import NO_ECHO, Echo, ModelRequest, PromptMessage, with_plain_history

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from chorus_cli.context.rules.rounds import Echoed
    from chorus_cli.context.rules.view import Summary, View
    from chorus_cli.log.rules.attachments import Kind
    from chorus_cli.memory.rules.items import Item
    from chorus_cli.personas.rules.persona import Document, Target


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """The system prompt with the documents, and the tokens of both."""

    text: str
    prompt_tokens: int
    document_tokens: int
    tokens: int = field(init=False)
    """The tokens of the system message without a summary."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", self.prompt_tokens + self.document_tokens + TOKENS_PER_MESSAGE)


def system_text(system_prompt: str, documents: Iterable[Document]) -> str:
    """Return the system message: the prompt, then each document under its name."""
    return "\n\n".join([system_prompt, *(f"# {document.name}\n\n{document.content}" for document in documents)])


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """The part of a snapshot that no database holds: the target, its system prompt, its model's limit, and the tools.

    ``offer`` is empty where no tools are offered to the model. Without ``is_exact`` the tokens are upper bounds.
    ``accepted`` are the kinds of attachments that the model is sent; of the others it is told the names. ``echo`` says
    which of its thoughts it is sent again.
    """

    target: Target
    system_prompt: SystemPrompt
    limit: Limit
    offer: ToolOffer = NO_OFFER
    is_exact: bool = True
    accepted: frozenset[Kind] = ALL_SENT
    echo: Echo = NO_ECHO
    fixed_tokens: int = field(init=False)
    """The estimated tokens that every request has: the system message without a summary, and the tools."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fixed_tokens", self.system_prompt.tokens + self.offer.tokens)

    def budget(self, learned: Calibration) -> Budget:
        """Return the budget of a request that has no conversation before it."""
        chosen = self.target.persona.settings
        return budget(self.limit, chosen.context_usage_threshold, chosen.max_output_tokens, learned)

    def surely_takes(self, most_tokens: int) -> bool:
        """Return whether a message of at most so many estimated tokens fits, however far estimates are off."""
        return self.fixed_tokens + most_tokens <= self.budget(Calibration(LARGEST_FACTOR)).room.budget


class RequestStart(NamedTuple):
    """The beginning of a request: its window, and what it has in common with the last one while that is warm.

    ``first_message_id`` is the message that the last request began with, where it left others out. ``hot`` are the
    memory items of the system message, ``None`` if they are chosen anew, as they are with another summary than
    ``summary_id``.
    """

    window: datetime
    first_message_id: int | None = None
    hot: tuple[Item, ...] | None = None
    summary_id: int | None = None


@dataclass(frozen=True, slots=True)
class ContextSnapshot:
    """A context at one moment: the view of a thread, and the system prompt and budget of the next request.

    ``newest_operation_id`` is the newest operation that breaks the prefix of requests, 0 if there is none;
    ``fold_is_undone`` says that the newest fold was taken back. ``last_spoken`` is the time of the newest message of
    the thread. ``first_message_id`` is the message that the last request of this process began with, where it left
    older ones out. ``hot`` are the memory items of the system message. ``echoed`` are the thoughts that go with
    replies, by the ids of these. With ``is_plain``, the model takes earlier turns only as plain text.
    ``unread`` is a sentence about operations that cannot be read, empty if there are none.
    """

    request_settings: RequestSettings
    view: View
    budget: Budget
    newest_operation_id: int = 0
    fold_is_undone: bool = False
    last_spoken: datetime | None = None
    first_message_id: int | None = None
    hot: tuple[Item, ...] = ()
    echoed: Mapping[int, Echoed] = field(default_factory=dict)
    is_plain: bool = False
    unread: str = ""

    @property
    def target(self) -> Target:
        """Persona, thread and model that the next message is addressed to."""
        return self.request_settings.target


HEADING = "Summary of the earlier conversation:"
LEAD = "(The conversation goes on.)"
_TOOL_ROLES = frozenset({Role.TOOL_USE, Role.TOOL_RESULT})
_HEADING_TOKENS = 10


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """The next request of a context: the request itself, the rows behind it, its tokens, and the rows that stay out.

    ``sent`` are the rows, some of them shortened; ``cut`` are the same before that. ``too_large`` had no room. The
    summary is ``None`` if there is none, or no room for it. ``tokens`` are the estimated ones of the whole request,
    ``message_tokens`` those of the rows; without ``is_exact`` they are upper bounds. ``is_crowded`` says that something
    of the context has no room.
    """

    snapshot: ContextSnapshot
    request: ModelRequest
    sent: tuple[Message, ...]
    summary: Summary | None
    message_tokens: int
    tokens: int
    too_large: tuple[Message, ...] = ()
    cut: tuple[Message, ...] = ()
    is_crowded: bool = False
    is_exact: bool = True

    @property
    def messages(self) -> tuple[PromptMessage, ...]:
        """The messages of the request."""
        return self.request.messages

    @property
    def lacks_summary(self) -> bool:
        """Whether the summary had no room."""
        return self.summary is None and self.snapshot.view.summary is not None

    @property
    def begins_at(self) -> int | None:
        """The first message, but for pinned ones, if the request leaves older ones out."""
        sent = (row.id for row in self.sent if row.id not in self.snapshot.view.pinned)
        return next(sent, None) if self.too_large else None

    @property
    def meter(self) -> Meter:
        """The size of the request, in tokens as the provider is expected to count them."""
        budget = self.snapshot.budget
        return Meter(budget.corrected(self.tokens), budget.limit.tokens, budget.tokens)

    def without_tools(self) -> RequestPlan:
        """Return the plan of the same request without the tools that were offered."""
        request_settings = self.snapshot.request_settings
        tokens = self.tokens - request_settings.offer.tokens
        request = replace(self.request, tools=(), prompt_tokens=self.snapshot.budget.corrected(tokens))
        snapshot = replace(self.snapshot, request_settings=replace(request_settings, offer=NO_OFFER))
        return replace(self, snapshot=snapshot, request=request, tokens=tokens)

    def with_plain_history(self) -> RequestPlan:
        """Return the plan of the same request with earlier turns as plain text."""
        echoed = of_newest_turn(self.snapshot.echoed, self.snapshot.view.verbatim)
        snapshot = replace(self.snapshot, is_plain=True, echoed=echoed)
        return replace(self, snapshot=snapshot, request=with_plain_history(self.request), is_exact=False)

    def left_out(self) -> Iterator[tuple[Reason, Message]]:
        """Yield every message of the view, and every one taken back within its reach, that is not sent."""
        view = self.snapshot.view
        accounted = {row.id for row in (*self.sent, *self.too_large)}
        folded = {row.id for row in usable(view.messages[: view.folded_number])}
        for row in view.taken_back:
            yield _reason_taken_back(view, row), row
        for row in view.messages:
            if row.id not in accounted:
                yield Reason.SUMMARISED if row.id in folded else _unsent_reason(row), row
        yield from ((Reason.NO_ROOM, row) for row in self.too_large)


def plan_whole(snapshot: ContextSnapshot) -> RequestPlan | None:
    """Build the request of a snapshot without leaving anything out; ``None`` if that does not fit the budget."""
    summary = snapshot.view.summary
    fixed_tokens = system_tokens(snapshot, summary)
    rows = _weighed(snapshot)
    message_tokens = total_tokens(rows)
    tokens = fixed_tokens + message_tokens
    if tokens > snapshot.budget.room.budget:
        return None
    request = _request(snapshot, summary, rows, snapshot.budget.corrected(tokens))
    is_exact = not snapshot.is_plain
    return RequestPlan(snapshot, request, tuple(rows), summary, message_tokens, tokens, is_exact=is_exact)


def plan_bounded(snapshot: ContextSnapshot, at_most: Callable[[str], int]) -> RequestPlan | None:
    """Build the request of a snapshot whose messages need no count, by upper bounds; ``None`` if it may not fit."""
    view = snapshot.view
    model = snapshot.target.choice.model
    rows = [
        row if row.token_count is not None else row._replace(token_count=own_tokens(row, at_most, model))
        for row in view.messages
    ]
    summary = view.summary
    if summary is not None and summary.token_count is None:
        summary = replace(summary, token_count=at_most(summary.content))
    echoed = {id_: _bounded(each, at_most) for id_, each in snapshot.echoed.items()}
    plan = plan_whole(replace(snapshot, view=replace(view, messages=tuple(rows), summary=summary), echoed=echoed))
    return None if plan is None else replace(plan, snapshot=snapshot, is_exact=False)


def _bounded(echoed: Echoed, at_most: Callable[[str], int]) -> Echoed:
    return echoed if echoed.tokens is not None else echoed._replace(tokens=thought_tokens(echoed.thoughts, at_most))


def plan_request(snapshot: ContextSnapshot, count: Callable[[str], int]) -> RequestPlan:
    """Build the request of a snapshot; every message of its view must be counted, as ``count`` does.

    It fits the budget if the system prompt and the newest user message do.
    """
    return plan_whole(snapshot) or plan_fitting(snapshot, count)


def plan_fitting(snapshot: ContextSnapshot, count: Callable[[str], int]) -> RequestPlan:
    """Build the request of a snapshot that does not fit whole, without its oldest messages or with one cut.

    Before words are cut, the thoughts of earlier turns are left out.
    """
    plan = _fitted(snapshot, _weighed(snapshot), count)
    if not (plan.cut and snapshot.echoed):
        return plan
    rows = usable(snapshot.view.verbatim)
    echoed = of_newest_turn(snapshot.echoed, rows)
    return _fitted(replace(snapshot, echoed=echoed), rows, count, sum(each.tokens or 0 for each in echoed.values()))


def _fitted(
    snapshot: ContextSnapshot, rows: list[Message], count: Callable[[str], int], beside_tokens: int = 0
) -> RequestPlan:
    """Fit rows into the room; ``beside_tokens`` are those of thoughts that the rows do not weigh."""
    room, summary = snapshot.budget.room, snapshot.view.summary
    newest_question = next((row for row in reversed(rows) if row.role is Role.USER), None)
    if newest_question is not None:
        needed_tokens = tokens_of(newest_question) + beside_tokens
        if system_tokens(snapshot, summary) + needed_tokens > room.budget:
            summary = None
        if system_tokens(snapshot, summary) + needed_tokens > room.budget:
            snapshot = replace(snapshot, hot=())
        if beside_tokens and system_tokens(snapshot, summary) + needed_tokens > room.budget:
            snapshot, beside_tokens = replace(snapshot, echoed={}), 0
    pinned = _pinned(rows, newest_question, snapshot, room.budget - system_tokens(snapshot, summary) - beside_tokens)
    # A pinned reply may come first, and then needs a lead-in line.
    pinned_tokens = sum(map(tokens_of, pinned.values())) + (LEAD_TOKENS if pinned else 0)
    fixed_tokens = system_tokens(snapshot, summary) + pinned_tokens + beside_tokens
    others = [row for row in rows if row.id not in pinned]
    sent = {row.id: row for row in fitting(others, room, fixed_tokens, count, snapshot.first_message_id)} | pinned
    fitted = [sent[row.id] for row in rows if row.id in sent]
    too_large, cut = _not_sent(rows, fitted)
    if snapshot.echoed and cut:
        # Thoughts belong to the words that were said.
        shortened = {reply_of(row) for row in cut}
        whole = {id_: echoed for id_, echoed in snapshot.echoed.items() if id_ not in shortened}
        snapshot = replace(snapshot, echoed=whole)
    if beside_tokens:
        fitted = weighed(fitted, snapshot.echoed)
    message_tokens = total_tokens(fitted)
    tokens = system_tokens(snapshot, summary) + message_tokens
    return RequestPlan(
        snapshot,
        _request(snapshot, summary, fitted, snapshot.budget.corrected(tokens)),
        tuple(fitted),
        summary,
        message_tokens,
        tokens,
        too_large,
        cut,
        is_crowded=bool(too_large or cut or (summary is None and snapshot.view.summary is not None)),
        is_exact=not snapshot.is_plain,
    )


def _weighed(snapshot: ContextSnapshot) -> list[Message]:
    rows = usable(snapshot.view.verbatim)
    return weighed(rows, snapshot.echoed) if snapshot.echoed else rows


def _pinned(
    rows: Sequence[Message], newest_question: Message | None, snapshot: ContextSnapshot, room_tokens: int
) -> dict[int, Message]:
    """Return the pinned rows by their ids if they have room beside the newest question; without it none.

    With a call its result is pinned, and with a result its call.
    """
    named = snapshot.view.pinned
    pairs = {(row.turn_id, row.tool_call_id) for row in rows if row.id in named and row.role in _TOOL_ROLES}
    pinned = {
        row.id: row
        for row in rows
        if (row.id in named or (row.role in _TOOL_ROLES and (row.turn_id, row.tool_call_id) in pairs))
        and row is not newest_question
    }
    needed = LEAD_TOKENS + sum(map(tokens_of, (*pinned.values(), *([newest_question] if newest_question else []))))
    return pinned if needed <= room_tokens else {}


def system_tokens(snapshot: ContextSnapshot, summary: Summary | None) -> int:
    """Return the estimated tokens of the system message, and of the declarations of tools."""
    fixed = snapshot.request_settings.fixed_tokens + (block_tokens(snapshot.hot) if snapshot.hot else 0)
    return fixed + summary_tokens(summary) if summary else fixed


def summary_tokens(summary: Summary) -> int:
    """Return the estimated tokens of a summary with its heading."""
    return (summary.token_count or 0) + _HEADING_TOKENS


def _request(snapshot: ContextSnapshot, summary: Summary | None, rows: Sequence[Message], tokens: int) -> ModelRequest:
    """Return the request as it is handed to the model, which is expected to count so many tokens."""
    request_settings = snapshot.request_settings
    parts = (
        request_settings.system_prompt.text,
        f"{HEADING}\n{summary.content}" if summary else "",
        hot_block(snapshot.hot) if snapshot.hot else "",
    )
    system = PromptMessage("system", "\n\n".join(filter(None, parts)))
    lead = [PromptMessage("user", LEAD)] if needs_lead(rows) else []
    chosen, model = request_settings.target.persona.settings, request_settings.target.choice.model
    only_caller = model if request_settings.echo.own_calls_only else None
    request = ModelRequest(
        model,
        (system, *lead, *messages_of(rows, request_settings.accepted, snapshot.echoed, only_caller)),
        chosen.temperature,
        chosen.max_output_tokens,
        context_tokens=snapshot.budget.limit.tokens,
        prompt_tokens=tokens,
        tools=request_settings.offer.tools,
        effort=chosen.effort,
    )
    return with_plain_history(request) if snapshot.is_plain else request


def _not_sent(rows: Sequence[Message], fitted: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Return the rows that were left out, and those that were cut."""
    sent = {row.id: row for row in fitted}
    cut = (row for row in rows if row.id in sent and sent[row.id] is not row)
    return tuple(row for row in rows if row.id not in sent), tuple(cut)


def usable(view: Sequence[Message]) -> list[Message]:
    """Leave out rows that no request may contain: replies in progress, empty rows, and tool rows without their partner.

    Of calls with the same id in a turn, and of their results, the first is sent. A question that failed without a word
    and was said again, word for word, is sent once.
    """
    calls = {(row.turn_id, row.tool_call_id): row.id for row in reversed(view) if row.role is Role.TOOL_USE}
    results = {(row.turn_id, row.tool_call_id): row.id for row in reversed(view) if row.role is Role.TOOL_RESULT}
    paired = {id_ for key in calls.keys() & results.keys() for id_ in (calls[key], results[key])}
    rows = [
        row
        for row in view
        if (row.id in paired if row.role in _TOOL_ROLES else row.status is not Status.STREAMING and is_filled(row))
    ]
    failed_turns = {row.turn_id for row in view if row.status.broke_off and not is_filled(row)}
    return _once(rows, failed_turns) if failed_turns else rows


def _once(rows: list[Message], failed_turns: set[int]) -> list[Message]:
    """Leave out each question of a failed turn that the next message says again."""

    def is_repeated(row: Message, following: Message) -> bool:
        return (
            row.turn_id in failed_turns
            and row.role is following.role is Role.USER
            and row.content.strip() == following.content.strip()
            and row.attachments == following.attachments
        )

    return [row for row, following in pairwise(rows) if not is_repeated(row, following)] + rows[-1:]


def _reason_taken_back(view: View, row: Message) -> Reason:
    """Return why a message is not sent that was taken back, or that is off the branch of its imported conversation."""
    if row.id in view.hidden:
        return Reason.HIDDEN
    return Reason.REPLACED if row.id in view.other_branches else Reason.TAKEN_BACK


def _unsent_reason(row: Message) -> Reason:
    if row.status is Status.STREAMING:
        return Reason.RUNNING
    return Reason.REPEATED if row.role is Role.USER and is_filled(row) else Reason.UNUSABLE
