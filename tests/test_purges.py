"""Purges by the real program: agreed to, carried on wherever they are killed, in backups, and beside another chat."""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.killed_program import killed_at_each_step
from tests.loopback_providers import calling
from tests.stores.service.canary_talk import CANARY, holding
from tests.terminal.driver import PROMPT, Home

SECRET = f"The word for the gate is {CANARY}."
OTHERS = ["Good morning to you", "Shall we talk about the weather?"]
SECONDS_FOR_ALL = 1800
KILLED_EVERY_SECONDS = 0.2


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home in which the word was said once, between other messages, and saved in a session."""
    home = Home(tmp_path_factory.mktemp("template") / "home")
    for text in (OTHERS[0], SECRET, OTHERS[1], f"/remember {CANARY} opens it", "/context save"):
        assert home.run("ask", "-c", text).code == 0
    assert holding(home.path) == ["chorus.db", next(name for name in holding(home.path) if "sessions" in name)]
    return home


def assert_purged(home: Home) -> None:
    """The word is nowhere, and every message without it is as it was."""
    assert holding(home.path) == []
    assert [text for text in home.said() if text] == OTHERS
    assert home.sql("SELECT COUNT(*) FROM messages") == [6]
    findings = json.loads(home.run("doctor", "--json").output)["findings"]
    wrong = {each["subject"]: each["sentence"] for each in findings if each["state"] == "wrong"}
    assert not {"log", "checksums", "rows", "index", "sessions"} & wrong.keys(), wrong


def test_without_a_terminal_nothing_is_purged_unless_yes_is_said(home: Home) -> None:
    asked = home.run("purge", "search", CANARY)
    assert (asked.code, asked.output) == (1, "")
    assert asked.errors.splitlines()[-1] == "Nothing was purged: agree at a terminal, or add --yes."
    assert CANARY in asked.errors
    dry = home.run("purge", "search", CANARY, "--dry-run")
    assert (dry.code, dry.output.splitlines()[-1]) == (0, "Nothing was purged.")
    assert home.said() == [OTHERS[0], SECRET, OTHERS[1]]


@pytest.mark.parametrize("empty", [("message", ""), ("message", ","), ("search", ""), ("persona", "")])
def test_a_purge_of_nothing_in_particular_purges_nothing(home: Home, empty: tuple[str, str]) -> None:
    assert home.run("purge", *empty, "--yes").output == "Nothing matches, so nothing was purged.\n"
    assert home.said() == [OTHERS[0], SECRET, OTHERS[1]]


def test_a_script_purges_and_reads_json(home: Home) -> None:
    done = home.run("purge", "search", CANARY, "--yes", "--json")
    report = json.loads(done.output)
    assert (done.code, report["purged"], report["messages"], report["items"]) == (0, True, report["messages"], [1])
    assert report["backups"] == []
    assert_purged(home)
    again = json.loads(home.run("purge", "search", CANARY, "--yes", "--json").output)
    assert (again["purged"], again["messages"]) == (False, 0)


def test_backups_that_still_have_it_are_named_and_rewritten_on_demand(home: Home) -> None:
    assert home.run("backup").code == 0
    shutil.copyfile(home.path / "chorus.db", home.path / "backups" / "old.db")
    names = {path.name for path in (home.path / "backups").glob("[!.]*.*")}
    told = home.run("purge", "search", CANARY, "--yes")
    assert all(name in told.output for name in names), told.output
    assert set(holding(home.path)) == {f"backups/{name}" for name in names}
    rewritten = home.run("purge", "backups", "--yes")
    assert (rewritten.code, rewritten.output) == (0, "Rewrote 2 backups.\n"), rewritten.errors
    assert_purged(home)
    backup = next(name for name in names if name.endswith(".zip"))
    assert home.run("restore", str(home.path / "backups" / backup), "--yes").code == 0
    assert_purged(home)


def test_a_restore_says_first_how_many_messages_of_the_backup_were_purged_since(home: Home, tmp_path: Path) -> None:
    backup = str(tmp_path / "before.zip")
    assert home.run("backup", backup).code == 0
    told = "that you have purged since."
    assert told not in home.run("restore", backup).errors
    assert home.run("purge", "message", "3", "--yes").code == 0
    asked = home.run("restore", backup)
    assert (asked.code, f"1 message {told}" in asked.errors) == (1, True), asked.errors
    (home.path / "chorus.db").write_bytes(b"no database")
    assert "Nothing was changed" in home.run("restore", backup).errors


def test_a_purge_with_its_backups_leaves_the_word_nowhere(home: Home) -> None:
    assert home.run("backup").code == 0
    (backup,) = (path.name for path in (home.path / "backups").glob("*.zip"))
    done = home.run("purge", "search", CANARY, "--yes", "--backups")
    assert f"The backup {backup} has the texts too." in done.errors
    assert (done.code, done.output.splitlines()[-1]) == (0, "Rewrote 1 backup.")
    assert_purged(home)


@pytest.mark.slow
@pytest.mark.timeout(SECONDS_FOR_ALL)
def test_a_purge_that_is_killed_is_carried_on_by_the_next_start_or_was_not_begun(
    template: Home, tmp_path: Path
) -> None:
    killed = killed_at_each_step(template.path, tmp_path, "purge", "search", CANARY, "--yes", "--home", "HOME")
    assert sum(is_carried_on(Home(path)) for path in killed.homes)
    assert_purged(Home(killed.ended))


@pytest.mark.slow
@pytest.mark.timeout(SECONDS_FOR_ALL)
def test_a_purge_with_its_backups_that_is_killed_leaves_the_word_nowhere_once_it_is_carried_on(
    home: Home, tmp_path: Path
) -> None:
    assert home.run("backup").code == 0
    command = ("purge", "search", CANARY, "--yes", "--backups")
    killed = killed_at_each_step(home.path, tmp_path, *command, "--home", "HOME", since=".chorus-", every=40)
    carried_on = 0
    for each in map(Home, killed.homes):
        is_decided = bool(each.sql("SELECT 1 FROM meta WHERE key = 'purge'"))
        told = each.run("log").errors if is_decided else each.run(*command).output
        carried_on += told == "A purge that was interrupted is complete now.\nRewrote 1 backup.\n"
        assert_purged(each)
    assert carried_on


@pytest.mark.slow
@pytest.mark.timeout(SECONDS_FOR_ALL)
def test_a_purge_that_is_killed_at_any_moment_is_carried_on_or_was_not_begun(template: Home, tmp_path: Path) -> None:
    number, is_over = 0, False
    while not is_over:
        home = Home(shutil.copytree(template.path, tmp_path / f"{number}"))
        with home.running("purge", "search", CANARY, "--yes") as process:
            with suppress(subprocess.TimeoutExpired):
                process.wait(number * KILLED_EVERY_SECONDS)
            is_over = process.poll() is not None
        is_carried_on(home)
        number += 1
    assert number > 1


def is_carried_on(home: Home) -> bool:
    """Start the program after a kill, check that the purge was carried on or not begun, and end it; return which."""
    was_decided = bool(home.sql("SELECT 1 FROM meta WHERE key = 'purge'"))
    assert home.run("log").code == 0
    if was_decided:
        assert_purged(home)
    elif holding(home.path):
        assert home.said() == [OTHERS[0], SECRET, OTHERS[1]]
    assert home.run("purge", "search", CANARY, "--yes").code == 0
    assert_purged(home)
    return was_decided


def test_another_chat_sends_no_purged_message_with_its_next_turn(home: Home) -> None:
    # ELIZA has answered, whose talk no other model is sent.
    home.sql("UPDATE messages SET model = 'openai/x' WHERE model IS NOT NULL")
    with calling() as provider:
        variables = {"OPENAI_BASE_URL": provider.address, "OPENAI_API_KEY": "sk-invented", "CHORUS_MODEL": "openai/x"}
        with home.chat(**variables) as chat:
            chat.ask("Hello again", "ok")
            assert CANARY in json.dumps(provider.asked[-1])
            assert home.run("purge", "search", CANARY, "--yes").code == 0
            chat.say("And now?")
            chat.until(lambda: len(provider.asked) == 2, "the second request")
            assert CANARY not in json.dumps(provider.asked[-1])
            assert OTHERS[0] in json.dumps(provider.asked[-1])
            chat.await_line(PROMPT)
    # The chat may have made the backup of the day before.
    assert not [name for name in holding(home.path) if not name.startswith("backups/daily-")]


def test_an_open_chat_forgets_purged_lines_at_its_next_prompt_and_writes_none_back(home: Home) -> None:
    with home.chat() as chat:
        before = len(home.replies())
        for line in (SECRET, "Tell me more."):
            chat.say(line)
        chat.until(lambda: typed(home) == [SECRET, "Tell me more."], "the lines")
        chat.until(lambda: [status for _, status in home.replies()[before:]] == ["complete"] * 2, "the replies")
        assert home.run("purge", "search", CANARY, "--yes").code == 0
        chat.say("And now?")
        chat.until(lambda: len(home.replies()) == before + 3, "the reply")
        chat.say("/help nothing")
        chat.await_text("nothing", times=2)
        chat.await_line(PROMPT)
        chat.press("up", "up", "up", "up", "up")
        chat.type("!")
        chat.await_line(f"{PROMPT} Tell me more.!")
        kept = ["Tell me more.", "And now?", "/help nothing"]
        chat.until(lambda: typed(home) == kept, "the lines that are left")
    assert typed(home) == kept
    assert not [name for name in holding(home.path) if not name.startswith("backups/daily-")]


def typed(home: Home) -> list[str]:
    return home.sql("SELECT content FROM input_history ORDER BY id")


def test_a_chat_asks_before_it_purges_and_forgets_the_line_that_asked_for_it(home: Home) -> None:
    with home.chat() as chat:
        chat.say(f"/purge search {CANARY}")
        chat.await_text("1 saved session for good?")
        chat.say("y")
        chat.await_text("purged, for good.")
        chat.await_line(PROMPT)
    assert_purged(home)
