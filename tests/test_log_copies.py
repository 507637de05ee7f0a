"""The log goes to a server and back by ``chorus log``, and into the same backup from either place."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import psycopg
import pytest

from chorus_cli.storage.postgres.address import digest
from tests.machines import needs_a_server
from tests.terminal.driver import Home

pytestmark = needs_a_server


@pytest.fixture
def elsewhere(tmp_path: Path) -> Home:
    return Home(tmp_path / "elsewhere")


def said(home: Home, *options: str) -> list[str]:
    answer = home.run(*options, "log", "--json")
    return [each["content"] for each in json.loads(answer.output) if each.get("role") == "user"]


def test_a_log_goes_to_a_server_and_to_another_machine(home: Home, elsewhere: Home, log: str, tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("the tide", encoding="utf-8")
    home.run("ask", "-c", "-a", str(note), "First.")
    copied = home.run("log", "--copy-to", log)
    assert "1 attachment copied" in copied.output
    assert f'To go on there, put "log": "{log}" into' in " ".join(copied.output.split())
    home.run("--log", log, "ask", "-c", "On the server.")
    home.run("ask", "-c", "Offline.")
    again = json.loads(home.run("log", "--copy-to", log, "--json").output)
    assert {each["name"]: (each["rows"], each["added"], each["differing"]) for each in again["tables"]} == {
        "threads": (1, 0, 0),
        "messages": (4, 2, 0),
    }
    assert said(home, "--log", log) == ["First.", "On the server.", "Offline."]
    assert "attachment copied" in elsewhere.run("log", "--copy-from", log).output
    assert said(elsewhere) == said(home, "--log", log)
    [stored] = (path for path in (elsewhere.path / "attachments").rglob("*") if path.is_file())
    assert stored.read_text(encoding="utf-8") == "the tide"


def test_the_settings_of_a_machine_are_its_own_in_a_copy_of_its_log_and_nowhere_else(
    home: Home, elsewhere: Home, log: str
) -> None:
    home.run("ask", "-c", "First.")
    home.run("context", "24h")
    home.run("log", "--copy-to", log)
    listed = home.run("--log", log, "context", "ops").output
    assert listed == home.run("context", "ops").output
    assert "window default → 24h" in listed
    home.run("--log", log, "context", "12h")
    home.run("log", "--copy-from", log)
    assert "window 24h → 12h" in home.run("context", "ops").output
    assert "it is 24h again" in home.run("context", "undo").output
    elsewhere.run("log", "--copy-from", log)
    assert "window" not in elsewhere.run("context", "ops").output + elsewhere.run("--log", log, "context", "ops").output


def test_a_session_of_an_older_chorus_is_restored_from_a_copy_of_its_log(home: Home, elsewhere: Home, log: str) -> None:
    home.run("ask", "-c", "First.")
    home.run("context", "save", "Trip")
    home.sql("UPDATE sessions SET contents = ''")
    home.run("log", "--copy-to", log)
    restored = elsewhere.run("--log", log, "context", "restore", "trip")
    assert "2 messages in place of the old context" in restored.output


def test_a_backup_of_a_log_on_a_server_is_restored_on_a_machine(home: Home, elsewhere: Home, log: str) -> None:
    home.run("--log", log, "ask", "-c", "On the server.")
    backup = home.path / "all.zip"
    assert "2 messages" in home.run("--log", log, "backup", str(backup)).output
    refused = elsewhere.run("--log", log, "restore", str(backup))
    assert refused.code == 1
    assert "chorus log --copy-to URL" in " ".join(refused.errors.split())
    assert elsewhere.run("restore", "--yes", str(backup)).code == 0
    assert said(elsewhere) == ["On the server."]


def test_a_copy_that_is_stopped_goes_on(home: Home, log: str) -> None:
    home.run("ask", "-c", "First.")
    home.sql(
        "WITH RECURSIVE counted(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM counted WHERE number < 20000) "
        "INSERT INTO messages(persona, thread_id, role, content, timestamp) "
        "SELECT 'chorus', 1, 'user', 'word ' || number, '2026-01-01T00:00:00.000000Z' FROM counted"
    )
    with home.running("log", "--copy-to", log) as copying:
        await_rows(log)
        copying.send_signal(signal.SIGINT)
        _, errors = copying.communicate()
    assert copying.returncode == 130
    assert errors.decode() == "The copy was stopped. The same command goes on from there.\n"
    [_, messages] = json.loads(home.run("log", "--copy-to", log, "--json").output)["tables"]
    assert messages["rows"] == 20_002
    assert 0 < messages["added"] < 20_000


def await_rows(log: str) -> None:
    """Wait until the server has messages; its tables are made meanwhile."""
    with psycopg.connect(log, autocommit=True) as server:
        while server.execute("SELECT to_regclass('messages')").fetchone() == (None,):
            time.sleep(0.01)
        while server.execute("SELECT count(*) FROM messages").fetchone() == (0,):
            time.sleep(0.01)


def test_a_server_that_is_out_of_reach_changes_nothing(home: Home) -> None:
    home.run("ask", "-c", "First.")
    refused = home.run("log", "--copy-to", "postgresql://127.0.0.1:1/nowhere")
    assert refused.code == 1
    assert "The log at 127.0.0.1:1/nowhere is out of reach" in " ".join(refused.errors.split())
    assert home.run("log", "--copy-to", "local").code == 2


def test_another_programs_database_gets_no_row(home: Home, log: str) -> None:
    with psycopg.connect(log, autocommit=True) as server:
        server.execute("CREATE TABLE users(id integer)")
    home.run("ask", "-c", "First.")
    refused = home.run("log", "--copy-to", log)
    assert refused.code == 1
    assert "belongs to another program" in " ".join(refused.errors.split())


def test_what_was_copied_is_said_although_the_settings_cannot_be_shared(home: Home, log: str) -> None:
    home.run("ask", "-c", "First.")
    (home.path / f"beside-{digest(log)}.db").mkdir()
    copied = home.run("log", "--copy-to", log)
    assert copied.code == 1
    assert "every row was compared" in " ".join(copied.output.split())
