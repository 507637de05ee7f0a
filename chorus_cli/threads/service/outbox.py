"""Messages that wait for the end of a reply, each a draft in a file until its turn is stored."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.editing.service.unsent_drafts import UnsentDrafts
    from chorus_cli.log.rules.attachments import Attachment
    from chorus_cli.personas.rules.target import Target


class Unsent(NamedTuple):
    """A message that is not stored yet; ``draft`` is the file of its text, ``None`` if it has none."""

    target: Target
    text: str
    draft: Path | None = None
    attachments: tuple[Attachment, ...] = ()


class Outbox:
    """The messages that wait, in the order of their sending."""

    def __init__(self, drafts: UnsentDrafts) -> None:
        self._drafts = drafts
        self._waiting: list[Unsent] = []

    def waiting(self) -> tuple[Unsent, ...]:
        """Return the messages that wait, of all threads."""
        return tuple(self._waiting)

    def waiting_in(self, thread_id: int) -> tuple[Unsent, ...]:
        """Return the messages that wait in a thread."""
        return tuple(each for each in self._waiting if each.target.thread_id == thread_id)

    async def kept(self, unsent: Unsent) -> Unsent:
        """Write a message into a draft, unless it has one.

        Raises:
            EditorError: it cannot be written.
        """
        if unsent.draft is not None:
            return unsent
        draft = await asyncio.to_thread(self._drafts.keep, unsent.target.persona.slug, unsent.text)
        return unsent._replace(draft=draft)

    def drop_draft(self, unsent: Unsent) -> Unsent:
        """Delete the draft of a message that is stored, or that the user has again."""
        if unsent.draft is None:
            return unsent
        self._drafts.drop(unsent.draft)
        return unsent._replace(draft=None)

    def add(self, unsent: Unsent) -> None:
        """Let a message wait."""
        self._waiting.append(unsent)

    def take_next(self, thread_id: int) -> Unsent | None:
        """Take the oldest message that waits in a thread, to be sent; the thread last used stays the same."""
        found = next(iter(self.waiting_in(thread_id)), None)
        if found is None:
            return None
        self._waiting.remove(found)
        return found._replace(target=found.target._replace(is_aside=True))

    def take_back(self, thread_id: int) -> str:
        """Take back the newest message that waits in a thread, and return it; empty if there is none."""
        found = next(reversed(self.waiting_in(thread_id)), None)
        if found is None:
            return ""
        self._waiting.remove(found)
        self.drop_draft(found)
        return found.text

    def forget(self, thread_id: int | None = None) -> None:
        """Let no message wait any longer, in a thread or at all; the drafts stay, and the next run offers them."""
        self._waiting = [each for each in self._waiting if thread_id not in {None, each.target.thread_id}]
