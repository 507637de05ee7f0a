"""What is answered when the user comes back from the editor; nothing that was typed there is ever lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chorus_cli.commands.framework.replies import Question, Reply, Text
from chorus_cli.core.errors import ChorusError, CommandError, EditFormatError, JsoncError

if TYPE_CHECKING:
    from chorus_cli.services.editing.drafts import Edited, Editing


@dataclass(frozen=True, slots=True)
class Refused:
    """What was edited can no longer be stored, and editing it again would not help; ``reason`` is a sentence."""

    reason: str


@dataclass(frozen=True, slots=True)
class Doubtful:
    """What was edited may hold a slip, which ``error`` names; ``store_as_text`` stores it as it stands."""

    error: EditFormatError
    store_as_text: Store


Store = Callable[[str], Awaitable[Reply | Refused | Doubtful]]
"""Stores the text that was edited and says so; a ``ChorusError`` names what is to be mended in it."""


async def answered(editing: Editing, edited: Edited, store: Store, what: str) -> Reply:
    """Store what was edited and return what to say; ``what`` is named when it was left as it was.

    The draft is deleted once the text is stored, or when there is nothing in it to be stored.

    Raises:
        CommandError: the store refused for good; the draft is kept.
    """
    if edited.may_be_open and not edited.changed:
        # What is saved in that window later must have a place.
        return Text(f"{edited.doubt} Nothing was changed. The draft stays in {edited.path}.")
    if not edited.changed or not edited.text.strip():
        editing.finish(edited)
        nothing = "Nothing was changed: an empty text was saved." if edited.changed else "Nothing was changed."
        return Text(f"{edited.doubt} {nothing}" if edited.doubt else nothing)
    if edited.doubt:
        return Question(
            f"{edited.doubt}\nUse what was saved?",
            lambda: _stored(editing, edited, store, what),
            _kept(edited, what),
            lambda: _discarded(editing, edited, what),
        )
    return await _stored(editing, edited, store, what)


async def _stored(editing: Editing, edited: Edited, store: Store, what: str, as_text: Store | None = None) -> Reply:
    """Store what was edited, by ``as_text`` if that is given; after another visit to the editor by ``store``."""
    try:
        outcome = await (as_text or store)(edited.text)
    except ChorusError as error:
        return _asked(editing, edited, store, what, error)
    if isinstance(outcome, Doubtful):
        store_as_text = outcome.store_as_text
        question = _asked(editing, edited, store, what, outcome.error)
        return replace(question, kept_as_text=lambda: _stored(editing, edited, store, what, store_as_text))
    if isinstance(outcome, Refused):
        raise CommandError(f"{outcome.reason} Your text is kept in {edited.path}.")
    editing.finish(edited)
    return outcome


def _asked(editing: Editing, edited: Edited, store: Store, what: str, error: ChorusError) -> Question:
    line = error.line if isinstance(error, EditFormatError | JsoncError) else None
    return Question(
        f"{str(error).removesuffix('.')}.\nEdit again?",
        lambda: _again(editing, edited, store, what, line),
        _kept(edited, what),
        lambda: _discarded(editing, edited, what),
    )


async def _again(editing: Editing, edited: Edited, store: Store, what: str, line: int | None) -> Reply:
    return await answered(editing, await editing.edit_again(edited, line), store, what)


async def _discarded(editing: Editing, edited: Edited, what: str) -> Reply:
    editing.finish(edited)
    return Text(f"{what} was left as it was; your edit is discarded.")


def _kept(edited: Edited, what: str) -> Text:
    return Text(f"{what} was left as it was; your text is kept in {edited.path}.")
