"""Input that was typed and not sent: it comes back to the prompt, after an error, a signal or a crash too."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from chorus_cli.core.errors import StorageError
from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.core.text.command_signs import before_private, unescaped_line
from chorus_cli.editing.rows import outbox_rows
from chorus_cli.editing.rows.outbox_rows import Left, State, Unsaid
from chorus_cli.storage.drafts import KEPT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from chorus_cli.machine.ports import Clock
    from chorus_cli.storage.store import Store

_HELD_SECONDS = 3.0
"""How much typing at the prompt a crash may lose, but for the time that the disk takes."""

_UNKEPT = "Until that is mended, what you type and do not send is lost if the chat is killed."


class UnsentInput:
    """Text that was typed and not sent: ``text`` is put into the next prompt, also of the next run.

    ``gives_way`` says that a command may replace it. Input is kept in rows of ``run`` while it is typed and when a
    signal interrupts it, but not the lines that are meant for a private chat. ``rescue`` keeps a record in a file, and
    returns that, when no row can be written. ``sending`` is a line that is no longer at the prompt, and not stored yet.
    """

    def __init__(
        self,
        store: Store,
        run: str,
        clock: Clock,
        is_alive: Callable[[str], bool],
        rescue: Callable[[Mapping[str, str]], Path | None],
        held_seconds: float = _HELD_SECONDS,
    ) -> None:
        self.text = ""
        self.gives_way = False
        self.sending = ""
        self._store = store
        self._run = run
        self._clock = clock
        self._is_alive = is_alive
        self._rescue = rescue
        self._tell: Callable[[str], None] = _untold
        self._told = self._obstacle = ""
        self._put_off: Unsaid | None = None
        self._newest = ("", "")
        self._held_seconds = held_seconds
        self._timer: asyncio.TimerHandle | None = None
        self._held: tuple[Unsaid, ...] = ()
        self._writing: asyncio.Future[None] | None = None

    def tell_of_failures(self, tell: Callable[[str], None]) -> None:
        """Have ``tell`` called with a sentence when the line being typed cannot be kept."""
        self._tell = tell

    async def keep(self, slug: str, typed: str) -> str:
        """Keep input to a persona for the next run, unless it is blank; return a sentence if it is in no row."""
        self.sending = ""
        await self.hold(slug, typed)
        kept = "\n".join(each.content for each in _texts(slug, "", typed))
        if self._obstacle and kept:
            return self._rescued(slug, kept)
        self.settle()
        return ""

    def _rescued(self, slug: str, kept: str) -> str:
        path = self._rescue({"persona": slug, "role": "user", "content": kept, "error": self._obstacle})
        where = f"is kept in {path}" if path else f"could not be kept: {kept}"
        return f"{self._obstacle} What you had typed {where}"

    def hold(self, slug: str, typed: str) -> asyncio.Future[None]:
        """Keep input that waits to be sent, in place of what was held before; it is safe when the result is there."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._newest = slug, typed
        return self._put(slug, typed)

    def send(self, slug: str, line: str, behind: str) -> None:
        """Keep a line that has left the prompt until `release`, with the input ``behind`` it.

        A line alone of which nothing is held yet is kept as by `hold_soon`: most lines are stored before.
        """
        self.sending = line
        if not line or behind or self._held:
            self.hold(slug, behind)
        else:
            self.hold_soon(slug, "")

    def release(self) -> None:
        """Keep no longer the line that was sent: it is stored, or the next prompt begins with it."""
        if self.sending:
            self.sending = ""
            slug, behind = self._newest
            self._put(slug, joined(self.text, behind))

    def hold_soon(self, slug: str, typed: str) -> None:
        """Keep input that is being typed, as `hold` does, within seconds; of many calls only the last one counts."""
        self._newest = (slug, typed)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._held_seconds, self._hold_newest)

    def _hold_newest(self) -> None:
        self.hold(*self._newest).add_done_callback(self._tell_of_obstacle)

    def _tell_of_obstacle(self, _held: asyncio.Future[None]) -> None:
        told, self._told = self._told, self._obstacle
        if self._told not in {"", told}:
            self._tell(f"{self._told} {_UNKEPT}")

    def _put(self, slug: str, typed: str) -> asyncio.Future[None]:
        put_off = (self._put_off,) if self._put_off else ()
        texts = (*put_off, *_texts(slug, self.sending, typed))
        if texts != self._held or self._obstacle or self._writing is None:
            self._held = texts
            self._writing = asyncio.ensure_future(self._write(texts))
        return self._writing

    async def _write(self, texts: tuple[Unsaid, ...]) -> None:
        try:
            await self._store.write(outbox_rows.hold, self._run, texts, self._clock.now())
        except StorageError as error:
            self._obstacle = str(error)
        else:
            self._obstacle = ""

    async def take_up(self, slug: str, stored: str = "") -> int:
        """Put the newest input that was kept for a persona into the prompt.

        ``stored`` is the message whose reply ended with its process: it was sent, even if it still is in a row.
        Return the number of the other texts of processes that have ended; what is too old is deleted.
        """
        try:
            left = await self._store.read(outbox_rows.left_by_ended, self._is_alive)
        except StorageError:
            # A table that cannot be read must not prevent the chat.
            return 0
        now = self._clock.now()
        if expired := [each.id for each in left if each.at < now - KEPT]:
            with suppress(StorageError):
                await self._store.write(outbox_rows.drop, expired)
        left = tuple(each for each in left if each.at >= now - KEPT)
        newest = _newest(left, slug)
        if newest:
            text = "\n".join(each.text.content for each in newest if not _is_stored(each.text, stored))
            self._held = _texts(slug, "", text)
            # Where nothing can be written, the text is at the prompt all the same.
            with suppress(StorageError):
                if not await self._store.write(outbox_rows.claim, newest, self._run, self._held, now):
                    self._held, text = (), ""
            self.text = text
        return len(left) - len(newest)

    def put_off(self, slug: str) -> None:
        """Have the input to a persona that was taken up wait for `bring_back`, not for the next prompt."""
        if self.text:
            self._put_off = Unsaid(slug, self.text, State.WAITING)
            self.text = ""

    def is_put_off(self, slug: str) -> bool:
        """Return whether input to a persona waits for `bring_back`, and nothing else for the next prompt."""
        return self._put_off is not None and self._put_off.persona == slug and not self.text

    def bring_back(self) -> None:
        """Put the input that waits into the next prompt."""
        if self._put_off is not None:
            slug, self.text, _ = self._put_off
            self._put_off = None
            self.hold(slug, self.text)

    def give_back(self) -> None:
        """Put the line that was sent and is not stored into the next prompt, unless it has a text already."""
        self.text = self.text or self.sending

    def settle(self) -> None:
        """Forget the input that was put into the prompt: the user has it, or it is kept anew."""
        self.text, self.gives_way = "", False

    async def written(self) -> None:
        """Wait until every row is written or deleted."""
        if self._writing is not None:
            await self._writing


