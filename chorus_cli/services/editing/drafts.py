"""Letting the user change a text in an editor, without losing it whatever the editor does."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chorus_cli.core.errors import EditorError
from chorus_cli.core.settings.jsonc_reader import BYTE_ORDER_MARK
from chorus_cli.services.cancellation import run_to_completion
from chorus_cli.storage.files import drafts

if TYPE_CHECKING:
    from pathlib import Path

    from chorus_cli.ports import Clock, Editor

_AT_ONCE_SECONDS = 2.0
_RETURNED_AT_ONCE = (
    "The editor returned at once; if it opens a window of its own, have it wait: "
    "code --wait, subl -w, gvim -f, zed --wait."
)
_ENDED = "The editor was ended along with the chat."


@dataclass(frozen=True, slots=True)
class Edited:
    """A text before and after the user had it in the editor, and the draft at ``path`` that holds it.

    ``doubt`` is a sentence when the user may not have meant to leave it at that, and is to be asked. ``may_be_open``
    says that the editor came back so soon that its window may be open still, or was ended with what it had not saved.
    """

    path: Path
    original: str
    text: str
    doubt: str = ""
    may_be_open: bool = False

    @property
    def changed(self) -> bool:
        """Whether the text is another than at first, be it by an end of line."""
        return self.text != self.original


@dataclass(slots=True)
class Editing:
    """Has texts edited by way of drafts in ``folder``; ``run`` is the process that they belong to while it lives."""

    editor: Editor
    folder: Path
    clock: Clock
    run: str = ""
    _is_ended: bool = field(default=False, init=False)

    async def edit(self, name: str, text: str, line: int | None = None) -> Edited:
        """Open ``text`` in the editor, in a draft whose name ends in ``name``, and return what has become of it.

        It is opened at ``line``, counted from 1, if that is given. If the caller is cancelled meanwhile, the editor is
        ended and waited for, and the draft is kept.

        Raises:
            EditorError: no editor was started, or the draft cannot be written or read back.
        """
        path = drafts.create(self.folder, name, text, self.run)
        try:
            complaint, may_be_open = await self._visit(path, line)
        except EditorError:
            drafts.delete(path)
            raise
        return _read(Edited(path, text, text), complaint, may_be_open=may_be_open)

    async def edit_again(self, edited: Edited, line: int | None = None) -> Edited:
        """Open the same draft once more, at ``line`` if that is given, and return what has become of the original.

        Raises:
            EditorError: no editor was started, or the draft cannot be read back; it is kept.
        """
        try:
            complaint, may_be_open = await self._visit(edited.path, line)
        except EditorError as error:
            raise EditorError(f"{error} Your text is kept in {edited.path}.") from error
        return _read(edited, complaint, may_be_open=may_be_open)

    def end(self) -> None:
        """End the editor that is open, if one is: whether what it saved shall be used is doubtful then."""
        self._is_ended = True
        self.editor.end()

    def finish(self, edited: Edited) -> None:
        """Delete the draft, once what it holds is stored or given up."""
        drafts.delete(edited.path)

    async def _visit(self, path: Path, line: int | None) -> tuple[str, bool]:
        """Have the editor open a draft; return what it complains of, and whether it may only have opened a window."""
        began = self.clock.monotonic()
        self._is_ended = False
        complaint, cancelled = await run_to_completion(self.editor.open(path, line), self.end)
        if cancelled:
            raise asyncio.CancelledError
        if self._is_ended:
            return complaint or _ENDED, True
        is_quick = self.clock.monotonic() - began < _AT_ONCE_SECONDS
        return complaint, is_quick and not complaint and not self.editor.stays_in_terminal()


def _read(before: Edited, complaint: str, *, may_be_open: bool) -> Edited:
    text = drafts.read(before.path)
    if not before.original.startswith(BYTE_ORDER_MARK):
        # Some editors put one there; it is no part of the text.
        text = text.removeprefix(BYTE_ORDER_MARK)
    may_change = may_be_open and text == before.text
    doubt = complaint or (_RETURNED_AT_ONCE if may_change else "")
    return Edited(before.path, before.original, text, doubt, may_be_open=may_change)
