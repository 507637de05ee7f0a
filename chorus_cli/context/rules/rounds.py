"""The messages of a request, made of rows: the calls of one reply are one message with its words, then their results.

That is the form in which every provider sends calls, and in which it takes them back.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.log.rules.attachments import with_lines
from chorus_cli.log.rules.messages import Message, Role, words_of
from chorus_cli.models.rules.request import PromptMessage, without_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from chorus_cli.log.rules.attachments import Attachment, Kind
    from chorus_cli.log.rules.messages import Thoughts

BROKEN_OFF = "[this reply broke off here]"
_CHARACTERS_PER_TOKEN = 4


class Echoed(NamedTuple):
    """Thoughts that a request repeats, and their tokens, ``None`` if not yet counted."""

    thoughts: Thoughts
    tokens: int | None


def reply_of(row: Message) -> int:
    """Return the reply that a row is, or that ended with it as a call; 0 for any other row."""
    return row.id if row.role is Role.ASSISTANT else row.reply_id or 0


def weighed(rows: Sequence[Message], echoed: Mapping[int, Echoed]) -> list[Message]:
    """Return the rows with the tokens of the thoughts that go with them: with a reply, or with its first call."""
    left = dict(echoed)
    found: list[Message] = []
    for row in rows:
        thoughts = left.pop(reply_of(row), None)
        tokens = thoughts and thoughts.tokens
        found.append(row._replace(token_count=(row.token_count or 0) + tokens) if tokens else row)
    return found


def of_newest_turn(echoed: Mapping[int, Echoed], rows: Sequence[Message]) -> dict[int, Echoed]:
    """Return the thoughts of the turn that is being answered, the last one of ``rows``."""
    replies = {reply_of(row) for row in rows if row.turn_id == rows[-1].turn_id}
    return {id_: each for id_, each in echoed.items() if id_ in replies}


def thought_tokens(thoughts: Thoughts, count: Callable[[str], int]) -> int:
    """Return the tokens of thoughts; those that cannot be read are guessed from the length of the provider's parts."""
    return count(thoughts.text) if thoughts.text else len(thoughts.parts) // _CHARACTERS_PER_TOKEN


def messages_of(
    rows: Sequence[Message], accepted: frozenset[Kind], echoed: Mapping[int, Echoed], only_caller: str | None = None
) -> Iterator[PromptMessage]:
    """Yield the messages of rows that a request may contain; the model takes the ``accepted`` kinds of attachments.

    ``echoed`` are the thoughts that go with replies, by the ids of the replies. If there is an ``only_caller``, the
    calls of any other model are in words.
    """
    results = {(row.turn_id, row.tool_call_id): row for row in rows if row.role is Role.TOOL_RESULT}
    if not results:
        yield from (_alone(row, accepted, echoed) for row in rows)
        return
    for first, *calls in _made_together(rows):
        if not calls and first.role is not Role.TOOL_USE:
            yield _alone(first, accepted, echoed)
            continue
        messages = _round((first, *calls), results, echoed)
        yield from messages if only_caller in {None, first.model} else map(without_calls, messages)


def _alone(row: Message, accepted: frozenset[Kind], echoed: Mapping[int, Echoed]) -> PromptMessage:
    """Return a question, or a reply without calls."""
    if row.role is Role.ASSISTANT:
        return PromptMessage("assistant", _said(row), thoughts=_thoughts(row, row.id, echoed) if echoed else None)
    question = PromptMessage("user", f"{row.preamble}\n\n{row.content}" if row.preamble else row.content)
    return _with_attachments(question, row.attachments, accepted) if row.attachments else question


def _made_together(rows: Sequence[Message]) -> Iterator[list[Message]]:
    """Yield each question, and each reply with the calls that it ended with; the words of it may be missing."""
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
    """Return whether a row is a call of the same reply; of an import, calls are made together before any result."""
    if row.role is not Role.TOOL_USE or before.role is Role.USER or before.turn_id != row.turn_id:
        return False
    if before.role is Role.ASSISTANT:
        return True
    return before.reply_id == row.reply_id and not (is_answered and row.reply_id is None)


def _round(
    unit: Sequence[Message], results: Mapping[tuple[int, str | None], Message], echoed: Mapping[int, Echoed]
) -> Iterator[PromptMessage]:
    """Yield a reply with its calls, and their results; the words of it may be missing."""
    calls = [row for row in unit if row.role is Role.TOOL_USE]
    words = unit[0] if len(calls) < len(unit) else None
    texts = [_said(words) if words else "", *(call.content for call in calls)]
    yield PromptMessage(
        "assistant",
        "\n\n".join(filter(None, texts)),
        tool_calls=_together([call.tool_calls or "[]" for call in calls]),
        thoughts=_thoughts(words, calls[0].reply_id, echoed),
    )
    for call in calls:
        result = results[call.turn_id, call.tool_call_id]
        yield PromptMessage("tool", result.content, tool_call_id=result.tool_call_id)


def _thoughts(words: Message | None, reply_id: int | None, echoed: Mapping[int, Echoed]) -> Thoughts | None:
    """Return the thoughts before a reply, if its words are those that were said, or if it has none."""
    known = echoed.get(reply_id or 0)
    is_as_said = words is None or (words.id == reply_id and not words.status.broke_off)
    return known.thoughts if known and is_as_said else None


def _said(reply: Message) -> str:
    # No provider takes a picture in a reply, as an import may bring one.
    said = words_of(reply) if reply.attachments else reply.content
    return f"{said}\n{BROKEN_OFF}" if reply.status.broke_off else said


def _together(written: Sequence[str]) -> str:
    """Return several lists of calls in JSON as one."""
    if len(written) == 1:
        return written[0]
    return json.dumps([call for calls in written for call in json.loads(calls)], ensure_ascii=False)


def _with_attachments(
    question: PromptMessage, attachments: tuple[Attachment, ...], accepted: frozenset[Kind]
) -> PromptMessage:
    """Return a question with the attachments that the model takes; a line stands for each of the others."""
    named = [each for each in attachments if each.kind not in accepted]
    sent = tuple(each for each in attachments if each.kind in accepted)
    return question._replace(content=with_lines(question.content, named), attachments=sent)
