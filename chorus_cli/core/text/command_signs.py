"""The signs that mark a line as a command of the chat, or of the shell."""

from __future__ import annotations

import re
from itertools import takewhile

_PRIVATE = "private"
_SHORTEST_PRIVATE = len("pr")
_COMMAND = re.compile(r"/[^\s/]*(?!\S)")


def is_command(text: str) -> bool:
    """Return whether a line is a command: it begins with a slash, and its first word, unlike a path, has no other."""
    return _COMMAND.match(text) is not None


def is_shell_command(text: str) -> bool:
    """Return whether a line is a command of the shell: it begins with one ``!``. ``!!`` begins a message with ``!``."""
    return text.startswith("!") and not text.startswith("!!")


def is_message(line: str) -> bool:
    """Return whether a text typed in the chat is sent as a message: it is no command, or it has several lines."""
    text = line.strip()
    return not _is_one_line(text) or not (is_command(text) or is_shell_command(text))


def _is_one_line(text: str) -> bool:
    # In the chat several lines are never a command: code may begin with a comment such as ``// TODO``.
    return "\n" not in text.strip()


def unescaped(text: str) -> str:
    """Return the message that ``chorus ask`` sends: in a single line, a first ``//`` is halved."""
    return text[1:] if text.startswith("//") and _is_one_line(text) else text


def unescaped_line(text: str) -> str:
    """Return the message that a text typed in the chat sends: in a single line, a first ``//`` or ``!!`` is halved."""
    return text[1:] if text.startswith("!!") and _is_one_line(text) else unescaped(text)


def typed_line(message: str) -> str:
    """Return the text to type in the chat for a message: in a single line, a first ``/`` or ``!`` is doubled."""
    return message[0] + message if message.startswith(("/", "!")) and _is_one_line(message) else message


def begins_private(line: str) -> bool:
    """Return whether a line begins with ``/private``, perhaps abbreviated; from this line on, nothing is kept."""
    before, _, after = line.partition("/")
    word = "".join(after.split(maxsplit=1)[:1]).casefold()
    return not before.strip() and len(word) >= _SHORTEST_PRIVATE and _PRIVATE.startswith(word)


def before_private(typed: str) -> str:
    """Return the lines before the first one that begins a private chat; the later lines belong to that chat."""
    return "".join(takewhile(lambda line: not begins_private(line), typed.splitlines(keepends=True)))
