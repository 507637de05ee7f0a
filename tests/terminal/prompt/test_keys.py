"""What each key does, at the prompt and while a reply streams, and the input history."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing

import pytest

from chorus_cli.core.errors import StorageError
from chorus_cli.terminal.prompt.history import InputHistories, InputHistory
from tests.terminal.driver import PROMPT, Home, Terminal

ANSWER = "Say a little more"  # how ELIZA answers what it has no rule for, at first


def test_three_ways_to_begin_a_line_and_one_to_send(home: Home) -> None:
    with home.chat() as chat:
        chat.type("one")
        chat.press("alt-enter")
        chat.type("two")
        chat.press("ctrl-j")
        chat.say("three\\")
        chat.ask("four", ANSWER)
    assert home.said() == ["one\ntwo\nthree\nfour"]


def test_enter_on_a_blank_line_and_ctrl_space_do_nothing(home: Home) -> None:
    with home.chat() as chat:
        chat.press("enter")
        chat.type("   ")
        chat.press("enter", "ctrl-c")
        chat.ask("fi\0ve", ANSWER)
    assert home.said() == ["five"]


def test_pasted_lines_are_one_message_and_never_a_command(home: Home) -> None:
    pasted = "\n".join(["/new", "/quit", "", *(f"line {number}" for number in range(3, 199)), "I am tired"])
    with home.chat() as chat:
        chat.paste(pasted)
        chat.await_line("  I am tired")
        chat.press("enter")
        chat.await_text("made you tired?")
        chat.await_line(PROMPT)
        chat.ask("//new I am unhappy", "unhappy?")
        chat.paste("!touch me\nI am glad")
        chat.await_line("  I am glad")
        chat.ask("", "glad?")
    assert home.said() == [pasted, "/new I am unhappy", "!touch me\nI am glad"]
    assert home.sql("SELECT COUNT(*) FROM operations") == [0]


@pytest.mark.parametrize("terminal", ["xterm-256color", "dumb"])
def test_ctrl_c_clears_the_line_and_twice_on_an_empty_one_leaves(home: Home, terminal: str) -> None:
    with home.chat(TERM=terminal) as chat:
        chat.type("never mind")
        chat.await_line(f"{PROMPT} never mind")
        chat.press("ctrl-c")
        chat.await_line(PROMPT)
        chat.press("ctrl-c")
        chat.type("still \x1b[31mhere")
        chat.await_line(f"{PROMPT} still here")
        chat.press("ctrl-c", "ctrl-c", "ctrl-c")
        assert chat.await_end() == 0
        assert chat.echoes
    assert home.said() == []


def test_ctrl_d_deletes_a_sign_and_leaves_on_an_empty_line(home: Home) -> None:
    with home.chat() as chat:
        chat.type("ab")
        chat.press("left", "ctrl-d")
        chat.await_line(f"{PROMPT} a")
        chat.press("left", "ctrl-d")
        chat.await_line(PROMPT)
        chat.leave()


def test_tab_completes_commands_and_their_words(home: Home) -> None:
    with home.chat() as chat:
        chat.type("/con")
        chat.await_text("/context ")
        chat.press("tab")
        chat.await_line(f"{PROMPT} /context")
        chat.type(" def")
        chat.await_text("the default again")
        chat.press("tab")
        chat.await_line(f"{PROMPT} /context default")
        chat.press("enter")
        chat.await_text("Context window reset to default (8h)")
        chat.await_line(PROMPT)
        chat.type("con")
        chat.press("tab")
        chat.await_line(f"{PROMPT} con")


def test_ctrl_d_before_the_prompt_is_there_leaves(home: Home) -> None:
    with closing(Terminal(home.environment)) as terminal:
        terminal.leave()


def test_a_slash_takes_the_place_of_a_text_that_came_back(home: Home) -> None:
    with home.chat() as chat:
        chat.ask("I am one", "one")
        chat.ask("I am two", "two")
        chat.say("/undo")
        chat.await_line(f"{PROMPT} I am two")
        chat.say("/undo")
        chat.await_line(f"{PROMPT} I am one")
        chat.say(" and a half")
        chat.until(lambda: len(home.replies()) == 3, "the reply to the longer text")
    assert home.said() == ["I am one", "I am two", "I am one and a half"]
    assert "I am one" not in home.seen()


def test_what_was_typed_before_comes_back_after_a_restart_per_persona(home: Home) -> None:
    with home.chat() as chat:
        chat.ask("I am one", "one")
        chat.ask("two\nlines", ANSWER)
        chat.ask("/persona frodo", "You are now talking to Frodo")
        chat.press("up")
        chat.watch(0.3)
        chat.await_prompt("Frodo")
        chat.leave()
    files = [path for path in home.path.rglob("*") if path.is_file()]
    assert [path.name for path in files if b"/persona frodo" in path.read_bytes()] == ["chorus.db"]
    with home.chat() as chat:
        chat.await_prompt("Frodo")
        chat.ask("/p chorus", "You are now talking to Chorus")
        chat.watch(0.5)
        chat.press("up", "up")
        chat.await_text("two")
        chat.press("ctrl-c")
        chat.watch(0.5)
        chat.press("ctrl-r")
        chat.type("am one")
        chat.await_text("I am one")


@pytest.fixture
def chat(home: Home) -> Iterator[Terminal]:
    with home.chat(TERM="dumb") as chat:
        yield chat


def test_what_was_typed_when_the_chat_was_ended_can_be_seen(home: Home, chat: Terminal) -> None:
    chat.say("I am\\")
    chat.type("here")
    chat.await_line("  here")
    chat.hang_up()
    with home.chat("  here", TERM="dumb") as again:
        assert f"{PROMPT} I am\n  here" in again.screen_text()


def test_keys_that_change_the_line_show_what_it_became(home: Home, chat: Terminal) -> None:
    chat.type("I am sadd\x7f")
    chat.await_line(f"{PROMPT} I am sad")
    chat.press("ctrl-a")
    chat.type("So ")
    chat.await_line(f"{PROMPT} So I am sad")
    chat.ask("", "sad?")
    chat.press("up")
    chat.await_line(f"{PROMPT} So I am sad")
    chat.say("\\")
    chat.type("and ol\x7fld")
    chat.await_line("  and old")
    chat.ask("", "first notice")
    assert home.said() == ["So I am sad", "So I am sad\nand old"]


def test_tab_completes_nothing_that_nobody_sees(chat: Terminal) -> None:
    chat.type("/con")
    chat.press("tab", "tab")
    chat.type("x")
    chat.await_line(f"{PROMPT} /conx")


def test_a_program_that_ends_its_lines_with_a_line_feed_sends_them(home: Home, chat: Terminal) -> None:
    chat.type("I am sad\n")
    chat.await_text("sad?")
    chat.await_line(PROMPT)
    assert home.said() == ["I am sad"]


def test_no_sequence_reaches_it(chat: Terminal) -> None:
    chat.ask("I am happy", "happy?")
    chat.ask("/status", "Context window")
    chat.type("\x1b[200~a\a\x9b31mb\x1b[201~")
    chat.await_line(f"{PROMPT} a␇<9B>31mb")
    assert b"\x1b" not in chat.drawn


class SlowLog:
    """Stored lines, which are read when ``is_open`` is set; ``reads`` counts how often."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.is_open = asyncio.Event()
        self.reads = 0

    async def read(self) -> list[str]:
        """Return the lines as they were when the reading began, newest first."""
        self.reads += 1
        lines = list(self.lines)
        await self.is_open.wait()
        return lines

    async def write(self, line: str) -> None:
        self.lines.insert(0, line)


