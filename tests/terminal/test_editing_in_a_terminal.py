"""``/context edit`` from the keyboard of the real program: what is sent afterwards, and what becomes of the draft."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import time
import warnings
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pexpect
import pytest

from tests import mock_provider
from tests.terminal.driver import PATIENCE_SECONDS, PROGRAM, PROMPT, Home, Terminal
from tests.terminal.editors import CONTEXT_LINE, changing, deleting, editor, moving_the_line, replacing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.mock_provider import MockProvider

FIVE = ("A1", "B1", "A2", "B2", "A3")
TIRED = ("I am tired", "That sounds hard. What has made you tired?")
AN_HOUR = timedelta(hours=1)
A_MINUTE = timedelta(minutes=1)
QUESTION = "(y/n, or d to discard it)"
ROWS = "SELECT id, turn_id, role, content, timestamp, status FROM messages ORDER BY id"
PROVIDED = "[PRIOR_CONTEXT_PROVIDED]"


@pytest.fixture(scope="module")
def provider() -> Iterator[MockProvider]:
    with mock_provider.running() as running:
        yield running


def put_in(home: Home, *contents: str, newest: timedelta = A_MINUTE, thread: int = 1) -> None:
    """Put messages into the log, by turns from the user and from the model, a minute apart."""
    for position, content in enumerate(contents):
        age = newest + A_MINUTE * (len(contents) - 1 - position)
        home.say_by_sql(content, age, role="assistant" if position % 2 else "user", thread=thread)


def ask_anew(chat: Terminal, line: str, answer: str, prompt: str = PROMPT) -> None:
    """Say a line whose answer may stand on the screen already, and wait until it stands there once more."""
    say_anew(chat, line, answer)
    chat.await_line(prompt)


def say_anew(chat: Terminal, line: str, answer: str) -> None:
    """Say a line and wait for its answer, however long paths have it broken into lines."""
    times = flowing(chat).count(answer) + 1
    chat.say(line)
    chat._await(lambda: flowing(chat).count(answer) >= times, f"the answer {answer!r}", PATIENCE_SECONDS)


def flowing(chat: Terminal) -> str:
    return " ".join(chat.screen_text().split())


def undo_turn(chat: Terminal, text: str) -> None:
    """Take the newest message back, and clear the line that it comes back to."""
    ask_anew(chat, "/undo", "and its reply", f"{PROMPT} {text}")
    chat.press("ctrl-c")
    chat.await_line(PROMPT)


def drafts(home: Home) -> set[Path]:
    return set((home.path / "state" / "drafts").glob("*"))


def said_to(provider: MockProvider) -> list[str]:
    """Return the messages of the newest request but for the system message, without what stands before them."""
    messages: list[dict[str, Any]] = provider.requests()[-1][1:]
    return [message["content"].rpartition("]\n\n")[2] for message in messages]


def test_the_next_request_holds_what_was_left_and_nothing_else(
    tmp_path: Path, home: Home, provider: MockProvider
) -> None:
    scripts = (deleting("B1", "A2"), replacing("Chorus: B1", "Chorus: B1, but better"))
    variables = {"CHORUS_MODEL": "openai/x", "OPENAI_BASE_URL": f"{provider.address}/v1", "OPENAI_API_KEY": "sk-x"}
    with home.chat(EDITOR=editor(tmp_path, *scripts), **variables) as chat:
        put_in(home, *FIVE)
        rows = home.sql(ROWS)
        ask_anew(chat, "/context edit", f'{PROVIDED} 3 messages: "A1"')
        assert home.sql(ROWS) == rows
        assert home.sql("SELECT message_id FROM operation_members ORDER BY position") == [1, 4, 5]
        provider.behave(type="reply", text="Hello from far away.")
        chat.ask("Next", "Hello from far away.")
        assert said_to(provider) == ["A1", "B2", "A3", "Next"]

        undo_turn(chat, "Next")
        ask_anew(chat, "/undo", "Undone: edit of the context")
        ask_anew(chat, "/context edit", f'{PROVIDED} 5 messages: "A1"')
        provider.behave(type="reply", text="Second reply.")
        chat.ask("Again", "Second reply.")
        assert said_to(provider) == ["A1", "B1, but better", "A2", "B2", "A3", "Again"]

        undo_turn(chat, "Again")
        ask_anew(chat, "/undo", "Undone: edit of the context")
        provider.behave(type="reply", text="Third reply.")
        chat.ask("Once more", "Third reply.")
        assert said_to(provider) == [*FIVE, "Once more"]
    assert home.sql(f"{ROWS} LIMIT 5") == rows
    assert home.sql("SELECT content FROM messages WHERE introduced_by IS NOT NULL") == ["B1, but better"]
    assert drafts(home) == set()


def test_older_messages_come_in_only_below_the_line(tmp_path: Path, home: Home) -> None:
    scripts = (
        deleting("B1"),
        moving_the_line("old 2998"),
        replacing(CONTEXT_LINE, ""),
        replacing("Human: Fresh", "Human: Fresher"),
    )
    with home.chat(EDITOR=editor(tmp_path, *scripts)) as chat:
        home.sql(
            "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 3000) "
            "INSERT INTO messages(persona, thread_id, role, content, timestamp) SELECT 'chorus', 1, 'user', "
            "'old ' || n, strftime('%Y-%m-%dT%H:%M:%S.000000Z', 'now', '-20 hours', n || ' seconds') FROM numbers"
        )
        put_in(home, *FIVE)
        ask_anew(chat, "/context edit", f'{PROVIDED} 4 messages: "A1"')
        assert home.seen() == ["A1", "A2", "B2", "A3"]
        ask_anew(chat, "/context edit", f'{PROVIDED} 8 messages: "old 2998"')
        assert in_context(home, 1) == ["old 2998", "old 2999", "old 3000", "B1", "A1", "A2", "B2", "A3"]
        ask_anew(chat, "/context edit", f'{PROVIDED} 3,005 messages: "old 1"')
        assert home.sql("SELECT count(*) FROM messages") == [3005]

        ask_anew(chat, "/new", "--- New conversation ---")
        home.say_by_sql("Fresh", timedelta())
        ask_anew(chat, "/context edit", f'{PROVIDED} 1 message: "Fresher"')
        ask_anew(chat, "/context 168h", "Context window set to 168h")
        assert home.seen() == ["Fresher"]
    assert home.sql("SELECT content FROM messages WHERE id > 3005") == ["Fresh", "Fresher"]


def test_what_is_not_shown_stays_and_all_leave_together(tmp_path: Path, home: Home) -> None:
    with home.chat(EDITOR=editor(tmp_path, deleting("A3"))) as chat:
        put_in(home, *FIVE[:4], newest=3 * AN_HOUR)
        put_in(home, "A3", "B3")
        ask_anew(chat, "/context edit 1h", f"{PROVIDED} 5 messages")
        assert in_context(home, 1) == ["A1", "B1", "A2", "B2", "B3"]
        shift(home, "-7 hours", "-59 minutes")
        assert home.seen() == ["A1", "B1", "A2", "B2", "B3"]
        shift(home, "-2 minutes")
        assert home.seen() == []
        chat.ask(*TIRED)
        chat.await_text("The 5 messages of the edit have left the 8h window. /context 9h brings them back.")
        ask_anew(chat, "/context 9h", "Context window set to 9h")
        assert home.seen() == ["A1", "B1", "A2", "B2", "B3", *TIRED]


def shift(home: Home, *modifiers: str) -> None:
    """Let time pass: everything that is stored is as much older."""
    by = ", ".join(f"'{modifier}'" for modifier in modifiers)
    for table, column in (("messages", "timestamp"), ("operations", "created_at")):
        moment = f"strftime('%Y-%m-%dT%H:%M:%f', substr({column}, 1, 23), {by}) || '000Z'"
        home.sql(f"UPDATE {table} SET {column} = {moment}")  # noqa: S608 - made of the constants above


@dataclass(frozen=True, slots=True)
class Ending:
    """What an editor does to the five messages, what is said of it, what is answered to that, and what is then true.

    ``kept`` is a piece of the draft that stays, ``None`` if none does.
    """

    script: str
    says: str
    answer: str = ""
    then: str = ""
    seen: tuple[str, ...] = FIVE
    kept: bytes | None = None


REWORDING = replacing("Human: A2", "Human: A two")
MISNAMING = replacing("Human: A2", "Humn: A2")
REWORDED = ("A1", "B1", "A two", "B2", "A3")
LEFT = "The context was left as it was; your"
KEPT, DISCARDED = f"{LEFT} text is kept in", f"{LEFT} edit is discarded."

ENDINGS = {
    "saves nothing": Ending(': > "$file"', "an empty text was saved."),
    "looks on and leaves": Ending("printf 'My own line. '; sleep 2", "My own line. Nothing was changed."),
    "goes to the background": Ending(
        '(sleep 0.3; echo "# later" >> "$file") > /dev/null 2>&1 &', "The draft stays in", kept=b"# later"
    ),
    "fails without a change": Ending("exit 1", "my editor ended with status 1. Nothing was changed."),
    "fails, and what it saved is used": Ending(
        f"{REWORDING}; exit 1", f"Use what was saved? {QUESTION}", "y", f"{PROVIDED} 5 messages", REWORDED
    ),
    "fails, and what it saved is kept": Ending(
        f"{REWORDING}; exit 3", "my editor ended with status 3.", "n", KEPT, kept=b"A two"
    ),
    "fails, and what it saved is discarded": Ending(
        f"{REWORDING}; exit 4", "my editor ended with status 4.", "d", DISCARDED
    ),
    "is killed, and Ctrl-C answers": Ending(
        f"{REWORDING}; kill -9 $$", "was ended by signal 9 (Killed).", "\x03", KEPT, kept=b"A two"
    ),
    "is killed without a change": Ending("kill -9 $$", "by signal 9 (Killed). Nothing was changed."),
    "deletes the file": Ending('rm "$file"', "is gone: the editor deleted it"),
    "puts a link there": Ending('ln -sf /dev/null "$file"', "it is a symbolic link now.", kept=b""),
    "writes latin-1": Ending(
        changing("text = text.replace('A2', 'd\xe9j\xe0').encode('latin-1')"), "is not UTF-8", kept=b"d\xe9j\xe0"
    ),
    "writes UTF-16": Ending(changing("text = text.encode('utf-16')"), "it was saved as UTF-16", kept=b"A\x002\x00"),
    "writes CRLF": Ending(
        changing(r"text = text.replace('Human: A2', 'Human: A two').replace('\n', '\r\n')"),
        f"{PROVIDED} 5 messages",
        seen=REWORDED,
    ),
    "writes CRLF and changes nothing": Ending(
        changing(r"text = text.replace('\n', '\r\n')"), "The context is the same as before"
    ),
    "misspells a name, which is kept": Ending(MISNAMING, f"Edit again? {QUESTION}", "n", KEPT, kept=b"Humn: A2"),
    "misspells a name, which is discarded": Ending(MISNAMING, "nobody here is called 'Humn'", "d", DISCARDED),
    "deletes all": Ending(deleting("A", "B"), "No message is left in the text"),
    "is open while a message comes": Ending(
        f'"$PYTHON" -m chorus_cli ask "{TIRED[0]}" > /dev/null\n{REWORDING}',
        f"{PROVIDED} 5 messages",
        seen=(*REWORDED, *TIRED),
    ),
    "is open while another conversation is begun": Ending(
        f'"$PYTHON" -m chorus_cli ask /new > /dev/null\n{REWORDING}',
        "The context was changed meanwhile",
        seen=(),
        kept=b"A two",
    ),
}


def test_whatever_the_editor_does_nothing_is_lost_and_a_sentence_says_what_happened(tmp_path: Path, home: Home) -> None:
    """Each edit finds the five messages in context: after one that changed it, those of a new thread."""
    command = editor(tmp_path, *(ending.script for ending in ENDINGS.values()))
    with home.chat(EDITOR=command, PYTHON=sys.executable) as chat:
        thread = 1
        put_in(home, *FIVE)
        for name, ending in ENDINGS.items():
            before = drafts(home)
            edit(chat, ending)
            assert in_context(home, thread) == [*ending.seen], name
            said = "SELECT content FROM messages WHERE thread_id = ? AND introduced_by IS NULL ORDER BY id"
            assert home.sql(said, thread)[:5] == [*FIVE], name
            assert_kept(drafts(home) - before, ending.kept, name)
            if ending.seen != FIVE:
                thread += 1
                ask_anew(chat, "/thread new", f"Thread #{thread}")
                put_in(home, *FIVE, thread=thread)
        assert "Traceback" not in chat.screen_text()
    assert not (home.path / "state" / "chorus.log").exists()


def edit(chat: Terminal, ending: Ending) -> None:
    if not ending.answer:
        ask_anew(chat, "/context edit", ending.says)
        return
    say_anew(chat, "/context edit", ending.says)
    ask_anew(chat, ending.answer, ending.then)


def in_context(home: Home, thread: int) -> list[Any]:
    """Return what is in context by the newest boundary, and what came after it."""
    boundary = "SELECT max(id) FROM operations WHERE kind IN ('edit', 'clear') AND ifnull(thread_id, ?) = ?"
    [operation] = home.sql(boundary, thread, thread)
    members = (
        "SELECT content FROM operation_members JOIN messages ON messages.id = message_id "
        "WHERE operation_id = ? ORDER BY position"
    )
    after = (
        "SELECT content FROM messages WHERE thread_id = ? AND introduced_by IS NULL "
        "AND id > ifnull((SELECT after_message_id FROM operations WHERE id = ?), 0) ORDER BY id"
    )
    return [*home.sql(members, operation or 0), *home.sql(after, thread, operation or 0)]


def assert_kept(found: set[Path], piece: bytes | None, name: str) -> None:
    if piece is None:
        assert found == set(), name
        return
    [draft] = found
    deadline = time.monotonic() + 5
    while piece not in draft.read_bytes():
        assert time.monotonic() < deadline, (name, draft.read_bytes())
        time.sleep(0.05)


def test_editing_again_goes_on_with_the_text_at_the_line_of_the_mistake(tmp_path: Path, home: Home) -> None:
    tell = 'echo "$@" >> "$0.told"; grep -n "context starts here ---$\\|Humn" "$file" >> "$0.told"\n'
    scripts = (f"{tell}{MISNAMING}", f"{tell}{replacing('Humn: A2', 'Human: A2!')}")
    with home.chat(EDITOR=editor(tmp_path, *scripts, name="nano")) as chat:
        put_in(home, *FIVE)
        chat.say("/context edit")
        chat.await_text(f"Edit again? {QUESTION}")
        ask_anew(chat, "y", f"{PROVIDED} 5 messages")
    assert in_context(home, 1) == ["A1", "B1", "A2!", "B2", "A3"]
    first, line, second, _, mistake = (tmp_path / "nano.told").read_text().splitlines()
    assert first.startswith(f"+{line.partition(':')[0]} ")
    assert second.startswith(f"+{mistake.partition(':')[0]} ")
    assert f"Line {mistake.partition(':')[0]}: nobody here is called 'Humn'" in flowing(chat)
    assert "or put a \\ before the line if it is part of a message." in flowing(chat)
    assert drafts(home) == set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_the_question_keeps_the_draft_and_names_it(tmp_path: Path, home: Home, number: int) -> None:
    with home.chat(EDITOR=editor(tmp_path, MISNAMING)) as chat:
        put_in(home, *FIVE)
        chat.say("/context edit")
        chat.await_text(f"Edit again? {QUESTION}")
        os.kill(chat.pid, number)
        chat.await_text(LEFT)
        if number == signal.SIGTERM:
            assert chat.await_end() == 128 + signal.SIGTERM
        else:
            chat.await_line(PROMPT)
        [draft] = drafts(home)
        assert f"{draft.name}." in "".join(chat.screen_text().splitlines())


@pytest.mark.skipif(shutil.which("vim") is None, reason="no vim here")
def test_vim_stands_in_the_line_where_the_context_starts(home: Home) -> None:
    with home.chat(EDITOR="vim -u NONE -N -T vt100") as chat:
        put_in(home, "A1", "B1", newest=9 * AN_HOUR)
        home.say_by_sql("A2", A_MINUTE)
        chat.say("/context edit")
        chat.await_line("--- context starts here ---")
        chat.type("dd:wq\r")
        chat.await_text(f'{PROVIDED} 3 messages: "A1"')
        chat.await_line(PROMPT)
    assert in_context(home, 1) == ["A1", "B1", "A2"]


@pytest.mark.skipif(shutil.which("ed") is None, reason="no ed here")
def test_ctrl_c_in_ed_is_eds_own(home: Home) -> None:
    with home.chat(EDITOR="ed -p ed>") as chat:
        put_in(home, *FIVE)
        chat.say("/context edit")
        chat.await_line("ed>")
        for keys, lines in (("/Human: A2/s//Human: A two/\r", 2), ("\x03", 3), ("w\r", 4)):
            chat.type(keys)
            chat.await_text("ed>", times=lines)
        chat.await_line("ed>")
        chat.type("q\r")
        chat.await_text(f"{PROVIDED} 5 messages")
        chat.await_line(PROMPT)
        chat.ask(*TIRED)
    assert home.seen() == [*REWORDED, *TIRED]


def test_what_was_being_edited_when_the_window_closed_or_the_program_died_is_named_at_the_next_start(
    tmp_path: Path, home: Home
) -> None:
    waiting = f'{REWORDING}; trap "" HUP; echo now editing; read answer'
    notice = "An edit that was not used is kept in"
    with home.chat(EDITOR=editor(tmp_path, waiting, waiting)) as chat:
        put_in(home, *FIVE)
        chat.say("/context edit")
        chat.await_text("now editing")
        with home.chat() as other:
            other.await_text("chorus/eliza answers")
            other.press("ctrl-d")
            assert other.await_end() == 0
            assert notice not in other.screen_text()
        assert chat.hang_up() == 128 + signal.SIGHUP
    [hung_up] = drafts(home)
    assert b"A two" in hung_up.read_bytes()

    with home.chat(EDITOR=editor(tmp_path, waiting, waiting)) as chat:
        chat.await_text(notice)
        assert hung_up.name in "".join(chat.screen_text().splitlines())
        chat.say("/context edit")
        chat.await_text("now editing")
        os.kill(chat.pid, signal.SIGKILL)
        assert chat.await_end() == -signal.SIGKILL
    [killed] = drafts(home) - {hung_up}
    assert b"A two" in killed.read_bytes()
    with home.chat() as chat:
        chat.await_text("2 edits that were not used are kept in")
        assert killed.name in "".join(chat.screen_text().splitlines())
    assert home.seen() == [*FIVE]


def test_where_nobody_can_be_asked_the_draft_is_kept_and_named(tmp_path: Path, home: Home) -> None:
    with home.chat() as chat:
        put_in(home, *FIVE)
        chat.press("ctrl-d")
        assert chat.await_end() == 0
    environment = {**home.environment, "EDITOR": editor(tmp_path, MISNAMING)}
    asking = shlex.join([*PROGRAM, "ask", "/context edit"])
    with warnings.catch_warnings():
        # Newer Pythons warn of forking beside the threads of a test runner; the child runs another program at once.
        warnings.simplefilter("ignore", DeprecationWarning)
        told, code = pexpect.run(asking, env=environment, withexitstatus=True, dimensions=(40, 1000))
    [draft] = drafts(home)
    assert code == 1
    assert "nobody here is called 'Humn'" in told.decode()
    assert f"{KEPT} {draft}." in told.decode()
    assert b"Humn" in draft.read_bytes()
