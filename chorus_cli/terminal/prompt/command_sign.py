"""The slash that marks a line as a command."""

from __future__ import annotations


def is_command(text: str) -> bool:
    """Return whether a line is a command; a message that begins with a slash is written with two."""
    return text.startswith("/") and not text.startswith("//")


def unescaped(text: str) -> str:
    """Return the message in a line: without the first of two slashes."""
    return text[1:] if text.startswith("//") else text
