"""Drafts of what was typed and not sent: of the messages that wait, and of the input at the prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import EditorError
from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.core.text.command_signs import before_private, typed_line
from chorus_cli.storage import drafts

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

_SENT = "sent-"


class UnsentDrafts:
    """Messages that are not sent yet, as drafts in ``folder`` that belong to the process ``run`` while it lives.

    Without a folder they are in memory only.
    """

    def __init__(self, folder: Path | None, run: str) -> None:
        self._folder = folder
        self._run = run

    def keep(self, slug: str, text: str) -> Path | None:
        """Write the line of a message to a persona into a draft, and return its path; ``None`` if it is in memory only.

        Raises:
            EditorError: it cannot be written.
        """
        if self._folder is None:
            return None
        return drafts.create(self._folder, drafts.unsent_name(slug), cleaned_input(typed_line(text))[0], self._run)

    def drop(self, draft: Path | None) -> None:
        """Delete a draft, if there is one: its message was sent, or the user has it again."""
        if draft is not None:
            drafts.delete(draft)


class Input(NamedTuple):
    """Input to a persona that a draft holds; ``is_sent`` says that its first line has left the prompt."""

    slug: str
    text: str
    is_sent: bool = False

    @property
    def name(self) -> str:
        """The end of the name of its draft."""
        return f"{_SENT if self.is_sent else ''}{drafts.unsent_name(self.slug)}"

    def has_text_of(self, other: Input) -> bool:
        """Return whether another input is the same, but for the place of its first line."""
        return self[:2] == other[:2]


NOTHING = Input("", "")


class HeldDraft:
    """The draft in ``folder`` of the input at the prompt, which belongs to the process ``run``; one at a time.

    Without a folder nothing is held. ``obstacle`` is a sentence about why the last input is not held, if it is not.
    It is not made for several threads.
    """

    def __init__(self, folder: Path | None, run: str) -> None:
        self._folder = folder
        self._run = run
        self.obstacle = ""
        self._path: Path | None = None
        self._input = NOTHING

    def hold(self, wanted: Input) -> None:
        """Hold other input: the draft before goes when the new one is written, or is renamed if the text is the same.

        Without a draft, which may fail to be written, the input only does not outlive a crash.
        """
        if wanted == self._input or self._folder is None:
            self.obstacle = ""
            return
        if self._path is not None and wanted.has_text_of(self._input):
            self.obstacle = ""
            self.mark(wanted)
            return
        try:
            path = drafts.create(self._folder, wanted.name, wanted.text, self._run) if wanted.text else None
        except EditorError as error:
            self.obstacle = str(error)
        else:
            self.obstacle = ""
            self.adopt(path, wanted)

    def mark(self, wanted: Input) -> None:
        """Have the name of the draft say whether its line is at the prompt, if it holds that text."""
        if self._path is not None and wanted.has_text_of(self._input):
            self._path = drafts.renamed(self._path, self._input.name, wanted.name)
            self._input = wanted

    def adopt(self, path: Path | None, held: Input) -> None:
        """Hold input in a draft that is written already, and delete the one before."""
        before = self._path
        self._path, self._input = path, held
        if before is not None:
            drafts.delete(before)

    def let_go(self) -> Path | None:
        """Hold nothing any longer, and return the draft, which stays."""
        path = self._path
        self._path, self._input = None, NOTHING
        return path


class Found(NamedTuple):
    """Input that an ended process left, its draft at ``path``, claimed for the present process, and other drafts.

    Without such input ``path`` is ``None``; the newest of the others is the last one.
    """

    path: Path | None
    held: Input
    others: tuple[Path, ...]


def claim_newest(folder: Path, slug: str, run: str, now: datetime, is_alive: Callable[[str], bool]) -> Found:
    """Claim the newest input to a persona for the process ``run``, of those that processes have left that ended."""
    try:
        kept = drafts.kept(folder, now, is_alive)
    except OSError:
        # A folder that cannot be read must not prevent the chat.
        return Found(None, NOTHING, ())
    newest = next((path for path in reversed(kept) if drafts.persona_of(path) == slug), None)
    if newest is None:
        return Found(None, NOTHING, kept)
    others = tuple(path for path in kept if path != newest)
    try:
        claimed = drafts.claimed(newest, run)
    except FileNotFoundError:
        # Another start was first.
        return Found(None, NOTHING, others)
    try:
        sent = Input(slug, drafts.read(claimed), is_sent=True)
    except EditorError:
        return Found(None, NOTHING, (*others, claimed))
    is_sent = claimed.name.endswith(f"-{sent.name}")
    return Found(claimed, sent._replace(is_sent=is_sent), others)


def input_to_keep(slug: str, sending: str, typed: str) -> Input:
    """Return what a draft must hold of a line that was sent and of the input behind it; nothing if both are blank."""
    text, _ = cleaned_input(before_private(joined(sending, typed)))
    return Input(slug, text, is_sent=bool(sending)) if text.strip() else NOTHING


def joined(line: str, behind: str) -> str:
    """Return a line that was sent with the input behind it, on a line of its own."""
    return f"{line}\n{behind}" if line and behind else line or behind
