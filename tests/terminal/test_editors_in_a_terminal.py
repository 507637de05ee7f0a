"""Editors, in all that they do to the text and its file: nothing is lost, and a sentence says what happened."""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.edited_talk import (
    A_MINUTE,
    AN_HOUR,
    DISCARDED,
    EDITED,
    FIVE,
    KEPT,
    MISNAMING,
    QUESTION,
    REWORDED,
    REWORDING,
    TIRED,
    ask_anew,
    drafts,
    in_context,
    put_in,
    say_anew,
)
from tests.terminal.editors import changing, deleting, editor


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
    "looks on and leaves": Ending("printf 'My own line. '; sleep 2", "My own line. Nothing was changed."),
    "goes to the background": Ending(
        '(sleep 0.3; echo "# later" >> "$file") > /dev/null 2>&1 &', "The draft stays in", kept=b"# later"
    ),
    "fails without a change": Ending("exit 1", "my editor ended with status 1. Nothing was changed."),
    "fails, and what it saved is used": Ending(
        f"{REWORDING}; exit 1", f"Use what was saved? {QUESTION}", "y", f"{EDITED} 5 messages", REWORDED
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
        f"{EDITED} 5 messages",
        seen=REWORDED,
    ),
    "writes CRLF and changes nothing": Ending(
        changing(r"text = text.replace('\n', '\r\n')"), "the context is the same as before"
    ),
    "misspells a name, which is kept": Ending(MISNAMING, f"Edit again? {QUESTION}", "n", KEPT, kept=b"Humn: A2"),
    "misspells a name, which is discarded": Ending(MISNAMING, "nobody here is called 'Humn'", "d", DISCARDED),
    "deletes all": Ending(deleting("A", "B"), "the text has no messages left"),
    "is open while a message comes": Ending(
        f'"$PYTHON" -m chorus_cli ask "{TIRED[0]}" > /dev/null\n{REWORDING}',
        f"{EDITED} 5 messages",
        seen=(*REWORDED, *TIRED),
    ),
    "is open while another conversation is begun": Ending(
        f'"$PYTHON" -m chorus_cli ask /new > /dev/null\n{REWORDING}',
        "The context was changed in the meantime",
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


@pytest.mark.skipif(shutil.which("vim") is None, reason="no vim here")
def test_vim_stands_in_the_line_where_the_context_starts(home: Home) -> None:
    with home.chat(EDITOR="vim -u NONE -N -T vt100") as chat:
        put_in(home, "A1", "B1", newest=9 * AN_HOUR)
        home.say_by_sql("A2", A_MINUTE)
        chat.say("/context edit")
        chat.await_line("--- context starts here ---")
        chat.type("dd:wq\r")
        chat.await_text(f"{EDITED} 3 messages")
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
        chat.await_text(f"{EDITED} 5 messages")
        chat.await_line(PROMPT)
        chat.ask(*TIRED)
    assert home.seen() == [*REWORDED, *TIRED]
