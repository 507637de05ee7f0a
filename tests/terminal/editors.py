"""Editors that are scripts: at each visit they do one thing to the file that is opened, and nobody looks at it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

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
