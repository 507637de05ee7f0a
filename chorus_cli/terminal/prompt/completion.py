"""Completes the text at the prompt: commands, files and the resources of servers."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion

from chorus_cli.core.errors import ChorusError
from chorus_cli.core.text.safe_text import safe_line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    from prompt_toolkit.document import Document

    from chorus_cli.attachments.rules.mentions import Begun
    from chorus_cli.services import Services

_LISTING_SECONDS = 0.5
"""How long a server may take to list what it offers; meanwhile further keys are not completed."""


class LineCompleter(Completer):
    """Completes commands, names of files and resources of servers.

    Commands are imported only for a command, and ``services`` is called only for a command or a resource.
    """

    def __init__(self, services: Callable[[], Services]) -> None:
        self._services = services

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield completions of a command, or of the name of a file or resource after an at sign."""
        del complete_event
        line = document.text_before_cursor
        if not line.startswith("/") or "\n" in document.text:
            if "@" in line:
                yield from self._mentioned(line)
            return
        from chorus_cli.framework.command_line import completions

        try:
            services = self._services()
            found = completions(services.registry, services, line)
        except (ChorusError, OSError):
            # The command reports the same error when it is carried out.
            return
        for candidate in found.candidates:
            yield Completion(candidate.text, found.start - len(line), display_meta=candidate.description)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield the known completions at once, and then the completions that a server lists only now."""
        known = [*self.get_completions(document, complete_event)]
        for each in known:
            yield each
        line = document.text_before_cursor
        if not line.startswith("/") and not _is_resource(_begun(line)):
            return
        with suppress(ChorusError, OSError):
            if await self._services().texts.listed(_LISTING_SECONDS):
                for each in self.get_completions(document, complete_event):
                    if each not in known:
                        yield each

    def _mentioned(self, before_cursor: str) -> Iterator[Completion]:
        if begun := _begun(before_cursor):
            yield from _file_completions(begun)
            yield from self._resources(begun) if _is_resource(begun) else ()

    def _resources(self, begun: Begun) -> Iterator[Completion]:
        """Yield the resources and the templates of a connected server after ``@server:``."""
        from chorus_cli.attachments.rules.mentions import mention_of

        server, _, uri = begun.path.partition(":")
        try:
            found = self._services().texts.known_resources(server)
        except (ChorusError, OSError):
            return
        for each in found:
            if each.uri.startswith(uri):
                meta = safe_line(each.description)
                yield Completion(mention_of(f"{server}:{each.uri}"), -begun.length, display=each.uri, display_meta=meta)


def _begun(before_cursor: str) -> Begun | None:
    from chorus_cli.attachments.rules.mentions import begun_mention

    return begun_mention(before_cursor)


def _is_resource(begun: Begun | None) -> bool:
    return begun is not None and ":" in begun.path


def _file_completions(begun: Begun) -> Iterator[Completion]:
    from chorus_cli.attachments.rules.mentions import mention_of
    from chorus_cli.storage.typed_paths import offered

    for path in offered(begun.path, None):
        is_quoted = begun.is_quoted or " " in path
        written = f'@"{path}' if is_quoted and path.endswith("/") else mention_of(path)
        yield Completion(written, -begun.length, display=path)
