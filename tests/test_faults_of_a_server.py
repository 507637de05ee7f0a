"""A server of the log that fails: each time one sentence, nothing acknowledged is lost, and what was typed is kept."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from tests.imports.service.foreign_talk import ROME, WHERE, written
from tests.loopback_providers import calling
from tests.storage.pooler import pooling
from tests.storage.server import Server, between, serving
from tests.terminal.driver import LONG_MESSAGE, PROMPT, Home
from tests.terminal.editors import EDITED, QUESTION, ask_anew, drafts, editor, replacing

OR_LOCAL = "or go on with the log of this machine: chorus --log local."
ANSWER = "That sounds hard. What has made you unhappy?"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("max_connections=9", "superuser_reserved_connections=1", "max_wal_senders=0") as running:
        yield running


@pytest.fixture
def log(server: Server, tmp_path: Path) -> str:
    return server.new_log(re.sub(r"\W", "_", tmp_path.name).lower()[-60:])


def at(log: str, port: int) -> str:
    """Return the address of a log with another port, at which silence is noticed after two seconds."""
    return re.sub(r":\d+/", f":{port}/", log) + "?connect_timeout=2"


def sql(log: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(log, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


# Servers that are not taken


@contextmanager
def with_a_newer_step(home: Home, log: str) -> Iterator[str]:
    assert home.run("--log", log, "ask", "Hello").code == 0
    sql(log, "INSERT INTO schema_migrations(name, applied_at) VALUES ('9999_moods', '')")
    yield log


@contextmanager
def with_other_messages(_home: Home, log: str) -> Iterator[str]:
    sql(log, "CREATE TABLE messages(id INTEGER, body TEXT)")
    yield log


@contextmanager
def full_of_connections(_home: Home, log: str) -> Iterator[str]:
    with ExitStack() as held:
        with suppress(psycopg.OperationalError):
            while True:
                held.enter_context(psycopg.connect(log))
        yield log


@contextmanager
def full_for_guests(home: Home, log: str) -> Iterator[str]:
    """An administrator could still connect."""
    sql(log, "CREATE ROLE guest LOGIN")
    with full_of_connections(home, log.replace("//chorus@", "//guest@")) as address:
        yield address


@contextmanager
def of_cockroach(_home: Home, log: str) -> Iterator[str]:
    """CockroachDB names itself among the parameters with which each server greets."""

    def greet(data: bytes) -> bytes:
        before, name, after = data.rpartition(b"server_version\0")
        told = b"crdb_version\0CockroachDB CCL v25.2.0\0"
        parameter = b"S" + (len(told) + 4).to_bytes(4, "big") + told
        return before[:-5] + parameter + before[-5:] + name + after if name else data

    with between(port_of(log), back=greet) as port:
        yield at(log, port)


@contextmanager
def behind_a_pooler(_home: Home, log: str) -> Iterator[str]:
    with pooling(port_of(log), "chorus", log.rpartition("/")[2]) as port:
        yield at(log, port)


@contextmanager
def that_says_nothing(_home: Home, log: str) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield at(log, silent.getsockname()[1])


@contextmanager
def that_falls_silent(_home: Home, log: str) -> Iterator[str]:
    """A tunnel takes all that comes, but nothing reaches the server any more."""
    is_over, is_dead = threading.Event(), threading.Event()

    def lose(data: bytes) -> bytes:
        if b"INSERT INTO messages" in data:
            is_dead.set()
        return b"" if is_dead.is_set() and is_over.wait(60) else data

    with between(port_of(log), lose) as port:
        yield at(log, port)
    is_over.set()


def port_of(log: str) -> int:
    (port,) = re.findall(r":(\d+)/", log)
    return int(port)


Fault = Callable[[Home, str], AbstractContextManager[str]]
UNHEARD = r"The log at LOG is out of reach \(connection timeout expired\)\. Try again once the server answers, OR_LOCAL"
FAULTS: dict[str, tuple[Fault, str]] = {
    "newer": (
        with_a_newer_step,
        r"The log at LOG was made by a newer Chorus\. Update Chorus .*",
    ),
    "another program's": (with_other_messages, "The database at LOG belongs to another program. Make one for .*"),
    "full of connections": (
        full_of_connections,
        r"The server of the log at LOG has no connection left \(sorry, too many clients already\)\. Try .* OR_LOCAL",
    ),
    "full for guests": (
        full_for_guests,
        r"The server of the log at LOG has no connection left \(remaining connection slots .*\)\. Try .* OR_LOCAL",
    ),
    "CockroachDB": (of_cockroach, "LOG is CockroachDB, which .* Chorus needs PostgreSQL: .* OR_LOCAL"),
    "a pooler": (behind_a_pooler, "LOG is a connection pooler in transaction mode, .* OR_LOCAL"),
    "silent": (that_says_nothing, UNHEARD),
    "silent later": (that_falls_silent, rf"{UNHEARD} The text is kept in .*\."),
}


@pytest.mark.parametrize(("fault", "sentence"), FAULTS.values(), ids=FAULTS)
def test_a_server_that_cannot_have_the_log_is_refused_in_a_sentence(
    home: Home, log: str, fault: Fault, sentence: str
) -> None:
    with fault(home, log) as address:
        told = home.run("--log", address, "ask", "I am unhappy")
    place = address.partition("@")[2].partition("?")[0]
    sentence = sentence.replace("OR_LOCAL", re.escape(OR_LOCAL)).replace("LOG", re.escape(place))
    assert (told.code, told.output) == (1, "")
    assert re.fullmatch(f"{sentence}\n", told.errors), told.errors


def test_nothing_waits_for_a_server_that_says_nothing_once_the_user_has_enough(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        log = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/chorus?connect_timeout=300"
        with home.chat(CHORUS_LOG=log) as chat:
            chat.say("I am unhappy")
            chat.await_text("connecting to the log … 2 s")
            chat.press("ctrl-c")
            chat.await_idle()
            chat.await_line(f"{PROMPT} I am unhappy")
            chat.press("ctrl-c")
            chat.await_line(PROMPT)
            chat.leave()


def test_ctrl_c_shows_that_a_server_is_still_waited_for(home: Home, log: str) -> None:
    with that_falls_silent(home, log) as address, home.chat(CHORUS_LOG=f"{address}0") as chat:
        chat.say("I am unhappy")
        chat.await_text("preparing the request … 2 s")
        chat.press("ctrl-c")
        chat.await_text("Stopping …", 15)
        chat.kill(signal.SIGKILL)


def test_a_pooler_in_session_mode_is_a_server_as_any_other(home: Home, log: str) -> None:
    def rename(data: bytes) -> bytes:
        """Replace the number of the server's process in the greeting, as a pooler does."""
        before, key, after = data.partition(b"K\0\0\0\x0c")
        return before + key + bytes(4) + after[4:] if key else data

    with between(port_of(log), back=rename) as port:
        assert home.run("--log", at(log, port), "ask", "I am unhappy").output.startswith(ANSWER)


