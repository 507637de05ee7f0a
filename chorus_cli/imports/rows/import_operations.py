"""The operations of an import, one for each persona.

An import that was killed or cancelled leaves operations that are marked as unfinished; the next import of the same
files goes on with them, so that one undo takes all of it back.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from chorus_cli.log.rows import operation_rows
from chorus_cli.log.rules import journal
from chorus_cli.log.rules.imports import Import
from chorus_cli.log.rules.operations import NewOperation

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime

    from chorus_cli.log.rules.operations import Operation


@dataclass(slots=True)
class Operations:
    """The operations of a run of an import by persona: one is stored with the first new message.

    ``files`` names the files of the run; empty, it goes on with no earlier one.
    """

    now: datetime
    files: str = ""
    acts: dict[str, Import] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)

    def of(self, connection: sqlite3.Connection, persona: str) -> int:
        """Return the operation of a persona: that of an unfinished import of these files, else a new one."""
        if persona not in self.ids:
            act = Import(unfinished=self.files)
            operation = self._unfinished(connection, persona)
            operation = operation or operation_rows.introduce(connection, NewOperation(persona, act, self.now))
            self.acts[persona] = operation.act if isinstance(operation.act, Import) else act
            self.ids[persona] = operation.id
        return self.ids[persona]

    def write(self, connection: sqlite3.Connection) -> None:
        """Store the acts as they are now."""
        for persona, act in self.acts.items():
            _write(connection, self.ids[persona], act)

    def finish(self, connection: sqlite3.Connection) -> None:
        """Mark every unfinished import of these files as finished."""
        for each in operation_rows.imports_of(connection):
            if isinstance(each.act, Import) and each.act.unfinished == self.files != "":
                _write(connection, each.id, replace(each.act, unfinished=""))

    def _unfinished(self, connection: sqlite3.Connection, persona: str) -> Operation | None:
        """Return the unfinished import of these files, unless it is undone or lies before a boundary of all threads."""
        standing = journal.effective(operation_rows.since_boundary(connection, persona, None))
        ours = (each for each in standing if isinstance(each.act, Import) and each.act.unfinished == self.files != "")
        return max(ours, key=lambda each: each.id, default=None)


def _write(connection: sqlite3.Connection, operation_id: int, act: Import) -> None:
    connection.execute("UPDATE operations SET detail = ? WHERE id = ?", (json.dumps(act.detail()), operation_id))
