"""Texts for editing messages, and the edits read from them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from chorus_cli.editing.rules import matching
from chorus_cli.editing.rules.format import ParsedEdit, parse
from chorus_cli.editing.rules.matching import Sheet, laid_out
from chorus_cli.log.rules.attachments import Attachment
from chorus_cli.log.rules.messages import Message, MessageContent, Role

NOON = datetime(2026, 2, 12, 12, 0, 0, 123456, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
ZONES = st.sampled_from([UTC, BERLIN, ZoneInfo("Asia/Kathmandu"), timezone(timedelta(hours=-11, seconds=7)), None])
MOMENTS = st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001 - UTC is said
CALL = json.dumps([{"id": "a", "type": "function", "function": {"name": "search", "arguments": '{"q": "ring"}'}}])


class Kept(NamedTuple):
    """A row that stays in the context, or enters it, unchanged."""

    message_id: int


class Reworded(NamedTuple):
    """A row with a new text, or other attachments."""

    message_id: int
    text: str
    attachments: tuple[Attachment, ...] = ()


class Added(NamedTuple):
    """A new message."""

    role: Role
    timestamp: datetime
    text: str
    attachments: tuple[Attachment, ...] = ()


Member = Kept | Reworded | Added


class ContextEdit(NamedTuple):
    """An edit: its members, and the rows that are no longer in context, in any wording."""

    members: tuple[Member, ...]
    dropped: tuple[int, ...]
    changed: bool


def matched(parsed: ParsedEdit, sheet: Sheet) -> ContextEdit:
    """Match a text that was read, and tell its members apart."""
    edit = matching.matched(parsed, sheet, 1)
    members = tuple(map(_told_apart, edit.members))
    inside = {member.message_id for member in members if not isinstance(member, Added)}
    ids = [row.id for entry in sheet.context for row in entry.rows]
    dropped = tuple(id_ for id_ in ids if id_ not in inside)
    assert edit.counts.left_out == len(dropped)
    return ContextEdit(members, dropped, edit.is_changed)


def _told_apart(member: int | MessageContent) -> Member:
    if isinstance(member, int):
        return Kept(member)
    if member.revises is None:
        return Added(member.role, member.timestamp, member.content, member.attachments)
    return Reworded(member.revises, member.content, member.attachments)


def said(id_: int, content: str, seconds: float = 0, role: Role = Role.USER) -> Message:
    return Message(id_, "frodo", 1, id_, role, content, NOON + timedelta(seconds=seconds))


def call(id_: int, name: str, seconds: float = 0) -> Message:
    return said(id_, "", seconds, Role.TOOL_USE)._replace(turn_id=1, tool_calls=CALL, tool_call_id=name)


def result(id_: int, name: str, content: str = "three\nhits", seconds: float = 0) -> Message:
    return said(id_, content, seconds, Role.TOOL_RESULT)._replace(turn_id=1, tool_call_id=name)


def sheet_of(before: Sequence[Message], context: Sequence[Message]) -> Sheet:
    return laid_out("Frodo", before, context, UTC)


def edited(sheet: Sheet, *changes: tuple[str, str]) -> ContextEdit:
    """Replace each text, which must occur once, and return the edit."""
    text = sheet.text
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return matched(parse(text, sheet.name), sheet)


def kept(*ids: int) -> tuple[Member, ...]:
    return tuple(map(Kept, ids))


QUESTION, ANSWER, THANKS = said(3, "Where?", 10), said(4, "There.", 11, Role.ASSISTANT), said(5, "Thanks!", 20)
OLD = said(1, "Long ago", -100)
OLD_ANSWER = said(2, "and far away", -99, Role.ASSISTANT)
TALK = sheet_of([OLD, OLD_ANSWER], [QUESTION, ANSWER, THANKS])
