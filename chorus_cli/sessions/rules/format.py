"""Saved sessions, and the text of their files.

The file is readable JSON: first the facts that a list of sessions shows, then the threads, then all messages in the
order of their thread's context. The log does not rely on the ids in it; see ``core/sessions/matching``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chorus_cli.core.time import timestamps
from chorus_cli.log.rules.attachments import as_json

if TYPE_CHECKING:
    from datetime import datetime

    from chorus_cli.core.json.jsonc import JsonValue
    from chorus_cli.log.rules.messages import MessageContent

FORMAT = "chorus-session"
VERSION = 1


@dataclass(frozen=True, slots=True)
class SavedThread:
    """A saved thread; ``summary`` covers its first ``summarised`` messages and is empty if there was none."""

    id: int
    title: str = ""
    summary: str = ""
    summarised: int = 0


@dataclass(frozen=True, slots=True)
class Session:
    """A persona's context at a moment, in all its threads.

    ``window_start`` and ``window_end`` are the ends of the window then. ``active_thread_id`` is one of ``threads``.
    ``token_estimate`` is the number of tokens of the messages.
    """

    session_id: str
    persona: str
    timestamp: datetime
    description: str
    summary: str
    token_estimate: int
    window_start: datetime
    window_end: datetime
    active_thread_id: int
    threads: tuple[SavedThread, ...]
    messages: tuple[MessageContent, ...]

    @property
    def spoken_threads(self) -> int:
        """The number of threads that its messages are from."""
        return len({message.thread_id for message in self.messages})


def text_of(session: Session) -> str:
    """Return the text of a session's file."""
    document: dict[str, JsonValue] = {
        "format": FORMAT,
        "version": VERSION,
        "session_id": session.session_id,
        "persona": session.persona,
        "timestamp": timestamps.to_text(session.timestamp),
        "description": session.description,
        "summary": session.summary,
        "message_count": len(session.messages),
        "token_estimate": session.token_estimate,
        "window_start": timestamps.to_text(session.window_start),
        "window_end": timestamps.to_text(session.window_end),
        "active_thread_id": session.active_thread_id,
        "threads": [_written_thread(each) for each in session.threads],
        "messages": [_written(message) for message in session.messages],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _written_thread(thread: SavedThread) -> JsonValue:
    always: dict[str, JsonValue] = {"id": thread.id, "title": thread.title, "summary": thread.summary}
    summarised: dict[str, JsonValue] = {"summarised": thread.summarised} if thread.summarised else {}
    return always | summarised


def _written(message: MessageContent) -> JsonValue:
    """Return the fields that every message has, and the optional ones that this one has."""
    always: dict[str, JsonValue] = {
        "role": message.role,
        "content": message.content,
        "timestamp": timestamps.to_text(message.timestamp),
        "thread": message.thread_id,
        "turn": message.turn_id,
        "status": message.status,
    }
    sometimes: dict[str, JsonValue] = {
        "preamble": message.preamble or None,
        "tool_calls": message.tool_calls,
        "tool_call_id": message.tool_call_id,
        "model": message.model,
        "attachments": [{**as_json(each)} for each in message.attachments] or None,
    }
    return always | {key: value for key, value in sometimes.items() if value is not None}
