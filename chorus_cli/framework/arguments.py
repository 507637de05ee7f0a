"""The arguments of commands, and their help. A function's signature and docstring declare both.

    async def set_window(context: Services, time: Annotated[Span, TIME]) -> Reply: ...

Arguments are not quoted: each but the last is one word, and the last is the rest of the line as typed, so that
``/context save don't lose this`` just works. A keyword-only argument is an option: the user types ``since`` as
``--since T``, and a `flag` such as ``dry_run`` as ``--dry-run``, both in the chat and in a shell. If a keyword-only
argument is a ``NamedTuple``, each of its fields is an option. The word ``--`` ends the options.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from chorus_cli.core.errors import CommandError
from chorus_cli.core.text.phrases import quoted
from chorus_cli.core.time import timespan
from chorus_cli.core.time.timespan import Span

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A completion and its description."""

    text: str
    description: str = ""


# Any: the context is the application's own class, unknown to this framework.
Complete = Callable[[Any, str], Sequence[Candidate]]
CompleteAfter = Callable[[Any, Sequence[str], str], Sequence[Candidate]]


def nothing_to_offer(_services: object, _text: str) -> Sequence[Candidate]:
    """Offer no completions."""
    return ()


@dataclass(frozen=True, slots=True)
class Parameter(Generic[T_co]):
    """A kind of argument, declared once and used in any number of signatures.

    ``parse`` takes the text and the aware local time, and raises a ``ChorusError`` for a wrong text. ``complete`` takes
    the services and the text so far; it is called at every key and must be fast. ``complete_after``, if given, is
    called instead, and also gets the preceding arguments. ``typed`` joins words from a shell into the text that the
    user of a chat would type. If there are ``choices``, an option takes no other value. An option that ``repeats`` may
    be given several times; its text has a line for each value. Make variants with ``dataclasses.replace``.
    """

    name: str
    parse: Callable[[str, datetime], T_co]
    help: str
    complete: Complete = nothing_to_offer
    complete_after: CompleteAfter | None = None
    typed: Callable[[Sequence[str]], str] = " ".join
    choices: tuple[str, ...] = ()
    repeats: bool = False

    def candidates(self, services: object, before: Sequence[str], text: str) -> Sequence[Candidate]:
        """Return completions of ``text``, which follows the arguments ``before``."""
        return self.complete_after(services, before, text) if self.complete_after else self.complete(services, text)


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter in a signature. ``option`` is the keyword of an option, and empty for any other argument."""

    parameter: Parameter[object]
    required: bool
    default: object = None
    option: str = ""

    @property
    def is_flag(self) -> bool:
        """Whether this is an option without a value: its parameter has no name."""
        return bool(self.option) and not self.parameter.name

    @property
    def spelling(self) -> str:
        """The word with which an option begins: ``--dry-run``."""
        return f"--{self.option.strip('_').replace('_', '-')}"

    @property
    def usage(self) -> str:
        """The argument in a usage line: ``<time>``, ``[time]`` or ``[--since T]``."""
        if self.option:
            return f"[{f'{self.spelling} {self.parameter.name}'.strip()}]"
        return f"<{self.parameter.name}>" if self.required else f"[{self.parameter.name}]"


def declared_arguments(handler: Callable[..., object]) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
    """Return the arguments that a handler's signature declares after the context, and the options that it declares."""
    _services, *declared = inspect.signature(handler, eval_str=True).parameters.values()
    found = [_argument(option) for each in declared for option in _fields(each)]
    return tuple(each for each in found if not each.option), tuple(each for each in found if each.option)


def grouped(handler: Callable[..., object], options: Mapping[str, object]) -> Mapping[str, object]:
    """Return the values of options as a handler takes them: the fields of a ``NamedTuple`` are put together."""
    given, declared = dict(options), inspect.signature(handler, eval_str=True).parameters.values()
    for each in (each for each in declared if _is_group(each)):
        given[each.name] = each.annotation(*(given.pop(field.name) for field in _fields(each)))
    return given


def _is_group(declared: inspect.Parameter) -> bool:
    return isinstance(declared.annotation, type) and issubclass(declared.annotation, tuple)


def _fields(declared: inspect.Parameter) -> Sequence[inspect.Parameter]:
    """Return the options in a ``NamedTuple``; for any other parameter, the parameter itself."""
    if not _is_group(declared):
        return (declared,)
    kinds, defaults = get_type_hints(declared.annotation, include_extras=True), declared.annotation._field_defaults
    return [declared.replace(name=name, annotation=kind, default=defaults[name]) for name, kind in kinds.items()]


