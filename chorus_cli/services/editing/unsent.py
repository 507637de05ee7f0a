"""Messages and lines that are not sent yet, kept as drafts: those that wait, and the line being typed."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import EditorError
from chorus_cli.core.text.command_signs import before_private, unescaped_line
from chorus_cli.core.text.surrogates import cleaned_input
from chorus_cli.storage.files import drafts

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from pathlib import Path

    from chorus_cli.ports import Clock

_HELD_SECONDS = 3.0
"""How much typing at the prompt a crash may lose, but for the time that the disk takes."""

_SENT = "sent-"


class UnsentDrafts:
    """Messages that are not sent yet, as drafts in ``folder`` that belong to the process ``run`` while it lives.

    Without a folder they are in memory only.
    """

    def __init__(self, folder: Path | None, run: str) -> None:
        self._folder = folder
        self._run = run

    def keep(self, slug: str, text: str) -> Path | None:
        """Write a message to a persona into a draft, and return its path; ``None`` if it is not written."""
        if self._folder is not None:
            with suppress(EditorError):
                return drafts.create(self._folder, _input_name(slug), cleaned_input(text)[0], self._run)
        return None

    def drop(self, draft: Path | None) -> None:
        """Delete a draft, if there is one: its message was sent, or the user has it again."""
        if draft is not None:
            drafts.delete(draft)


class _PutOff(NamedTuple):
    """Input to a persona that waits for another prompt than the next one, and the draft at ``path`` that holds it."""

    slug: str
    text: str
    path: Path | None


class _Input(NamedTuple):
    """Input to a persona that a draft holds; ``is_sent`` says that its first line has left the prompt."""

    slug: str
    text: str
    is_sent: bool = False

    @property
    def name(self) -> str:
        """The end of the name of its draft."""
        return f"{_SENT if self.is_sent else ''}{_input_name(self.slug)}"

    def has_text_of(self, other: _Input) -> bool:
        """Return whether another input is the same, but for the place of its first line."""
        return self[:2] == other[:2]


_NOTHING = _Input("", "")


class UnsentInput:
    """Text that was typed and not sent: ``text`` is put into the next prompt, also of the next run.

    ``gives_way`` says that a command may replace it. Input is kept as a draft in ``folder``, named for ``run``, while
    it is typed and when a signal interrupts it; without a folder it is not kept. Neither are the lines that are meant
    for a private chat. ``sending`` is a line that is no longer at the prompt, and not stored yet; the name of its draft
    says so.
    """

    def __init__(
        self,
        folder: Path | None,
        run: str,
        clock: Clock,
        is_alive: Callable[[str], bool],
        held_seconds: float = _HELD_SECONDS,
    ) -> None:
        self.text = ""
        self.gives_way = False
        self.folder = folder
        self._run = run
        self._clock = clock
        self._is_alive = is_alive
        self._put_off: _PutOff | None = None
        self._held: Path | None = None
        self._held_input = _NOTHING
        self._newest = self._behind = ("", "")
        self.sending = ""
        self._held_seconds = held_seconds
        self._timer: asyncio.TimerHandle | None = None
        self._writing = ThreadPoolExecutor(max_workers=1, thread_name_prefix="unsent")

    def keep(self, slug: str, typed: str) -> None:
        """Keep input to a persona for the next run, unless it is blank."""
        if self.folder is None:
            return
        self.sending = ""
        text, _ = cleaned_input(before_private(typed))
        # The terminal may be gone, so there is no place to report an error.
        with suppress(EditorError):
            if text.strip():
                drafts.create(self.folder, _input_name(slug), text, self._run)
            self.settle()
            # The loop may be about to end, so it is waited for.
            self.hold(slug, "").result()

    def hold(self, slug: str, typed: str) -> Future[None]:
        """Keep input that waits to be sent as a draft, which replaces the one held before; blank input needs none.

        The draft is written in a thread, one after the other; it is safe when the result is there.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._newest = self._behind = slug, typed
        return self._writing.submit(self._hold, _input(slug, self.sending, typed))

    def send(self, slug: str, line: str, behind: str) -> Future[None] | None:
        """Keep a line that has left the prompt as a draft until `release`, with the input ``behind`` it.

        Without such input that is done as by `hold_soon`: most lines are stored before. Without a line it is `hold`.
        """
        self.sending = line
        if line and not behind:
            self._writing.submit(self._mark, _input(slug, line, ""))
            self.hold_soon(slug, "")
            self._behind = slug, ""
            return None
        return self.hold(slug, behind)

    def release(self) -> None:
        """Keep no longer the line that was sent: it is stored, or the next prompt begins with it."""
        if self.sending:
            self.sending = ""
            slug, behind = self._behind
            self._writing.submit(self._hold, _input(slug, "", joined(self.text, behind)))

    def hold_soon(self, slug: str, typed: str) -> None:
        """Keep input that is being typed, as `hold` does, within seconds; of many calls only the last one counts."""
        if self.folder is None:
            return
        self._newest = (slug, typed)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._held_seconds, self._hold_newest)

    def _hold_newest(self) -> None:
        self.hold(*self._newest)

    def _hold(self, wanted: _Input) -> None:
        if wanted == self._held_input or self.folder is None:
            return
        if self._held is not None and wanted.has_text_of(self._held_input):
            self._mark(wanted)
            return
        before = self._held
        # Without a draft the input only fails to outlive a crash.
        with suppress(EditorError):
            self._held = drafts.create(self.folder, wanted.name, wanted.text, self._run) if wanted.text else None
            self._held_input = wanted
            if before is not None:
                drafts.delete(before)

    def _mark(self, wanted: _Input) -> None:
        """Have the name of the draft say whether its line is at the prompt, if it holds that text."""
        if self._held is not None and wanted.has_text_of(self._held_input):
            self._held = drafts.renamed(self._held, self._held_input.name, wanted.name)
            self._held_input = wanted

    def take_up(self, slug: str, stored: str = "") -> tuple[Path, ...]:
        """Put the newest input that was kept for a persona into the prompt.

        ``stored`` is the message whose reply ended with its process: it was sent, even if it still is in the draft.
        Return the other unused drafts of processes that have ended, the newest last.
        """
        if self.folder is None:
            return ()
        try:
            kept = drafts.kept(self.folder, self._clock.now(), self._is_alive)
        except OSError:
            # A folder that cannot be read must not prevent the chat.
            return ()
        newest = next((path for path in reversed(kept) if path.name.endswith(f"-{_input_name(slug)}")), None)
        if newest is None:
            return kept
        others = tuple(path for path in kept if path != newest)
        try:
            claimed = drafts.claimed(newest, self._run)
        except FileNotFoundError:
            # Another start was first.
            return others
        try:
            text = drafts.read(claimed)
        except EditorError:
            return (*others, claimed)
        self._take(slug, claimed, text, stored)
        return others

    def _take(self, slug: str, draft: Path, text: str, stored: str) -> None:
        """Put the text of a draft into the prompt, without the line that was sent and is ``stored``."""
        sent = _Input(slug, text, is_sent=True)
        if not draft.name.endswith(f"-{sent.name}"):
            self.text = text
            self._adopt(slug, draft, text)
            return
        self._held, self._held_input = draft, sent
        self.text = _without(text, stored)
        self._hold(_input(slug, "", self.text))

    def put_off(self, slug: str) -> None:
        """Have the input to a persona that was taken up wait for `bring_back`, as a draft, not for the next prompt."""
        if self.text:
            self._put_off = _PutOff(slug, self.text, self._held)
            self.text = ""
            self._held, self._held_input = None, _NOTHING

    def is_put_off(self, slug: str) -> bool:
        """Return whether input to a persona waits for `bring_back`, and nothing else for the next prompt."""
        return self._put_off is not None and self._put_off.slug == slug and not self.text

    def bring_back(self) -> None:
        """Put the input that waits into the next prompt."""
        if self._put_off is not None:
            slug, self.text, path = self._put_off
            self._put_off = None
            self._writing.submit(self._adopt, slug, path, self.text)

    def _adopt(self, slug: str, path: Path | None, text: str) -> None:
        before = self._held
        self._held, self._held_input = path, _Input(slug, text)
        if before is not None:
            drafts.delete(before)

    def give_back(self) -> None:
        """Put the line that was sent and is not stored into the next prompt, unless it has a text already."""
        self.text = self.text or self.sending

    def settle(self) -> None:
        """Forget the input that was put into the prompt: the user has it, or it is kept anew."""
        self.text, self.gives_way = "", False

    async def written(self) -> None:
        """Wait until every draft is written or deleted."""
        if self.folder is not None:
            await asyncio.wrap_future(self._writing.submit(_all_before_is_done))


def _all_before_is_done() -> None:
    """Do nothing, in a thread that does one thing after the other."""


def _input(slug: str, sending: str, typed: str) -> _Input:
    """Return what a draft must hold of a line that was sent and of the input behind it; nothing if both are blank."""
    text, _ = cleaned_input(before_private(joined(sending, typed)))
    return _Input(slug, text, is_sent=bool(sending)) if text.strip() else _NOTHING


def _without(text: str, stored: str) -> str:
    """Return input without the message at its beginning, if that is ``stored``; else all of it."""
    wanted, lines = stored.strip(), text.lstrip().split("\n")
    count = wanted.count("\n") + 1
    sent = unescaped_line("\n".join(lines[:count]).strip())
    # What was stored has no backslashes before at signs.
    if not wanted or sent.replace("\\@", "@") != wanted.replace("\\@", "@"):
        return text
    return "\n".join(lines[count:]).lstrip("\n")


def joined(line: str, behind: str) -> str:
    """Return a line that was sent with the input behind it, on a line of its own."""
    return f"{line}\n{behind}" if line and behind else line or behind


def _input_name(slug: str) -> str:
    return f"unsent-{slug}.md"
