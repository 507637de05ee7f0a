"""Input that was typed and not sent: it comes back to the prompt, after an error, a signal or a crash too."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.text.command_signs import unescaped_line
from chorus_cli.editing.service.unsent_drafts import NOTHING, HeldDraft, Input, claim_newest, input_to_keep, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future
    from pathlib import Path

    from chorus_cli.machine.ports import Clock

_HELD_SECONDS = 3.0
"""How much typing at the prompt a crash may lose, but for the time that the disk takes."""

_UNKEPT = "Until that is mended, what you type and do not send is lost if the chat is killed."


class _PutOff(NamedTuple):
    """Input to a persona that waits for another prompt than the next one, and the draft at ``path`` that holds it."""

    slug: str
    text: str
    path: Path | None


class UnsentInput:
    """Text that was typed and not sent: ``text`` is put into the next prompt, also of the next run.

    ``gives_way`` says that a command may replace it. Input is kept as a draft in ``folder``, named for ``run``, while
    it is typed and when a signal interrupts it; without a folder it is not kept. Neither are the lines that are meant
    for a private chat. ``rescue`` keeps a record in another file, and returns that, when no draft can be written.
    ``sending`` is a line that is no longer at the prompt, and not stored yet; the name of its draft says so.
    """

    def __init__(
        self,
        folder: Path | None,
        run: str,
        clock: Clock,
        is_alive: Callable[[str], bool],
        rescue: Callable[[Mapping[str, str]], Path | None],
        held_seconds: float = _HELD_SECONDS,
    ) -> None:
        self.text = ""
        self.gives_way = False
        self.sending = ""
        self._folder = folder
        self._run = run
        self._clock = clock
        self._is_alive = is_alive
        self._rescue = rescue
        self._tell: Callable[[str], None] = _untold
        self._told = ""
        self._put_off: _PutOff | None = None
        self._newest = self._behind = ("", "")
        self._held_seconds = held_seconds
        self._timer: asyncio.TimerHandle | None = None
        # Only its one thread uses the draft, so that of all changes the last one stays.
        self._writing = ThreadPoolExecutor(max_workers=1, thread_name_prefix="unsent")
        self._draft = HeldDraft(folder, run)

    def tell_of_failures(self, tell: Callable[[str], None]) -> None:
        """Have ``tell`` called with a sentence when the line being typed cannot be kept."""
        self._tell = tell

    def keep(self, slug: str, typed: str) -> str:
        """Keep input to a persona for the next run, unless it is blank; return a sentence if that is no draft."""
        if self._folder is None:
            return ""
        self.sending = ""
        # The loop may be about to end, so it is waited for.
        self.hold(slug, typed).result()
        kept = input_to_keep(slug, "", typed)
        if self._draft.obstacle:
            return self._rescued(kept, self._draft.obstacle)
        self._writing.submit(self._draft.let_go).result()
        self.settle()
        return ""

    def _rescued(self, kept: Input, error: str) -> str:
        path = self._rescue({"persona": kept.slug, "role": "user", "content": kept.text, "error": error})
        where = f"is kept in {path}" if path else f"could not be kept: {kept.text}"
        return f"{error} What you had typed {where}"

    def hold(self, slug: str, typed: str) -> Future[None]:
        """Keep input that waits to be sent as a draft, which replaces the one held before; blank input needs none.

        The draft is written in a thread, one after the other; it is safe when the result is there.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._newest = self._behind = slug, typed
        return self._writing.submit(self._draft.hold, input_to_keep(slug, self.sending, typed))

    def send(self, slug: str, line: str, behind: str) -> Future[None] | None:
        """Keep a line that has left the prompt as a draft until `release`, with the input ``behind`` it.

        Without such input that is done as by `hold_soon`: most lines are stored before. Without a line it is `hold`.
        """
        self.sending = line
        if line and not behind:
            self._writing.submit(self._draft.mark, input_to_keep(slug, line, ""))
            self.hold_soon(slug, "")
            self._behind = slug, ""
            return None
        return self.hold(slug, behind)

    def release(self) -> None:
        """Keep no longer the line that was sent: it is stored, or the next prompt begins with it."""
        if self.sending:
            self.sending = ""
            slug, behind = self._behind
            self._writing.submit(self._draft.hold, input_to_keep(slug, "", joined(self.text, behind)))

    def hold_soon(self, slug: str, typed: str) -> None:
        """Keep input that is being typed, as `hold` does, within seconds; of many calls only the last one counts."""
        if self._folder is None:
            return
        self._newest = (slug, typed)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._held_seconds, self._hold_newest)

    def _hold_newest(self) -> None:
        asyncio.wrap_future(self.hold(*self._newest)).add_done_callback(self._tell_of_obstacle)

    def _tell_of_obstacle(self, _held: asyncio.Future[None]) -> None:
        told, self._told = self._told, self._draft.obstacle
        if self._told not in {"", told}:
            self._tell(f"{self._told} {_UNKEPT}")

    def take_up(self, slug: str, stored: str = "") -> tuple[Path, ...]:
        """Put the newest input that was kept for a persona into the prompt.

        ``stored`` is the message whose reply ended with its process: it was sent, even if it still is in the draft.
        Return the other unused drafts of processes that have ended, the newest last.
        """
        if self._folder is None:
            return ()
        path, held, others = claim_newest(self._folder, slug, self._run, self._clock.now(), self._is_alive)
        if path is not None:
            self.text = _without(held.text, stored) if held.is_sent else held.text
            self._writing.submit(self._draft.adopt, path, held)
            self._writing.submit(self._draft.hold, input_to_keep(slug, "", self.text)).result()
        return others

    def put_off(self, slug: str) -> None:
        """Have the input to a persona that was taken up wait for `bring_back`, as a draft, not for the next prompt."""
        if self.text:
            self._put_off = _PutOff(slug, self.text, self._writing.submit(self._draft.let_go).result())
            self.text = ""

    def is_put_off(self, slug: str) -> bool:
        """Return whether input to a persona waits for `bring_back`, and nothing else for the next prompt."""
        return self._put_off is not None and self._put_off.slug == slug and not self.text

    def bring_back(self) -> None:
        """Put the input that waits into the next prompt."""
        if self._put_off is not None:
            slug, self.text, path = self._put_off
            self._put_off = None
            self._writing.submit(self._draft.adopt, path, Input(slug, self.text) if path else NOTHING)

    def give_back(self) -> None:
        """Put the line that was sent and is not stored into the next prompt, unless it has a text already."""
        self.text = self.text or self.sending

    def settle(self) -> None:
        """Forget the input that was put into the prompt: the user has it, or it is kept anew."""
        self.text, self.gives_way = "", False

    async def written(self) -> None:
        """Wait until every draft is written or deleted."""
        if self._folder is not None:
            await asyncio.wrap_future(self._writing.submit(_all_before_is_done))


def _untold(_sentence: str) -> None:
    """Leave a failure untold: nobody is there yet."""


def _all_before_is_done() -> None:
    """Do nothing, in a thread that does one thing after the other."""


def _without(text: str, stored: str) -> str:
    """Return input without the message at its beginning, if that is ``stored``; else all of it."""
    wanted, lines = stored.strip(), text.lstrip().split("\n")
    count = wanted.count("\n") + 1
    sent = unescaped_line("\n".join(lines[:count]).strip())
    # What was stored has no backslashes before at signs.
    if not wanted or sent.replace("\\@", "@") != wanted.replace("\\@", "@"):
        return text
    return "\n".join(lines[count:]).lstrip("\n")