def slow_down(log: str) -> None:
    """Let each look at the threads take three seconds."""
    sql(log, "ALTER TABLE threads RENAME TO slow_threads")
    sql(log, "CREATE VIEW threads AS SELECT slow_threads.* FROM slow_threads, (SELECT pg_sleep(3)) AS slept OFFSET 0")


def test_a_statement_that_takes_long_is_waited_for(home: Home, log: str) -> None:
    assert home.run("--log", log, "ask", "-c", "Hello").code == 0
    slow_down(log)
    assert "Hello" in home.run("--log", at(log, port_of(log)), "thread", "list").output


def test_a_statement_that_takes_long_is_waited_for_while_the_server_takes_no_further_line(home: Home, log: str) -> None:
    sql(log, "CREATE ROLE lone LOGIN CONNECTION LIMIT 1")
    sql(log, f"ALTER DATABASE {log.rpartition('/')[2]} OWNER TO lone")
    of_lone = log.replace("//chorus@", "//lone@")
    assert home.run("--log", of_lone, "ask", "-c", "Hello").code == 0
    slow_down(log)
    sql(log, "ALTER VIEW threads OWNER TO lone")
    listed = home.run("--log", at(of_lone, port_of(log)), "thread", "list")
    assert (listed.code, listed.errors) == (0, "")
    assert "Hello" in listed.output


def test_a_line_without_a_limit_for_connecting_waits_for_a_statement_and_opens_no_other(home: Home, log: str) -> None:
    assert home.run("--log", log, "ask", "-c", "Hello").code == 0
    slow_down(log)
    opened = list[bytes]()

    def count(data: bytes) -> bytes:
        opened.extend(re.findall(b"application_name\\0chorus", data))
        return data

    with between(port_of(log), count) as port:
        address = at(log, port).replace("timeout=2", "timeout=0")
        assert "Hello" in home.run("--log", address, "thread", "list").output
    assert len(opened) == 1


