"""The regular expressions of the package, each with the methods by which the package uses it."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import chorus_cli

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")
_HARSHEST = "finditer"
_USE = re.compile(rf"\b(\w+)(?:\(\))?\.({'|'.join(_METHODS)})\(")
_PASSED_ON = {"GAP": "match", "_FORMS": "fullmatch"}
"""The methods that are called on patterns under another name, where the harshest would take long."""
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
    sources = {module: Path(str(module.__file__)).read_text(encoding="utf-8") for module in modules()}
    methods: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for module, source in sources.items():
        for name, method in [*_PASSED_ON.items(), *_USE.findall(source)]:
            methods[module.__name__ if name.startswith("_") else "", name].add(method)
    found: dict[tuple[Any, int], Used] = {}
    written: list[Used] = []
    for module, source in sources.items():
        written += _written(module, source)
        for name, value in [*vars(module).items()]:
            for field, pattern in _patterns(_called(module, value)):
                used = field or name
                called = methods[module.__name__ if used.startswith("_") else "", used]
                known = found.get((pattern.pattern, pattern.flags), Used("", pattern, frozenset()))
                found[pattern.pattern, pattern.flags] = Used(
                    f"{module.__name__}.{name}", pattern, known.methods | (called or {_HARSHEST})
                )
    return [*found.values(), *written]


def _written(module: ModuleType, source: str) -> Iterator[Used]:
    """Yield the patterns of calls such as ``re.sub("[a-z]", "", text)``, or ``re.sub(_LETTER, "", text)``."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name("re"), attr=method), args=[ast.Constant(value), *_]):
                pattern = value
            case ast.Call(func=ast.Attribute(value=ast.Name("re"), attr=method), args=[ast.Name(name), *_]):
                pattern = getattr(module, name, None)
            case _:
                continue
        if method in _METHODS and isinstance(pattern, str | bytes):
            yield Used(f"{module.__name__}:{node.lineno}", re.compile(pattern), frozenset({method}))


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
