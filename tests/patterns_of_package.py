"""The regular expressions of the package, each with the methods by which the package uses it."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import sys
from collections import defaultdict
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import chorus_cli

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_METHODS = frozenset({"search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split"})
_HARSHEST = frozenset({"finditer"})
_DEEPEST = 5


class Used(NamedTuple):
    """A pattern of the package: the module and the name where it was found, and the methods that are called on it."""

    place: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]


def modules() -> Iterator[ModuleType]:
    """Yield all modules of the package but those that run a program when they are imported."""
    for found in pkgutil.walk_packages(chorus_cli.__path__, f"{chorus_cli.__name__}."):
        if not found.name.endswith((".__main__", ".engine")):
            yield importlib.import_module(found.name)


def used_patterns() -> list[Used]:
    """Return every pattern once: values of modules and cached functions, and those written where they are used."""
    uses = _Uses()
    found: dict[tuple[Any, int], Used] = {}
    for module in modules():
        for name, value in [*vars(module).items()]:
            for field, pattern in _patterns(_called(module, value)):
                methods = uses.of(module.__name__, field or name)
                known = found.get((pattern.pattern, pattern.flags))
                methods |= known.methods if known else frozenset()
                found[pattern.pattern, pattern.flags] = Used(f"{module.__name__}.{name}", pattern, methods)
    return [use._replace(methods=use.methods or _HARSHEST) for use in found.values()] + uses.written


def _called(module: ModuleType, value: object) -> object:
    """Return what a function of the module that is cached and takes nothing returns, and any other value as it is."""
    if not hasattr(value, "cache_info") or not callable(value) or value.__module__ != module.__name__:
        return value
    return None if inspect.signature(value).parameters else value()


def _patterns(value: object, field: str = "", depth: int = 0) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Yield the patterns in a value, each with the field that it is in."""
    if isinstance(value, re.Pattern):
        yield field, value
    elif depth < _DEEPEST:
        for name, inner in _parts(value):
            yield from _patterns(inner, name or field, depth + 1)


def _parts(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        yield from (("", inner) for inner in value.values())
    elif isinstance(value, tuple | list | set | frozenset):
        yield from zip(getattr(value, "_fields", [""] * len(value)), value, strict=True)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from ((each.name, getattr(value, each.name, None)) for each in fields(value))


class _Uses:
    """What the sources of the package do with names of patterns."""

    def __init__(self) -> None:
        self.written: list[Used] = []
        self._readers: set[str] = set()
        self._methods: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._elements: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._given: list[tuple[str, str, str, int]] = []
        self._of_parameters: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        for module in modules():
            self._readers.add(module.__name__)
            tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                self._read(module.__name__, node)

    def of(self, module: str, name: str) -> frozenset[str]:
        """Return the methods called on a name of a module; a public one or a field may be used by every module."""
        names = {name} | self._elements[module, name]
        readers = {module} if name.startswith("_") else self._readers
        called = [methods for (reader, each), methods in self._methods.items() if each in names and reader in readers]
        given = (given for given in self._given if given[1] in names and given[0] in readers)
        return frozenset().union(*called, *(self._of_parameters[function, place] for _, _, function, place in given))

    def _read(self, module: str, node: ast.AST) -> None:
        if isinstance(node, ast.Attribute) and node.attr in _METHODS:
            self._methods[module, _name(node.value)].add(node.attr)
        if isinstance(node, ast.For | ast.comprehension):
            names = {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
            for each in ast.walk(node.iter):
                if isinstance(each, ast.Name):
                    self._elements[module, each.id] |= names
        if isinstance(node, ast.FunctionDef):
            for position, parameter in enumerate(node.args.args):
                self._of_parameters[node.name, position] |= _on(parameter.arg, node)
        if isinstance(node, ast.Call):
            for position, argument in enumerate(node.args):
                self._given.append((module, _name(argument), _name(node.func), position))
            self._keep_written(module, node)

    def _keep_written(self, module: str, call: ast.Call) -> None:
        """Keep the pattern of a call such as ``re.sub("[a-z]", "", text)``, or ``re.sub(_LETTER, "", text)``."""
        if isinstance(call.func, ast.Attribute) and _name(call.func.value) == "re" and call.func.attr in _METHODS:
            source = call.args[0]
            named = getattr(sys.modules[module], _name(source), None)
            pattern = source.value if isinstance(source, ast.Constant) else named
            if isinstance(pattern, str | bytes):
                used = Used(f"{module}:{call.lineno}", re.compile(pattern), frozenset({call.func.attr}))
                self.written.append(used)


def _on(parameter: str, function: ast.FunctionDef) -> set[str]:
    """Return the methods that a function calls on one of its parameters."""
    attributes = (node for node in ast.walk(function) if isinstance(node, ast.Attribute) and node.attr in _METHODS)
    return {node.attr for node in attributes if _name(node.value) == parameter}


def _name(node: ast.expr) -> str:
    """Return the last name in an expression: of ``_PATTERN``, ``words._PATTERN`` and ``_pattern()``."""
    if isinstance(node, ast.Call):
        return _name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
