"""Declarations of commands, their arguments and their options, valid and refused."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated

import pytest

from chorus_cli.catalogue import registry
from chorus_cli.core.errors import ChorusError, CommandError
from chorus_cli.core.time.timespan import Span
from chorus_cli.framework.arguments import (
    COMMAND,
    COUNT,
    NUMBER,
    TEXT,
    TIME,
    Argument,
    Candidate,
    Documentation,
    Parameter,
    flag,
    phrases,
)
from chorus_cli.framework.command_line import completions, resolve
from chorus_cli.framework.registry import Command, CommandGroup, CommandRegistry
from chorus_cli.framework.replies import Text
from tests.framework.test_typed_lines import NOW, Desk, undo


def test_no_word_that_is_typed_means_two_commands() -> None:
    groups = registry().groups
    first_words = [
        *(word for group in groups for word in ([*group.aliases, group.name] if group.name else [])),
        *(word for group in groups for command in group.commands for word in (*command.aliases, *command.guesses)),
        *(word for group in groups if not group.name for command in group.commands for word in command.names),
    ]
    assert len({*first_words}) == len(first_words)
    for group in groups:
        names = [name for command in group.commands for name in command.names]
        assert len({*names}) == len(names)
        assert [name for name in (*names, *first_words) if name.split() not in ([], [name.casefold()])] == []
        assert group.summary.count(".") == 1
        assert [each for each in group.commands if each.default] == ([group.default] if group.default else [])
        assert group.default is None or group.default.arguments


def test_a_default_whose_argument_may_be_left_out_serves_the_group_alone() -> None:
    group: CommandGroup[Desk] = CommandGroup("it", "It.")
    group.command("undo", default=True)(undo)
    bound = resolve(CommandRegistry([group]), "/it", NOW)
    assert bound.arguments == (None,)


@pytest.mark.parametrize(
    ("count", "text", "expected"),
    [
        (0, "", []),
        (1, "", []),
        (1, "  \t ", []),
        (1, "one", ["one"]),
        (1, "  don't   lose \"this  ", ["don't   lose \"this"]),
        (2, "one", ["one"]),
        (2, "one   two  'three   four ", ["one", "two  'three   four"]),
        (3, "a b c d", ["a", "b", "c d"]),
    ],
)
def test_every_argument_is_a_word_but_the_last_which_is_the_rest_as_typed(
    count: int, text: str, expected: list[str]
) -> None:
    async def take(_context: None, *_words: object) -> Text:
        return Text("")

    takes = tuple([Argument(TEXT, required=False)] * count)
    bound = Command("", ("take",), take, takes, (), Documentation("Take.", "", ("/take",))).bound(text, NOW)
    assert [word for word in bound.arguments if word is not None] == expected


@pytest.mark.parametrize(
    ("parameter", "text", "value"),
    [
        (TIME, "2 days", Span(172800)),
        (NUMBER, "3", 3),
        (NUMBER, "#12", 12),
        (NUMBER, "# 12", 12),
        (TEXT, "don't  touch", "don't  touch"),
        (COMMAND, "/Context  SET", "context set"),
        (COMMAND, "context", "context"),
    ],
)
def test_a_shared_parameter_reads_its_text(parameter: Parameter[object], text: str, value: object) -> None:
    assert parameter.parse(text, NOW) == value


@pytest.mark.parametrize("text", ["0", "#0", "-3", "+3", "1.5", "three", "#", "3 4", "²", "9" * 19, "\x1b[2J"])
def test_what_is_no_positive_number_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ChorusError) as refusal:
        NUMBER.parse(text, NOW)
    assert "is not a number from 1 upwards" in str(refusal.value)
    assert str(refusal.value).isprintable()


def test_every_time_on_offer_can_be_read() -> None:
    offered = TIME.complete(None, "")
    assert offered
    assert all(TIME.parse(candidate.text, NOW).seconds > 0 and candidate.description for candidate in offered)


def test_what_stands_before_an_argument_can_decide_how_it_goes_on() -> None:
    def complete(_context: object, before: Sequence[str], text: str) -> Sequence[Candidate]:
        return [Candidate(f"{' '.join(before)} {text}")]

    value = replace(TEXT, complete_after=complete)
    assert value.candidates(None, ["one", "two"], "th") == [Candidate("one two th")]
    assert TIME.candidates(None, ["one"], "") == TIME.complete(None, "")


GROUP: CommandGroup[None] = CommandGroup("", "Everything.")
DRY = flag("change nothing")
WAY = replace(TEXT, name="W", choices=("dry", "wet"))


@GROUP.command("find")
async def find(
    _desk: None, words: Annotated[str, TEXT], *, most: Annotated[int, COUNT] = 7, dry_run: Annotated[bool, DRY] = False
) -> Text:
    """Find words.

    Examples:
        /find words
    """
    return Text(f"{words} {most} {dry_run}")


@GROUP.command("sweep")
async def sweep(_desk: None, *, dry_run: Annotated[bool, DRY] = False) -> Text:
    """Sweep.

    Examples:
        /sweep
    """
    return Text(f"{dry_run}")


@GROUP.command("mop")
async def mop(_desk: None, *, way: Annotated[str, WAY] = "dry") -> Text:
    """Mop.

    Examples:
        /mop
    """
    return Text(way)


REGISTRY = CommandRegistry([GROUP])


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("/find don't  stop", "don't  stop 7 False"),
        ("/find a b --dry-run", "a b 7 True"),
        ("/find --dry-run a b", "a b 7 True"),
        ("/find a --dry-run b --most #3", "a b 3 True"),
        ('/find "a --dry-run"', '"a --dry-run" 7 False'),
        ("/find a --dry", "a --dry 7 False"),
        ("/sweep --dry-run", "True"),
        ("/mop --way wet", "wet"),
    ],
)
async def test_options_are_taken_out_of_a_typed_line(line: str, answer: str) -> None:
    assert await resolve(REGISTRY, line, NOW).run(None) == Text(answer)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("/find --dry-run", r"/find needs <text>\. Usage: /find <text> \[--most number\] \[--dry-run\]"),
        ("/find a --most", "--most needs number: a number such as 3."),
        ("/find a --most x", "--most: 'x' is not a number from 1 upwards, such as 3."),
        ("/sweep all", "/sweep takes only --dry-run, not 'all'."),
        ("/mop --way damp", "--way takes dry or wet, not 'damp'."),
    ],
)
def test_what_does_not_fit_is_refused(line: str, sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        resolve(REGISTRY, line, NOW)


async def test_a_shell_gives_words_and_values() -> None:
    command = resolve(REGISTRY, "/find x", NOW).command
    assert await command.bound_to(["a", "b --most"], {"most": "3", "dry_run": ""}, NOW).run(None) == Text(
        "a b --most 3 True"
    )
    with pytest.raises(CommandError, match=r"chorus find needs <text>\. Usage: chorus find <text>"):
        command.bound_to([], {}, NOW)


def test_words_of_a_shell_with_blanks_are_phrases() -> None:
    assert phrases(["red", "old house", '"x y"']) == 'red "old house" "x y"'


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("/find a -", ["--most", "--dry-run"]),
        ("/find a --d", ["--dry-run"]),
        ("/sweep ", ["--dry-run"]),
        ("/find a", []),
    ],
)
def test_options_are_completed(line: str, offered: list[str]) -> None:
    assert [each.text for each in completions(REGISTRY, None, line).candidates] == offered


@pytest.mark.parametrize("value", ["no such word", "-1", "\ud800"])
def test_no_value_of_any_argument_is_a_bug(value: str) -> None:
    arguments = (argument for command in registry() for argument in (*command.arguments, *command.options))
    # A value that is none of the choices is refused before it is read.
    for argument in (each for each in arguments if not each.parameter.choices):
        with suppress(ChorusError):
            argument.parameter.parse(value, NOW)
