"""Reads a context snapshot in one transaction; stores summaries, failures of folds and token counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from chorus_cli.context.rules.memory import MOST_HOT, chosen_hot, contents, ids_held, without_forgotten
from chorus_cli.context.rules.view import (
    ContextSnapshot,
    Echoed,
    RequestSettings,
    RequestStart,
    Summary,
    View,
    put_in,
    view,
)
from chorus_cli.core.time import timestamps
from chorus_cli.core.time.timestamps import cutoff
from chorus_cli.log.rows import message_rows, operation_rows
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.acts import Fold, Fork
from chorus_cli.log.rules.journal import ThreadJournal
from chorus_cli.log.rules.messages import Message, Role, Thoughts, expanded
from chorus_cli.memory.rows import item_rows
from chorus_cli.memory.rules.items import Item
from chorus_cli.memory.rules.recall import sent_items
from chorus_cli.models.rules.budget import Budget, Calibration, budget, read_calibration
from chorus_cli.models.rules.request import Span
from chorus_cli.settings.rules.table import WINDOW_KEY, setting_of
from chorus_cli.storage import meta_rows
from chorus_cli.storage.port import Connection

_MOST = 8  # newest summaries that are read; an older one may hold if the newest does not
_TURNS_OF_REST = 3  # questions after which a failed fold is tried again


def summaries_of(connection: Connection, known: ThreadJournal) -> list[Summary]:
    """Return the newest summaries of a thread, at most 8, from its boundary on."""
    counting = (*([known.boundary] if known.boundary else []), *known.later)
    folds = {each.id: each.act.folded for each in counting if isinstance(each.act, Fold | Fork)}
    if not folds:
        return []
    found = connection.execute(
        "SELECT operation_id, base_operation_id, content, token_count, model, summaries.created_at, number "
        "FROM summaries JOIN operations ON operations.id = operation_id "
        "WHERE summaries.thread_id = ? AND operation_id IN (SELECT value FROM json_each(?)) AND base_operation_id IS ? "
        # The content of a purged summary is empty.
        "AND content <> '' ORDER BY operation_id DESC LIMIT ?",
        (known.thread_id, json.dumps(list(folds)), known.boundary.id if known.boundary else None, _MOST),
    ).fetchall()
    return [
        Summary(id_, base, folds[id_], content, tokens, model, timestamps.from_text(created_at), number)
        for id_, base, content, tokens, model, created_at, number in found
    ]


def store(connection: Connection, persona: str, thread_id: int, summary: Summary) -> None:
    """Store the summary of a fold whose operation is stored already; delete the record that an earlier fold failed."""
    meta_rows.taken(connection, f"{meta_rows.FOLD_FAILED}{thread_id}")
    ids = expanded(summary.stands_for)
    connection.execute(
        "INSERT INTO summaries(operation_id, persona, thread_id, base_operation_id, first_message_id, "
        "through_message_id, content, token_count, model, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(summary.operation_id, persona, thread_id, summary.boundary_id, ids[0], ids[-1]),
            *(summary.content, summary.token_count, summary.model, timestamps.to_text(summary.created_at)),
        ),
    )


def store_failure(connection: Connection, thread_id: int) -> None:
    """Record that a fold of a thread failed, with the id of the thread's newest message."""
    newest = "SELECT coalesce(max(id), 0) FROM messages WHERE thread_id = ?"
    (message_id,) = connection.execute(newest, (thread_id,)).fetchone()
    meta_rows.store(connection, f"{meta_rows.FOLD_FAILED}{thread_id}", str(message_id))


def is_resting(connection: Connection, thread_id: int) -> bool:
    """Return whether the last fold of a thread failed, in any process, and fewer than three questions have followed."""
    failed_after = meta_rows.value(connection, f"{meta_rows.FOLD_FAILED}{thread_id}")
    if failed_after is None:
        return False
    since = "SELECT count(*) FROM messages WHERE thread_id = ? AND role = 'user' AND id > CAST(? AS BIGINT)"
    (questions,) = connection.execute(since, (thread_id, failed_after)).fetchone()
    return bool(questions < _TURNS_OF_REST)


