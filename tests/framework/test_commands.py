"""Commands as they are declared, the user's own, which are sent as messages, and those of a private chat."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import pytest

from chorus_cli.catalogue import groups, registry
from chorus_cli.core.errors import ChorusError, CommandError
from chorus_cli.core.text.phrases import shortened
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
from chorus_cli.framework.command_line import OwnCommands, completions, resolve, template_of
from chorus_cli.framework.registry import Command, CommandGroup, CommandRegistry
from chorus_cli.framework.replies import Answer, Exit, PrivateChat, Refill, Text, plain
from chorus_cli.private import ANNOUNCED, REFUSED, private_groups
from chorus_cli.threads.commands.composing import command_of
from chorus_cli.threads.service.running_turn import RunningTurn
from tests.framework.test_typed_lines import NOW, Desk, undo
from tests.world import World


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
        assert group.summary.count(".") == bool(group.name)
        assert [each for each in group.commands if each.default] == ([group.default] if group.default else [])
        assert group.default is None or group.default.arguments
    assert registry().topics.keys() <= registry().summaries.keys()
    assert all(each.count(".") == 1 for each in registry().summaries.values())


def test_a_default_whose_argument_may_be_left_out_serves_the_group_alone() -> None:
    group: CommandGroup[Desk] = CommandGroup("it", "It.")
    group.command("undo", default=True)(undo)
    bound = resolve(CommandRegistry([group]), "/it", NOW)
    assert bound.arguments == (None,)


@pytest.mark.parametrize(
    ("count", "text", "expected"),
    [
        *((0, "", []), (1, "", []), (1, "  \t ", []), (1, "one", ["one"])),
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
        *((TIME, "2 days", Span(172800)), (NUMBER, "3", 3), (NUMBER, "#12", 12), (NUMBER, "# 12", 12)),
        *((TEXT, "don't  touch", "don't  touch"), (COMMAND, "/Context  SET", "context set")),
        (COMMAND, "context", "context"),
    ],
)
def test_a_shared_parameter_reads_its_text(parameter: Parameter[object], text: str, value: object) -> None:
    assert parameter.parse(text, NOW) == value


@pytest.mark.parametrize("text", ["0", "#0", "-3", "+3", "1.5", "three", "#", "3 4", "²", "9" * 19, "\x1b[2J"])
def test_what_is_no_positive_number_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ChorusError) as refusal:
        NUMBER.parse(text, NOW)
    assert "is not a whole number above 0, such as" in str(refusal.value)
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


class Finding(NamedTuple):
    most: Annotated[int, COUNT] = 7
    dry_run: Annotated[bool, DRY] = False


@GROUP.command("find")
async def find(_desk: None, words: Annotated[str, TEXT], *, options: Finding) -> Text:
    """Find words.

    Examples:
        /find words
    """
    return Text(f"{words} {options.most} {options.dry_run}")


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


@GROUP.command("tidy")
async def tidy(_desk: None, *, each: Annotated[str, replace(TEXT, name="E", repeats=True)] = "") -> Text:
    """Tidy.

    Examples:
        /tidy
    """
    return Text(each)


REGISTRY = CommandRegistry([GROUP])


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        *(("/find don't  stop", "don't  stop 7 False"), ("/find a b --dry-run", "a b 7 True")),
        ("/find --dry-run a b", "a b 7 True"),
        ("/find a --dry-run b --most #3", "a b 3 True"),
        ('/find "a --dry-run"', '"a --dry-run" 7 False'),
        ('/find 5" a --dry-run', '5" a 7 True'),
        *(
            ("/find a -- --dry-run", "a -- --dry-run 7 False"),
            ("/find a --most 3 -- b --dry-run", "a -- b --dry-run 3 False"),
        ),
        *(("/tidy --each a --each b  c", "a\nb  c"), ("/tidy --each a", "a")),
        *(("/find a --dry", "a --dry 7 False"), ("/sweep --dry-run", "True"), ("/mop --way wet", "wet")),
    ],
)
async def test_options_are_taken_out_of_a_typed_line(line: str, answer: str) -> None:
    assert await resolve(REGISTRY, line, NOW).run(None) == Text(answer)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("/find --dry-run", "/find needs <text>, for example: /find"),
        ("/find a --most", "--most needs number: a number such as 3."),
        ("/find a --most x", "--most: 'x' is not a whole number above 0, such as 3."),
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
    with pytest.raises(CommandError, match="chorus find needs <text>, for example: chorus find"):
        command.bound_to([], {}, NOW)


def test_words_of_a_shell_with_blanks_are_phrases() -> None:
    assert phrases(["red", "old house", '"x y"']) == 'red "old house" "x y"'


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        *(("/find a -", ["--most", "--dry-run"]), ("/find a --d", ["--dry-run"]), ("/sweep ", ["--dry-run"])),
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


@pytest.fixture
def shared(world: World) -> Path:
    folder = world.folder / "commands"
    folder.mkdir()
    return folder


def turn(message: str) -> str:
    return f'your message "{shortened(message)}" and its reply'


async def sent(world: World, line: str) -> str:
    """Type a line and return the message that the model was sent."""
    turn = await answered(world, line)
    assert isinstance(turn, RunningTurn)
    await turn.over()
    return world.asked()[-1][1]


@pytest.mark.parametrize(
    ("template", "line", "message"),
    [
        ("Explain $ARGUMENTS in one line.", "/explain don't panic", "Explain don't panic in one line."),
        *(("$ARGUMENTS? $ARGUMENTS!", "/explain  why", "why? why!"), ("Explain this.", "/explain", "Explain this.")),
        ("Explain this.", "/explain monads", "Explain this.\n\nmonads"),
        ("Explain $ARGUMENTS", "/expl x", "Explain x"),
        ("---\ndescription: Explains\n---\n\nExplain $ARGUMENTS\r\n", "/EXPLAIN x", "Explain x"),
    ],
    ids=["in its place", "twice", "without", "at the end", "by a beginning", "with front matter"],
)
async def test_a_template_is_sent_with_the_text_after_its_name(
    world: World, shared: Path, template: str, line: str, message: str
) -> None:
    (shared / "explain.md").write_text(template)
    assert await sent(world, line) == message
    assert await world.carry_out("/undo") == Refill(f"Undone: {turn(message)}", message, gives_way=True)


async def test_files_that_a_template_names_are_attached(
    world: World, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("Buy milk.")
    (shared / "plan.md").write_text("Plan my day by @notes.txt, not by @nothing.")
    assert await sent(world, "/plan") == "Plan my day by @notes.txt, not by @nothing."
    assert [each.name for each in world.model.requests[-1].messages[-1].attachments] == ["notes.txt"]
    assert [each.name for each in (await world.log())[0].attachments] == ["notes.txt"]


async def test_those_of_a_persona_take_precedence_and_are_of_it_alone(world: World, shared: Path) -> None:
    of_persona = world.personas.folder / "chorus" / "commands"
    of_persona.mkdir()
    (shared / "hi.md").write_text("Hi all.")
    (of_persona / "hi.md").write_text("Hi you.")
    assert await sent(world, "/hi") == "Hi you."
    (of_persona / "hi.md").unlink()
    assert await sent(world, "/hi") == "Hi all."
    (shared / "hi.md").unlink()
    assert "There is no command '/hi'" in await world.told("/hi")


async def test_the_help_of_a_group_has_its_commands_alone(world: World) -> None:
    summary, *lines = (await world.told("/help mcp")).splitlines()
    assert summary == "Servers whose tools the model may call (MCP)."
    typed = [line.split()[:2] for line in lines if line.startswith("  /")]
    assert {word for word, _ in typed} == {"/mcp"}
    assert {"add", "import", "remove"} <= {word for _, word in typed}


async def test_they_are_listed_explained_and_completed(world: World, shared: Path) -> None:
    (shared / "explain.md").write_text('---\ndescription: "Explains a word"\n---\nExplain $ARGUMENTS')
    (shared / "hello.md").write_text("# Say hello\nto me")
    assert "/explain" not in await world.told("/help")
    menu = await world.told("/help all")
    assert "/explain [text]" in menu
    assert "Explains a word" in menu
    assert "Say hello" in menu
    assert "Explain $ARGUMENTS" in await world.told("/help explain")
    offered = completions(world.services.registry, world.services, "/expl").candidates
    assert [(each.text, each.description) for each in offered] == [("/explain", "Explains a word")]


@pytest.mark.parametrize(
    ("name", "content", "flaw"),
    [
        ("new.md", b"x", "/new is a Chorus command; rename the file"),
        ("Two words.md", b"x", "its name may have only letters from a to z, digits, hyphens and underscores"),
        ("blank.md", b" \n", "it is empty"),
        ("latin.md", b"\xe9", "it is not UTF-8"),
        ("big.md", b"x" * 1_000_001, "it is larger than 1 MB"),
    ],
)
async def test_a_file_that_cannot_be_a_command_is_told_once(
    world: World, shared: Path, name: str, content: bytes, flaw: str
) -> None:
    (shared / name).write_bytes(content)
    own = world.services.own_commands
    assert own.new_flaws("chorus") == [f"{shared / name} is not used as a command: {flaw}."]
    assert own.new_flaws("chorus") == []


async def test_a_word_that_only_leads_to_a_command_may_be_a_name(world: World, shared: Path) -> None:
    (shared / "history.md").write_text("Tell me the history of Rome.")
    assert await sent(world, "/history") == "Tell me the history of Rome."


async def test_a_template_that_has_only_a_place_needs_text(world: World, shared: Path) -> None:
    (shared / "say.md").write_text("$ARGUMENTS")
    assert await world.told("/say") == "/say needs text: its template is empty without it."


def test_front_matter_that_is_not_closed_is_text() -> None:
    assert template_of("a", "---\ndescription: x\nyes").body == "---\ndescription: x\nyes"


@pytest.fixture
def private(world: World) -> World:
    commands = OwnCommands(private_groups(groups()), lambda _slug: (), command_of)
    world.services = replace(world.services, own_commands=commands)
    return world


async def answered(world: World, line: str) -> Answer:
    return await resolve(world.services.registry, line, world.clock.now()).run(world.services)


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and "chorus.db" not in str(path)
    }


def test_every_command_that_is_refused_or_announced_is_one() -> None:
    assert {*REFUSED, *ANNOUNCED} <= {name for command in registry() for name in (command.path, command.group)}
    assert not {*REFUSED} & {*ANNOUNCED}


def test_of_each_group_of_commands_it_is_decided_what_it_is_in_a_private_chat() -> None:
    """Those of these groups keep nothing but in the log, which is in memory, unless they are refused or announced."""
    usual = {"", "context", "memory", "thread", "jobs", "settings", "attach", "tools"}
    assert {command.group for command in registry()} - REFUSED.keys() == usual


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("/import export.zip", "Conversations are imported into the log"),
        *(
            ("/mcp add t -- x", "A private chat changes no server"),
            ("/mcp remove t", "A private chat changes no server"),
        ),
        ("/persona new Gandalf", "cannot create or change a persona"),
        ("/persona import mira.png", "cannot create or change a persona"),
        ("/persona archive", "cannot create or change a persona"),
        ("/persona delete chorus", "cannot create or change a persona"),
        ("/persona Gandalf", "There is no such persona."),
        ("/rescue", "Rescued texts belong to the log"),
        ("/rescue keep", "Rescued texts belong to the log"),
        ("/backup", "A private chat has no backup."),
        ("/private and my secret", "typed here, it would not be private"),
    ],
)
async def test_a_command_that_changes_what_is_kept_is_refused_and_does_nothing(
    private: World, line: str, sentence: str
) -> None:
    before = files(private.folder)
    with pytest.raises(CommandError, match=sentence):
        await answered(private, line)
    assert files(private.folder) == before


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("/settings set temperature 0.3", "This holds until the private chat ends."),
        ("/remember tea", "This holds until the private chat ends."),
        ("/export {folder}/talk.md", "This writes a file, which is kept."),
    ],
)
async def test_a_command_that_keeps_something_elsewhere_is_preceded_by_a_sentence(
    private: World, line: str, sentence: str
) -> None:
    told: list[str] = []
    await private.say("hello")
    with private.services.notifier.heard_by(told.append, told.append):
        await answered(private, line.format(folder=private.folder))
    assert told[0] == sentence


async def test_a_private_chat_begins_and_ends_by_one_command(world: World, private: World) -> None:
    assert isinstance(await answered(private, "/private off"), Exit)
    assert isinstance(await answered(private, "/quit"), Exit)
    assert "nothing of it is kept" in await private.told("/private")
    private.services = replace(private.services, own_commands=OwnCommands(groups(), lambda _slug: (), command_of))
    begun = await answered(world, "/private")
    assert isinstance(begun, PrivateChat)
    assert plain(begun) == ""
    assert await world.told("/private off") == "This chat is not private. /private begins a private chat."


async def test_help_and_completion_know_the_commands_of_a_private_chat(private: World) -> None:
    here = private.services
    assert "everything is kept" not in await private.told("/help quit")
    assert "Not in a private chat." in await private.told("/help import")
    assert {each.text for each in completions(here.registry, here, "/private o").candidates} == {"off"}
