"""The report of an import, or of a dry run: the amounts found and added, and everything left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ImportFormatError
from chorus_cli.core.text.phrases import counted, enumerated
from chorus_cli.core.time import timestamps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from chorus_cli.imports.rows.import_rows import Added
    from chorus_cli.imports.rules.conversation import ForeignConversation

_NOTHING_NEW = "Everything is in the log already; nothing was changed."
_NOTHING_ELSE = "Everything else is in the log already; nothing was changed."
_EACH = "with each of these personas "


@dataclass(slots=True)
class ImportReport:
    """The amounts of an import.

    ``is_dry`` marks a dry run, which changes nothing. ``known`` counts the messages that the log had already, ``off``
    those on other branches than the one a conversation ended with, ``purged`` those that were purged
    here and stay so.
    """

    is_dry: bool
    conversations: int = 0
    messages: int = 0
    branched: int = 0
    off: int = 0
    attachments: int = 0
    lost_attachments: int = 0
    known: int = 0
    added_conversations: int = 0
    continued: int = 0
    switched: int = 0
    added_messages: int = 0
    redone: int = 0
    redone_messages: int = 0
    purged: int = 0
    first: datetime | None = None
    last: datetime | None = None
    sources: Counter[str] = field(default_factory=Counter)
    personas: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    guesses: Counter[str] = field(default_factory=Counter)

    def count(self, persona: str, conversation: ForeignConversation, attachments: int) -> None:
        """Count a conversation that was read with so many attachments."""
        self.conversations += 1
        self.messages += len(conversation.messages)
        off = len(conversation.messages) - len(conversation.live)
        self.branched += off > 0
        self.off += off
        self.attachments += attachments
        self.sources[conversation.source] += 1
        self.personas[persona] += 1
        self.guesses.update(conversation.guesses)
        for each in conversation.messages:
            if each.timestamp is not None:
                self.first = min(self.first or each.timestamp, each.timestamp)
                self.last = max(self.last or each.timestamp, each.timestamp)

    def add(self, added: Added) -> None:
        """Count conversations that were stored, the last ones that were read."""
        self.added_conversations += added.conversations
        self.continued += added.continued
        self.switched += added.switched
        self.added_messages += added.messages
        self.redone += added.redone
        self.redone_messages += added.redone_messages
        self.purged += added.purged
        if added.refused:
            self.skipped["conversation that the log cannot hold"] += added.refused
        self.known = self.messages - self.added_messages

    def refuse_nothing(self, paths: Sequence[Path]) -> None:
        """Refuse files that hold something, but no message.

        Raises:
            ImportFormatError: no message was found, and something was left out.
        """
        if self.messages or not self.skipped:
            return
        holding = f"{paths[0]} holds no message" if len(paths) == 1 else f"These {len(paths):,} paths hold no message"
        raise ImportFormatError(
            f"{holding} that can be imported: {enumerated([*self._left_out()])}; docs/moving.md tells what is taken."
        )

    def text(self) -> str:
        """Return the report for the user."""
        lines = [self._found(), *self._facts(), self._outcome()]
        return "\n".join(filter(None, lines))

    def as_json(self) -> dict[str, object]:
        """Return the report for a program."""
        return {
            "dry_run": self.is_dry,
            "conversations": self.conversations,
            "messages": self.messages,
            "branched_conversations": self.branched,
            "messages_on_other_branches": self.off,
            "attachments": self.attachments,
            "missing_attachments": self.lost_attachments,
            "first": timestamps.to_text(self.first) if self.first else None,
            "last": timestamps.to_text(self.last) if self.last else None,
            "sources": dict(self.sources),
            "personas": dict(self.personas),
            "skipped": dict(self.skipped),
            "guesses": [*self.guesses],
            "known_messages": self.known,
            "new_conversations": self.added_conversations,
            "continued_conversations": self.continued,
            "switched_conversations": self.switched,
            "new_messages": self.added_messages,
            "imports_redone": self.redone,
            "purged_messages": self.purged,
        }

    def _found(self) -> str:
        if not self.conversations:
            return "No conversation was found."
        amount = f"{counted(self.conversations, 'conversation')}, {counted(self.messages, 'message')}"
        span = ""
        if self.first and self.last:
            span = f", {timestamps.local(self.first):%Y-%m-%d} to {timestamps.local(self.last):%Y-%m-%d}"
        return f"Found {amount}{span} ({enumerated([*self.sources])})."

    def _facts(self) -> list[str]:
        facts = []
        if self.off:
            facts.append(
                f"{counted(self.branched, 'conversation')} with branches: the log keeps {counted(self.off, 'message')} "
                "of branches that were left; they stay out of context."
            )
        if self.switched:
            facts.append(f"{counted(self.switched, 'thread')} without new messages now on another branch.")
        if self.attachments:
            facts.append(f"{counted(self.attachments, 'attachment')}.")
        if self.lost_attachments:
            facts.append(f"{counted(self.lost_attachments, 'attachment')} missing from the export; messages name them.")
        if self.redone_messages > self.known:
            facts.append(
                "The import that was undone is redone as a whole: "
                f"{counted(self.redone_messages, 'message')}, also of conversations that are not in these files."
            )
        if self.purged:
            facts.append(f"{counted(self.purged, 'message')} {self._fate_of_purged()}.")
        return [*facts, *(f"Skipped: {each}." for each in self._left_out()), *self.guesses]

    def _left_out(self) -> Iterator[str]:
        yield from (f"{reason} ({number:,})" for reason, number in self.skipped.most_common())

    def _fate_of_purged(self) -> str:
        if self.is_dry:
            return f"{'was' if self.purged == 1 else 'were'} purged before and would not be brought back"
        return "was purged and stays purged" if self.purged == 1 else "were purged and stay purged"

    def _outcome(self) -> str:
        if self.is_dry:
            new = self.messages - self.known
            there = self.known - self.purged
            return f"Of the messages {there:,} are in the log already and {new:,} are new. Nothing was changed."
        if not self.added_messages:
            if self.redone:
                return f"The import was undone and is redone ({counted(self.redone, 'operation')})."
            outcome = "There are no new messages." if self.switched else _NOTHING_ELSE if self.purged else _NOTHING_NEW
            return outcome if self.conversations else ""
        parts = [
            f"{counted(self.added_messages, 'new message')} in {counted(self.added_conversations, 'new thread')}",
            f"{counted(self.continued, 'thread')} continued" if self.continued else "",
        ]
        return (
            f"Imported {' and '.join(filter(None, parts))}, for {enumerated([*self.personas])}. /search finds them, "
            f"/thread TITLE opens one, /context undo {_EACH if len(self.personas) > 1 else ''}takes the import back."
        )
