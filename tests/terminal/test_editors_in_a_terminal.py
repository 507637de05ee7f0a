"""Editors from the keyboard: the context after an edit, all that an editor may do, and the drafts that are kept."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.mock_provider import MockProvider
from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.editors import (
    DISCARDED,
    EDITED,
    FIVE,
    KEPT,
    LEFT,
    MISNAMING,
    QUESTION,
    REWORDED,
    REWORDING,
    TIRED,
    ask_anew,
    changing,
    deleting,
    drafts,
    editor,
    in_context,
    put_in,
    replacing,
    say_anew,
)

ROWS = "SELECT id, turn_id, role, content, timestamp, status FROM messages ORDER BY id"


def undo_turn(chat: Terminal, text: str) -> None:
    ask_anew(chat, "/undo", "and its reply", f"{PROMPT} {text}")
    chat.press("ctrl-c")
    chat.await_line(PROMPT)


def said_to(mock_provider: MockProvider) -> list[str]:
    messages: list[dict[str, Any]] = mock_provider.requests()[-1][1:]
    return [message["content"].rpartition("]\n\n")[2] for message in messages]


def test_the_next_request_holds_what_was_left(tmp_path: Path, home: Home, mock_provider: MockProvider) -> None:
    scripts = (deleting("B1", "A2"), replacing("Chorus: B1", "Chorus: B1, but better"))
    variables = {"CHORUS_MODEL": "openai/x", "OPENAI_BASE_URL": f"{mock_provider.address}/v1", "OPENAI_API_KEY": "sk-x"}
    with home.chat(EDITOR=editor(tmp_path, *scripts), **variables) as chat:
        put_in(home, *FIVE)
        rows = home.sql(ROWS)
        ask_anew(chat, "/context edit", f"{EDITED} 3 messages")
        assert home.sql(ROWS) == rows
        assert home.sql("SELECT message_id FROM operation_members ORDER BY position") == [1, 4, 5]
        mock_provider.behave(type="reply", text="Hello from far away.")
        chat.ask("Next", "Hello from far away.")
        assert said_to(mock_provider) == ["A1", "B2", "A3", "Next"]

        undo_turn(chat, "Next")
        ask_anew(chat, "/undo", "Undone: edit of the context")
        ask_anew(chat, "/context edit", f"{EDITED} 5 messages")
        mock_provider.behave(type="reply", text="Second reply.")
        chat.ask("Again", "Second reply.")
        assert said_to(mock_provider) == ["A1", "B1, but better", "A2", "B2", "A3", "Again"]

        undo_turn(chat, "Again")
        ask_anew(chat, "/undo", "Undone: edit of the context")
        mock_provider.behave(type="reply", text="Third reply.")
        chat.ask("Once more", "Third reply.")
        assert said_to(mock_provider) == [*FIVE, "Once more"]
    assert home.sql(f"{ROWS} LIMIT 5") == rows
    assert home.sql("SELECT content FROM messages WHERE introduced_by IS NOT NULL") == ["B1, but better"]
    assert drafts(home) == set()


def test_one_reply_is_edited_alone_shown_again_and_sent(
    tmp_path: Path, home: Home, mock_provider: MockProvider
) -> None:
    script = replacing("*sighs* The road is long.", "*smiles* The road is **short**.")
    variables = {"CHORUS_MODEL": "openai/x", "OPENAI_BASE_URL": f"{mock_provider.address}/v1", "OPENAI_API_KEY": "sk-x"}
    with home.chat(EDITOR=editor(tmp_path, f'cp "$file" "{tmp_path}/seen"; {script}'), **variables) as chat:
        put_in(home, "Onward!", "*sighs* The road is long.")
        ask_anew(chat, "/edit", "smiles The road is short.")
        assert (tmp_path / "seen").read_text() == "*sighs* The road is long.\n"
        mock_provider.behave(type="reply", text="As you say.")
        chat.ask("Next", "As you say.")
        assert said_to(mock_provider) == ["Onward!", "*smiles* The road is **short**.", "Next"]
        undo_turn(chat, "Next")
        ask_anew(chat, "/undo", "Undone: edit of message #")
    assert drafts(home) == set()


def test_a_reply_goes_on_where_it_ended(home: Home, mock_provider: MockProvider) -> None:
    variables = {"CHORUS_MODEL": "openai/x", "OPENAI_BASE_URL": f"{mock_provider.address}/v1", "OPENAI_API_KEY": "sk-x"}
    with home.chat(**variables) as chat:
        put_in(home, "Sing!", "The road goes ever")
        mock_provider.behave(type="reply", text="on and on, down from the door.")
        chat.ask("/continue", "on and on, down from the door.")
        assert said_to(mock_provider)[:2] == ["Sing!", "The road goes ever"]
        assert said_to(mock_provider)[2].startswith("(Go on with your last message exactly where it stopped")
        mock_provider.behave(type="reply", text="As you say.")
        chat.ask("Next", "As you say.")
        assert said_to(mock_provider) == ["Sing!", "The road goes ever on and on, down from the door.", "Next"]
        undo_turn(chat, "Next")
        ask_anew(chat, "/undo", "Undone: continuation of the last reply")


@dataclass(frozen=True, slots=True)
class Ending:
    """An edit of the five messages: the script, the sentence shown, the answer to it, and the outcome.

    ``kept`` is a piece of the draft that stays, ``None`` if none does.
    """

    script: str
    says: str
    answer: str = ""
    then: str = ""
    seen: tuple[str, ...] = FIVE
    kept: bytes | None = None


ENDINGS = {
    "saves nothing": Ending(': > "$file"', "the saved text is empty."),
    "goes to the background": Ending(
        '(sleep 0.3; echo "# later" >> "$file") > /dev/null 2>&1 &',
        "What the editor saves later is in",
        kept=b"# later",
    ),
    "fails, and what it saved is used": Ending(
        f"{REWORDING}; exit 1", f"Use the saved text? {QUESTION}", "y", f"{EDITED} 5 messages", REWORDED
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
    "deletes the file": Ending('rm "$file"', "is gone: the editor deleted it"),
    "puts a link there": Ending('ln -sf /dev/null "$file"', "it is a symbolic link now.", kept=b""),
    "writes latin-1": Ending(
        changing("text = text.replace('A2', 'd\xe9j\xe0').encode('latin-1')"), "is not UTF-8", kept=b"d\xe9j\xe0"
    ),
    "writes CRLF": Ending(
        changing(r"text = text.replace('Human: A2', 'Human: A two').replace('\n', '\r\n')"),
        f"{EDITED} 5 messages",
        seen=REWORDED,
    ),
    "misspells a name, which is kept": Ending(MISNAMING, f"Edit again? {QUESTION}", "n", KEPT, kept=b"Humn: A2"),
    "deletes all": Ending(deleting("A", "B"), "the text has no messages left"),
    "is open while a message comes": Ending(
        f'"$PYTHON" -m chorus_cli ask -c "{TIRED[0]}" > /dev/null\n{REWORDING}',
        f"{EDITED} 5 messages",
        seen=(*REWORDED, *TIRED),
    ),
    "is open while another conversation is begun": Ending(
        f'"$PYTHON" -m chorus_cli ask /new > /dev/null\n{REWORDING}',
        "The context changed in the meantime",
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


def assert_kept(found: set[Path], piece: bytes | None, name: str) -> None:
    if piece is None:
        assert found == set(), name
        return
    [draft] = found
    deadline = time.monotonic() + 5
    while piece not in draft.read_bytes():
        assert time.monotonic() < deadline, (name, draft.read_bytes())
        time.sleep(0.05)


def test_a_signal_at_the_question_keeps_the_draft_and_names_it(tmp_path: Path, home: Home) -> None:
    with home.chat(EDITOR=editor(tmp_path, MISNAMING)) as chat:
        put_in(home, *FIVE)
        chat.say("/context edit")
        chat.await_text(f"Edit again? {QUESTION}")
        chat.kill(signal.SIGTERM)
        assert chat.echoes
        assert LEFT in chat.words()
        [draft] = drafts(home)
        assert f"{draft.name}." in "".join(chat.screen_text().splitlines())


READING = 'echo now editing; read answer; echo "$answer" >> "$file"'
INTERRUPTED = {
    "only when it is killed": (f"{REWORDING}; trap '' TERM HUP; {READING}", KEPT, os.kill, signal.SIGTERM),
    "in order": (f"{REWORDING}; trap 'exit 0' TERM HUP; {READING}", KEPT, os.kill, signal.SIGTERM),
    "without a change": (READING, "Nothing was changed. What the editor saves later is in", os.kill, signal.SIGTERM),
    "with a mistake, by the signal to both": (f"{MISNAMING}; {READING}", KEPT, os.killpg, signal.SIGTERM),
}


@pytest.mark.parametrize(("script", "says", "send", "number"), INTERRUPTED.values(), ids=INTERRUPTED)
def test_a_signal_while_an_editor_is_open_ends_that_and_the_chat_and_keeps_the_draft(
    tmp_path: Path, home: Home, script: str, says: str, send: Callable[[int, int], None], number: int
) -> None:
    with home.chat(EDITOR=editor(tmp_path, script)) as chat:
        put_in(home, *FIVE)
        chat.say("/context edit")
        chat.await_text("now editing")
        send(chat.pid, number)
        assert chat.await_end() == 128 + number
        [draft] = drafts(home)
        assert f"{draft.name}." in "".join(chat.screen_text().splitlines())
        assert says in chat.words()
        assert chat.echoes
        assert home.seen() == [*FIVE]


def test_a_signal_while_a_pager_is_open_ends_that_and_the_chat(home: Home) -> None:
    with home.chat(PAGER="sh -c 'echo now paging; read answer'") as chat:
        chat.say("/help all")
        chat.await_text("now paging")
        os.kill(chat.pid, signal.SIGTERM)
        assert chat.await_end() == 128 + signal.SIGTERM
        assert chat.echoes


def test_what_was_edited_when_the_window_closed_or_the_program_died_is_named_later(tmp_path: Path, home: Home) -> None:
    waiting = f'{REWORDING}; trap "" HUP; echo now editing; read answer'
    notice = "1 unused edit is kept for 7 days in"
    with home.chat(EDITOR=editor(tmp_path, waiting, waiting)) as chat:
        put_in(home, *FIVE)
        chat.say("/context edit")
        chat.await_text("now editing")
        with home.chat() as other:
            other.await_text("ELIZA (1966) is answering")
            other.leave()
            assert notice not in other.screen_text()
        assert chat.hang_up() == 128 + signal.SIGHUP
    [hung_up] = drafts(home)
    assert b"A two" in hung_up.read_bytes()

    with home.chat(EDITOR=editor(tmp_path, waiting, waiting)) as chat:
        chat.await_text(notice)
        names_it = f"{hung_up.name};deleteit"
        chat.until(lambda: names_it in "".join(chat.screen_text().split()), names_it)
        chat.say("/context edit")
        chat.await_text("now editing")
        chat.kill(signal.SIGKILL)
    [killed] = drafts(home) - {hung_up}
    assert b"A two" in killed.read_bytes()
    with home.chat() as chat:
        chat.await_text("2 unused edits are kept for 7 days in")
        chat.until(lambda: killed.name in "".join(chat.screen_text().splitlines()), killed.name)
    assert home.seen() == [*FIVE]
