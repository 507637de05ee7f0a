"""Declarations of commands, valid and refused."""

from __future__ import annotations

from typing import Annotated

import pytest

from chorus_cli.core.time.timespan import Span
from chorus_cli.framework.arguments import TIME
from chorus_cli.framework.command_line import resolve
from chorus_cli.framework.registry import CommandGroup, CommandRegistry
from chorus_cli.framework.replies import Text
from tests.framework.example_commands import NOW, Desk, undo


async def _documented(_desk: Desk) -> Text:
    """Do it.

    Examples:
        /it
    """
    return Text("done")


async def _second(_desk: Desk, _time: Annotated[Span, TIME]) -> Text:
    """Do it with a time.

    Examples:
        /it 2h
    """
    return Text("done")


async def _undocumented(_desk: Desk) -> Text:
    return Text("done")


async def _without_example(_desk: Desk) -> Text:
    """Do it."""
    return Text("done")


async def _example_without_slash(_desk: Desk) -> Text:
    """Do it.

    Examples:
        it
    """
    return Text("done")


def _fresh(name: str = "it", summary: str = "It.", aliases: tuple[str, ...] = ()) -> CommandGroup[Desk]:
    return CommandGroup(name, summary, aliases=aliases)


def test_a_handler_needs_a_docstring_with_examples() -> None:
    for handler in (_undocumented, _without_example, _example_without_slash):
        with pytest.raises(TypeError, match=f"{handler.__name__} needs a docstring"):
            _fresh().command("it")(handler)


@pytest.mark.parametrize("names", [("Set",), ("a b",), ("it", "It")])
def test_a_name_is_a_word_in_small_letters(names: tuple[str, ...]) -> None:
    with pytest.raises(TypeError, match="one word in small letters"):
        _fresh().command(*names)(_documented)


def test_a_command_at_the_top_level_needs_a_name() -> None:
    with pytest.raises(TypeError, match="none is empty at the top level"):
        _fresh("").command("")(_documented)


def test_no_name_or_alias_is_declared_twice_within_a_group() -> None:
    group = _fresh()
    group.command("one", "uno")(_documented)
    with pytest.raises(TypeError, match="/it uno: 'uno' is declared twice"):
        group.command("uno")(_documented)
    with pytest.raises(TypeError, match="/it two: 'same' is declared twice"):
        group.command("two", aliases=("same", "same"))(_documented)


def test_a_default_takes_an_argument_and_is_the_only_one_of_its_group() -> None:
    group = _fresh()
    group.command("one", default=True)(_second)
    with pytest.raises(TypeError, match="the only one there"):
        group.command("two", default=True)(_second)
    with pytest.raises(TypeError, match="takes an argument"):
        _fresh().command("one", default=True)(_documented)
    with pytest.raises(TypeError, match="belongs to a group"):
        _fresh("").command("one", default=True)(_second)


def test_no_path_is_declared_twice_in_groups_of_one_name() -> None:
    first, second = _fresh(), _fresh(summary="")
    first.command("one")(_documented)
    second.command("one")(_documented)
    with pytest.raises(TypeError, match="/it one: 'one' is declared twice"):
        CommandRegistry([first, second])


def test_no_word_at_the_top_level_is_declared_twice() -> None:
    group, other, top = _fresh(aliases=("i",)), _fresh("other"), _fresh("")
    group.command("one", aliases=("go",))(_documented)
    other.command("one", aliases=("go",))(_documented)
    top.command("i")(_documented)
    with pytest.raises(TypeError, match="'go' is declared twice"):
        CommandRegistry([group, other])
    with pytest.raises(TypeError, match="'i' is declared twice"):
        CommandRegistry([group, top])


def test_no_guess_is_a_word_that_names_something_or_the_guess_of_another() -> None:
    named, guessed, other = _fresh(), _fresh(), _fresh("other")
    named.command("one", aliases=("go",))(_documented)
    guessed.command("one", guesses=("go",))(_documented)
    other.command("one", guesses=("go",))(_documented)
    for group in (named, guessed):
        with pytest.raises(TypeError, match="'go' is declared twice"):
            CommandRegistry([group, other])


@pytest.mark.parametrize("summaries", [("", ""), ("One.", "Another.")])
def test_a_group_has_exactly_one_summary(summaries: tuple[str, ...]) -> None:
    with pytest.raises(TypeError, match="a group needs one summary"):
        CommandRegistry([_fresh(summary=summary) for summary in summaries])


def test_a_default_whose_argument_may_be_left_out_serves_the_group_alone() -> None:
    group = _fresh()
    group.command("undo", default=True)(undo)
    bound = resolve(CommandRegistry([group]), "/it", NOW)
    assert bound.arguments == (None,)
