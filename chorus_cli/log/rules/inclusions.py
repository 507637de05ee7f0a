"""Acts that put single messages into a context and keep them there."""

from __future__ import annotations

from chorus_cli.log.rules.act import Inclusion


class Greeting(Inclusion):
    """A greeting of the persona's character card, which it says before the user says anything."""

    __slots__ = ()
    kind = "greeting"

    def describe(self) -> str:
        """Name the act."""
        return "greeting of the character card"


class Pin(Inclusion):
    """Messages that stay in context word for word, whatever their age and however full the request is."""

    __slots__ = ()
    kind = "pin"

    def describe(self) -> str:
        """Name the act with its messages."""
        return f"pinned {', '.join(f'#{member}' for member in self.members)}"
