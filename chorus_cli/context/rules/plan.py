"""Plans the request of a snapshot, and gives a reason for each message that is left out.

One system message comes first (system prompt, documents, summary, HOT items). The pinned messages and those that the
summary does not replace follow. If the request is too large, `fitting` leaves out the oldest turns, then cuts messages.

A reply and its calls are one message, and the results follow it: every provider expects this order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from chorus_cli.context.rules.fitting import fitting
from chorus_cli.context.rules.memory import block_tokens
from chorus_cli.context.rules.view import ContextSnapshot, Echoed, Reason, Summary, usable
from chorus_cli.log.rules.attachments import Attachment, Kind, with_lines
from chorus_cli.log.rules.messages import TOOL_ROLES, Message, Role, Status, Thoughts, is_filled, sent_content, words_of
from chorus_cli.memory.rules.recall import HOT_HEADING, memory_lines
from chorus_cli.models.rules.budget import LEAD_TOKENS, Meter, needs_lead, own_tokens, tokens_of, total_tokens
from chorus_cli.models.rules.declaration import ToolOffer
from chorus_cli.models.rules.request import ModelRequest, PromptMessage, with_plain_history, without_calls

HEADING = "Summary of the earlier conversation:"
LEAD = "(The conversation so far:)"
_HEADING_TOKENS = 10
BROKEN_OFF = "[this reply broke off here]"
_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """The next request of a context, the rows that it sends, the rows left out, and its estimated tokens.

    If ``sent`` has a shortened row, ``cut`` has the whole row. The rows ``too_large`` had no room. ``summary`` is
    ``None`` if there is no summary or no room for it. ``is_crowded`` says that something was cut or had no room. Unless
    ``is_exact``, the tokens are only rough, such as upper bounds. If rows had no room, ``begins_at`` is the id of the
    first sent row that is not pinned; otherwise it is ``None``.
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
    begins_at: int | None = None

    @property
    def meter(self) -> Meter:
        """The size of the request, in tokens as the provider is expected to count them."""
        budget = self.snapshot.budget
        return Meter(budget.corrected(self.tokens), budget.limit.tokens, budget.tokens)

    def with_offer(self, offer: ToolOffer) -> RequestPlan:
        """Return the plan of the same request with fewer tools."""
        request_settings = self.snapshot.request_settings
        tokens = self.tokens - request_settings.offer.tokens + offer.tokens
        request = replace(self.request, tools=offer.tools, prompt_tokens=self.snapshot.budget.corrected(tokens))
        snapshot = replace(self.snapshot, request_settings=replace(request_settings, offer=offer))
        return replace(self, snapshot=snapshot, request=request, tokens=tokens)

    def with_plain_history(self) -> RequestPlan:
        """Return the plan of the same request with earlier turns as plain text."""
        echoed = of_newest_turn(self.snapshot.echoed, self.snapshot.view.verbatim)
        snapshot = replace(self.snapshot, is_plain=True, echoed=echoed)
        return replace(self, snapshot=snapshot, request=with_plain_history(self.request), is_exact=False)

    def left_out(self) -> Iterator[tuple[Reason, Message]]:
        """Yield each message of the view that is not sent, and each one taken back from the view, with the reason."""
        view = self.snapshot.view
        accounted = {row.id for row in (*self.sent, *self.too_large)}
        folded = {row.id for row in usable(view.messages[: view.folded_number])}
        # Of several wordings of a message, only the newest counts.
        reworded = {row.revises for row in (*view.messages, *view.taken_back)}
        for row in view.taken_back:
            if row.id in reworded:
                continue
            replaced = Reason.REPLACED if row.id in view.replaced else Reason.TAKEN_BACK
            yield Reason.HIDDEN if row.id in view.hidden else replaced, row
        for row in view.messages:
            if row.id in accounted:
                continue
            if row.id in view.withheld:
                yield Reason.ELIZA, row
            elif row.id in folded:
                yield Reason.SUMMARISED, row
            elif row.status is Status.STREAMING:
                yield Reason.RUNNING, row
            else:
                yield Reason.REPEATED if row.role is Role.USER and is_filled(row) else Reason.UNUSABLE, row
        yield from ((Reason.NO_ROOM, row) for row in self.too_large)