def echoed(connection: Connection, rows: Sequence[Message], model: str, *, calls_only: bool) -> dict[int, Echoed]:
    """Return the thoughts that ``model`` had before its replies in ``rows``, by reply id.

    Imported and edited replies are left out; with ``calls_only``, so are replies without tool calls.
    """
    wanted = {row.reply_id for row in rows if row.reply_id is not None}
    if not calls_only:
        wanted |= {row.id for row in rows if row.thought is not None and row.role is Role.ASSISTANT}
    if not wanted:
        return {}
    cursor = connection.execute(
        "SELECT id, content, reasoning, thought_parts, thought_tokens FROM messages "
        "WHERE id IN (SELECT value FROM json_each(?)) AND model = ? AND run IS NOT NULL "
        "AND (reasoning IS NOT NULL OR thought_parts IS NOT NULL)",
        (json.dumps(sorted(wanted)), model),
    )
    there = {row.id for row in rows}
    return {
        id_: Echoed(Thoughts(text or "", parts or ""), tokens)
        for id_, content, text, parts, tokens in cursor
        if id_ in there or not content.strip()
    }


def of_replies(connection: Connection, ids: Iterable[int]) -> dict[int, Thoughts]:
    """Return the thoughts before the replies ``ids``, by reply id; leave out replies without thoughts."""
    cursor = connection.execute(
        "SELECT id, reasoning, thought_parts FROM messages WHERE id IN (SELECT value FROM json_each(?)) "
        "AND (reasoning IS NOT NULL OR thought_parts IS NOT NULL)",
        (json.dumps(list(ids)),),
    )
    return {id_: Thoughts(text or "", parts or "") for id_, text, parts in cursor}


class TokenCounts(NamedTuple):
    """The tokens of messages, of thoughts and of summaries, by the ids of the messages, replies and folds."""

    messages: Mapping[int, int]
    thoughts: Mapping[int, int]
    summaries: Mapping[int, int]


def store_token_counts(connection: Connection, counts: TokenCounts) -> None:
    """Store the token counts of rows that were stored without one."""
    for update, counted in (
        ("UPDATE messages SET token_count = ? WHERE id = ?", counts.messages),
        ("UPDATE messages SET thought_tokens = ? WHERE id = ?", counts.thoughts),
        ("UPDATE summaries SET token_count = ? WHERE operation_id = ?", counts.summaries),
    ):
        connection.executemany(update, [(tokens, id_) for id_, tokens in counted.items()])


_WINDOW = setting_of(WINDOW_KEY)


def thread_journal(connection: Connection, persona: str, thread_id: int) -> ThreadJournal:
    """Read the operations that concern a thread, from its boundary on, with their effect on its context."""
    forgettings = item_rows.forgettings(connection, persona)
    operations = operation_rows.since_boundary(connection, persona, thread_id)
    # Operations on the memory are not among these, but the newest forgetting counts, because it changes requests.
    return journal.thread_journal(thread_id, operations, forgettings.fetchone()[0])


