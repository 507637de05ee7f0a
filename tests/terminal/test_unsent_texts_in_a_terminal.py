"""A text that is not in the log yet is a draft, also one typed while a reply is shown, and comes back."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.loopback_providers import recording, slow
from tests.terminal.command import PROGRAM
from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.editors import editor
from tests.terminal.small_model import LATE, LONG, WORD, PatientProvider, furnish, patient, talking

DRAFT = "I am a draft"
GREETING = "ELIZA (1966) is answering"
RETURNED = "The text that you had not sent is back at the prompt."
PUT_OFF = "The text that you had not sent comes back once the prompt is empty."
"""The sentence goes on in another row."""

_WAITING = 'while [ ! -e "$0" ]; do sleep 0.02; done; exec "$@"'


def test_the_line_at_the_prompt_outlives_a_kill(home: Home) -> None:
    with home.chat() as chat:
        chat.type(DRAFT)
        chat.until(lambda: home.unsent() == [DRAFT], "a draft")
        chat.kill(signal.SIGKILL)
    with home.chat(f"{PROMPT} {DRAFT}") as chat:
        chat.await_text(RETURNED)
        told = chat.screen_text()
        assert told.index(GREETING) < told.index(RETURNED)
        chat.ask("", "a draft?")
    assert home.said() == [DRAFT]
    assert home.unsent() == []


def test_a_line_that_an_older_chorus_left_in_a_file_is_taken_over(home: Home) -> None:
    folder = home.path / "state" / "drafts"
    folder.mkdir(parents=True)
    for name in ("draft-1-ab-cdefgh12-unsent-chorus.md", "draft-2-ab-cdefgh12-unsent-another.md"):
        (folder / name).write_text(DRAFT)
    with home.chat(f"{PROMPT} {DRAFT}") as chat:
        chat.await_text("/rescue shows 1 text that was not sent or not stored in an earlier run.")
        assert ([*folder.iterdir()], home.unsent()) == ([], [DRAFT, DRAFT])


def test_the_line_being_typed_stays_the_draft_while_the_history_is_looked_at(home: Home) -> None:
    with home.chat() as chat:
        chat.ask("hello there", "you")
        chat.type(DRAFT)
        chat.await_line(f"{PROMPT} {DRAFT}")
        chat.press("up")
        chat.await_line(f"{PROMPT} hello there")
        chat.until(lambda: bool(home.unsent()), "a draft")
        assert home.unsent() == [DRAFT]
        chat.type("!")
        chat.until(lambda: home.unsent() == [f"{DRAFT}\nhello there!"], "both texts")
        chat.press("ctrl-c")
        chat.until(lambda: home.unsent() == [], "no draft")
        for line in ("hello there!", DRAFT):
            chat.press("up")
            chat.await_line(f"{PROMPT} {line}")


def test_a_line_of_the_history_that_is_sent_or_seen_at_the_end_loses_no_draft(home: Home) -> None:
    with home.chat() as chat:
        chat.ask("hello there", "you")
        chat.type(DRAFT)
        chat.await_line(f"{PROMPT} {DRAFT}")
        chat.press("up")
        chat.await_line(f"{PROMPT} hello there")
        chat.ask("!", "Where shall we start?")
        chat.press("up")
        chat.await_line(f"{PROMPT} {DRAFT}")
        chat.press("ctrl-c")
        chat.await_line(PROMPT)
        chat.type("another draft")
        chat.await_line(f"{PROMPT} another draft")
        chat.press("up")
        chat.await_line(f"{PROMPT} {DRAFT}")
        chat.kill(signal.SIGHUP)
    with home.chat(f"{PROMPT} another draft"):
        assert home.said() == ["hello there", "hello there!"]


def held(home: Home, **variables: str) -> Terminal:
    """Return a terminal in which the chat does not begin before `let_begin`, however slow the machine is."""
    command = ["sh", "-c", _WAITING, str(home.path.parent / "ready"), *PROGRAM]
    return Terminal({**home.environment, **variables}, command=command)


def let_begin(home: Home) -> None:
    (home.path.parent / "ready").touch()


@pytest.fixture
def early(home: Home) -> Iterator[Terminal]:
    """Start a chat that has a draft; its prompt is still to come."""
    with home.chat() as chat:
        chat.type(DRAFT)
        chat.await_line(f"{PROMPT} {DRAFT}")
        assert chat.hang_up() == 128 + signal.SIGHUP
    assert not (home.path / "state" / "chorus.log").exists()
    with closing(held(home)) as chat:
        yield chat


@pytest.mark.parametrize("lines", [["I am early"], ["I am early", "I am too"]])
def test_lines_typed_before_the_prompt_are_sent_before_the_draft(home: Home, early: Terminal, lines: list[str]) -> None:
    for line in lines:
        early.say(line)
    let_begin(home)
    early.await_line(f"{PROMPT} {DRAFT}")
    assert home.said() == lines
    assert early.screen_text().count(RETURNED) == early.screen_text().count(PUT_OFF) == 1
    assert home.unsent() == [DRAFT]
    early.ask("", "a draft?")
    assert home.said() == [*lines, DRAFT]
    assert home.unsent() == []


def test_a_line_begun_before_the_prompt_is_ended_there_before_the_draft(home: Home, early: Terminal) -> None:
    early.type("I am ea")
    let_begin(home)
    early.await_text(PUT_OFF)
    early.await_line(f"{PROMPT} I am ea")
    told = early.screen_text()
    assert told.index(GREETING) < told.index(PUT_OFF)
    early.say("rly")
    early.await_line(f"{PROMPT} {DRAFT}")
    assert home.said() == ["I am early"]


def test_enter_before_the_prompt_does_not_send_the_draft(home: Home, early: Terminal) -> None:
    early.press("enter")
    let_begin(home)
    early.await_line(f"{PROMPT} {DRAFT}")
    early.watch(0.2)
    early.await_line(f"{PROMPT} {DRAFT}")
    assert home.said() == []


def test_the_greeting_does_not_continue_a_line_typed_before_it(home: Home) -> None:
    with closing(held(home, CHORUS_MODEL="chorus/eliza")) as chat:
        chat.type("half")
        chat.await_text("half")
        let_begin(home)
        chat.await_line(f"{PROMPT} half")
        echoed, greeting, *_ = chat.screen_text().splitlines()
        assert (echoed, greeting.split()[0]) == ("half", "Chorus")


LINE = "I typed this for minutes"


def test_a_program_that_is_killed_loses_no_question_and_leaves_no_reply_in_progress(home: Home) -> None:
    with slow() as provider, home.chat(**provider.variables) as chat:
        chat.type("mountains")
        chat.until(lambda: home.unsent() == ["mountains"], "a draft")
        chat.press("enter")
        chat.await_text("About mountains")
        chat.until(lambda: home.unsent() == [], "the end of the draft", seconds=1)
        assert [status for _, status in home.replies()] == ["streaming"]
        chat.kill(signal.SIGKILL)
    # The kill might have come between the commit of the message and the deletion of its row.
    row = "INSERT INTO outbox(run, persona, role, content, is_sent, created_at) VALUES "
    row += "('1-ab', 'chorus', 'user', ?, ?, strftime('%Y-%m-%dT%H:%M:%fZ'))"
    home.sql(row, "mountains", 1)
    home.sql(row, "and this", 0)
    with home.chat(f"{PROMPT} and this") as chat:
        chat.press("ctrl-c")
        chat.await_line(PROMPT)
        chat.until(lambda: home.unsent() == [], "the end of what was cleared")
        chat.leave()
    assert (home.unsent(), home.said()) == ([], ["mountains"])
    assert [status for _, status in home.replies()] == ["interrupted"]


def test_a_line_stays_a_draft_while_it_is_in_the_editor(home: Home, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    with home.chat(EDITOR=editor(tmp_path, f"until [ -e '{seen}' ]; do sleep 0.1; done")) as chat:
        chat.type(LINE)
        chat.until(lambda: home.unsent() == [LINE], "a draft")
        chat.press("ctrl-x", "ctrl-e")
        chat.watch(0.5)
        assert home.unsent() == [LINE]
        seen.touch()
        chat.await_line(f"{PROMPT} {LINE}")
        chat.ask("", "minutes.")
    assert home.unsent() == []


REFUSED = "not today"


@pytest.fixture
def full(home: Home) -> Home:
    """A home whose database takes no text that is not said yet."""
    assert home.run("context").code == 0
    home.sql(f"CREATE TRIGGER full BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, '{REFUSED}'); END")
    return home


def rescued(home: Home) -> list[tuple[str, str]]:
    files: list[Path] = sorted((home.path / "state" / "rescue").glob("rescue-*.jsonl"))
    records = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [(record["role"], record["content"]) for record in records]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_what_stands_at_the_prompt_when_a_signal_comes_is_rescued_and_told(full: Home, number: signal.Signals) -> None:
    with full.chat() as chat:
        chat.type("an unfinished text")
        chat.await_line(f"{PROMPT} an unfinished text")
        chat.kill(number)
        assert "What you had typed is kept in" in chat.words()
    assert rescued(full) == [("user", "an unfinished text")]
    with full.chat() as chat:
        chat.await_text("/rescue")


def test_that_the_line_being_typed_is_not_kept_is_told_once(full: Home) -> None:
    with full.chat() as chat:
        chat.type("an unfinished text")
        chat.until(lambda: REFUSED in chat.words(), "the sentence")
        chat.await_line(f"{PROMPT} an unfinished text")
        chat.type(" and more")
        chat.watch(3.5)
        assert chat.words().count(REFUSED) == 1
        assert "is lost if the chat is killed" in chat.words()


def test_a_line_that_could_not_be_sent_is_at_the_prompt_again(home: Home) -> None:
    assert home.run("ask", "-c", "hello").code == 0
    home.sql("CREATE TRIGGER refused BEFORE INSERT ON threads BEGIN SELECT RAISE(ABORT, 'not today'); END")
    with home.chat(CHORUS_MODEL="openai/gpt-4o") as chat:
        chat.say("/bg Precious words")
        chat.until(lambda: "not today. Try again" in chat.words(), "the refusal")
        chat.await_line(f"{PROMPT} /bg Precious words")
        chat.press("ctrl-c")
        chat.say("/thread new Rome")
        chat.until(lambda: chat.words().count("not today. Try again") == 2, "another refusal")
        chat.await_line(PROMPT)
        chat.ask("/settings set budget 100", "budget is now 100")
        home.sql("ALTER TABLE other_requests RENAME TO elsewhere")
        chat.ask(LINE, "no such table: other_requests", f"{PROMPT} {LINE}")
        chat.press("ctrl-c")
        chat.type(f"{LINE}\r/jobs\r")
        chat.await_text("No job has run yet.")
        chat.await_line(f"{PROMPT} {LINE}")
        assert chat.screen_text().count(PUT_OFF) == chat.screen_text().count(RETURNED) == 1


LATE_QUESTION, LONG_QUESTION = f"a {LATE} one", f"a {LONG} one"


@pytest.fixture
def provider() -> Iterator[PatientProvider]:
    with patient() as running:
        yield running


@pytest.fixture
def chat(home: Home, provider: PatientProvider) -> Iterator[Terminal]:
    furnish(home, 100_000)
    with talking(home, provider.address) as chat:
        yield chat


def begin_a_long_reply(chat: Terminal) -> None:
    chat.say(LONG_QUESTION)
    chat.await_text(f"\n{WORD}")


def await_rows(chat: Terminal, *rows: str) -> None:
    chat.until(lambda: chat.screen_text().splitlines()[-len(rows) :] == list(rows), f"the rows {rows}")


def await_replies(home: Home, chat: Terminal, count: int) -> None:
    chat.until(lambda: [status for _, status in home.replies()] == ["complete"] * count, f"{count} replies")
    chat.await_line(PROMPT)


def test_the_line_is_seen_and_then_at_the_prompt(home: Home, chat: Terminal, provider: PatientProvider) -> None:
    begin_a_long_reply(chat)
    chat.type("half a lime")
    await_rows(chat, "❯ half a lime")
    chat.type("\x7f\x7fne and mistakes\x17")
    await_rows(chat, "❯ half a line and")
    provider.may_go_on.set()
    chat.await_text("noted: one.")
    chat.await_line(f"{PROMPT} half a line and")
    chat.type("more")
    chat.await_line(f"{PROMPT} half a line and more")
    assert chat.screen_text().count("half a line") == 1
    assert home.said() == [LONG_QUESTION]


def test_enter_has_lines_wait_and_up_takes_them_back(home: Home, chat: Terminal, provider: PatientProvider) -> None:
    begin_a_long_reply(chat)
    for line in ("line one", "line two", "line three", "line four"):
        chat.say(line)
    await_rows(chat, "+1 more", "waiting: line two", "waiting: line three", "waiting: line four")
    chat.press("up")
    await_rows(chat, "waiting: line one", "waiting: line two", "waiting: line three", "❯ line four")
    chat.say("ty")
    await_rows(chat, "waiting: line fourty")
    provider.may_go_on.set()
    await_replies(home, chat, 5)
    shown = chat.screen_text()
    assert home.said()[1:] == ["line one", "line two", "line three", "line fourty"]
    assert "waiting:" not in shown
    assert [shown.count(f"{PROMPT} line {word}\n") for word in ("one", "two", "three", "fourty")] == [1] * 4
    assert home.unsent() == []


@pytest.mark.parametrize(
    ("end", "returned"), [(signal.SIGKILL, ["line three"]), (signal.SIGTERM, ["line three", "half"])]
)
def test_waiting_lines_outlive_the_program(
    home: Home, chat: Terminal, provider: PatientProvider, end: signal.Signals, returned: list[str]
) -> None:
    chat.say(LATE_QUESTION)
    chat.until(lambda: LATE_QUESTION in home.said(), "the late message in the log")
    chat.say("line three")
    await_rows(chat, "waiting: line three")
    chat.until(lambda: "line three" in "".join(home.unsent()), "the line in the database", seconds=3)
    # Of a line that is not finished, a kill may take the last three seconds.
    if len(returned) > 1:
        chat.type(returned[-1])
        await_rows(chat, "waiting: line three", f"❯ {returned[-1]}")
    chat.kill(end)
    provider.may_go_on.set()
    last = f"  {returned[-1]}" if len(returned) > 1 else f"{PROMPT} {returned[0]}"
    with home.chat(last, OPENAI_BASE_URL=provider.address, OPENAI_API_KEY="sk-of-nobody") as later:
        later.await_text(RETURNED)
        later.await_text(f"{PROMPT} " + "\n  ".join(returned))
        later.press("enter")
        later.await_text(f"noted: {returned[-1].split()[-1]}.")
        later.await_line(PROMPT)
    assert home.said() == [LATE_QUESTION, "\n".join(returned)]
    assert home.unsent() == []


def test_ctrl_c_gives_the_lines_back_that_wait_behind_a_reply(home: Home, chat: Terminal) -> None:
    begin_a_long_reply(chat)
    for line in ("line two", "/new"):
        chat.say(line)
    chat.type("half")
    await_rows(chat, "waiting: line two", "waiting: /new", "❯ half")
    chat.press("ctrl-c")
    chat.await_text("Lines that waited were not sent; they are at the prompt.")
    chat.await_text(f"{PROMPT} line two\n  /new\n  half")
    chat.until(lambda: home.unsent() == ["line two\n/new\nhalf"], "the draft in the database", seconds=3)
    chat.press("enter")
    chat.await_text("noted: half.")
    assert home.said() == [LONG_QUESTION, "line two\n/new\nhalf"]


def test_a_file_in_a_line_that_ctrl_c_gave_back_goes_with_it(home: Home, chat: Terminal, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("the key is green")
    begin_a_long_reply(chat)
    chat.say(f"look at @{tmp_path}/notes.txt now")
    chat.press("ctrl-c")
    chat.await_text("Lines that waited were not sent; they are at the prompt.")
    chat.until(lambda: f"{PROMPT} look at @" in chat.screen_text().rpartition("were not sent.")[2], "the line")
    chat.press("enter")
    chat.until(lambda: len(home.said()) == 2, "the second message")
    [attached] = home.sql("SELECT attachments FROM messages WHERE attachments IS NOT NULL")
    assert "notes.txt" in attached


@pytest.mark.parametrize("key", ["\x03", "/"], ids=["ctrl-c", "slash"])
def test_a_file_that_undo_gave_back_leaves_with_its_message(home: Home, tmp_path: Path, key: str) -> None:
    (tmp_path / "notes.txt").write_text("Buy milk.")
    with recording() as server, home.chat(**server.environment()) as chat:
        chat.ask(f"look at @{tmp_path}/notes.txt", "seen.")
        chat.say("/undo")
        chat.await_bottom_line("+ notes.txt")
        chat.type(key)
        chat.await_text("notes.txt is no longer attached.")
        chat.until(lambda: "+ notes.txt" not in chat.bottom_line(), "no file")
        chat.type("\x15")
        chat.ask("alone", "seen.", times=2)
    assert ["Buy milk." in str(body["messages"]) for body in server.bodies] == [True, False]


def test_each_line_that_waits_behind_undo_goes_alone(home: Home, chat: Terminal, provider: PatientProvider) -> None:
    begin_a_long_reply(chat)
    for line in ("second pear", "/undo", "third plum", "/undo", "!echo kiwi"):
        chat.say(line)
    provider.may_go_on.set()
    chat.await_text("\nkiwi")
    chat.await_line(PROMPT)
    assert home.said() == [LONG_QUESTION, "second pear", "third plum"]
    assert chat.screen_text().count(PUT_OFF) == 0


def test_what_is_typed_during_a_reply_is_stored_soon(home: Home, chat: Terminal) -> None:
    begin_a_long_reply(chat)
    chat.type("half a line")
    chat.until(lambda: home.unsent() == ["half a line"], "the line in the database", seconds=2)
    chat.kill(signal.SIGKILL)
    with home.chat(f"{PROMPT} half a line") as later:
        later.await_text(RETURNED)


def test_a_line_that_is_no_answer_or_is_cleared_is_only_a_key_press_away(home: Home) -> None:
    with home.chat() as chat:
        chat.ask("/remember my cat is Tom", "Tom")
        chat.say("/memory forget 1")
        chat.await_text("(y/n)")
        chat.say("sure")
        chat.await_text('"sure" is not an answer, so it was not sent.')
        chat.ask("n", "")
        chat.ask("/memory list", "my cat is Tom")
        chat.type("a long thought")
        chat.await_line(f"{PROMPT} a long thought")
        chat.press("ctrl-c")
        chat.await_line(PROMPT)
        for line in ("a long thought", "/memory list", "sure", "/memory forget 1"):
            chat.press("up")
            chat.await_line(f"{PROMPT} {line}")
        chat.press("ctrl-c")
        chat.ask("dead", "dead")
        chat.ask("/undo", "Undone:", f"{PROMPT} dead")
        chat.type("/or alive")
        chat.await_line(f"{PROMPT} /or alive")
        chat.type("\x1f" * len("/or alive"))
        chat.await_line(f"{PROMPT} dead")
        chat.type("/or alive")
        chat.await_line(f"{PROMPT} dead/or alive")
    assert home.said() == ["dead"]
