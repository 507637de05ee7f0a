"""Every sentence that the program can say to its user; ``python -m tests.sentences`` prints them for a reader, by room.

On the list is each constant and each f-string of the package in which two words follow each other, and the help of
commands. Not on it are docstrings of code, SQL, patterns, and what only a developer reads.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1] / "chorus_cli"

_TWO_WORDS = re.compile(r"[^\W\d_]['\w]+[,;:)}\"]* [\"({]*[\w{]|\} [a-z]{2,}")
_SQL = re.compile(
    r"(?s).*\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|PRAGMA|BEGIN|CASE|WHERE|AND|OR|NOT|JOIN|MATCH|IN|BY)\b"
)
_PATTERN = re.compile(r"\\[a-zA-Z.(\[]|\(\?|\[\^|\.\*|\|\|")
_SENTENCE = re.compile(r"(?:^|(?<=[.!?:;] ))[A-Z{/].*?[.!?;](?= [A-Z{/]|$)", re.MULTILINE)
_OWNER = re.compile(r"\b[a-z_]\w*\.(?=[a-z_])")
_UNHEARD_CALLS = frozenset({"AssertionError", "NewType", "TypeVar", "compile", "debug", "exception", "info", "warning"})
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Sentence(NamedTuple):
    """A text with the module that says it, as a path below the package, and its line."""

    path: str
    line: int
    text: str

    @property
    def room(self) -> str:
        return self.path.partition("/")[0].removesuffix(".py")

    @property
    def wholes(self) -> list[str]:
        """The whole sentences of the text: five words or more, and no placeholder for most of it."""
        return [each for each in _SENTENCE.findall(self.text) if len(re.sub(r"\{[^}]*\}", "", each).split()) > 4]


def sentences() -> list[Sentence]:
    """Return the texts of all modules, in the order of their paths and lines."""
    return [
        Sentence(path.relative_to(PACKAGE).as_posix(), line, text)
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, text in sorted(texts(ast.parse(path.read_text(encoding="utf-8"))))
        if _TWO_WORDS.search(text) and not _SQL.match(text) and not _PATTERN.search(text)
    ]


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module with their lines, the help of commands in paragraphs, without docstrings of code."""
    unheard: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED):
            unheard.update(id(each.value) for each in node.body if isinstance(each, ast.Expr))
            if not isinstance(node, ast.Module):
                yield from ((node.lineno, told) for told in help_of(node))
        elif isinstance(node, ast.Call) and _name(node.func) in _UNHEARD_CALLS:
            unheard.update(id(argument) for argument in node.args)
        elif isinstance(node, ast.JoinedStr):
            unheard.update(id(value) for value in node.values)
    for node in ast.walk(tree):
        if id(node) in unheard:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(map(_piece, node.values))


def help_of(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterable[str]:
    """Return the paragraphs that /help shows of a command."""
    if not any(isinstance(each, ast.Call) and _name(each.func) == "command" for each in node.decorator_list):
        return ()
    paragraphs = (" ".join(each.split()) for each in (ast.get_docstring(node) or "").split("\n\n"))
    return (each for each in paragraphs if not each.startswith("Examples:"))


def _name(function: ast.expr) -> str:
    return ast.unparse(function).rpartition(".")[2]


def _piece(value: ast.expr) -> str:
    if isinstance(value, ast.FormattedValue):
        return f"{{{_OWNER.sub('', ast.unparse(value.value))}}}"
    return str(value.value) if isinstance(value, ast.Constant) else ""


if __name__ == "__main__":
    for room, said in groupby(sentences(), lambda each: each.room):
        sys.stdout.write(f"\n## {room}\n\n" + "".join(f"{each.path}:{each.line}: {each.text}\n" for each in said))
