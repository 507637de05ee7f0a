"""The signs that mark a line as a command of the chat, or of the shell."""

from __future__ import annotations


def is_command(text: str) -> bool:
    """Return whether a line is a command; a message that begins with a slash is written with two."""
    return text.startswith("/") and not text.startswith("//")


def is_shell_command(text: str) -> bool:
    """Return whether a line is a command of the shell; a message that begins with ``!`` is written with two."""
    return text.startswith("!") and not text.startswith("!!")


def unescaped(text: str) -> str:
    """Return the message in a line: without the first of two slashes."""
    return text[1:] if text.startswith("//") else text


def unescaped_line(text: str) -> str:
    """Return the message in a line of the chat: without the first of two slashes or of two ``!``."""
    return text[1:] if text.startswith("!!") else unescaped(text)
