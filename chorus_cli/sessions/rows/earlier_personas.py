"""What an earlier persona of a slug leaves behind: its memory is hidden, the rows of its sessions go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.memory.rows import item_rows
from chorus_cli.sessions.rows import session_rows

if TYPE_CHECKING:
    from chorus_cli.log.rules.operations import Operation
    from chorus_cli.storage.store import Connection


def leave_behind(connection: Connection, persona: str, boundary: Operation) -> None:
    """Part a new persona from the memory and the sessions of an earlier one."""
    item_rows.hide_all(connection, persona, boundary.id)
    session_rows.forget(connection, persona)
