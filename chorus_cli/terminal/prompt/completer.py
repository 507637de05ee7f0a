"""The commands' own completions, as prompt_toolkit wants them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.completion import Completer, Completion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from chorus_cli.commands.framework.command_context import CommandContext


class CommandCompleter(Completer):
    """Completes a line that begins with a slash, and nothing else; the context is made for the first of them."""

    def __init__(self, context: Callable[[], CommandContext]) -> None:
        self._context = context

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield how the line could go on, each with what it means."""
        del complete_event
        line = document.text_before_cursor
        if not line.startswith("/") or "\n" in document.text:
            return
        # The prompt does not wait for the commands.
        from chorus_cli.commands.framework.command_line import completions  # noqa: PLC0415

        context = self._context()
        found = completions(context.registry, context, line)
        for candidate in found.candidates:
            yield Completion(candidate.text, found.start - len(line), display_meta=candidate.description)
