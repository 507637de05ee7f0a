"""Opens texts in the user's editor as drafts, and stores them when the editor has closed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from chorus_cli.core.errors import ChorusError, CommandError, EditFormatError, EditorError, JsoncError
from chorus_cli.core.json.jsonc import BYTE_ORDER_MARK
from chorus_cli.framework.replies import Question, Reply, Text
from chorus_cli.machine.editor import UserEditor
from chorus_cli.machine.notifier import to_its_end
from chorus_cli.machine.ports import Clock
from chorus_cli.storage import drafts

_AT_ONCE_SECONDS = 2.0
_RETURNED_AT_ONCE = (
    "The editor returned at once. If it opens its own window, set EDITOR to a command that waits: "
    "code --wait, subl -w, gvim -f, zed --wait."
)
_ENDED = "The chat ended, and the editor with it."


class Edited(NamedTuple):
    """A text before and after the user edited it, and the ``path`` of the draft that contains it.

    If Chorus must ask the user before it uses the text, ``doubt`` is a sentence that says why. ``may_be_open`` means
    that the draft is unchanged, and that the editor may still be open or was ended by Chorus.
    """

    path: Path
    original: str
    text: str
    doubt: str = ""
    may_be_open: bool = False

    @property
    def changed(self) -> bool:
        """Whether the text differs from the original, even if only in a line end."""
        return self.text != self.original

    @property
    def kept(self) -> str:
        """The sentence that names the draft of an editor that may still be open."""
        return f"What the editor saves later is in {self.path}."


class Editing:
    """Opens drafts in the editor. Drafts are in the folder that ``folder`` returns, and belong to process ``run``."""

    def __init__(self, editor: UserEditor, folder: Callable[[], Path], clock: Clock, run: str = "") -> None:
        self._editor = editor
        self.folder = folder
        self._clock = clock
        self._run = run
        self._is_ended = False

    async def edit(self, name: str, text: str, line: int | None = None) -> Edited:
        """Open ``text`` at ``line`` in a draft whose name ends in ``name``. If cancelled, leave the draft."""
        path = await asyncio.to_thread(drafts.create, self.folder(), name, text, self._run)
        try:
            complaint, may_be_open = await self._visit(path, line)
        except EditorError:
            drafts.delete(path)
            raise
        return await _read(Edited(path, text, text), complaint, may_be_open=may_be_open)

    async def edit_again(self, edited: Edited, line: int | None = None) -> Edited:
        """Open the same draft again, at ``line`` if it is given; the result has the original of the first edit."""
        try:
            complaint, may_be_open = await self._visit(edited.path, line)
        except EditorError as error:
            raise EditorError(f"{error} Your text is kept in {edited.path}.") from error
        return await _read(edited, complaint, may_be_open=may_be_open)

    def end(self) -> None:
        """End the editor if one is open; Chorus then uses the text only if the user says so."""
        self._is_ended = True
        self._editor.end()

    def finish(self, edited: Edited) -> None:
        """Delete the draft, once its text is stored or given up."""
        drafts.delete(edited.path)

    async def _visit(self, path: Path, line: int | None) -> tuple[str, bool]:
        """Open a draft in the editor; return the editor's complaint, and whether the editor ``may_be_open``."""
        began = self._clock.monotonic()
        self._is_ended = False
        complaint = await to_its_end(self._editor.open(path, line), self.end)
        if self._is_ended:
            return complaint or _ENDED, True
        is_quick = self._clock.monotonic() - began < _AT_ONCE_SECONDS
        return complaint, is_quick and not complaint and not self._editor.stays_in_terminal()


async def _read(before: Edited, complaint: str, *, may_be_open: bool) -> Edited:
    text = await asyncio.to_thread(drafts.read, before.path)
    if not before.original.startswith(BYTE_ORDER_MARK):
        # Some editors add a byte order mark, which is not part of the text.
        text = text.removeprefix(BYTE_ORDER_MARK)
    may_change = may_be_open and text == before.text
    doubt = complaint or (_RETURNED_AT_ONCE if may_change else "")
    return Edited(before.path, before.original, text, doubt, may_be_open=may_change)


class Refused(NamedTuple):
    """The edited text cannot be stored, and editing it again would not help; ``reason`` is a sentence."""

    reason: str


Store = Callable[[str], Awaitable[Reply | Refused]]
"""Stores the edited text and returns the reply; raises a ``ChorusError`` for a mistake that the user can correct."""


async def answered(editing: Editing, edited: Edited, store: Store, name: str) -> Reply:
    """Store the edited text and return the reply; ``name`` names the edited thing if its text is not stored.

    A stored or empty draft is deleted, and an unchanged draft too unless the editor ``may_be_open``.
    """
    if edited.may_be_open and not edited.changed:
        # The draft is kept because the editor may still save to it.
        return Text(f"{edited.doubt} Nothing was changed. {edited.kept}")
    if not edited.changed or not edited.text.strip():
        editing.finish(edited)
        nothing = "Nothing was changed: the saved text is empty." if edited.changed else "Nothing was changed."
        return Text(f"{edited.doubt} {nothing}" if edited.doubt else nothing)
    draft = _Draft(editing, edited, store, name)
    if edited.doubt:
        return draft.asked(f"{edited.doubt}\nUse the saved text?", draft.stored)
    return await draft.stored()


class _Draft(NamedTuple):
    """An edited text, and the function that stores it."""

    editing: Editing
    edited: Edited
    store: Store
    name: str

    def asked(self, question: str, confirmed: Callable[[], Awaitable[Reply]]) -> Question:
        kept = Text(f"{self.name} is unchanged; your text is kept in {self.edited.path}.")
        return Question(question, confirmed, kept, self._discarded)

    async def stored(self) -> Reply:
        try:
            outcome = await self.store(self.edited.text)
        except ChorusError as error:
            return self._edited_again(error)
        if isinstance(outcome, Refused):
            raise CommandError(f"{outcome.reason} Your text is kept in {self.edited.path}.")
        self.editing.finish(self.edited)
        return outcome

    def _edited_again(self, error: ChorusError) -> Question:
        line = error.line if isinstance(error, EditFormatError | JsoncError) else None

        async def again() -> Reply:
            edited = await self.editing.edit_again(self.edited, line)
            return await answered(self.editing, edited, self.store, self.name)

        return self.asked(f"{str(error).removesuffix('.')}.\nEdit again?", again)

    async def _discarded(self) -> Reply:
        self.editing.finish(self.edited)
        return Text(f"{self.name} is unchanged; your edit was discarded.")
