"""Texts in the user's editor: drafts until they are stored, and the reply when the editor has closed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import ChorusError, CommandError, EditFormatError, EditorError, JsoncError
from chorus_cli.core.json.jsonc import BYTE_ORDER_MARK
from chorus_cli.framework.replies import Question, Reply, Text
from chorus_cli.machine.notifier import run_to_completion
from chorus_cli.storage import drafts

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.machine.editor import UserEditor
    from chorus_cli.machine.ports import Clock

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

    def __init__(self, editor: UserEditor, folder: Callable[[], Path], clock: Clock, run: str = "") -> None:
        self._editor = editor
        self.folder = folder
        self._clock = clock
        self._run = run
        self._is_ended = False

    async def edit(self, name: str, text: str, line: int | None = None) -> Edited:
        """Open ``text`` in the editor, as a draft whose name ends in ``name``, and return the edited text.

        The editor opens it at ``line``, counted from 1, if that is given. If the caller is cancelled, the editor is
        ended and waited for, and the draft is kept.
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


async def _read(before: Edited, complaint: str, *, may_be_open: bool) -> Edited:
    text = await asyncio.to_thread(drafts.read, before.path)
    if not before.original.startswith(BYTE_ORDER_MARK):
        # Some editors add one; it is not part of the text.
        text = text.removeprefix(BYTE_ORDER_MARK)
    may_change = may_be_open and text == before.text
    doubt = complaint or (_RETURNED_AT_ONCE if may_change else "")
    return Edited(before.path, before.original, text, doubt, may_be_open=may_change)


@dataclass(frozen=True, slots=True)
class Refused:
    """The edited text cannot be stored, and editing it again would not help; ``reason`` is a sentence."""

    reason: str


@dataclass(frozen=True, slots=True)
class Doubtful:
    """The edited text may contain a mistake, named by ``error``; ``store_as_text`` stores it as it is."""

    error: EditFormatError
    store_as_text: Store


Store = Callable[[str], Awaitable[Reply | Refused | Doubtful]]
"""Stores the edited text and returns the reply; a ``ChorusError`` names a mistake to correct in it."""


async def answered(editing: Editing, edited: Edited, store: Store, name: str) -> Reply:
    """Store the edited text and return the reply, which names the thing edited if it stays unchanged.

    The draft is deleted once the text is stored, or if it has nothing to store.
    """
    if edited.may_be_open and not edited.changed:
        # The draft is kept because the editor may still save to it.
        return Text(f"{edited.doubt} Nothing was changed. The draft stays in {edited.path}.")
    if not edited.changed or not edited.text.strip():
        editing.finish(edited)
        nothing = "Nothing was changed: the saved text is empty." if edited.changed else "Nothing was changed."
        return Text(f"{edited.doubt} {nothing}" if edited.doubt else nothing)
    if edited.doubt:
        return Question(
            f"{edited.doubt}\nUse what was saved?",
            lambda: _stored(editing, edited, store, name),
            _kept(edited, name),
            lambda: _discarded(editing, edited, name),
        )
    return await _stored(editing, edited, store, name)


async def _stored(editing: Editing, edited: Edited, store: Store, name: str, as_text: Store | None = None) -> Reply:
    """Store the edited text with ``as_text`` if given, and with ``store`` after it was edited again."""
    try:
        outcome = await (as_text or store)(edited.text)
    except ChorusError as error:
        return _asked(editing, edited, store, name, error)
    if isinstance(outcome, Doubtful):
        store_as_text = outcome.store_as_text
        question = _asked(editing, edited, store, name, outcome.error)
        return replace(question, kept_as_text=lambda: _stored(editing, edited, store, name, store_as_text))
    if isinstance(outcome, Refused):
        raise CommandError(f"{outcome.reason} Your text is kept in {edited.path}.")
    editing.finish(edited)
    return outcome


def _asked(editing: Editing, edited: Edited, store: Store, name: str, error: ChorusError) -> Question:
    line = error.line if isinstance(error, EditFormatError | JsoncError) else None
    return Question(
        f"{str(error).removesuffix('.')}.\nEdit again?",
        lambda: _again(editing, edited, store, name, line),
        _kept(edited, name),
        lambda: _discarded(editing, edited, name),
    )


async def _again(editing: Editing, edited: Edited, store: Store, name: str, line: int | None) -> Reply:
    return await answered(editing, await editing.edit_again(edited, line), store, name)


async def _discarded(editing: Editing, edited: Edited, name: str) -> Reply:
    editing.finish(edited)
    return Text(f"{name} is unchanged; your edit was discarded.")


def _kept(edited: Edited, name: str) -> Text:
    return Text(f"{name} is unchanged; your text is kept in {edited.path}.")
