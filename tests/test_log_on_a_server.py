"""Chorus with its log on a PostgreSQL server: two machines, one talk; a server that is out of reach loses nothing."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chorus_cli.machine.installation import install_command
from chorus_cli.machine.paths import paths
from chorus_cli.mcp.history import TOOLS
from chorus_cli.models.rules.declaration import Arguments
from chorus_cli.subcommands.mcp import ServedLog
from tests.cards.rules.made_cards import card
from tests.loopback_providers import CallingProvider, slow
from tests.storage.server import Server, held_back, serving
from tests.terminal.command import finished
from tests.terminal.driver import PROMPT, Home
from tests.terminal.editors import editor, replacing

ANSWER = "That sounds hard. What has made you unhappy?"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def log(server: Server, tmp_path: Path) -> str:
    """The address of a new log: a schema of its own."""
    schema = f"of_{tmp_path.name}".lower()[:60]
    server.sql(f"CREATE SCHEMA {schema}")
    return f"{server.url}?options=-csearch_path%3D{schema}"


def test_two_homes_see_one_log(home: Home, tmp_path: Path, log: str) -> None:
    other = Home(tmp_path / "other")
    assert home.run("--log", log, "ask", "-c", "I am unhappy").code == 0
    assert other.run("ask", "--log", log, "-c", "My mother is well").code == 0
    for each in (home, other):
        printed = each.run("log", "--log", log).output
        assert "I am unhappy" in printed
        assert "My mother is well" in printed
        assert not (each.path / "chorus.db").exists()
    assert "I am unhappy" not in home.run("log").output


def test_what_is_done_on_one_machine_is_there_on_the_other(
    talking: Home, provider: CallingProvider, tmp_path: Path, log: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHORUS_LOG", log)
    monkeypatch.setenv("EDITOR", editor(tmp_path, replacing("Reply 1", "Reply one")))
    laptop, desk = talking, Home(tmp_path / "desk")
    for number in range(4):
        provider.say(f"Reply {number}")
        assert (laptop, desk)[number % 2].run("ask", "-c", f"Question {number}").code == 0
    said = [f"{who} {number}" for number in range(4) for who in ("Question", "Reply")]
    assert laptop.seen() == desk.seen() == said
    assert 'Undone: your message "Question 3" and its reply' in laptop.run("undo").output
    assert desk.seen() == said[:6]
    assert 'Redone: your message "Question 3" and its reply' in desk.run("redo").output
    assert laptop.seen() == said
    assert laptop.run("context", "edit").output.startswith("Context edited:")
    assert desk.seen() == [*said[:3], "Reply one", *said[4:]]
    assert "«Question» 2" in desk.run("search", "question").output
    provider.say("They counted to two.")
    assert desk.run("context", "compact").code == 0
    assert "\n\nThey counted to two.\n" in laptop.run("context", "summary").output
    assert laptop.seen() == desk.seen() == said[-4:]


def test_a_password_is_in_no_output_and_no_file(home: Home, log: str) -> None:
    secret = log.replace("chorus@", "chorus:s3cret-word@")
    ran = [home.run("--log", secret, *words) for words in (("ask", "Hello"), ("paths",), ("context",), ("doctor",))]
    assert all("127.0.0.1" in each.output for each in ran[1:])
    assert "The log is at 127.0.0.1" in ran[2].output
    told = "".join(each.output + each.errors for each in ran)
    assert "s3cret-word" not in told
    kept = [path for path in home.path.rglob("*") if path.is_file() and b"s3cret-word" in path.read_bytes()]
    assert kept == []


def test_paths_and_doctor_know_the_log_on_a_server(home: Home, log: str) -> None:
    (home.path).mkdir()
    (home.path / "config.jsonc").write_text(json.dumps({"log": log}), encoding="utf-8")
    assert home.run("ask", "Hello").code == 0
    places = json.loads(home.run("paths", "--json").output)
    assert places["database"] == log
    assert Path(places["beside"]).is_file()
    found = {each["subject"]: each for each in json.loads(home.run("doctor", "--json").output)["findings"]}
    assert found["log"]["state"] == "fine"
    assert "2 messages in 2 threads" in found["log"]["sentence"]
    assert "pg_dump" in found["backups"]["sentence"]
    assert home.run("--log", "local", "backup").errors.startswith("There is no log in ")


def test_a_card_whose_persona_was_deleted_here_begins_anew(home: Home, log: str, tmp_path: Path) -> None:
    mira = tmp_path / "mira.json"
    mira.write_text(json.dumps(card(2)), encoding="utf-8")

    def run(*words: str) -> str:
        ran = home.run("--log", log, *words)
        assert ran.code == 0, ran.errors
        return ran.output

    run("persona", "import", str(mira))
    run("ask", "--persona", "mira", "-c", "I am unhappy")
    assert "I am unhappy" in run("log", "--persona", "mira")
    for make in (("import", str(mira)), ("new", "Mira")):
        run("persona", "archive", "mira")
        run("persona", "delete", "mira", "--yes")
        made = run("persona", *make)
        assert "The context starts at the creation of this persona" in run("context", "--persona", "mira")
    assert "the new persona does not see them" in made


def test_a_server_out_of_reach_is_one_sentence_and_the_way_out_works(home: Home) -> None:
    far = home.run("--log", "postgresql://127.0.0.1:9/chorus", "ask", "Hello")
    assert far.code == 1
    assert far.errors.startswith("The log at 127.0.0.1:9/chorus is out of reach (")
    assert far.errors.endswith("or go on with the log of this machine: chorus --log local.\n")
    assert home.run("--log", "local", "ask", "Hello").code == 0


def test_a_server_that_refuses_is_not_called_out_of_reach(home: Home, server: Server) -> None:
    refused = home.run("--log", server.url.replace("/postgres", "/nowhere"), "ask", "Hello").errors
    place = f"127.0.0.1:{server.port}/nowhere"
    assert refused.startswith(f'The server refuses the log at {place} (database "nowhere" does not exist). Correct ')
    assert refused.endswith("or go on with the log of this machine: chorus --log local.\n")


async def test_other_programs_search_a_log_on_a_server(home: Home, log: str) -> None:
    assert home.run("--log", log, "ask", "I am unhappy").code == 0
    served = ServedLog(paths({}, str(home.path)), {}, log)
    tool = next(each for each in TOOLS if each.tool.name == "search_history")
    async with served.opened() as seen:
        assert "I am unhappy" in await tool.handler(seen, Arguments({"query": "unhappy"}))


def test_a_private_question_touches_no_server(home: Home) -> None:
    far = {"CHORUS_LOG": "postgresql://127.0.0.1:9/chorus"}
    with home.running("ask", "--private", "Hello", variables=far) as process:
        assert process.stdout is not None
        assert b"ELIZA" in process.stdout.read()
    refused = home.run("--private", "--log", "local", "ask", "Hello")
    assert (refused.code, "--private and --log cannot be combined" in refused.errors) == (2, True)


def test_without_the_library_a_sentence_says_what_to_install(home: Home) -> None:
    main = (
        "import os, sys; sys.modules['psycopg'] = None; from chorus_cli.cli import main; sys.exit(main({}, os.environ))"
    )
    words = ["--log", "postgresql://127.0.0.1:9/chorus", "ask", "Hello"]
    ran = finished([sys.executable, "-c", main.format(words)], home.environment)
    assert ran.code == 1
    assert ran.errors.startswith("A log on a server needs the package psycopg (")
    assert install_command("chorus-cli[postgres]") in ran.errors


def test_a_server_that_stops_loses_no_word(home: Home) -> None:
    with serving() as own, slow() as provider, home.chat(**provider.variables, CHORUS_LOG=own.url) as terminal:
        provider.finish("one")
        terminal.ask("one", "About one: all.")
        own.stop()
        terminal.say("two is well")
        terminal.await_text("is out of reach")
        terminal.await_line(f"{PROMPT} two is well")
        terminal.await_bottom_line("log: out of reach", "Chorus")
        own.start()
        provider.finish("two")
        terminal.press("enter")
        terminal.await_text("About two: all.")
        terminal.await_line(PROMPT)
        terminal.say("three")
        terminal.await_text("About three")
        own.stop()
        provider.finish("three")
        terminal.await_text("The text is kept in")
        terminal.await_line(PROMPT)
        own.start()
        provider.finish("four")
        terminal.ask("four", "About four: all.")
        terminal.leave()
        said = own.sql("SELECT content FROM messages WHERE role = 'user' ORDER BY id")
        assert said == ["one", "two is well", "three", "four"]
    (rescued,) = (home.path / "state" / "rescue").iterdir()
    assert json.loads(rescued.read_text())["content"] == "About three: all."


def test_the_prompt_waits_for_no_server_and_a_message_for_its_return(home: Home) -> None:
    with serving() as own:
        own.stop()
        with home.chat(CHORUS_LOG=own.url) as terminal:
            terminal.await_text("is out of reach")
            terminal.await_bottom_line("log: out of reach", "Chorus")
            terminal.say("I am unhappy")
            terminal.await_text("is out of reach", times=2)
            terminal.await_line(f"{PROMPT} I am unhappy")
            terminal.press("ctrl-e")
            terminal.type(" today")
            terminal.await_line(f"{PROMPT} I am unhappy today")
            terminal.watch(1.5)
            terminal.kill(signal.SIGTERM)
        with home.chat(f"{PROMPT} I am unhappy today", CHORUS_LOG=own.url) as terminal:
            own.start()
            terminal.press("enter")
            terminal.await_text("unhappy?")
            terminal.await_line(PROMPT)
            terminal.until(lambda: "log:" not in terminal.bottom_line(), "no log in the line below")
            terminal.leave()
        assert own.sql("SELECT content FROM messages WHERE role = 'user'") == ["I am unhappy today"]


def test_a_message_that_is_typed_before_the_server_answers_waits_for_it(home: Home, server: Server, log: str) -> None:
    line = held_back(server.port)
    with line as (port, is_open), home.chat(CHORUS_LOG=log.replace(f":{server.port}/", f":{port}/")) as terminal:
        terminal.await_bottom_line("log: connecting", "Chorus")
        terminal.say("I am unhappy")
        terminal.watch(1.0)
        assert ANSWER not in terminal.screen_text()
        is_open.set()
        terminal.await_text(ANSWER)
        terminal.await_line(PROMPT)
        assert terminal.screen_text().count("I am unhappy") == 1
        assert "log:" not in terminal.bottom_line()
        terminal.leave()
    assert "I am unhappy" in home.run("--log", log, "log").output
