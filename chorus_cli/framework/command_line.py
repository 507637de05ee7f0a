"""Parses a command line into a command and its arguments, completes command lines, and reads the user's own commands.

A name is matched exactly, then as a unique prefix; otherwise similar names are suggested. Within a group, a text such
as ``24h`` in ``/context 24h`` is tried as the argument of the group's default command before it is tried as a prefix.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from chorus_cli.core import limits
from chorus_cli.core.errors import ChorusError, CommandError
from chorus_cli.core.text.phrases import quoted, shortened
from chorus_cli.framework.arguments import Argument, Candidate
from chorus_cli.framework.registry import Bound, C, Command, CommandGroup, CommandRegistry
from chorus_cli.storage.files import read_within

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Completions:
    """Completions of a line; each replaces the text from ``start`` on."""

    start: int
    candidates: tuple[Candidate, ...] = ()


def resolve(registry: CommandRegistry[C], line: str, now: datetime) -> Bound[C]:
    """Parse a line such as ``/context set 24h``; ``now`` is the aware local time."""
    word, rest = _split(line.strip().removeprefix("/"))
    if ":" in word and registry.with_colon:
        return registry.with_colon.bound(f"{word} {rest}", now)
    entry = _found(word, registry.words, registry.guesses)
    if isinstance(entry, Command):
        return entry.bound(rest, now)
    return _within(entry, rest, now)


def look_up(registry: CommandRegistry[C], words: str) -> Command[C] | CommandGroup[C]:
    """Find a command or group by its name: ``context``, ``context set``, ``/new``."""
    word, rest = _split(words.strip().removeprefix("/"))
    entry = _found(word, registry.words, registry.guesses, kind="command or topic")
    if isinstance(entry, Command) or not rest:
        return entry
    return _found(_split(rest)[0], entry.words, entry.guesses, f"/{entry.name} ")


def completions(registry: CommandRegistry[C], context: C, line: str) -> Completions:
    """Complete the line up to the cursor: commands, then subcommands, then arguments."""
    if not line.startswith("/"):
        return Completions(len(line))
    word, start = _word_at(line, 1)
    others = registry.with_colon
    if start is None:
        named = _argument_completions(others, context, line, 1).candidates if others else ()
        with_slash = (replace(each, text=f"/{each.text}") for each in named)
        return Completions(0, (*_names(registry.words, word, "/"), *with_slash))
    if ":" in word and others:
        return _argument_completions(others, context, line, 1)
    entry = registry.words.get(word.casefold())
    if isinstance(entry, Command):
        return _argument_completions(entry, context, line, start)
    return _group_completions(entry, context, line, start) if entry else Completions(len(line))


def _split(text: str) -> tuple[str, str]:
    """Split the first word from the rest, which keeps its inner blanks."""
    word, *rest = text.strip().split(None, 1) or [""]
    return word, "".join(rest)


def _within(group: CommandGroup[C], text: str, now: datetime) -> Bound[C]:
    word, rest = _split(text)
    lead = f"/{group.name} "
    command = group.words.get(word.casefold())
    # A name that is a sign needs no blank after it: /context +8h.
    if command is None and text[:1] in {"+", "-"} and text[0] in group.words:
        word, rest = text[0], text[1:]
        command = group.words[word]
    refusal: ChorusError | None = None
    if command is None and group.default:
        try:
            return group.default.bound(text, now)
        except ChorusError as error:
            refusal = error
    if command is None and not word and refusal is None:
        names = [each.names[0] for each in group.commands if each.listed != "nowhere"]
        raise CommandError(f"{lead}needs one of: {', '.join(names)}.")
    command = command or _found(word, group.words, group.guesses, lead, refusal)
    return command.bound(rest, now)


def _found(
    word: str,
    words: Mapping[str, Entry],
    guesses: Mapping[str, Command[C]],
    lead: str = "/",
    refusal: ChorusError | None = None,
    kind: str = "command",
) -> Entry:
    """Return the entry named ``word``, or the only entry with a name that begins with ``word``.

    Otherwise raise an error with a suggestion. Without a suggestion, raise the default command's ``refusal`` if given.
    """
    typed = word.casefold()
    if typed in words:
        return words[typed]
    found = _beginning_with(words, typed) if typed else []
    if len(found) > 1:
        *others, last = sorted(f"{lead}{name}" for name in found)
        raise CommandError(f"{lead}{typed} is ambiguous: {', '.join(others)} or {last}?")
    if found:
        return words[found[0]]
    if typed in guesses:
        raise CommandError(_unknown(kind, lead + word, guesses[typed].shown))
    # A word that may be an argument needs a closer match: "last" is an incomplete time, no misspelt "at".
    alike = get_close_matches(typed, filter(None, words), cutoff=0.6 if refusal is None else 0.7)
    if alike:
        meant = " or ".join(f"{lead}{name}" for name in _one_name_each(words, alike))
        raise CommandError(_unknown(kind, lead + word, meant))
    raise refusal or CommandError(_unknown(kind, lead + word, group=lead[1:].strip()))


def _beginning_with(words: Mapping[str, Entry], typed: str) -> list[str]:
    return _one_name_each(words, [name for name in words if name and name.startswith(typed)])


def _one_name_each(words: Mapping[str, Entry], names: Iterable[str]) -> list[str]:
    """Keep only the first name of each entry."""
    first_names: dict[int, str] = {}
    for name in names:
        first_names.setdefault(id(words[name]), name)
    return list(first_names.values())


def _unknown(kind: str, typed: str, meant: str = "", group: str = "") -> str:
    suggestion = f" Did you mean {meant}?" if meant else ""
    listing = f"/help {group} lists its commands." if group else "/help all lists all commands."
    return f"There is no {kind} {quoted(typed)}.{suggestion} {listing}"


def _word_at(line: str, start: int) -> tuple[str, int | None]:
    """Return the word at ``start`` and where the next word starts; ``None`` if no blank follows this word yet."""
    end = next((place for place in range(start, len(line)) if line[place].isspace()), None)
    if end is None:
        return line[start:], None
    return line[start:end], len(line) - len(line[end:].lstrip())


def _names(words: Mapping[str, Command[C] | CommandGroup[C]], typed: str, lead: str = "") -> tuple[Candidate, ...]:
    """Offer the names that the help shows."""
    found = _beginning_with(words, typed.casefold())
    return tuple(Candidate(lead + name, words[name].summary) for name in found if _is_shown(words[name], lead + name))


def _is_shown(entry: Command[C] | CommandGroup[C], name: str) -> bool:
    if isinstance(entry, CommandGroup):
        return name == f"/{entry.name}"
    return entry.listed != "nowhere" and not entry.default and name in {entry.shown, entry.names[0]}


def _group_completions(group: CommandGroup[C], context: C, line: str, start: int) -> Completions:
    word, next_start = _word_at(line, start)
    command = group.words.get(word.casefold())
    if next_start is not None and command:
        return _argument_completions(command, context, line, next_start)
    values = _argument_completions(group.default, context, line, start) if group.default else Completions(start)
    names = _names(group.words, word) if next_start is None else ()
    return Completions(start, (values.candidates if values.start == start else ()) + names)


def _argument_completions(command: Command[C], context: C, line: str, start: int) -> Completions:
    begun = line[max(start, line.rfind(" ") + 1) :]
    if command.options and (begun.startswith("-") or not command.arguments):
        fitting = [each for each in command.options if each.spelling.startswith(begun)]
        return Completions(
            len(line) - len(begun), tuple(Candidate(each.spelling, each.parameter.help) for each in fitting)
        )
    if not command.arguments:
        return Completions(len(line))
    *words, last = command.arguments
    before: list[str] = []
    for argument in words:
        word, next_start = _word_at(line, start)
        if next_start is None:
            return _values(argument, context, before, line, start)
        before.append(word)
        start = next_start
    return _values(last, context, before, line, start)


def _values(argument: Argument, context: C, before: Sequence[str], line: str, start: int) -> Completions:
    typed = line[start:]
    offered = argument.parameter.candidates(context, before, typed)
    fitting = (each for each in offered if each.text.casefold().startswith(typed.casefold()))
    return Completions(start, tuple(fitting))


ARGUMENTS = "$ARGUMENTS"
"""In a template, the text that the user types after the template's name replaces this."""

