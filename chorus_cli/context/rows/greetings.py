"""Greetings of character cards, which begin the conversations of a thread."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from chorus_cli.context.rows.snapshot_rows import thread_journal
from chorus_cli.context.rows.thread_views import last_exchange_of, newest_in_context
from chorus_cli.core.errors import JournalError
from chorus_cli.log.rows import operation_rows, thread_lists
from chorus_cli.log.rules.log_acts import Greeting
from chorus_cli.log.rules.messages import MessageContent, Role
from chorus_cli.log.rules.operations import NewOperation
from chorus_cli.storage.port import Connection


def greet(connection: Connection, persona: str, thread_id: int, said: str, now: datetime, cleared: int = 0) -> None:
    """Store a greeting in place of any unanswered one; raise `JournalError` if a conversation has begun."""
    seen = newest_in_context(connection, thread_journal(connection, persona, thread_id))
    turn_id = seen[-1].turn_id if seen else 0
    begun_by = "SELECT kind FROM operations WHERE id = (SELECT introduced_by FROM messages WHERE id = ?)"
    is_unanswered = connection.execute(begun_by, (turn_id,)).fetchone() == (Greeting.kind,)
    if seen and not is_unanswered:
        raise JournalError("A greeting begins a conversation, and this one has begun. Use /thread new or /new first.")
    replaced = frozenset(row.id for row in seen if row.turn_id == turn_id)
    act = Greeting(replaced=replaced, cleared=cleared)
    message = MessageContent(thread_id, Role.ASSISTANT, said, now)
    new = NewOperation(persona, act, now, thread_id, members=(message,), automatic=bool(cleared))
    operation_rows.introduce(connection, new)


def greet_anew(connection: Connection, persona: str, greetings: Mapping[str, str], now: datetime) -> bool:
    """Replace each unanswered greeting in open threads by its text in ``greetings``; return whether there was one."""
    is_changed = False
    for thread in thread_lists.open_threads(connection, persona):
        operations = operation_rows.since_boundary(connection, persona, thread.id)
        greeted = [each for each in operations if isinstance(each.act, Greeting)]
        exchange = last_exchange_of(connection, persona, thread.id) if greeted else None
        if exchange and not exchange.question and exchange.reply in greetings:
            cleared = next(each.act.cleared or each.id for each in greeted[-1:] if isinstance(each.act, Greeting))
            greet(connection, persona, thread.id, greetings[exchange.reply], now, cleared)
            is_changed = True
    return is_changed