def read_snapshot(
    connection: Connection,
    request_settings: RequestSettings,
    known: ThreadJournal,
    start: RequestStart,
    until: datetime | None = None,
) -> ContextSnapshot:
    """Read the snapshot of a thread up to ``until``; messages in it may lack their token count."""
    target = request_settings.target
    newest = operation_rows.newest_of_thread(connection, target.thread_id)
    seen = replace(read_view(connection, known, start, until), heard_by=target.choice.model)
    # The HOT items of the last request stay unless the summary before them has changed.
    held = start.hot if start.summary == seen.summary else None
    last_spoken = operation_rows.last_spoken_at(connection, target.thread_id, newest)
    if last_spoken is None and seen.boundary is not None and isinstance(seen.boundary.act, Fork):
        # Nothing was said since the fork, so the newest message that the fork put in counts.
        last_spoken = max((row.timestamp for row in seen.messages), default=None)
    stored = meta_rows.value(connection, meta_rows.CALIBRATION + target.choice.model)
    learned = read_calibration(stored) if stored else Calibration()
    refused_since = meta_rows.value(connection, meta_rows.plain_history(target.thread_id, target.choice.model))
    is_plain = refused_since is not None and refused_since == str(seen.boundary_id or 0)
    limit, chosen = request_settings.limit, target.persona.settings
    usage, output = chosen.context_usage_threshold, chosen.max_output_tokens
    allowed = budget(limit, usage, output, learned, fold_is_undone=known.fold_is_undone)
    thoughts, echo = {}, request_settings.echo
    if echo.span is Span.EVER and not is_plain:
        thoughts = echoed(connection, seen.verbatim, target.choice.model, calls_only=echo.calls_only)
    return ContextSnapshot(
        request_settings=request_settings,
        view=seen,
        budget=allowed,
        last_spoken=last_spoken,
        newest_operation_id=known.newest_id,
        fold_is_undone=known.fold_is_undone,
        first_message_id=start.first_message_id,
        hot=_chosen_hot(connection, request_settings, allowed, seen) if held is None else held,
        echoed=thoughts,
        is_plain=is_plain,
        unread=journal.unread_notice(known.operations) if known.operations else "",
    )


def read_past_snapshot(connection: Connection, request_settings: RequestSettings, moment: datetime) -> ContextSnapshot:
    """Compute the snapshot of an earlier moment from the journal, with today's system prompt and model.

    A reply that was being written at the moment has its present text. If a fork opened the thread after the moment,
    the snapshot shows the thread that was forked.
    """
    target, persona = request_settings.target, request_settings.target.persona
    every = journal.own(operation_rows.all_of(connection, persona.slug, target.thread_id))
    later = [each.act for each in journal.effective(every) if isinstance(each.act, Fork) and each.created_at > moment]
    if later:
        origin = target._replace(thread_id=later[0].origin, thread_number=later[0].origin_number)
        return read_past_snapshot(connection, replace(request_settings, target=origin), moment)
    found = journal.window_at(every, moment, persona.settings.context_hours)
    hours = found if isinstance(found, int | str) and _WINDOW.accepts(found) else persona.defaults.context_hours
    past = persona._replace(settings=persona.settings._replace(context_hours=hours))
    request_settings = replace(request_settings, target=target._replace(persona=past))
    then = journal.thread_journal(target.thread_id, [each for each in every if each.created_at <= moment])
    return read_snapshot(connection, request_settings, then, RequestStart(cutoff(moment, hours)), moment)


def read_view(connection: Connection, known: ThreadJournal, start: RequestStart, until: datetime | None = None) -> View:
    """Read the view of a thread; messages after ``until`` are left out."""
    thread_id, boundary = known.thread_id, known.boundary
    after = boundary.after_message_id if boundary else 0
    messages = message_rows.rows_since(connection, thread_id, after, start.window, until)
    # SQL compares times as text, which may let a later row of the same second through.
    messages = [message for message in messages if until is None or message.timestamp <= until]
    if (boundary or known.kept) and (by_operations := put_in(known, start.window)):
        messages += message_rows.rows(connection, by_operations - {message.id for message in messages})
    holders = [message for message in messages if message.preamble or message.role is Role.TOOL_RESULT]
    held = ids_held(holders) if holders else set()
    forgotten = item_rows.forgotten_among(connection, held) if held else set()
    messages = without_forgotten(messages, forgotten) if forgotten else messages
    return view(messages, known, start.window, summaries_of(connection, known))


def _chosen_hot(
    connection: Connection, request_settings: RequestSettings, allowed: Budget, seen: View
) -> tuple[Item, ...]:
    items = item_rows.hot(connection, request_settings.target.persona.slug, MOST_HOT)
    if not items:
        return ()
    return chosen_hot(sent_items(request_settings.target.persona, items), allowed, contents(seen.verbatim))
