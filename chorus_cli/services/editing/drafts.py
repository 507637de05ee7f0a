"""Texts of the user that are not sent or stored yet, kept as drafts: in the editor, or typed at the prompt."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import EditorError
from chorus_cli.core.settings.jsonc_reader import BYTE_ORDER_MARK
from chorus_cli.core.text.command_signs import before_private
from chorus_cli.core.text.surrogates import cleaned_input
from chorus_cli.services.cancellation import run_to_completion
from chorus_cli.storage.files import drafts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from chorus_cli.ports import Clock, Editor

_AT_ONCE_SECONDS = 2.0
_RETURNED_AT_ONCE = (
    "The editor returned at once; if it opens a window of its own, have it wait: "
    "code --wait, subl -w, gvim -f, zed --wait."
)
_ENDED = "The editor was ended along with the chat."


class Edited(NamedTuple):
    """A text before and after the user had it in the editor, and the draft at ``path`` that holds it.

    ``doubt`` is a sentence if the user must be asked whether the text is final. ``may_be_open`` says that the editor
    returned so soon that its window may still be open, or was ended with changes that it had not saved.
    """

    path: Path
    original: str
    text: str
    doubt: str = ""
    may_be_open: bool = False

    @property
    def changed(self) -> bool:
        """Whether the text differs from the original, if only by a line end."""
        return self.text != self.original


class Editing:
    """Opens texts in the editor as drafts in a folder, owned by the process ``run`` while it lives.

    ``folder`` returns the folder; it is called for each draft.
    """

    def __init__(self, editor: Editor, folder: Callable[[], Path], clock: Clock, run: str = "") -> None:
        self._editor = editor
        self.folder = folder
        self._clock = clock
        self._run = run
        self._is_ended = False

    async def edit(self, name: str, text: str, line: int | None = None) -> Edited:
        """Open ``text`` in the editor, as a draft whose name ends in ``name``, and return the edited text.

        The editor opens it at ``line``, counted from 1, if that is given. If the caller is cancelled, the editor is
        ended and waited for, and the draft is kept.

        Raises:
            EditorError: no editor was started, or the draft cannot be written or read back.
            HomeError: there is no folder for drafts.
        """
        path = await asyncio.to_thread(drafts.create, self.folder(), name, text, self._run)
        try:
            complaint, may_be_open = await self._visit(path, line)
        except EditorError:
            drafts.delete(path)
            raise
        return await _read(Edited(path, text, text), complaint, may_be_open=may_be_open)

    async def edit_again(self, edited: Edited, line: int | None = None) -> Edited:
        """Open the same draft again, at ``line`` if that is given, and return the original with its edited text.

        Raises:
            EditorError: no editor was started, or the draft cannot be read back; it is kept.
        """
        try:
            complaint, may_be_open = await self._visit(edited.path, line)
        except EditorError as error:
            raise EditorError(f"{error} Your text is kept in {edited.path}.") from error
        return await _read(edited, complaint, may_be_open=may_be_open)

    def end(self) -> None:
        """End the editor if one is open; its text is then used only if the user says so."""
        self._is_ended = True
        self._editor.end()

    def finish(self, edited: Edited) -> None:
        """Delete the draft, once its text is stored or given up."""
        drafts.delete(edited.path)

    async def _visit(self, path: Path, line: int | None) -> tuple[str, bool]:
        """Open a draft in the editor; return its error message, and whether it may only have opened a window."""
        began = self._clock.monotonic()
        self._is_ended = False
        complaint, cancelled = await run_to_completion(self._editor.open(path, line), self.end)
        if cancelled:
            raise asyncio.CancelledError
        if self._is_ended:
            return complaint or _ENDED, True
        is_quick = self._clock.monotonic() - began < _AT_ONCE_SECONDS
        return complaint, is_quick and not complaint and not self._editor.stays_in_terminal()


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


class UnsentInput:
    """Text that was typed and not sent: ``text`` is put into the next prompt, also of the next run.

    ``gives_way`` says that a command may replace it. Input that a signal interrupts is kept as a draft in ``folder``,
    named for ``run``; without a folder it is not kept. Neither are the lines that are meant for a private chat.
    """

    def __init__(self, folder: Path | None, run: str, clock: Clock, is_alive: Callable[[str], bool]) -> None:
        self.text = ""
        self.gives_way = False
        self.folder = folder
        self._run = run
        self._clock = clock
        self._is_alive = is_alive
        self._draft: Path | None = None
        self._held: Path | None = None
        self._held_text = ""

    def keep(self, slug: str, typed: str) -> None:
        """Keep input to a persona for the next run, unless it is blank."""
        text, _ = cleaned_input(before_private(typed))
        if text.strip() and self.folder is not None:
            # The terminal may be gone, so there is no place to report an error.
            with suppress(EditorError):
                drafts.create(self.folder, _input_name(slug), text, self._run)
                self.settle()
                self.hold(slug, "")

    def hold(self, slug: str, typed: str) -> None:
        """Keep input that waits to be sent as a draft, which replaces the one held before; blank input needs none."""
        text, _ = cleaned_input(before_private(typed))
        if text == self._held_text or self.folder is None:
            return
        before = self._held
        # Without a draft the input only fails to outlive a crash.
        with suppress(EditorError):
            self._held = drafts.create(self.folder, _input_name(slug), text, self._run) if text.strip() else None
            self._held_text = text
            if before is not None:
                drafts.delete(before)

    def take_up(self, slug: str) -> tuple[Path, ...]:
        """Put the newest input that was kept for a persona into the prompt.

        Return the other unused drafts of processes that have ended, the newest last.
        """
        if self.folder is None:
            return ()
        try:
            kept = drafts.kept(self.folder, self._clock.now(), self._is_alive)
        except OSError:
            # A folder that cannot be read must not prevent the chat.
            return ()
        draft = next((path for path in reversed(kept) if path.name.endswith(f"-{_input_name(slug)}")), None)
        if draft is not None:
            try:
                self.text = drafts.read(draft)
            except EditorError:
                return kept
            self._draft = draft
        return tuple(path for path in kept if path != draft)

    def settle(self) -> None:
        """Forget the input that was put into the prompt: the user has it, or it is kept anew."""
        self.text, self.gives_way = "", False
        if self._draft is not None:
            drafts.delete(self._draft)
            self._draft = None


async def _read(before: Edited, complaint: str, *, may_be_open: bool) -> Edited:
    text = await asyncio.to_thread(drafts.read, before.path)
    if not before.original.startswith(BYTE_ORDER_MARK):
        # Some editors add one; it is not part of the text.
        text = text.removeprefix(BYTE_ORDER_MARK)
    may_change = may_be_open and text == before.text
    doubt = complaint or (_RETURNED_AT_ONCE if may_change else "")
    return Edited(before.path, before.original, text, doubt, may_be_open=may_change)


def _input_name(slug: str) -> str:
    return f"unsent-{slug}.md"