_ENDING = ".md"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?P<fields>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_DESCRIPTION = re.compile(r"^description:[ \t]*(?P<text>.*)$", re.MULTILINE)
_AROUND = " \t\"'"


class Template(NamedTuple):
    """A command of the user's own: the name that follows the slash, a line about the command, and its text."""

    name: str
    description: str
    body: str

    def filled(self, arguments: str) -> str:
        """Return the message: ``arguments`` replace ``$ARGUMENTS``, or follow a template without ``$ARGUMENTS``."""
        if ARGUMENTS in self.body:
            return self.body.replace(ARGUMENTS, arguments)
        return f"{self.body}\n\n{arguments}" if arguments else self.body


def template_of(name: str, text: str) -> Template:
    """Read a template; its description is ``description:`` in the front matter, or else the first line of the text."""
    text = text.replace("\r\n", "\n")
    matter = _FRONT_MATTER.match(text)
    body = text[matter.end() if matter else 0 :].strip()
    described = _DESCRIPTION.search(matter["fields"]) if matter else None
    first_line = body.partition("\n")[0].lstrip("# ")
    return Template(name, shortened((described["text"].strip(_AROUND) if described else "") or first_line), body)


class OwnCommands(Generic[C]):
    """The registry with the user's own commands. Changed files are read again; earlier folders take precedence."""

    def __init__(
        self,
        built_in: Sequence[CommandGroup[C]],
        folders_of: Callable[[str], Sequence[Path]],
        command_of: Callable[[Template], Command[C]],
    ) -> None:
        self._built_in = built_in
        self._folders_of = folders_of
        self._command_of = command_of
        self._plain = self._registry = CommandRegistry(built_in)
        self._files: dict[Path, tuple[int, int]] = {}
        self._own: CommandGroup[C] = CommandGroup("")
        self._flaws: list[str] = []
        self._told: set[str] = set()

    def registry(self, slug: str) -> CommandRegistry[C]:
        """Return the registry of all commands in a chat with a persona."""
        files: dict[Path, tuple[int, int]] = {}
        for folder in self._folders_of(slug):
            # A folder that cannot be read has no commands.
            with suppress(OSError), os.scandir(folder) as entries:
                named = [each for each in entries if each.name.endswith(_ENDING) and not each.name.startswith(".")]
                for entry in sorted((each for each in named if each.is_file()), key=lambda each: each.name):
                    files[Path(entry.path)] = entry.stat().st_mtime_ns, entry.stat().st_size
        if files != self._files:
            self._files = files
            self._read()
        return self._registry

    def is_own(self, command: Command[C]) -> bool:
        """Return whether ``command`` is the user's own; such a command asks a model."""
        return command.names[0] in self._own.words and not command.group

    def new_flaws(self, slug: str) -> list[str]:
        """Return sentences about files that cannot be commands; a sentence is returned only once in a run."""
        self.registry(slug)
        new = [flaw for flaw in self._flaws if flaw not in self._told]
        self._told.update(new)
        return new

    def _read(self) -> None:
        self._own, self._flaws = CommandGroup(""), []
        for path in self._files:
            try:
                template = self._template(path)
            except ValueError as flaw:
                self._flaws.append(f"{path} is not used as a command: {flaw}.")
                continue
            if template.name not in self._own.words:
                self._own.add(self._command_of(template))
        self._registry = CommandRegistry(self._built_in, self._own) if self._own.commands else self._plain

    def _template(self, path: Path) -> Template:
        """Read a template, or raise a ``ValueError`` that says why the file cannot be a command."""
        name = path.stem.casefold()
        if _NAME.fullmatch(name) is None:
            raise ValueError("its name may have only letters from a to z, digits, hyphens and underscores")
        if name in self._plain.words:
            raise ValueError(f"/{name} is a Chorus command; rename the file")
        try:
            template = template_of(name, read_within(path, limits.OWN_COMMAND).decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise ValueError("it is not UTF-8") from None
        except OSError as error:
            raise ValueError(error.strerror) from error
        if not template.body:
            raise ValueError("it is empty")
        return template