def plan_whole(snapshot: ContextSnapshot) -> RequestPlan | None:
    """Plan the request of a snapshot without making it fit; ``None`` if it is larger than the budget."""
    summary = snapshot.view.summary
    fixed_tokens = system_tokens(snapshot, summary)
    rows = usable(snapshot.view.verbatim)
    if snapshot.echoed:
        rows = weighed(rows, snapshot.echoed)
    message_tokens = total_tokens(rows)
    tokens = fixed_tokens + message_tokens
    if tokens > snapshot.budget.room.budget:
        return None
    request = _request(snapshot, summary, rows, snapshot.budget.corrected(tokens))
    is_exact = not snapshot.is_plain
    return RequestPlan(snapshot, request, tuple(rows), summary, message_tokens, tokens, is_exact=is_exact)


def plan_bounded(snapshot: ContextSnapshot, at_most: Callable[[str], int]) -> RequestPlan | None:
    """Plan the whole request with upper bounds in place of missing token counts; ``None`` if it may not fit."""
    view = snapshot.view
    model = snapshot.request_settings.target.choice.model
    rows = [
        row if row.token_count is not None else row._replace(token_count=own_tokens(row, at_most, model))
        for row in view.messages
    ]
    summary = view.summary
    if summary is not None and summary.token_count is None:
        summary = replace(summary, token_count=at_most(summary.content))
    echoed = {
        id_: each if each.tokens is not None else each._replace(tokens=thought_tokens(each.thoughts, at_most))
        for id_, each in snapshot.echoed.items()
    }
    plan = plan_whole(replace(snapshot, view=replace(view, messages=tuple(rows), summary=summary), echoed=echoed))
    return None if plan is None else replace(plan, snapshot=snapshot, is_exact=False)


def plan_fitting(snapshot: ContextSnapshot, count: Callable[[str], int]) -> RequestPlan:
    """Plan a request that does not fit whole: leave out the oldest turns, then earlier thoughts; then cut messages."""
    rows = usable(snapshot.view.verbatim)
    plan = _fitted(snapshot, weighed(rows, snapshot.echoed), count)
    if not (plan.cut and snapshot.echoed):
        return plan
    echoed = of_newest_turn(snapshot.echoed, rows)
    return _fitted(replace(snapshot, echoed=echoed), rows, count, sum(each.tokens or 0 for each in echoed.values()))


def _fitted(
    snapshot: ContextSnapshot, rows: list[Message], count: Callable[[str], int], beside_tokens: int = 0
) -> RequestPlan:
    """Fit rows into the room; ``beside_tokens`` are the tokens of thoughts, which the rows' counts do not include."""
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
    kept = {row.id: row for row in fitted}
    too_large = tuple(row for row in rows if row.id not in kept)
    cut = tuple(row for row in rows if row.id in kept and kept[row.id] is not row)
    if snapshot.echoed and cut:
        # Thoughts are sent only with the uncut words of their reply.
        shortened = {reply_of(row) for row in cut}
        whole = {id_: echoed for id_, echoed in snapshot.echoed.items() if id_ not in shortened}
        snapshot = replace(snapshot, echoed=whole)
    if beside_tokens:
        fitted = weighed(fitted, snapshot.echoed)
    unpinned = (row.id for row in fitted if row.id not in snapshot.view.pinned)
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
        begins_at=next(unpinned, None) if too_large else None,
    )


