"""Tables as wide as the terminal allows, the last exchange of a thread, and the marks in ``chorus log``."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from chorus_cli.context.service.transcript import Selection, operations_of, transcript
from chorus_cli.framework.replies import CURRENT, Reply, Said, Table, Text
from chorus_cli.log.rules.journal import log_marks
from chorus_cli.log.rules.messages import Status
from chorus_cli.log.rules.threads import Exchange
from chorus_cli.log.rules.wording import entry_as_json
from chorus_cli.models.rules.choice import ELIZA
from chorus_cli.personas.rules.persona import Persona
from chorus_cli.settings.rules.table import Settings
from chorus_cli.subcommands.log import show_transcript
from chorus_cli.terminal.drawing import beginning, draw, drawn_exchange
from chorus_cli.terminal.screen.output import Screen
from tests.terminal.screen.terminal_file import TerminalFile
from tests.world import World

TABLE = Table("Left out", ("Why", "Messages", ""), (("before the boundary", "2", "x"), ("taken back", "1", "")))
OLD = timedelta(days=120)
CHORUS, MIRA = Persona("chorus", Settings(name="Chorus")), Persona("mira", Settings(name="Mira"), has_card=True)
Drawn = Callable[[Reply, int], str]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    def drawn(reply: Reply, columns: int) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        file = TerminalFile()
        screen = Screen(file, {"NO_COLOR": "1"})
        draw(reply, screen)
        assert screen.guard.blocked == 0
        return file.written

    return drawn


def test_a_wide_terminal_gets_a_table(drawn: Drawn) -> None:
    lines = drawn(TABLE, 80).splitlines()
    assert any("Why" in line and "Messages" in line for line in lines)
    assert any(line.split() == ["before", "the", "boundary", "2", "x"] for line in lines)


def test_a_narrow_terminal_gets_a_paragraph_for_each_row(drawn: Drawn) -> None:
    assert drawn(TABLE, 30) == (
        "Left out\nWhy: before the boundary\nMessages: 2\nx\n\nWhy: taken back\nMessages: 1\n\n"
    )


def test_the_mark_of_the_row_in_use_begins_its_first_line(drawn: Drawn) -> None:
    table = Table("", ("", "Persona", "Messages"), ((CURRENT, "Chorus", "2"), ("", "Frodo", "0")))
    assert drawn(table, 30) == "● Persona: Chorus\nMessages: 2\n\nPersona: Frodo\nMessages: 0\n\n"


def test_the_rows_of_a_broken_line_are_indented_like_it(drawn: Drawn) -> None:
    assert drawn(Text("  two words\nand more"), 8) == "  two\n  words\nand more\n"


def test_what_may_be_cut_stays_in_one_line_and_gives_way_to_the_rest(drawn: Drawn) -> None:
    rows = (("2026-02-12_auth-refactor", "a long story of " * 9, "2"), ("2026-02-13", "short", "4"))
    table = drawn(Table("", ("Session", "Summary", "Messages"), rows, cut=frozenset({"Summary"})), 60)
    lines = [line.split() for line in table.splitlines() if "2026" in line or "story" in line]
    assert [(line[0], line[-1]) for line in lines] == [("2026-02-12_auth-refactor", "2"), ("2026-02-13", "4")]
    assert lines[0][-2].endswith("…")


@pytest.mark.parametrize("columns", range(56, 80, 6))
def test_the_head_of_what_may_be_cut_stays_whole(drawn: Drawn, columns: int) -> None:
    rows = (("2026-02-12_a-description-of-forty", "short", "a summary of one sentence", "2"),)
    table = Table(
        "", ("Session", "Description", "Summary", "Messages"), rows, cut=frozenset({"Description", "Summary"})
    )
    shown = drawn(table, columns)
    assert ("Description" in shown, "Summary" in shown) == (True, True)


async def test_a_list_of_memory_items_gives_the_text_the_line_on_80_columns(world: World, drawn: Drawn) -> None:
    fact = "The plumber comes on Monday at nine, if the boiler is still"
    await world.told(f"/remember {fact} cold and the cellar dry.")
    (row,) = [line for line in drawn(await world.carry_out("/memory list"), 80).splitlines() if line.startswith(" #1")]
    assert row.startswith(f" #1    {fact}")
    assert row.split()[-1] == "you"


async def test_the_list_of_actions_is_a_list_on_40_columns_and_tells_of_older_ones(world: World, drawn: Drawn) -> None:
    await world.told("/remember the key is green")
    world.clock.advance(timedelta(days=1))
    for _ in range(14):
        await world.told("/new")
    await world.say("What is the colour of the key?")
    await world.told("/undo")
    lines = drawn(await world.carry_out("/undo list"), 40).splitlines()
    rows = [line.split() for line in lines if "14:30" in line]
    assert all(len(line) <= 40 for line in lines if "14:30" in line)
    assert rows[0] == ["16", "14:30", '"What', "is", "the", "colo…", "undone"]
    assert rows[1:] == [[str(number), "14:30", "new", "conversation"] for number in range(15, 1, -1)]
    assert "1 older; /undo list all shows all." in lines
    everything = drawn(await world.carry_out("/undo list all"), 40)
    assert "1    02-12 14:30" in everything
    assert "older" not in everything


@pytest.mark.parametrize("columns", [80, 40])
async def test_the_id_of_a_session_is_never_cut(world: World, drawn: Drawn, columns: int) -> None:
    await world.say("Hello")
    for description in ("short", "a description of forty characters or so that goes on"):
        id_ = (await world.told(f"/context save {description}")).split()[2].removesuffix(":")
        assert id_ in drawn(await world.carry_out("/context history"), columns).replace("\n", "")


async def test_the_history_of_a_thread_keeps_code_as_it_was_said(world: World, drawn: Drawn) -> None:
    code = "def f():\n    return    call(argument_one,   argument_two)\n\tx = 1"
    await world.say(code)
    assert f"Human: {code}\n" in drawn(await world.carry_out("/thread history"), 24)


def test_brackets_are_text_and_no_markup(drawn: Drawn) -> None:
    """A name from outside may hold any; taken for markup, the first would be an error and the second a colour."""
    shown = drawn(Table("[/title]", ("[/why]", "[b]n"), (("[/foo]", "[red]x[/red]"),)), 80)
    assert all(word in shown for word in ("[/title]", "[/why]", "[b]n", "[/foo]", "[red]x[/red]"))


@pytest.mark.parametrize("columns", [80, 30])
def test_hostile_words_in_a_table_are_shown(columns: int, drawn: Drawn) -> None:
    shown = drawn(Table("\x9bt", ("\x9bh", "S"), (("\x9bc", "\x9bs"),), cut=frozenset({"S"})), columns)
    assert all(word in shown for word in ("<9B>t", "<9B>h", "<9B>c", "<9B>s"))


AT = datetime(2026, 2, 12, 14, 30, tzinfo=UTC)
WHOLE = Status.COMPLETE


@pytest.mark.parametrize(
    ("text", "rows", "more"),
    [
        ("", [], 0),
        ("one", ["one"], 0),
        ("one\n\n  two\n", ["one", "", "  two"], 0),
        ("one\ntwo\nthree\nfour", ["one", "two", "three"], 1),
        ("one\ntwo\nthree\n\nfive", ["one", "two", "three"], 2),
        ("a word too many\nfor three rows\nthen", ["a word too", "many", "for three"], 2),
        ("x" * 1_000_000 + "\nend", ["x" * 10] * 3, 2),
        ("\x1b[2J\x07", ["␛[2J␇"], 0),
    ],
)
def test_the_beginning_of_a_text_is_cut_to_rows(text: str, rows: list[str], more: int) -> None:
    assert beginning(text, 3, 10) == (rows, more)


@pytest.mark.usefixtures("_usual_size")
@pytest.mark.parametrize(
    ("exchange", "shown"),
    [
        (Exchange(AT, "Hello", "Hi", WHOLE), ["❯ Hello", "Hi"]),
        (Exchange(AT, "Hello", "", Status.INTERRUPTED), ["❯ Hello", "[interrupted]"]),
        (Exchange(AT, "Hello", "Hi", Status.FAILED), ["❯ Hello", "Hi", "[failed; /retry asks again]"]),
        (Exchange(AT, "Hello", "Hi", Status.FAILED, ELIZA), ["❯ Hello", "Hi", "[failed; /retry asks again]"]),
        (Exchange(AT, "Hello", "Hi", Status.TRUNCATED, "x"), ["❯ Hello", "Hi", "[truncated; /continue goes on]"]),
        (Exchange(AT, "Hello", "Hi", Status.STREAMING), ["❯ Hello", "Hi", "[still being written]"]),
        (Exchange(AT, "", "Only this", WHOLE), ["", "Only this"]),
        (Exchange(AT, "Hello", "", None, place="on desk"), ["on desk ❯ Hello"]),
        (Exchange(AT, "1\n2\n3\n4", "Hi", WHOLE), ["❯ 1", "2", "3 …", "Hi"]),
        (
            Exchange(AT, "Count", "\n".join(map(str, range(1, 13))), WHOLE),
            ["❯ Count", *map(str, range(1, 11)), "… 2 more lines; /thread history shows all"],
        ),
    ],
)
def test_question_and_reply_are_shown_with_the_time_and_the_state(exchange: Exchange, shown: list[str]) -> None:
    lines = drawn_exchange(exchange, CHORUS, Screen(io.StringIO(), {}))
    assert [lines[0][len("Thu 2026-02-12 14:30 ") :], *lines[1:]] == shown


@pytest.mark.usefixtures("_usual_size")
def test_on_a_terminal_a_reply_and_words_of_a_persona_are_drawn_as_markdown(drawn: Drawn) -> None:
    screen = Screen(TerminalFile(), {})
    reply = "# Part\n\n*The lantern* swings.\n" + "\n".join(f"\n- item {number}" for number in range(30))
    heading, name, *rows = drawn_exchange(Exchange(AT, "", reply, WHOLE), MIRA, screen)
    assert heading.strip().startswith("Thu")
    assert name == "Mira"
    assert "#" not in "".join(rows)
    assert any("\x1b[3mThe lantern\x1b[0m swings." in row for row in rows)
    assert len(rows) == 11
    assert rows[-1].endswith("more lines; /thread history shows all")
    assert drawn(Said("*Sit*, she says.\x1b[2J", "Mira"), 80) == "\nMira\n\x1b[3mSit\x1b[0m, she says.␛[2J\n"


def test_plain_words_of_a_persona_are_wrapped_below_its_name_and_apart_from_a_notice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    screen = Screen(file := TerminalFile(), {"ACCESSIBLE": "1"})
    draw(Said("Sit *down*, she says.", "Mira"), screen)
    screen.notice("Noted.")
    assert file.written == "\nMira:\nSit\n*down*,\nshe says.\n\nNoted.\n"


EVERYTHING = Selection("chorus")


async def logged(world: World, selection: Selection = EVERYTHING) -> list[str]:
    file = io.StringIO()
    operations = await operations_of(world.store, selection)
    entries = transcript(world.store, selection, operations)
    await show_transcript(entries, log_marks(operations), CHORUS.speakers, Screen(file, {}))
    return [line.partition("] ")[2] for line in file.getvalue().splitlines() if line]


async def json_logged(world: World) -> list[dict[str, object]]:
    operations = await operations_of(world.store, EVERYTHING)
    entries = transcript(world.store, EVERYTHING, operations)
    marks = log_marks(operations)
    return [entry_as_json(entry, marks) async for entry in entries]


async def retry(world: World) -> None:
    async for _ in world.conversation.retry(world.current.target()):
        pass


async def test_a_reply_that_another_took_the_place_of_is_marked(world: World) -> None:
    await world.say("One")
    world.model.say("again")
    await retry(world)
    assert await logged(world) == ["Human: One", "Chorus: ok [replaced]", "Chorus: again"]
    assert [row["replaced"] for row in await json_logged(world)] == [False, True, False]
    await world.told("/undo")
    assert await logged(world) == ["Human: One", "Chorus: ok", "Chorus: again [undone]"]
    assert [(row["undone"], row["replaced"]) for row in await json_logged(world)][1:] == [(False, False), (True, False)]


async def test_clears_edits_and_restores_stand_where_they_were_made(world: World) -> None:
    await world.say("One")
    world.editor.enqueue(lambda path: path.write_text(path.read_text().replace("Human: One", "Human: ONE")))
    await world.told("/context edit")
    await world.told("/context save talk")
    await world.told("/new")
    await world.say("Two")
    await world.told("/context restore talk")
    lines = await logged(world)
    assert lines == [
        *("Human: One", "Chorus: ok"),
        "[PRIOR_CONTEXT_PROVIDED] edit of the context, 2 messages kept, in thread #1",
        "Human: ONE [another wording]",
        "[CONTEXT_CLEARED]",
        *("Human: Two", "Chorus: ok"),
        "[PRIOR_CONTEXT_PROVIDED] restored session, 2 messages",
    ]
    await world.told("/undo")
    assert await logged(world) == lines[:-1]


async def test_scripts_are_given_the_boundaries_with_their_members(world: World) -> None:
    await world.say("One")
    world.editor.enqueue(lambda path: path.write_text(path.read_text().replace("Human: One", "Human: ONE")))
    await world.told("/context edit")
    await world.told("/new")
    rows = await json_logged(world)
    assert [row.get("marker", row.get("content")) for row in rows] == [
        *("One", "ok", "[PRIOR_CONTEXT_PROVIDED]", "ONE", "[CONTEXT_CLEARED]")
    ]
    assert [{**row, "timestamp": ""} for row in rows if "marker" in row] == [
        {
            "marker": "[PRIOR_CONTEXT_PROVIDED]", "operation": 1, "kind": "edit", "thread": 1, "timestamp": "",
            "members": [3, 2],
        },
        {
            "marker": "[CONTEXT_CLEARED]", "operation": 2, "kind": "clear", "thread": None, "timestamp": "",
            "members": [],
        },
    ]  # fmt: skip