async def test_a_line_that_is_typed_while_the_stored_ones_are_read_is_kept_once() -> None:
    log = SlowLog("older", "oldest")
    history = InputHistory(log.read, log.write)
    first_prompt = asyncio.ensure_future(shown(history))
    await asyncio.sleep(0)
    history.append_string("typed")
    first_prompt.cancel()
    second_prompt = asyncio.ensure_future(shown(history))
    await asyncio.sleep(0)
    history.append_string("typed later")
    log.is_open.set()
    assert await second_prompt == ["typed later", "typed", "older", "oldest"]
    await history.settled()
    assert await shown(history) == log.lines
    assert log.reads == 1


async def test_a_line_that_is_typed_before_the_first_prompt_is_kept_once() -> None:
    log = SlowLog("older")
    log.is_open.set()
    history = InputHistory(log.read, log.write)
    history.append_string("typed early")
    await history.settled()
    assert await shown(history) == ["typed early", "older"] == log.lines


async def test_a_reading_that_failed_is_tried_again_at_the_next_prompt() -> None:
    log = SlowLog("old")
    log.is_open.set()
    failures = [StorageError("locked")]

    async def read() -> list[str]:
        if failures:
            raise failures.pop()
        return await log.read()

    history = InputHistory(read, log.write)
    assert await shown(history) == []
    history.append_string("typed")
    await history.settled()
    assert await shown(history) == ["typed", "old"]


class Marks:
    """The mark of purges: each is told until the next one comes; an error is raised, and ``None`` never told."""

    def __init__(self, *marks: str | StorageError | None) -> None:
        self.marks = list(marks)

    async def now(self) -> str:
        mark = self.marks[0]
        if isinstance(mark, StorageError):
            raise mark
        if mark is None:
            await asyncio.Event().wait()
        return str(mark)


async def test_purged_lines_are_forgotten_and_those_just_typed_stay() -> None:
    log, marks = SlowLog("secret", "older"), Marks("1", "2")
    log.is_open.set()

    histories = InputHistories(marked(log, marks), lambda _slug, line: log.write(line), marks.now)
    history = histories.of("chorus")
    assert await shown(history) == ["secret", "older"]
    log.lines.remove("secret")
    await histories.forget_purged()
    assert await shown(history) == ["secret", "older"], "read once until something is purged"
    marks.marks.pop(0)
    history.append_string("typed")
    await histories.forget_purged()
    await histories.forget_purged()
    assert await shown(history) == ["typed", "older"]
    assert log.reads == 2


@pytest.mark.parametrize("mark", [StorageError("locked"), None])
async def test_lines_are_kept_while_nothing_is_known_about_purges(mark: StorageError | None) -> None:
    log, marks = SlowLog("old"), Marks("1", mark, "2")
    log.is_open.set()
    histories = InputHistories(marked(log, marks), lambda _slug, line: log.write(line), marks.now)
    assert await shown(histories.of("chorus")) == ["old"]
    for reads in (1, 2):
        marks.marks.pop(0)
        async with asyncio.timeout(10):
            await histories.forget_purged()
        assert log.reads == reads
    assert await shown(histories.of("chorus")) == ["old"]


def marked(log: SlowLog, marks: Marks) -> Callable[[str], Awaitable[tuple[list[str], str]]]:
    async def read(_slug: str) -> tuple[list[str], str]:
        return await log.read(), await marks.now()

    return read


async def shown(history: InputHistory) -> list[str]:
    return [line async for line in history.load()]
