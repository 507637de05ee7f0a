"""Findings of the doctor. Each has a subject, a state, a sentence and, if the doctor can mend it, a repair."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import NamedTuple, Self

from chorus_cli.core.json.jsonc import JsonValue


class State(StrEnum):
    """The state of a subject."""

    FINE = "fine"
    NOTE = "note"
    WRONG = "wrong"


class Repair(StrEnum):
    """A repair that the doctor offers: a name for programs, and a question to the user."""

    question: str

    def __new__(cls, name: str, question: str) -> Self:
        """Make a repair of this name."""
        repair = str.__new__(cls, name)
        repair._value_, repair.question = name, question
        return repair

    INDEX = "index", "Rebuild the index from the log?"
    CODE = "code", "Remove the parts of the log that Chorus did not make? No message is lost."
    CHECKSUMS = "checksums", "Restore the text of each changed message from the newest backup that has it?"
    SALVAGE = "salvage", "Salvage the log into a new file? Chorus asks again before it uses the file."
    ATTACHMENTS = "attachments", "Restore each lost attachment from the newest backup that has it?"
    UNNAMED = "unnamed", "Delete the attachments that no message, session or backup names?"
    LEFTOVERS = "leftovers", "Delete all temporary files that a killed Chorus has left?"


class Finding(NamedTuple):
    """A finding about a subject."""

    subject: str
    sentence: str
    repair: Repair | None = None
    state: State = State.FINE

    def as_json(self) -> dict[str, JsonValue]:
        """Return the finding as JSON."""
        return {"subject": self.subject, "state": self.state, "sentence": self.sentence, "mend": self.repair}


fine, note, wrong = (partial(Finding, state=state) for state in State)
"""Make findings of each state: all is well, something is worth knowing, or something is wrong."""


def is_well(findings: Sequence[Finding]) -> bool:
    """Return whether nothing is wrong."""
    return all(finding.state is not State.WRONG for finding in findings)