def joined(line: str, behind: str) -> str:
    """Return a line that was sent with the input behind it, on a line of its own."""
    return f"{line}\n{behind}" if line and behind else line or behind


def _texts(slug: str, sending: str, typed: str) -> tuple[Unsaid, ...]:
    """Return what is kept of a line that was sent and of the input behind it: none of it that is private or blank."""
    sent = before_private(sending)
    behind = before_private(typed) if sent == sending else ""
    texts = (
        Unsaid(slug, cleaned_input(sent)[0], State.SENT),
        Unsaid(slug, cleaned_input(behind)[0], State.TYPED),
    )
    return tuple(each for each in texts if each.content.strip())


def _newest(left: Sequence[Left], slug: str) -> tuple[Left, ...]:
    """Return the newest texts to a persona: a message, or all that a prompt held."""
    own = [each for each in left if each.text.persona == slug]
    if not own or own[-1].text.state is State.WAITING:
        return tuple(own[-1:])
    return tuple(each for each in own if each.run == own[-1].run and each.text.state is not State.WAITING)


def _is_stored(text: Unsaid, stored: str) -> bool:
    """Return whether a line that was sent is the message ``stored``, which has no backslashes before at signs."""
    sent = unescaped_line(text.content.strip())
    return text.state is State.SENT and sent.replace("\\@", "@") == stored.strip().replace("\\@", "@")


def _untold(_sentence: str) -> None:
    """Leave a failure untold: nobody is there yet."""
