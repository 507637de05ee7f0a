"""Regular expressions mean the same in every Python that Chorus runs with, and none takes long over any text."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from tests.terminal.forked import module_names

PACKAGE = Path(__file__).parents[1] / "chorus_cli"
POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{\{?[0-9]+(?:,[0-9]*)?\}\}?)\+")

TINY, SMALL, SHORT, LONGER, LONG = 22, 300, 2_000, 16_000, 100_000
"""Lengths of texts, of which the longer are tried only if a shorter one took its time."""

UNSUSPICIOUS_SECONDS, MOST_SECONDS = 0.0001, 0.25


def test_no_repetition_of_a_group_is_possessive() -> None:
    """Python before 3.11.5, which Debian 12 has, goes on behind an iteration that failed half-way (issue 106052)."""
    found = [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if POSSESSIVE_GROUP.search(line)
    ]
    assert found == []


def test_no_pattern_takes_long_over_its_worst_text() -> None:
    """Ten times the text may take ten times as long, but not a hundred times: a text of a server's may have a megabyte.

    While a pattern runs, no key is heard and no signal.
    """
    patterns = used_patterns()
    assert len(patterns) > 200
    assert [found for used in patterns if (found := slow_by(used))] == []


@pytest.mark.parametrize(
    "pattern",
    [
        r"the token count of a request to this model\b.*\bexceeds the maximum",
        r"\s*(?:Traceback|Original exception:)",
        pytest.param(r"<(a|b)>.*?</\1>", marks=pytest.mark.slow),
        r"(?:a|a)*b",
        pytest.param(r"(?:\n?Jobs:(?:\n#[^\n]*)*)*\n\n", marks=pytest.mark.slow),
    ],
)
def test_a_pattern_that_takes_long_is_found(pattern: str) -> None:
    assert slow_by(Used("here", re.compile(pattern), frozenset({"finditer"})))


def slow_by(used: Used) -> str:
    """Return the text over which a pattern takes too long; empty if there is none."""
    for method in used.methods:
        for text in worst_texts(used.pattern):
            if is_slow(used.pattern, method, text):
                return f"{used.place}.{method}: {text}"
    return ""


def is_slow(pattern: re.Pattern[Any], method: str, text: WorstText) -> bool:
    """Return whether a pattern takes too long over a text, by the time of this thread alone."""
    if any(seconds(pattern, method, text, length) > MOST_SECONDS for length in (TINY, SMALL)):
        return True
    short = seconds(pattern, method, text, SHORT)
    if short < UNSUSPICIOUS_SECONDS or short > MOST_SECONDS:
        return short > MOST_SECONDS
    longer = seconds(pattern, method, text, LONGER)
    if longer > MOST_SECONDS:
        return True
    is_linear = longer < 2 * short * LONGER / SHORT
    return not is_linear and seconds(pattern, method, text, LONG) > MOST_SECONDS


def seconds(pattern: re.Pattern[Any], method: str, text: WorstText, length: int) -> float:
    subject: Any = text.of(length)
    if isinstance(pattern.pattern, bytes):
        subject = subject.encode("latin-1", "replace")
    arguments = (subject[:0], subject) if method in {"sub", "subn"} else (subject,)
    taken: list[float] = []
    while len(taken) < 3 and (not taken or UNSUSPICIOUS_SECONDS < min(taken) < MOST_SECONDS):
        began = time.thread_time()
        result = getattr(pattern, method)(*arguments)
        if method == "finditer":
            sum(1 for _ in result)
        taken.append(time.thread_time() - began)
    return min(taken)


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
    for name in module_names():
        if not name.endswith((".__main__", ".engine")):
            yield importlib.import_module(name)


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
    """Yield the patterns of calls such as ``re.sub("[a-z]", "", text)``, or ``re.compile(_LETTER).match``."""
    own = [value.pattern for value in vars(module).values() if isinstance(value, re.Pattern)]
    nodes = [*ast.walk(ast.parse(source))]
    called = {node.value: node.attr for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name("re"), attr=method), args=[ast.Constant(value), *_]):
                pattern = value
            case ast.Call(func=ast.Attribute(value=ast.Name("re"), attr=method), args=[ast.Name(name), *_]):
                pattern = getattr(module, name, None)
                if method == "compile" and pattern not in own:
                    method = called.get(node, _HARSHEST)
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


_Part = tuple[Any, Any]
# Python has no public way to take a pattern apart.
_PARSER: Any = import_module("re._parser")
_COMPILER: Any = import_module("re._compiler")

_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_LETTERS = frozenset({"IN", "ANY", "NOT_LITERAL"})
_WIDTHLESS = frozenset({"ASSERT", "ASSERT_NOT", "AT"})
_COMMON = "a0 \n\t_-./:\"'<>[](){}@#;,=`*+&|~!\\\x1b\u00e4Z"
_FAVOURITES = ("a0", " \n")
_ENDS = ("", "\0")
_LONGEST_RUN, _MOST_COPIES = 4, 50


class WorstText(NamedTuple):
    """A text of any length: ``pumped`` again and again, after one beginning and before one end."""

    beginning: str
    pumped: str
    end: str

    def of(self, length: int) -> str:
        return self.beginning + self.pumped * (length // len(self.pumped) + 1) + self.end


def worst_texts(pattern: re.Pattern[Any]) -> Iterator[WorstText]:
    """Yield texts over which ``pattern`` may take long; for one of bytes they are to be written as Latin-1."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    pumps: set[tuple[str, str]] = set()
    for favourites in _FAVOURITES:
        pumps.update(_Parts(source, pattern.flags & ~re.UNICODE, favourites).pumps())
    for beginning, pumped in sorted(pumps):
        yield from (WorstText(beginning, pumped, end) for end in _ENDS if pumped)


