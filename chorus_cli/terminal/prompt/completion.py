"""Completion at the prompt: commands with their arguments, and the files that a message names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.completion import Completer, Completion

from chorus_cli.core.errors import ChorusError
from chorus_cli.storage import typed_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from chorus_cli.services import Services


class LineCompleter(Completer):
    """Completes commands, and the paths of files that a message names.

    ``services`` is called, and the commands are imported, when the first one is typed.
    """

    def __init__(self, services: Callable[[], Services]) -> None:
        self._services = services

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield the completions of a line that begins with a slash, each with its description, or of a file's name."""
        del complete_event
        line = document.text_before_cursor
        if not line.startswith("/") or "\n" in document.text:
            if "@" in line:
                yield from _file_completions(line)
            return
        from chorus_cli.framework.command_line import completions  # noqa: PLC0415 - not at the first prompt

        try:
            services = self._services()
            found = completions(services.registry, services, line)
        except (ChorusError, OSError):
            # The command says the same when it is carried out.
            return
        for candidate in found.candidates:
            yield Completion(candidate.text, found.start - len(line), display_meta=candidate.description)


def _file_completions(before_cursor: str) -> Iterator[Completion]:
    """Yield the completions of a file's name behind an at sign; that of a folder can be gone on with."""
    from chorus_cli.attachments.rules.mentions import begun_mention, mention_of  # noqa: PLC0415 - not at the first prompt

    begun = begun_mention(before_cursor)
    for path in typed_paths.offered(begun.path, None) if begun else ():
        is_quoted = begun is not None and (begun.is_quoted or " " in path)
        written = f'@"{path}' if is_quoted and path.endswith("/") else mention_of(path)
        yield Completion(written, -begun.length if begun else 0, display=path)
