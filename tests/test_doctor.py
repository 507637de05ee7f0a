"""``chorus doctor`` in the real program: it tells of each fault, and mends it with consent."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from chorus_cli.log.rows.thread_lists import all_threads
from chorus_cli.storage import file_lock
from chorus_cli.stores.rules.findings import Repair
from chorus_cli.subcommands.repairs import MENDS
from tests.loopback_providers import recording
from tests.storage.damaged_files import PAGE_BYTES, overwrite_messages
from tests.terminal.command import PROGRAM, finished
from tests.terminal.driver import Home, Terminal
from tests.terminal.ordinary_user import small_disk
from tests.test_backups import ENDLESS, ENDLESS_TRIGGER

SAID = ["hello", "hello again", "and again"]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with three turns, the first two of them in a backup."""
    home = Home(tmp_path_factory.mktemp("template") / "home")
    for text in SAID[:2]:
        assert home.run("ask", "-c", text).code == 0
    assert home.run("backup").code == 0
    (made,) = (home.path / "backups").glob("*.zip")
    # The next one may be of the same second.
    made.rename(made.with_name("chorus-2026-02-12_143000.zip"))
    assert home.run("ask", "-c", SAID[2]).code == 0
    return home


def wrong(home: Home) -> dict[str, str]:
    """Return the sentences about what is wrong, by subject, as a program gets them."""
    return {subject: found["sentence"] for subject, found in findings(home).items()}


def findings(home: Home, state: str = "wrong") -> dict[str, dict[str, Any]]:
    outcome = home.run("doctor", "--json")
    report = json.loads(outcome.output)
    assert outcome.code == (0 if report["well"] else 1)
    assert report["well"] == all(each["state"] != "wrong" for each in report["findings"])
    return {each["subject"]: each for each in report["findings"] if each["state"] == state}


def repairs(home: Home, state: str = "wrong") -> dict[str, str | None]:
    return {subject: found["mend"] for subject, found in findings(home, state).items()}


def await_question(terminal: Terminal, number: int) -> None:
    """Wait for so many questions; one may be broken at the edge of the screen."""
    terminal.until(lambda: "".join(terminal.screen_text().split()).count("[y/N]") >= number, "a question")


def answered(home: Home, *answers: str, command: Sequence[str] = (*PROGRAM, "doctor")) -> tuple[str, int]:
    """Let the doctor ask at a terminal, and return its words and its exit code."""
    with closing(Terminal(home.environment, command=[*command])) as terminal:
        for number, answer in enumerate(answers, 1):
            await_question(terminal, number)
            terminal.say(answer)
        code = terminal.await_end()
        return " ".join(terminal.screen_text().split()), code


def mended(home: Home, *answers: str) -> str:
    return answered(home, *answers)[0]


def test_a_sound_home_is_well(home: Home) -> None:
    assert wrong(home) == {}
    outcome = home.run("doctor")
    assert outcome.code == 0
    assert "chorus.db is sound: 6 messages in 1 thread" in outcome.output
    assert "No message differs from the text that Chorus stored." in outcome.output
    assert "chorus/eliza (" in outcome.output


def silently_changed(home: Home) -> None:
    home.sql("UPDATE messages SET content = 'hello there' WHERE id = 1")


def without_a_session(home: Home) -> None:
    home.sql(
        "INSERT INTO sessions(persona, session_id, timestamp, file_path) "
        "VALUES ('chorus', '2026-02-12_gone', '2026-02-12T00:00:00Z', 'gone')"
    )


def damaged_index(home: Home) -> None:
    assert home.run("search", "hello").code == 0
    home.sql("UPDATE message_words_data SET block = zeroblob(length(block)) WHERE id > 10")


def zeroed_index(home: Home) -> None:
    assert home.run("search", "hello").code == 0
    home.sql("UPDATE message_words_data SET block = zeroblob(length(block))")


def zeroed(home: Home) -> None:
    overwrite_messages(home.path / "chorus.db", b"\0")


def without_free_pages(home: Home) -> None:
    """Damage the list of free pages, after which nothing is written."""
    home.sql("CREATE TABLE filling AS SELECT zeroblob(99999) AS zeros")
    home.sql("DROP TABLE filling")
    with (home.path / "chorus.db").open("r+b") as file:
        file.seek(32)
        file.write(b"\xff" * 8)