# The server is stopped, or the line is cut, in the middle


def test_a_server_that_stops_while_the_context_is_edited_keeps_the_draft(home: Home, tmp_path: Path) -> None:
    command = editor(tmp_path, f"{replacing('I am unhappy', 'I am glad')}; echo now editing; read answer")
    with serving() as own, home.chat(EDITOR=command, CHORUS_LOG=own.url) as chat:
        chat.ask("I am unhappy", ANSWER)
        chat.say("/context edit")
        chat.await_text("now editing")
        own.stop()
        chat.press("enter")
        chat.await_text(f"Edit again? {QUESTION}")
        assert (
            chat.words().count(f"is out of reach (Connection refused). Try again once the server answers, {OR_LOCAL}")
            == 1
        )
        (draft,) = drafts(home)
        assert "I am glad" in draft.read_text()
        own.start()
        chat.say("y")
        chat.await_text(f"Use the saved text? {QUESTION}")
        ask_anew(chat, "y", EDITED)
        chat.leave()
        assert "I am glad" in home.run("--log", own.url, "context", "--json").output
        assert not drafts(home)


@contextmanager
def cut_at(log: str, words: bytes) -> Iterator[str]:
    """Yield an address of a log; the line is cut once, before the first message with these words arrives."""
    has_cut = threading.Event()

    def cut(data: bytes) -> bytes:
        if has_cut.is_set() or words not in data:
            return data
        has_cut.set()
        return b""

    with between(port_of(log), cut) as port:
        yield at(log, port)
    assert has_cut.is_set()


def test_a_line_that_is_cut_while_a_session_is_saved_loses_no_session(home: Home, log: str) -> None:
    assert home.run("--log", log, "ask", "-c", "I am unhappy").code == 0
    with cut_at(log, b"INSERT INTO sessions") as address:
        told = home.run("--log", address, "context", "save", "of moods")
    assert (told.code, told.output) == (1, "")
    assert told.errors.startswith("The connection to the log broke before the server confirmed a change, ")
    assert told.errors.endswith("if its file was written, /context history finds it.\n")
    (session,) = json.loads(home.run("--log", log, "context", "history", "--json").output)
    assert session["description"] == "of moods"
    assert home.run("--log", log, "context", "restore", session["session_id"]).code == 0


def test_a_line_that_is_cut_as_a_message_is_stored_gives_it_back(home: Home, log: str) -> None:
    assert home.run("--log", log, "ask", "Hello").code == 0
    with cut_at(log, b"INSERT INTO messages") as address, home.chat(CHORUS_LOG=address) as chat:
        chat.say("I am unhappy")
        refused = f"{OR_LOCAL} Nothing was sent; your message is back at the prompt."
        chat.until(lambda: refused in chat.words(), "the refusal")
        chat.await_line(f"{PROMPT} I am unhappy")
        chat.press("enter")
        chat.await_text(ANSWER)
        chat.await_line(PROMPT)
        chat.leave()
    assert sql(log, "SELECT content FROM messages ORDER BY id OFFSET 2") == [("I am unhappy",), (ANSWER,)]


def test_a_reply_goes_on_over_a_line_that_was_cut(home: Home, log: str) -> None:
    assert home.run("--log", log, "ask", "Hello").code == 0
    with cut_at(log, b"are you word0") as address, home.chat(CHORUS_LOG=address) as chat:
        chat.ask(LONG_MESSAGE, "word49?")
        assert "out of reach" not in chat.screen_text()
        chat.leave()
    ((reply, status),) = sql(log, "SELECT content, status FROM messages ORDER BY id OFFSET 3")
    assert (str(reply)[-7:], status) == ("word49?", "complete")


def test_an_import_goes_on_after_a_cut_line(home: Home, log: str, tmp_path: Path) -> None:
    said = [{**WHERE, "key": f"m{number}", "content": f"words {number}"} for number in range(400)]
    talks = [line for talk in range(5) for line in ({**ROME, "key": f"talk-{talk}"}, *said)]
    path = str(written(tmp_path, *talks))
    sizes = "SELECT count(*) FROM imported_messages JOIN messages ON id = message_id GROUP BY conversation_id"
    with cut_at(log, b"talk-4") as address:
        told = home.run("--log", address, "import", path)
    assert (told.code, told.output) == (1, "")
    assert "Imported 1,200 new messages in 3 new threads" in told.errors
    assert told.errors.endswith(f"Try again once the server answers, {OR_LOCAL}\n")
    assert sql(log, sizes) == [(400,)] * 3
    again = json.loads(home.run("--log", log, "import", path, "--json").output)
    assert (again["new_conversations"], again["known_messages"]) == (2, 1_200)
    assert sql(log, sizes) == [(400,)] * 5


