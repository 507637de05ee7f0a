"""Input that was typed and not sent: it comes back to the prompt, even after an error, a signal or a crash."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import reduce
from typing import TYPE_CHECKING

from chorus_cli.core.errors import StorageError
from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.core.text.command_signs import before_private, unescaped_line
from chorus_cli.core.time.timeline import UNSENT_KEPT
from chorus_cli.editing.rows import outbox_rows
from chorus_cli.editing.rows.outbox_rows import NO_RUN, Left, Unsaid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from chorus_cli.machine.ports import Clock
    from chorus_cli.storage.store import Store

_UNKEPT = "Until this is repaired, text that you have typed and not sent is lost if the chat is killed."


class UnsentInput:
    """Text that was typed and not sent; ``text`` is put into the next prompt, in this run or the next.

    ``gives_way`` says that "/" or a line typed ahead may replace ``text``. ``sending`` is a line that has left the
    prompt and is not stored yet. Rows of ``run`` keep the input, without lines for a private chat. If no row can be
    written, ``tell`` says so as the user types; at the end ``rescue`` writes the input to a file and returns its path.
    """

    held_seconds = 1.0
    """The longest time from a key to the write of the input, so that a crash loses little of it."""

    def __init__(
        self,
        store: Store,
        run: str,
        clock: Clock,
        is_alive: Callable[[str], bool],
        rescue: Callable[[Mapping[str, str]], Path | None],
    ) -> None:
        self.text = self.sending = ""
        self.gives_way = False
        self._store = store
        self._run = run
        self._clock = clock
        self._is_alive = is_alive
        self._rescue = rescue
        self.tell: Callable[[str], None] = lambda _sentence: None
        self._told = self._obstacle = ""
        self._put_off: tuple[Unsaid, ...] = ()
        self._newest = ("", "")
        self._timer: asyncio.TimerHandle | None = None
        self._held: tuple[Unsaid, ...] = ()
        self._writing: asyncio.Future[None] | None = None

    @property
    def is_typing(self) -> bool:
        """Whether the user has begun a text at the prompt."""
        return bool(self._newest[1])

    async def keep(self, slug: str, typed: str) -> str:
        """Keep input to a persona for the next run, unless it is blank; return a sentence if no row can be written."""
        self.sending = ""
        self.hold(slug, typed)
        await self.written()
        kept = "\n".join(each.content for each in (*self._put_off, *_texts(slug, "", typed)))
        if not self._obstacle or not kept:
            self.settle()
            return ""
        path = self._rescue({"persona": slug, "role": "user", "content": kept, "error": self._obstacle})
        where = f"is kept in {path}" if path else f"could not be kept: {kept}"
        return f"{self._obstacle} What you had typed {where}"

    def hold(self, slug: str, typed: str) -> None:
        """Replace the stored input with input that waits to be sent; `written` waits until this is done."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._newest = slug, typed
        texts = (*self._put_off, *_texts(slug, self.sending, typed))
        if texts != self._held or self._obstacle:
            self._held = texts
            self._writing = asyncio.ensure_future(self._write(texts))

    def hold_soon(self, slug: str, typed: str) -> None:
        """Store input as `hold` does, but after a second, and only the newest input of that second."""
        self._newest = slug, typed
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.held_seconds, self._hold_newest)

    def send(self, slug: str, line: str, behind: str) -> None:
        """Store a line that has left the prompt, and the input ``behind`` it; `release` deletes the line."""
        self.sending = line
        hold = self.hold if self._held or behind else self.hold_soon
        hold(slug, behind)

    def release(self) -> None:
        """Delete the row of the line that was sent: the line is in the log now, or begins the next prompt."""
        if self.sending:
            self.sending = ""
            self.hold(self._newest[0], joined(self.text, self._newest[1]))

    def _hold_newest(self) -> None:
        self.hold(*self._newest)
        if self._writing is not None:
            self._writing.add_done_callback(self._tell_of_obstacle)

    def _tell_of_obstacle(self, _held: asyncio.Future[None]) -> None:
        told, self._told = self._told, self._obstacle
        if self._told not in {"", told}:
            self.tell(f"{self._told} {_UNKEPT}")

    async def _write(self, texts: tuple[Unsaid, ...]) -> None:
        self._obstacle = ""
        try:
            await self._store.write(outbox_rows.hold, self._run, texts, self._clock.now())
        except StorageError as error:
            self._obstacle = str(error)

    async def take_up(self, slug: str, stored: str = "") -> None:
        """Read the newest input that an ended run kept, except the message ``stored``; `bring_back` shows the input."""
        try:
            left = await self._store.read(outbox_rows.left_by_ended, self._is_alive)
        except StorageError:
            # The chat begins even if the table cannot be read.
            return
        now, newest = self._clock.now(), _newest(left, slug)
        done = [
            each
            for each in left
            if (each.at < now - UNSENT_KEPT and not each.text.is_sent)
            or (each in newest and _is_stored(each.text, stored))
        ]
        back = [each for each in newest if each not in done]
        self._held = tuple(each.text for each in back)
        # The text comes to the prompt even if no row can be written.
        with suppress(StorageError):
            if done:
                await self._store.write(outbox_rows.drop, [each.id for each in done])
            if back:
                self._held = await self._store.write(outbox_rows.claim, back, self._run, now)
        self._put_off = self._held

    def put_off(self, slug: str) -> None:
        """Let the text of the next prompt wait for `bring_back`."""
        self._put_off = (*self._put_off, Unsaid(slug, cleaned_input(self.text)[0]))
        self.settle()

    def is_put_off(self, slug: str) -> bool:
        """Return whether input to a persona waits for `bring_back` while the next prompt has no other text."""
        return any(each.persona == slug for each in self._put_off) and not self.text

    def bring_back(self, slug: str) -> None:
        """Put the waiting input to a persona into the next prompt."""
        texts = [each.content for each in self._put_off if each.persona == slug]
        self.text = reduce(joined, texts, "")
        self._put_off = tuple(each for each in self._put_off if each.persona != slug)
        self.hold(slug, self.text)

    def give_back(self) -> None:
        """Put the line that was sent and is not stored into the next prompt, unless the prompt has a text already."""
        self.text = self.text or self.sending

    def hold_back(self, text: str) -> None:
        """Put lines that would have been sent next into the prompt, below the text that it has already."""
        slug = self._newest[0]
        self.text, self.sending, self.gives_way = joined(self.text, text), "", False
        self.hold(slug, self.text)
        self._newest = slug, ""

    def settle(self) -> None:
        """Forget the input for the next prompt, because it is at the prompt or stored again."""
        self.text, self.gives_way = "", False

    async def written(self) -> None:
        """Wait until every row is written or deleted."""
        if self._writing is not None:
            await self._writing


