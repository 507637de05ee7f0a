"""Options: keyword-only arguments, typed as ``--name`` in the chat and in a shell."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import pytest

from chorus_cli.catalogue import registry
from chorus_cli.core.errors import ChorusError, CommandError
from chorus_cli.framework.arguments import COUNT, TEXT, flag, phrases
from chorus_cli.framework.command_line import completions, resolve
from chorus_cli.framework.registry import CommandGroup, CommandRegistry
from chorus_cli.framework.replies import Text

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)
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