def open_to_all(home: Home) -> None:
    home.path.chmod(0o755)
    (home.path / "chorus.db").chmod(0o644)


def nameless_step(home: Home) -> None:
    home.sql("CREATE TABLE copied AS SELECT * FROM schema_migrations")
    home.sql("UPDATE copied SET name = NULL WHERE name LIKE '0011%'")
    home.sql("DROP TABLE schema_migrations")
    home.sql("ALTER TABLE copied RENAME TO schema_migrations")


FAULTS: dict[str, tuple[Callable[[Home], object], str, str, str | None]] = {
    "checksum": (silently_changed, "checksums", "1 message differs from the text that Chorus stored: #1.", "checksums"),
    "session": (without_a_session, "sessions", "The session 2026-02-12_gone has no file here", None),
    "index": (damaged_index, "index", "The index of the search is damaged; the messages are not.", "index"),
    "index of zeros": (zeroed_index, "index", "The index of the search is damaged; the messages are not.", "index"),
    "nameless step": (nameless_step, "log", "(a step in its list of migrations has no name)", "salvage"),
    "zeroed": (zeroed, "log", "is damaged", "salvage"),
    "free pages": (without_free_pages, "log", "freelist: ", "salvage"),
    "empty": (lambda home: (home.path / "chorus.db").write_bytes(b""), "log", "is empty (0 bytes)", "salvage"),
    "no database": (
        lambda home: (home.path / "chorus.db").write_text("Dear diary"),
        *("log", "is damaged or is not a database", "salvage"),
    ),
    "permissions": (open_to_all, "permissions", "After the next start of Chorus, only you can.", None),
    "settings": (lambda home: (home.path / "config.jsonc").write_text("{"), "settings", "config.jsonc", None),
    "newer": (
        lambda home: home.sql("INSERT INTO schema_migrations VALUES ('9999_x', '2030-01-01T00:00:00Z')"),
        *("log", "was made by a newer Chorus", None),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_with_its_offer_and_the_exit_code_is_1(home: Home, fault: str) -> None:
    break_, subject, sentence, repair = FAULTS[fault]
    break_(home)
    before = (home.path / "chorus.db").read_bytes()
    found = findings(home)[subject]
    assert sentence in found["sentence"]
    assert found["mend"] == repair
    assert (home.path / "chorus.db").read_bytes() == before


def test_the_text_of_a_changed_message_comes_back_from_the_backup(home: Home) -> None:
    silently_changed(home)
    assert "Restored 1 text from" in mended(home, "y")
    assert home.said() == SAID
    assert wrong(home) == {}


def test_a_text_that_only_an_older_backup_has_comes_back_from_it(home: Home) -> None:
    silently_changed(home)
    assert home.run("backup").code == 0
    assert "chorus-2026-02-12_143000.zip" in mended(home, "y").partition("Restored 1 text from")[2].replace(" ", "")
    assert home.said() == SAID
    assert wrong(home) == {}


def test_without_a_terminal_the_doctor_says_what_repairs(home: Home) -> None:
    assert "at a terminal" not in home.run("doctor").output
    silently_changed(home)
    assert home.run("doctor").output.endswith("can repair this at a terminal; it asks before it changes anything.\n")


def test_a_changed_text_that_no_backup_has_can_be_taken_for_true(home: Home) -> None:
    home.sql("UPDATE messages SET content = 'and again!' WHERE id = 5")
    told = mended(home, "y", "n")
    assert "present text? [y/N] n The present text of 1 message is unchanged; chorus doctor will report" in told
    assert "checksums" in wrong(home)
    told = mended(home, "y", "y")
    assert "No sound backup has the original text of 1 message" in told
    assert "present text? [y/N] y The present text of 1 message is accepted now." in told
    assert home.said()[2] == "and again!"
    assert wrong(home) == {}


def test_a_damaged_index_is_made_again(home: Home) -> None:
    damaged_index(home)
    assert "The damaged index is gone" in mended(home, "y")
    assert wrong(home) == {}
    assert "and «again»" in home.run("search", "again").output


def test_an_index_of_zeros_is_made_again_by_the_next_search(home: Home) -> None:
    zeroed_index(home)
    assert "and «again»" in home.run("search", "again").output
    assert wrong(home) == {}


def test_a_foreign_trigger_is_named_and_removed_and_a_table_is_the_users_own(home: Home) -> None:
    home.sql("""CREATE TABLE "it's mine" (line TEXT)""")
    home.sql("CREATE TRIGGER forgetting AFTER INSERT ON messages BEGIN DELETE FROM messages WHERE id < new.id; END")
    home.sql("CREATE VIEW mine AS SELECT content FROM messages")
    assert wrong(home) == {
        "code": "The log has the view mine and the trigger forgetting, which Chorus did not make: "
        "SQLite may run them at any change of the log."
    }
    assert "Removed the view mine and the trigger forgetting from the log." in mended(home, "y")
    assert wrong(home) == {}


def test_a_message_does_not_wait_for_an_endless_trigger(home: Home) -> None:
    home.sql(ENDLESS_TRIGGER)
    outcome = home.run("ask", "-c", "as typed")
    assert (outcome.code, outcome.output) == (1, "")
    assert "takes far more work than a log of its size needs" in outcome.errors
    assert "the trigger endless, which Chorus did not make" in wrong(home)["code"]


def test_an_endless_view_in_place_of_a_table_is_named_and_waited_for_by_nobody(home: Home) -> None:
    home.sql("ALTER TABLE meta RENAME TO before")
    home.sql(f"CREATE VIEW meta AS {ENDLESS} n AS key, n AS value FROM more")
    found = wrong(home)
    assert "the view meta, which Chorus did not make" in found["code"]
    assert "the table meta is missing or changed" in found["log"]
    assert home.run("ask", "-c", "as typed").code == 1
    mended(home, "y", "y", "y")
    assert wrong(home) == {}
    assert home.said() == SAID


def test_a_damaged_log_is_salvaged_with_the_backup_and_kept(home: Home) -> None:
    zeroed(home)
    broken = (home.path / "chorus.db").read_bytes()
    told = mended(home, "y", "n")
    assert "4 restored from" in told
    assert " 2 messages are gone: #5 and #6. " in told
    assert "The damaged log is as it was." in told
    assert (home.path / "chorus.db").read_bytes() == broken
    assert "The salvaged log is in use now." in mended(home, "y", "y")
    assert home.said() == SAID[:2]
    (kept,) = (home.path / "backups").glob("damaged-*.db")
    assert kept.read_bytes() == broken
    assert wrong(home) == {}
    assert "1 backup (" in home.run("doctor").output
    assert home.run("ask", "-c", "on we go").code == 0


def test_a_log_whose_list_of_free_pages_is_damaged_is_salvaged(home: Home) -> None:
    without_free_pages(home)
    outcome = home.run("ask", "-c", "a text that needs a page " * 1000)
    assert (outcome.code, "chorus doctor" in outcome.errors) == (1, True), outcome
    assert "The salvaged log is in use now." in mended(home, "y", "y")
    assert wrong(home).keys() == {"rescue"}
    assert home.run("ask", "-c", "on we go").code == 0
    assert home.said() == [*SAID, "on we go"]


@pytest.mark.parametrize(
    ("damage", "is_in_backup"),
    [
        ("detail = 'no JSON'", True),
        ("kind = 'undo', detail = '{\"undoes\": 3}'", False),
        ("kind = 'undo', detail = '{'", False),
        ("kind = 'x'", False),
    ],
)
def test_an_operation_that_cannot_be_read_is_passed_over_told_and_salvaged(
    home: Home, damage: str, *, is_in_backup: bool
) -> None:
    assert home.run("ask", "/context 12").code == 0
    for earlier in (home.path / "backups").glob("*.zip") if is_in_backup else ():
        earlier.unlink()
        assert home.run("backup").code == 0
    home.sql(f"UPDATE operations SET {damage}")  # noqa: S608 - the cases above
    told = "Operation 1 of the journal cannot be read"
    for line in (("ask", "-c", "on we go"), ("log",), ("context",), ("context", "--json")):
        outcome = home.run(*line)
        assert (outcome.code, (outcome.output + outcome.errors).count(told)) == (0, 1), line
    assert wrong(home)["rows"].startswith(f"{told}. A salvage keeps all texts")
    assert "The salvaged log is in use now." in mended(home, "y", "y")
    assert wrong(home) == {}
    assert home.said() == [*SAID, "on we go"]
    assert told not in home.run("log").errors
    assert home.sql("SELECT kind FROM operations") == ["window" if is_in_backup else "unreadable"]


@pytest.mark.parametrize("row", [1, 6])
def test_a_time_that_is_none_is_told_by_the_doctor_and_stops_no_list(home: Home, row: int) -> None:
    home.sql("UPDATE messages SET timestamp = '2026-99-99T99:99:99Z' WHERE id = ?", row)
    home.sql("UPDATE threads SET created_at = '2026-99-99T99:99:99Z'")
    personas = home.run("personas")
    assert (personas.code, "Chorus" in personas.output) == (0, True), personas
    assert home.run("personas", "--json").code == 0
    with closing(sqlite3.connect(home.path / "chorus.db")) as connection:
        (thread,) = all_threads(connection, "chorus")
    assert thread.messages == len(SAID) * 2
    assert f"Message {row} of chorus (2026-99-99T99:99:99Z) cannot be read: " in wrong(home)["rows"]


def test_if_no_message_can_be_read_it_is_advised_to_keep_the_damaged_log(home: Home) -> None:
    for path in (home.path / "backups").glob("*.zip"):
        path.unlink()
    (home.path / "chorus.db").write_bytes(random.Random(1).randbytes(5 * PAGE_BYTES))  # noqa: S311 - the same each time
    broken = (home.path / "chorus.db").read_bytes()
    told, code = answered(home, "y", "y")
    assert code == 1
    assert "0 messages could be read. It is unknown how many more messages are lost." in told
    assert "The new log would have no message." in told
    assert "Answer n, and restore another copy" in told
    (kept,) = (home.path / "backups").glob("damaged-*.db")
    assert kept.read_bytes() == broken
    assert home.run("log").code == 0


def test_a_salvage_that_the_disk_has_no_room_for_changes_nothing(home: Home) -> None:
    zeroed(home)
    broken = (home.path / "chorus.db").read_bytes()
    limited = ("sh", "-c", 'ulimit -f 8; exec "$0" "$@" doctor', *PROGRAM)
    told, code = answered(home, "y", command=limited)
    assert code == 1
    assert "The log cannot be salvaged in" in told
    assert "see that the disk has room and no faults, and run chorus doctor again." in told
    assert "bug" not in told
    assert (home.path / "chorus.db").read_bytes() == broken
    assert list(home.path.glob(".restoring*")) == []


def test_a_long_salvage_shows_that_it_goes_on(home: Home) -> None:
    home.sql(
        "INSERT INTO messages(role, thread_id, persona, timestamp, content, turn_id) WITH RECURSIVE counted(id) AS "
        "(SELECT 1 UNION ALL SELECT id + 1 FROM counted WHERE id < 30000) "
        "SELECT 'user', 1, 'chorus', '2026-11-26T10:00:00.000000Z', 'number ' || id, 1 FROM counted"
    )
    zeroed(home)
    with home.shell_in_terminal() as terminal:
        terminal.say(f"{sys.executable} -m chorus_cli doctor")
        await_question(terminal, 1)
        terminal.say("y")
        terminal.await_text("salvaging the log")
        await_question(terminal, 2)
        terminal.say("n")
        terminal.await_text("The damaged log is as it was.")


def test_a_salvage_reads_a_log_before_a_changed_text_in_it_is_taken_for_true(home: Home) -> None:
    home.sql("UPDATE messages SET content = 'and again!' WHERE id = 5")
    home.sql("UPDATE threads SET title = CAST(x'ff' AS TEXT)")
    before = (home.path / "chorus.db").read_bytes()
    told = mended(home, "y", "y", "y", "y")
    assert told.index("The salvaged log is in use now.") < told.index("is accepted now.")
    (kept,) = (home.path / "backups").glob("damaged-*.db")
    assert kept.read_bytes() == before
    assert wrong(home) == {}


# Besides damage


def about(home: Home, subject: str, *options: str, **variables: str) -> dict[str, Any]:
    outcome = finished([*PROGRAM, *options, "doctor", "--json"], {**home.environment, **variables})
    finding: dict[str, Any] = next(
        each for each in json.loads(outcome.output)["findings"] if each["subject"] == subject
    )
    return finding


NOWHERE = "http://127.0.0.1:1/v1"
KEY = {"OPENAI_API_KEY": "sk-0123456789abcdef"}
MODELS = {
    "embedded": ("chorus/eliza", {}, "fine", "needs no server"),
    "of an unreachable server": ("openai/m", {**KEY, "OPENAI_BASE_URL": NOWHERE}, "wrong", "127.0.0.1:1/v1 cannot be"),
    "without its key": ("anthropic/claude-sonnet-4-5", {"ANTHROPIC_API_KEY": ""}, "wrong", "ANTHROPIC_API_KEY"),
    "of a bare name without its key": ("gpt-5", {"OPENAI_API_KEY": ""}, "wrong", "Set OPENAI_API_KEY."),
    "in a file that is gone": ("local/nope.gguf", {}, "wrong", "There is no file"),
    "of litellm alone": ("cohere/command-r", {"COHERE_API_KEY": "x" * 20}, "note", "only litellm knows"),
}


@pytest.mark.parametrize(("model", "variables", "state", "sentence"), MODELS.values(), ids=MODELS)
def test_the_way_to_the_model_is_told(
    home: Home, model: str, variables: dict[str, str], state: str, sentence: str
) -> None:
    finding = about(home, "model", "--model", model, **variables)
    assert (finding["state"], finding["sentence"].startswith(f"{model} (")) == (state, True), finding
    assert sentence in finding["sentence"]


def test_the_model_is_that_of_the_persona_with_which_a_chat_would_open(home: Home) -> None:
    assert home.run("ask", "--persona", "chorus", "/set model local/first.gguf").code == 0
    assert home.run("ask", "--persona", "frodo", "/set model local/last.gguf").code == 0
    assert home.run("ask", "/persona frodo").code == 0
    for named, model in (((), "last"), (("--persona", "chorus"), "first")):
        assert about(home, "model", *named)["sentence"].startswith(f"local/{model}.gguf (")
    assert "no persona called 'gollum'" in about(home, "model", CHORUS_PERSONA="gollum")["sentence"]
    shutil.rmtree(home.path / "personas" / "frodo")
    assert about(home, "model")["sentence"].startswith("local/first.gguf (")


def test_a_server_that_can_be_reached_is_asked_nothing(home: Home) -> None:
    with recording() as server:
        finding = about(home, "model", "--model", "openai/m", **KEY, OPENAI_BASE_URL=server.address)
    assert (finding["state"], server.bodies) == ("fine", [])
    assert f"): {server.address} can be reached" in finding["sentence"]


def test_a_disk_without_room_is_told(home: Home) -> None:
    full = Home(home.path.with_name("full"))
    with small_disk(full.path, "4m"):
        shutil.copytree(home.path, full.path, dirs_exist_ok=True)
        finding = about(full, "disk")
    assert (finding["state"], finding["mend"]) == ("wrong", None)
    assert "Make room there" in finding["sentence"]


BYTES = b"a picture"
DIGEST = sha256(BYTES).hexdigest()
NAMED = json.dumps([{"name": "photo.png", "media_type": "text/plain", "size_bytes": 9, "sha256": DIGEST}])
SESSION = "2026-02-12_kept"
RUN = "17-0123abcd"
LEFT = (".restoring-ab12_z9k/chorus.db", "personas/chorus/.chorus-ab12_z9k.tmp", "backups/.chorus-ab12_z9k.tmp")
THEIRS = ("notes.tmp", "state/drafts/draft-17-0123abcd-x-message.md", "state/rescue/rescue-notes.txt")


def stored(home: Home) -> Path:
    path = home.path / "attachments" / DIGEST[:2] / DIGEST
    path.parent.mkdir(parents=True)
    path.write_bytes(BYTES)
    return path


def orphaned(home: Home) -> list[Path]:
    """Put there what killed processes leave, and files of the user; return the former."""
    paths = [home.path / name for name in (*LEFT, *THEIRS)]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"left")
        os.utime(path, (time.time() - 7200, time.time() - 7200))
    return [*paths[: len(LEFT)], stored(home)]


NOTES = ["unnamed", "leftovers"]


def of_doctor(home: Home) -> list[str]:
    return [subject for subject in repairs(home, "note") if subject in NOTES]


def test_what_killed_processes_left_is_a_note_and_goes_with_consent(home: Home) -> None:
    left = orphaned(home)
    assert of_doctor(home) == NOTES
    assert repairs(home) == {}
    told, code = answered(home, "n", "n")
    assert (code, [path for path in left if not path.exists()]) == (0, [])
    assert of_doctor(home) == NOTES, told
    told, code = answered(home, "y", "y")
    assert (code, [path for path in left if path.exists()]) == (0, [])
    assert "Deleted 1 attachment (9 bytes)." in told
    assert "Deleted 3 temporary files and folders (12 bytes)." in told
    assert [(home.path / name).read_bytes() for name in THEIRS] == [b"left"] * len(THEIRS)
    assert of_doctor(home) == []


def test_what_a_running_chorus_uses_is_not_deleted(home: Home) -> None:
    *_, attachment = orphaned(home)
    with file_lock.hold(home.path / "state" / "run" / RUN):
        told, code = answered(home, "y", "y")
    assert code == 0
    assert "Another Chorus is running (process 17)." in told
    assert "Deleted 2 temporary files and folders" in told
    assert (home.path / LEFT[0]).exists()
    assert attachment.exists()


def test_a_log_is_not_replaced_under_a_chorus_that_has_started_during_the_question(home: Home) -> None:
    zeroed(home)
    before = (home.path / "chorus.db").read_bytes()
    with closing(Terminal(home.environment, command=[*PROGRAM, "doctor"])) as terminal:
        await_question(terminal, 1)
        terminal.say("y")
        await_question(terminal, 2)
        with file_lock.hold(home.path / "state" / "run" / RUN):
            terminal.say("y")
            terminal.await_text("Another Chorus is running (process 17).")
    assert (home.path / "chorus.db").read_bytes() == before


def test_lost_files_that_no_backup_has_are_told_after_the_others_were_brought(home: Home) -> None:
    gone = json.loads(NAMED)[0] | {"sha256": "ab" * 32}
    home.sql("UPDATE messages SET attachments = ? WHERE role = 'user'", json.dumps([*json.loads(NAMED), gone]))
    path = stored(home)
    assert home.run("backup").code == 0
    path.write_bytes(b"something else")
    told, code = answered(home, "y")
    assert (code, path.read_bytes()) == (1, BYTES)
    assert "Restored 1 file from" in told
    assert "1 attachment could not be restored." in told


def test_a_repair_that_the_disk_refuses_ends_with_a_sentence(home: Home) -> None:
    home.sql("UPDATE messages SET attachments = ? WHERE role = 'user'", NAMED)
    path = stored(home)
    assert home.run("backup").code == 0
    path.unlink()
    path.parent.rmdir()
    path.parent.touch()
    told, code = answered(home, "y")
    assert code == 1
    # The terminal breaks the long path.
    sentence = f"The repair stopped at {path.parent}: File exists. Remove the cause and run chorus doctor again"
    assert sentence.replace(" ", "") in told.replace(" ", "")


def test_a_salvage_says_which_faults_would_remain(home: Home) -> None:
    assert home.run("backup").code == 0
    assert home.run("ask", "-c", "hello again").code == 0
    home.sql("DELETE FROM messages WHERE role = 'user'")
    told, code = answered(home, "y", "y")
    assert code == 1
    assert "These faults would remain: 1 message" in told
    assert home.said() == SAID
    assert repairs(home) == {"rows": "salvage"}


def test_a_restore_that_was_decided_is_told_and_carried_on_by_the_next_start(home: Home) -> None:
    (home.path / ".restoring").mkdir()
    shutil.rmtree(home.path / "state")
    (home.path / ".restoring" / "config.jsonc").write_text("{}\n")
    assert repairs(home) == {"restore": None}
    assert home.run("log").code == 0
    assert (home.path / "config.jsonc").read_text() == "{}\n"
    assert repairs(home) == {}


def test_each_repair_has_a_question_and_a_function() -> None:
    assert {*MENDS} == {*Repair}
    assert len({repair.question for repair in Repair}) == len(Repair)
    assert [repair for repair in Repair if repair.question.count("?") != 1] == []
