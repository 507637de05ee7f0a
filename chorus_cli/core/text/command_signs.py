"""The signs that mark a line as a command of the chat, or of the shell."""

from __future__ import annotations

from itertools import takewhile

_PRIVATE = "/private"
_SHORTEST_PRIVATE = len("/pr")


def is_command(text: str) -> bool:
    """Return whether a line is a command; a message that begins with a slash is written with two."""
    return text.startswith("/") and not text.startswith("//")


def is_shell_command(text: str) -> bool:
    """Return whether a line is a command of the shell; a message that begins with ``!`` is written with two."""
    return text.startswith("!") and not text.startswith("!!")


def is_message(line: str) -> bool:
    """Return whether a line of the chat is sent as a message: it is no command, or has several lines."""
    text = line.strip()
    return "\n" in text or not (is_command(text) or is_shell_command(text))


def unescaped(text: str) -> str:
    """Return the message in a line: without the first of two slashes."""
    return text[1:] if text.startswith("//") else text


def unescaped_line(text: str) -> str:
    """Return the message in a line of the chat: without the first of two slashes or of two ``!``."""
    return text[1:] if text.startswith("!!") else unescaped(text)


def typed_line(message: str) -> str:
    """Return the line that sends a message: of one that begins with ``/`` or ``!``, that sign stands twice."""
    return message[0] + message if message.startswith(("/", "!")) else message


def begins_private(line: str) -> bool:
    """Return whether a line begins a private chat, or may be meant to, so that it and the next ones are not kept."""
    word = line.split(maxsplit=1)[0].casefold() if line.strip() else ""
    return len(word) >= _SHORTEST_PRIVATE and _PRIVATE.startswith(word)


def before_private(typed: str) -> str:
    """Return the lines before the one that begins a private chat: those after it are typed for that."""
    return "".join(takewhile(lambda line: not begins_private(line), typed.splitlines(keepends=True)))