def joined(line: str, behind: str) -> str:
    """Return a sent line and the input behind it as one text; a message of several lines has no first sign doubled."""
    return f"{unescaped_line(line)}\n{unescaped_line(behind)}" if line and behind else line or behind


def _texts(slug: str, sending: str, typed: str) -> tuple[Unsaid, ...]:
    """Return the texts to keep: a line that was sent and the input behind it, without private and blank texts."""
    sent = before_private(sending)
    behind = before_private(typed) if sent == sending else ""
    texts = (Unsaid(slug, cleaned_input(sent)[0], is_sent=True), Unsaid(slug, cleaned_input(behind)[0]))
    return tuple(each for each in texts if each.content.strip())


def _newest(left: Sequence[Left], slug: str) -> tuple[Left, ...]:
    """Return the newest texts to a persona: a message that waited, or all texts of one prompt."""
    # Texts that the log refused do not come back to the prompt: the user decides about them.
    refused = [each for each in left if each.text.is_sent and each.run.startswith(NO_RUN)]
    own = [each for each in left if each.text.persona == slug and each not in refused]
    if not own or own[-1].thread_id is not None:
        return tuple(own[-1:])
    return tuple(each for each in own if each.run == own[-1].run and each.thread_id is None)


def _is_stored(text: Unsaid, stored: str) -> bool:
    """Return whether a line that was sent is the message ``stored``; backslashes before at signs do not count."""
    sent = unescaped_line(text.content.strip())
    return text.is_sent and sent.replace("\\@", "@") == stored.strip().replace("\\@", "@")