# A server that keeps what was purged, is full, or ends lines which say nothing


def number_last(data: bytes) -> bytes:
    """Put the number of the rows that a server keeps at the end of its sentence, as some languages have it."""
    return re.sub(rb"(\d+) (dead row versions cannot be removed yet)\.", rb"\2: \1", data)


@pytest.mark.parametrize("said", [bytes, number_last])
def test_a_purge_is_complete_once_no_other_program_reads_what_it_overwrote(
    home: Home, log: str, said: Callable[[bytes], bytes]
) -> None:
    assert home.run("--log", log, "ask", "-c", "I am unhappy about hunter2").code == 0
    with between(port_of(log), back=said) as port:
        address = at(log, port)
        with psycopg.connect(log) as other:
            other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            other.execute("SELECT 1")
            told = home.run("--log", address, "purge", "search", "hunter2", "--yes")
            assert told.code == 1
            assert "The purge is not complete. The server of the log still has overwritten texts" in told.errors
        assert "A purge that was interrupted is complete now." in home.run("--log", address, "log").errors
    assert home.run("--log", log, "log").errors == ""


def test_a_full_server_takes_no_message_and_loses_no_word(home: Home) -> None:
    with serving() as own, own.small_disk(12) as space, calling() as provider:
        log, much = own.new_log("small", f"TABLESPACE {space}"), os.urandom(40_000).hex()
        with home.chat(**provider.environment("openai/x"), CHORUS_LOG=log) as chat:
            provider.say("Fine.")
            chat.ask("How are you?", "Fine.")
            fill(log)
            provider.say(f"{much} the end")
            chat.say("Tell me much")
            chat.until(lambda: "Make room there. The text is kept in" in chat.words(), "the sentence")
            assert f"The server of the log at 127.0.0.1:{own.port}/small has no room left (could not " in chat.words()
            told = home.run("--log", log, "ask", "Read this:", stdin=f"Do it {much}".encode())
            assert (told.code, told.output) == (1, "")
            assert "has no room left (could not extend file" in told.errors
            sql(log, "DROP TABLE filler")
            provider.say("Better.")
            chat.ask("And now?", "Better.")
            chat.leave()
        stored = sql(log, "SELECT content, status FROM messages ORDER BY id")
    assert stored[2:4] == [("Tell me much", "complete"), ("", "interrupted")]
    assert stored[4:] == [("And now?", "complete"), ("Better.", "complete")]
    assert rescued(home) == {f"Read this:\n\nDo it {much}", f"{much} the end"}


def rescued(home: Home) -> set[str]:
    """Return the texts that the server refused: in files, or in the outbox once the chat has found the files."""
    lines = (line for file in home.path.glob("state/rescue/*") for line in file.read_text().splitlines())
    texts = {json.loads(line)["content"] for line in lines}
    [beside] = home.path.glob("beside-*.db")
    with closing(sqlite3.connect(beside)) as database:
        return texts | {content for (content,) in database.execute("SELECT content FROM outbox")}


def fill(log: str) -> None:
    """Leave no room on the disk of a log."""
    sql(log, "CREATE TABLE filler(words TEXT)")
    with pytest.raises(psycopg.errors.DiskFull):
        sql(log, "INSERT INTO filler SELECT repeat('x', 500) FROM generate_series(1, 100000)")
    for _ in range(3):
        with suppress(psycopg.errors.DiskFull):
            while True:
                sql(log, "INSERT INTO filler SELECT repeat('x', 500) FROM generate_series(1, 10)")


def test_a_server_that_ends_idle_lines_is_not_noticed(home: Home, log: str) -> None:
    sql(log, f"ALTER DATABASE {log.rpartition('/')[2]} SET idle_session_timeout = '300ms'")
    with home.chat(CHORUS_LOG=log) as chat:
        chat.ask("I am unhappy", ANSWER)
        chat.watch(0.6)
        chat.ask("My mother is well", "mother")
        assert "out of reach" not in chat.screen_text() + chat.bottom_line()
        chat.leave()
    assert sql(log, "SELECT count(*) FROM messages WHERE status = 'complete'") == [(4,)]
