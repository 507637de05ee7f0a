"""What was typed and not sent: it comes back to the prompt, in the next run too."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from chorus_cli.core.errors import EditorError
from chorus_cli.core.text.safe_text import cleaned_input
from chorus_cli.storage.files import drafts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from chorus_cli.ports import Clock


class Unsent:
    """The text that shall stand at the next prompt, in ``text``; ``gives_way`` where a command may take its place.

    What is typed when a signal ends the run is kept as a draft in ``folder``, named for ``run``.
    """

    def __init__(self, folder: Path, run: str, clock: Clock, is_alive: Callable[[str], bool]) -> None:
        self.text = ""
        self.gives_way = False
        self._folder = folder
        self._run = run
        self._clock = clock
        self._is_alive = is_alive
        self._draft: Path | None = None

    def keep(self, slug: str, typed: str) -> None:
        """Keep for the next run what was typed to a persona, if it is more than blanks."""
        text, _ = cleaned_input(typed)
        if text.strip():
            # Where nothing can be written there is nobody left to be told.
            with suppress(EditorError):
                drafts.create(self._folder, _name(slug), text, self._run)
                self.settle()

    def take_up(self, slug: str) -> tuple[Path, ...]:
        """Have the newest of what was kept for a persona stand at the prompt.

        Return the other drafts that nobody has used, the newest last, of processes that are gone.
        """
        try:
            kept = drafts.kept(self._folder, self._clock.now(), self._is_alive)
        except OSError:
            # A folder that cannot be read keeps nobody from talking.
            return ()
        draft = next((path for path in reversed(kept) if path.name.endswith(f"-{_name(slug)}")), None)
        if draft is not None:
            try:
                self.text = drafts.read(draft)
            except EditorError:
                return kept
            self._draft = draft
        return tuple(path for path in kept if path != draft)

    def settle(self) -> None:
        """Let go of what stood at the prompt: it is in the user's hands, or kept anew."""
        self.text, self.gives_way = "", False
        if self._draft is not None:
            drafts.delete(self._draft)
            self._draft = None


def _name(slug: str) -> str:
    return f"unsent-{slug}.md"
