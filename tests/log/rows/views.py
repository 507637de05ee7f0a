"""The view of a thread as the database holds it, without the services above."""

from __future__ import annotations

from datetime import datetime

from chorus_cli.context.rows.snapshot_rows import read_snapshot, thread_journal
from chorus_cli.context.rules.view import RequestSettings, RequestStart, SystemPrompt, View
from chorus_cli.models.rules.budget import Limit
from chorus_cli.models.rules.choice import ModelChoice
from chorus_cli.personas.rules.persona import Persona, Target
from chorus_cli.settings.rules.table import Settings
from chorus_cli.storage.port import Connection


def view_in(connection: Connection, persona: str, thread_id: int, since: datetime) -> View:
    """Read the view of a window that starts at ``since``, for a persona of default settings."""
    target = Target(Persona(persona, Settings()), thread_id, ModelChoice("model", "a test"))
    request_settings = RequestSettings(target, SystemPrompt("", 0, 0), Limit(100_000, "a test"))
    journal = thread_journal(connection, persona, thread_id)
    return read_snapshot(connection, request_settings, journal, RequestStart(since)).view
