"""The reply after the user's editor has closed; a text typed there is never lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ChorusError, CommandError, EditFormatError, JsoncError
from chorus_cli.framework.replies import Question, Reply, Text

if TYPE_CHECKING:
    from chorus_cli.framework.drafts import Edited, Editing


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

    Raises:
        CommandError: the text was ``Refused``; the draft is kept.
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
