"""Editors that are scripts, each visit of which does one thing to the file, and five messages that they edit."""

from __future__ import annotations

import shlex
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.terminal.driver import PROMPT, Home, Terminal

CONTEXT_LINE = "--- context starts here ---\n\n"


def editor(folder: Path, *scripts: str, name: str = "my editor") -> str:
    """Write an editor that does one script at each visit, with the file's name in ``$file``; return its command."""
    visits = "".join(f"    {number}) {script} ;;\n" for number, script in enumerate(scripts))
    path = folder / name
    path.write_text(
        f'#!/bin/sh\ncount="$0.count"\nnumber=$(cat "$count" 2>/dev/null || echo 0)\n'
        f'echo $((number + 1)) > "$count"\nfor file; do :; done\ncase $number in\n{visits}esac\n'
    )
    path.chmod(0o700)
    return f"'{path}'"


def changing(statement: str) -> str:
    """Return a script that rewrites the file by a Python statement that changes its ``text``."""
    program = (
        "import pathlib, sys\nfile = pathlib.Path(sys.argv[1])\ntext = file.read_bytes().decode()\n"
        f"{statement}\nfile.write_bytes(text if isinstance(text, bytes) else text.encode())"
    )
    return f'{shlex.quote(sys.executable)} -S -c {shlex.quote(program)} "$file"'


def replacing(old: str, new: str) -> str:
    """Return a script that replaces a text, which must be there."""
    return changing(f"assert {old!r} in text\ntext = text.replace({old!r}, {new!r})")


def deleting(*beginnings: str) -> str:
    """Return a script that deletes the messages that begin so, each with its header."""
    return changing(
        f"text = '\\n\\n'.join(block for block in text.split('\\n\\n')"
        f" if not any(': ' + beginning in block for beginning in {beginnings!r}))"
    )


FIVE = ("A1", "B1", "A2", "B2", "A3")
TIRED = ("I am tired", "That sounds hard. What has made you tired?")
A_MINUTE = timedelta(minutes=1)
QUESTION = "(y = yes, n = keep a draft, d = discard)"
EDITED = "Context edited:"
REWORDING = replacing("Human: A2", "Human: A two")
MISNAMING = replacing("Human: A2", "Humn: A2")
REWORDED = ("A1", "B1", "A two", "B2", "A3")
LEFT = "The context is unchanged; your"
KEPT, DISCARDED = f"{LEFT} text is kept in", f"{LEFT} edit was discarded."


def put_in(home: Home, *contents: str, thread: int = 1) -> None:
    for position, content in enumerate(contents):
        age = A_MINUTE * (len(contents) - position)
        home.say_by_sql(content, age, role="assistant" if position % 2 else "user", thread=thread)


def ask_anew(chat: Terminal, line: str, answer: str, prompt: str = PROMPT) -> None:
    """Say a line whose answer may stand on the screen already, and wait until it stands there once more."""
    say_anew(chat, line, answer)
    chat.await_line(prompt)


def say_anew(chat: Terminal, line: str, answer: str) -> None:
    """Say a line and wait for its answer, however long paths have it broken into lines."""
    times = chat.words().count(answer) + 1
    chat.say(line)
    chat.until(lambda: chat.words().count(answer) >= times, f"the answer {answer!r}")


def drafts(home: Home) -> set[Path]:
    return set((home.path / "state" / "drafts").glob("*"))


def in_context(home: Home, thread: int) -> list[Any]:
    """Return the members of the newest boundary and the messages after it."""
    boundary = "SELECT max(id) FROM operations WHERE kind IN ('edit', 'clear') AND ifnull(thread_id, ?) = ?"
    [operation] = home.sql(boundary, thread, thread)
    members = (
        "SELECT content FROM operation_members JOIN messages ON messages.id = message_id "
        "WHERE operation_id = ? ORDER BY position"
    )
    after = (
        "SELECT content FROM messages WHERE thread_id = ? AND introduced_by IS NULL "
        "AND id > ifnull((SELECT after_message_id FROM operations WHERE id = ?), 0) ORDER BY id"
    )
    return [*home.sql(members, operation or 0), *home.sql(after, thread, operation or 0)]
