"""Findings of the doctor: each about one subject, with a sentence and, if it can be mended, how."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chorus_cli.core.settings.jsonc import JsonValue


class State(StrEnum):
    """The state of a subject."""

    FINE = "fine"
    NOTE = "note"
    WRONG = "wrong"


class Mend(StrEnum):
    """A repair that the doctor offers."""

    PERMISSIONS = "permissions"
    INDEX = "index"
    CHECKSUMS = "checksums"
    SALVAGE = "salvage"

    @property
    def question(self) -> str:
        """Return the question before it is done."""
        return _QUESTIONS[self]


_QUESTIONS = {
    Mend.PERMISSIONS: "Take the permissions of other users away?",
    Mend.INDEX: "Make the index again from the log?",
    Mend.CHECKSUMS: "Bring the texts of these messages from the newest backup that has them?",
    Mend.SALVAGE: "Salvage the log into a new file, with the newest backup? You are asked again before it is used.",
}


class Finding(NamedTuple):
    """The state of a subject."""

    subject: str
    state: State
    sentence: str
    mend: Mend | None = None

    def as_json(self) -> dict[str, JsonValue]:
        """Return it for a program."""
        return {"subject": self.subject, "state": self.state, "sentence": self.sentence, "mend": self.mend}


def is_well(findings: Sequence[Finding]) -> bool:
    """Return whether nothing is wrong."""
    return all(finding.state is not State.WRONG for finding in findings)


def fine(subject: str, sentence: str) -> Finding:
    """Return the finding that all is well."""
    return Finding(subject, State.FINE, sentence)


def note(subject: str, sentence: str) -> Finding:
    """Return a finding that is worth knowing, but nothing wrong."""
    return Finding(subject, State.NOTE, sentence)


def wrong(subject: str, sentence: str, mend: Mend | None = None) -> Finding:
    """Return the finding that something is wrong."""
    return Finding(subject, State.WRONG, sentence, mend)