class _Parts:
    """A pattern, taken apart; where it takes several letters, a sample of it has one of ``favourites`` if it can."""

    def __init__(self, source: str, flags: int, favourites: str) -> None:
        self._flags = flags
        self._favourites = favourites
        self._tree = _PARSER.parse(source, flags)

    def pumps(self) -> Iterator[tuple[str, str]]:
        """Yield pairs of texts: a beginning, and what is to come after it again and again."""
        return self._among(tuple(self._tree), "")

    def _among(self, parts: Sequence[_Part], before: str) -> Iterator[tuple[str, str]]:
        """Yield runs of neighbouring parts, letters in a row as one, and then what is within each part."""
        samples = [self._sample(part) for part in parts]
        words = _words(parts, samples)
        for start in range(len(words)):
            yield from ((before, "".join(words[start : start + length])) for length in range(1, _LONGEST_RUN + 1))
        yield before, "".join(words)
        for number, (kind, detail) in enumerate(parts):
            beginning = before + "".join(samples[:number])
            if str(kind) in _REPEATS:
                yield from ((beginning, letter) for letter in self._letters(tuple(detail[2])))
            for inner in _within(str(kind), detail):
                yield from self._among(tuple(inner), "")
                yield from self._among(tuple(inner), beginning)

    def _letters(self, repeated: Sequence[_Part]) -> Iterator[str]:
        """Yield common letters of which a repetition of one letter takes any."""
        if len(repeated) == 1 and str(repeated[0][0]) in _LETTERS:
            yield from filter(self._compiled(repeated[0]).match, _COMMON)

    def _sample(self, part: _Part) -> str:
        """Return a text that the part matches, or nearly."""
        kind, detail = str(part[0]), part[1]
        if kind == "LITERAL":
            return chr(detail)
        if kind in _WIDTHLESS:
            return ""
        if kind in _LETTERS:
            listed = [] if kind != "IN" else [value for name, value in detail if str(name) in {"LITERAL", "RANGE"}]
            members = [chr(value if isinstance(value, int) else value[0]) for value in listed]
            candidates = (*self._favourites, *_COMMON, *map(chr, range(33, 127)), *members)
            return next(filter(self._compiled(part).match, candidates), "")
        first = next(iter(_within(kind, detail)), ())
        least = min(max(detail[0], 1), _MOST_COPIES) if kind in _REPEATS else 1
        return "".join(map(self._sample, first)) * least

    def _compiled(self, part: _Part) -> re.Pattern[str]:
        compiled: re.Pattern[str] = _COMPILER.compile(_PARSER.SubPattern(self._tree.state, [part]), self._flags)
        return compiled


def _words(parts: Sequence[_Part], samples: Sequence[str]) -> list[str]:
    words: list[str] = []
    follows = False
    for (kind, _), sample in zip(parts, samples, strict=True):
        is_letter = str(kind) == "LITERAL"
        if is_letter and follows:
            words[-1] += sample
        else:
            words.append(sample)
        follows = is_letter
    return words


def _within(kind: str, detail: Any) -> Sequence[Any]:
    if kind in _REPEATS:
        return (detail[2],)
    if kind == "SUBPATTERN":
        return (detail[3],)
    if kind == "ATOMIC_GROUP":
        return (detail,)
    if kind in {"ASSERT", "ASSERT_NOT"}:
        return (detail[1],)
    return tuple(detail[1]) if kind == "BRANCH" else ()