def _pinned(
    rows: Sequence[Message], newest_question: Message | None, snapshot: ContextSnapshot, room_tokens: int
) -> dict[int, Message]:
    """Return the pinned rows by id, a call with its result; empty if they do not fit beside the newest question."""
    named = snapshot.view.pinned
    pairs = {(row.turn_id, row.tool_call_id) for row in rows if row.id in named and row.role in TOOL_ROLES}
    pinned = {
        row.id: row
        for row in rows
        if (row.id in named or (row.role in TOOL_ROLES and (row.turn_id, row.tool_call_id) in pairs))
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
    request_settings = snapshot.request_settings
    persona = request_settings.target.persona
    parts = (
        request_settings.system_prompt.text,
        f"{HEADING}\n{summary.content}" if summary else "",
        memory_lines(snapshot.hot, persona, HOT_HEADING) if snapshot.hot else "",
    )
    system = PromptMessage("system", "\n\n".join(filter(None, parts)))
    lead = [PromptMessage("user", LEAD)] if needs_lead(rows) else []
    chosen, model = persona.settings, request_settings.target.choice.model
    only_caller = model if request_settings.echo.own_calls_only else None
    note = request_settings.system_prompt.note
    messages = (system, *lead, *messages_of(rows, request_settings.accepted, snapshot.echoed, only_caller))
    request = ModelRequest(
        model,
        with_note(messages, note, chosen.note_depth) if note else messages,
        chosen.temperature,
        chosen.max_output_tokens,
        context_tokens=snapshot.budget.limit.tokens,
        prompt_tokens=tokens,
        tools=request_settings.offer.tools,
        effort=chosen.effort,
    )
    return with_plain_history(request) if snapshot.is_plain else request


def with_note(messages: tuple[PromptMessage, ...], note: str, depth: int) -> tuple[PromptMessage, ...]:
    """Return messages with a note in one of the last ``depth``, counted back from the newest user message.

    The note begins the earliest user message among these; at depth 0 it ends the newest one. Calls and results after
    the newest one do not count, so the note keeps its place through a turn. Without a user message there is no note.
    """
    asked = [place for place, message in enumerate(messages) if message.role == "user"]
    if not asked:
        return messages
    place = next((each for each in asked if each > asked[-1] - depth), asked[-1])
    said = messages[place].content
    parts = (note, said) if depth else (said, note)
    noted = messages[place]._replace(content="\n\n".join(filter(None, parts)), note=note)
    return (*messages[:place], noted, *messages[place + 1 :])


def reply_of(row: Message) -> int:
    """Return the id of a reply, or of the reply that made a call; 0 for any other row or if the reply is unknown."""
    return row.id if row.role is Role.ASSISTANT else row.reply_id or 0


def weighed(rows: Sequence[Message], echoed: Mapping[int, Echoed]) -> list[Message]:
    """Add the tokens of the thoughts before a reply to the count of its first row: the reply itself or a call."""
    left = dict(echoed)
    found: list[Message] = []
    for row in rows:
        thoughts = left.pop(reply_of(row), None)
        tokens = thoughts and thoughts.tokens
        found.append(row._replace(token_count=(row.token_count or 0) + tokens) if tokens else row)
    return found


def of_newest_turn(echoed: Mapping[int, Echoed], rows: Sequence[Message]) -> dict[int, Echoed]:
    """Return the thoughts of the turn that the last of ``rows`` belongs to."""
    replies = {reply_of(row) for row in rows if row.turn_id == rows[-1].turn_id}
    return {id_: each for id_, each in echoed.items() if id_ in replies}


def thought_tokens(thoughts: Thoughts, count: Callable[[str], int]) -> int:
    """Return the tokens of thoughts; if there is no text, estimate them from the length of the provider's parts."""
    return count(thoughts.text) if thoughts.text else len(thoughts.parts) // _CHARACTERS_PER_TOKEN


def messages_of(
    rows: Sequence[Message], accepted: frozenset[Kind], echoed: Mapping[int, Echoed], only_caller: str | None = None
) -> Iterator[PromptMessage]:
    """Yield the messages of a request from ``usable`` rows; the model takes the ``accepted`` kinds of attachments.

    ``echoed`` has thoughts by reply id. If ``only_caller`` is a model, calls and results of others become plain text.
    """
    results = {(row.turn_id, row.tool_call_id): row for row in rows if row.role is Role.TOOL_RESULT}
    if not results:
        yield from (_alone(row, accepted, echoed) for row in rows)
        return
    for first, *calls in _made_together(rows):
        if not calls and first.role is not Role.TOOL_USE:
            yield _alone(first, accepted, echoed)
            continue
        messages = _round((first, *calls), results, accepted, echoed)
        yield from messages if only_caller in {None, first.model} else map(without_calls, messages)


def _alone(row: Message, accepted: frozenset[Kind], echoed: Mapping[int, Echoed]) -> PromptMessage:
    if row.role is Role.ASSISTANT:
        return PromptMessage("assistant", _said(row), thoughts=_thoughts(row, row.id, echoed) if echoed else None)
    said = f"{row.preamble}\n\n{row.content}" if row.preamble else row.content
    question = PromptMessage("user", said, preamble=row.preamble)
    return _with_attachments(question, row.attachments, accepted) if row.attachments else question


def _made_together(rows: Sequence[Message]) -> Iterator[list[Message]]:
    """Yield each question, and each reply with its calls; a reply without words has only its calls."""
    unit: list[Message] = []
    is_answered = False
    for row in rows:
        if row.role is Role.TOOL_RESULT:
            is_answered = True
            continue
        if unit and not _goes_on(unit[-1], row, is_answered=is_answered):
            yield unit
            unit = []
        unit.append(row)
        is_answered = False
    if unit:
        yield unit


def _goes_on(before: Message, row: Message, *, is_answered: bool) -> bool:
    """Return whether ``row`` is a call of the reply of ``before``; a result between imported calls divides them."""
    if row.role is not Role.TOOL_USE or before.role is Role.USER or before.turn_id != row.turn_id:
        return False
    if before.role is Role.ASSISTANT:
        return True
    return before.reply_id == row.reply_id and not (is_answered and row.reply_id is None)


def _round(
    unit: Sequence[Message],
    results: Mapping[tuple[int, str | None], Message],
    accepted: frozenset[Kind],
    echoed: Mapping[int, Echoed],
) -> Iterator[PromptMessage]:
    """Yield one message for a reply and its calls, then one for each result; ``unit`` may have only calls."""
    calls = [row for row in unit if row.role is Role.TOOL_USE]
    words = unit[0] if len(calls) < len(unit) else None
    texts = [_said(words) if words else "", *(call.content for call in calls)]
    written = [call.tool_calls or "[]" for call in calls]
    together = written[0]
    if len(written) > 1:
        together = json.dumps([call for each in written for call in json.loads(each)], ensure_ascii=False)
    yield PromptMessage(
        "assistant",
        "\n\n".join(filter(None, texts)),
        tool_calls=together,
        thoughts=_thoughts(words, calls[0].reply_id, echoed),
    )
    for call in calls:
        result = results[call.turn_id, call.tool_call_id]
        told = PromptMessage("tool", sent_content(result), tool_call_id=result.tool_call_id)
        yield _with_attachments(told, result.attachments, accepted) if result.attachments else told


def _thoughts(words: Message | None, reply_id: int | None, echoed: Mapping[int, Echoed]) -> Thoughts | None:
    """Return the thoughts before a reply; ``None`` if it has none, broke off or was edited."""
    known = echoed.get(reply_id or 0)
    is_as_said = words is None or (words.id == reply_id and not words.status.broke_off)
    return known.thoughts if known and is_as_said else None


def _said(reply: Message) -> str:
    # An imported reply may have a picture, but no provider takes pictures in replies.
    said = words_of(reply) if reply.attachments else reply.content
    return f"{said}\n{BROKEN_OFF}" if reply.status.broke_off else said


def _with_attachments(
    message: PromptMessage, attachments: tuple[Attachment, ...], accepted: frozenset[Kind]
) -> PromptMessage:
    """Return a message with the attachments that the model takes, and a line of text for each other attachment."""
    named = [each for each in attachments if each.kind not in accepted]
    sent = tuple(each for each in attachments if each.kind in accepted)
    return message._replace(content=with_lines(message.content, named), attachments=sent)