def without_options(options: Sequence[Argument], text: str) -> tuple[str, Mapping[str, str]]:
    """Return a text without its options, and the options' values; a value ends at an unquoted option or ``--``."""
    spelled = {option.spelling: option for option in options}
    marks = [*_OPTION.finditer(text)]
    last = next((match.start() for match in marks if match[1] == "--"), len(text))
    found = [match for match in marks if match[1] in spelled and match.start() < last]
    if not found:
        return text, {}
    left, begin = [], 0
    given: dict[str, str] = {}
    for match, end in zip(found, [*(each.start() for each in found[1:]), last], strict=True):
        option = spelled[match[1]]
        left.append(text[begin : match.start()])
        begin = match.end() if option.is_flag else end
        value, before = text[match.end() : begin].strip(), given.get(option.option)
        given[option.option] = f"{before}\n{value}" if before and option.parameter.repeats else value
    return " ".join(filter(None, map(str.strip, [*left, text[begin:]]))), given


def _argument(declared: inspect.Parameter) -> Argument:
    (parameter,) = (each for each in get_args(declared.annotation) if isinstance(each, Parameter))
    required = declared.default is inspect.Parameter.empty
    option = declared.name if declared.kind is inspect.Parameter.KEYWORD_ONLY else ""
    return Argument(parameter, required=required, default=None if required else declared.default, option=option)


_TIMES = (
    Candidate("8h", "eight hours"),
    Candidate("24h", "a day"),
    Candidate("2 days", "two days"),
    Candidate("1 week", "seven days"),
    Candidate("half an hour", "thirty minutes"),
    Candidate("3 days ago", "the last 72 hours"),
    Candidate("yesterday", "24 hours ago"),
    Candidate("today", "since midnight"),
    Candidate("monday 9am", "since 9:00 of the latest Monday"),
    Candidate("since friday", "since midnight of the latest Friday"),
)


@dataclass(frozen=True, slots=True)
class AskedTime:
    """A length of time, and whether only a preview is asked for."""

    span: Span
    preview: bool


# Between double quotes there is no option; a single one, such as the sign of an inch, hides none.
_OPTION = re.compile(r'"[^"]*"|(?<!\S)(--[a-z-]*)(?!\S)')
# A number of eighteen digits is not too large for SQLite.
_NUMBER = re.compile(r"#?\s*([0-9]{1,18})")


def _number(text: str, _now: datetime, example: str = "3 or #3") -> int:
    match = _NUMBER.fullmatch(text)
    number = int(match[1]) if match else 0
    if number == 0:
        raise CommandError(f"{quoted(text)} is not a whole number above 0, such as {example}.")
    return number


def _asked_time(text: str, now: datetime) -> AskedTime:
    """Parse a time; a question mark after it asks for a preview."""
    time = text.rstrip("? \t")
    return AskedTime(timespan.parse(time, now), preview="?" in text[len(time) :])


def _common_times(_services: object, _text: str) -> Sequence[Candidate]:
    return _TIMES


def moment(text: str, now: datetime) -> datetime:
    """Return the moment of a time such as 3 days or monday."""
    return timespan.parse(text, now, after_since=True).before(now)


def flag(meaning: str) -> Parameter[bool]:
    """Return the parameter of an option that takes no value."""
    return Parameter("", lambda _text, _now: True, meaning)


def phrases(words: Sequence[str]) -> str:
    """Join words from a shell into a search; quote a word that contains blanks, so that it is searched as a phrase."""
    return " ".join(f'"{word}"' if len(word.split()) > 1 and '"' not in word else word for word in words)


def _command_words(text: str, _now: datetime) -> str:
    return " ".join(text.casefold().split()).removeprefix("/")


TIME = Parameter(
    "time",
    timespan.parse,
    "how far back: 24h, 2 days, 1h30, half an hour, 3 days ago, yesterday, monday 9am",
    _common_times,
)
ASKED_TIME = Parameter("time", _asked_time, f"{TIME.help}; add ? for a preview", _common_times)
NUMBER = Parameter("number", _number, "a number such as 3 or #3")
COUNT = Parameter("number", partial(_number, example="3"), "a number such as 3")
TEXT: Parameter[str] = Parameter("text", lambda text, _now: text, "the rest of the line, as typed")
SINCE = Parameter("T", moment, "only from that time on, such as 24h, 3 days or monday", _common_times)
PERSONA = replace(TEXT, name="P", help="only of this persona")
DRY_RUN = flag("only show what would happen; nothing is changed")
COMMAND = Parameter("command", _command_words, "a command's name, with or without the slash")


_SECTION = re.compile(r"^(\w+):\n(?= )", re.MULTILINE)
_LINE_BREAK = re.compile(r"(?<=\S)\n(?=\S)")


@dataclass(frozen=True, slots=True)
class Documentation:
    """The help for the user in a docstring: a line for menus, the paragraphs below it, and the examples."""

    summary: str
    details: str
    examples: tuple[str, ...]


def documentation_of(handler: Callable[..., object]) -> Documentation:
    """Parse a handler's docstring: its first line, the paragraphs up to the first section, and ``Examples:``."""
    text = inspect.getdoc(handler) or ""
    summary, _, rest = text.partition("\n")
    details, *sections = _SECTION.split(rest)
    section_of = dict(zip(sections[::2], sections[1::2], strict=True))
    examples = tuple(line.strip() for line in section_of.get("Examples", "").splitlines() if line.strip())
    return Documentation(summary, _LINE_BREAK.sub(" ", details.strip()), examples)
