"""Texts that the database refused, in the real program: told at the next start, brought into the log, or deleted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.terminal.driver import Home

TEXTS = [("user", "A long\nletter."), ("assistant", "A reply \ud83d.")]


class HomeAlone(Home):
    """A home whose programs have a folder of their own for temporary files, where rescued texts are looked for too."""

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "TMPDIR": str(self.path.parent)}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = HomeAlone(tmp_path / "home")
    assert home.run("ask", "hello").code == 0
    folder = home.path / "state" / "rescue"
    folder.mkdir()
    lines = [json.dumps({"persona": "chorus", "role": role, "content": content}) for role, content in TEXTS]
    (folder / "rescue-20260212T143005Z.jsonl").write_text("\n".join(lines) + "\n")
    return home


def test_they_are_brought_into_the_log_and_into_no_context(home: Home) -> None:
    assert "A long letter." in home.run("ask", "/rescue").output
    outcome = home.run("ask", "/rescue keep")
    assert outcome.output == "In the log now:\n2 texts of chorus in thread #2, which is closed; /thread 2 opens it.\n"
    found = home.sql("SELECT role, content, timestamp FROM messages WHERE thread_id = 2 ORDER BY id")
    assert found == [
        ("user", "A long\nletter.", "2026-02-12T14:30:05.000000Z"),
        ("assistant", "A reply \ufffd.", "2026-02-12T14:30:05.000000Z"),
    ]
    assert [*(home.path / "state" / "rescue").iterdir()] == []
    assert home.seen()[0] == "hello"
    assert home.run("ask", "/rescue").output == "There is no text that could not be stored.\n"


def test_a_message_that_was_not_sent_is_shown_and_brought_into_the_log_with_them(home: Home) -> None:
    home.sql(
        "INSERT INTO outbox(persona, role, content, is_sent, run, created_at) "
        "VALUES ('chorus', 'user', 'Unsaid', 0, '1-ab', '2026-02-12T15:00:00.000000Z')"
    )
    assert "Unsaid" in home.run("ask", "/rescue").output
    assert "3 texts of chorus in thread #2" in home.run("ask", "/rescue keep").output
    assert (home.said()[-1], home.unsent()) == ("Unsaid", [])


def test_texts_that_an_interrupted_attempt_has_taken_over_are_shown_once(home: Home) -> None:
    (path,) = (home.path / "state" / "rescue").iterdir()
    content = path.read_text()
    assert home.run("ask", "/rescue").code == 0
    assert not path.exists()
    path.write_text(content)
    assert home.run("ask", "/rescue").output.count("A long letter.") == 1
    assert len(home.unsent()) == 2


def test_the_next_chat_tells_of_them_and_deletes_them_only_with_consent(home: Home) -> None:
    assert "2 texts" in json.loads(home.run("doctor", "--json").output)["findings"][-2]["sentence"]
    assert home.run("ask", "/rescue discard").code == 1
    with home.chat() as terminal:
        terminal.await_text("2 texts not sent or not stored are kept; /rescue shows them.")
        terminal.say("/rescue discard")
        terminal.await_text("for good?")
        terminal.say("y")
        terminal.await_text("Deleted 2 texts.")
    assert ([*(home.path / "state" / "rescue").iterdir()], home.unsent()) == ([], [])
