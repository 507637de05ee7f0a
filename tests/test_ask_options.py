"""``chorus ask`` with its options: the thread that is asked in, the value for scripts, and exit codes."""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import Sequence

import pytest

from tests.loopback_providers import recording, slow
from tests.terminal.driver import LONG_MESSAGE, PATIENCE_SECONDS, PROMPT, Home

UNHAPPY, ANSWER = "I am unhappy", "That sounds hard. What has made you unhappy?"
NO_KEY = "There is no key for openai/gpt-4o. Set OPENAI_API_KEY, or choose another model with /model."
FACTS = ["reply", "usage", "model", "thread", "seconds"]


@pytest.fixture
def home(home: Home) -> Home:
    """A home in whose thread 1 something was said."""
    assert home.run("ask", "-c", "Hello").code == 0
    return home


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with an open thread 1 and a closed thread 2, for runs that change nothing."""
    home = Home(tmp_path_factory.mktemp("threads") / "home")
    assert home.run("ask", "-c", "Hello").code == home.run("ask", "Aside").code == 0
    return home


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("ask", "--thread", "9", "hi"), 1, "There is no thread #9 here."),
        (("ask", "--json", "--thread", "9", "hi"), 1, "There is no thread #9 here."),
        (("ask", "--thread", "9", "/context"), 1, "There is no thread #9 here."),
        (("ask", "--json"), 1, "There is nothing to ask."),
        (("ask", "--json", "--persona", "gollum", "hi"), 1, "There is no persona called 'gollum'"),
        (("ask", "--thread", "0", "hi"), 2, "'0' is not a thread number"),
        (("ask", "--thread", "one", "hi"), 2, "'one' is not a thread number"),
        (("ask", "--thread"), 2, "expected one argument"),
        (("ask", "--new", "--thread", "1", "hi"), 2, "argument --thread: not allowed with argument --new"),
        (("-c", "ask", "--thread", "1", "hi"), 2, "argument --thread: not allowed with argument -c/--continue"),
        (("ask", "--json", "/help me"), 2, "--json needs a message, but /help is a command."),
        (("ask", "--nonsense", "hi"), 2, "usage: chorus"),
        (("log", "--private"), 2, "unrecognized arguments: --private"),
        (("--private", "log"), 2, "unrecognized arguments: --private"),
        (("--private", "ask", "--thread", "2", "hello"), 2, "--private and --thread or -c cannot be combined"),
        (("ask", "-c", "--private", "hello"), 2, "--private and --thread or -c cannot be combined"),
        (("--effort", "high", "log"), 2, "unrecognized arguments: --effort high"),
        (("-c",), 2, "unrecognized arguments: -c"),
        (("ask", "--effort", "max", "hi"), 2, "invalid choice: 'max' (choose from "),
        (("--effort", "", "ask", "-c", "hi"), 2, "invalid choice: '' (choose from "),
    ],
)
def test_what_cannot_be_asked_is_said_on_stderr_and_changes_nothing(
    threads: Home, arguments: Sequence[str], code: int, sentence: str
) -> None:
    before = threads.sql("SELECT COUNT(*) FROM messages UNION ALL SELECT COUNT(*) FROM threads")
    outcome = threads.run(*arguments)
    assert (outcome.code, outcome.output) == (code, "")
    assert sentence in outcome.errors
    assert threads.sql("SELECT COUNT(*) FROM messages UNION ALL SELECT COUNT(*) FROM threads") == before


def test_a_question_has_a_thread_of_its_own_that_stays_closed(home: Home) -> None:
    told = json.loads(home.run("ask", "--json", UNHAPPY).output)
    assert (told["reply"], told["thread"]) == (ANSWER, 2)
    assert home.sql("SELECT number, closed_at IS NULL FROM threads ORDER BY id") == [(1, 1), (2, 0)]
    assert home.sql("SELECT DISTINCT thread_id FROM messages WHERE content = ?", UNHAPPY) == [2]
    assert UNHAPPY not in home.seen()


@pytest.mark.parametrize(
    "where",
    [("ask", UNHAPPY), ("--new", "ask", UNHAPPY), ("ask", UNHAPPY, "--new"), ("ask", "-c", UNHAPPY), ("ask", "/feel")],
)
def test_the_thread_and_the_persona_last_used_stay_the_last_used(home: Home, where: Sequence[str]) -> None:
    (home.path / "commands").mkdir()
    (home.path / "commands" / "feel.md").write_text(UNHAPPY)
    home.run("ask", "/thread new")
    home.run("ask", "--thread", "2", "In the second")
    home.run("ask", "--thread", "1", "In the first")
    assert home.run("--persona", "frodo", *where).code == 0
    now = json.loads(home.run("context", "--json").output)
    assert (now["persona"], now["thread"]) == ("chorus", 1)


def test_a_second_question_goes_on_where_it_is_told_to(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with recording() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        for arguments in ((UNHAPPY,), ("Anew",), ("-c", "Goes on"), ("--thread", "2", "There"), ("-c", "And there")):
            assert home.run("ask", *arguments).output == "seen.\n"
    asked = [[each["content"] for each in body["messages"] if each["role"] == "user"] for body in server.bodies]
    first = [UNHAPPY, "There", "And there"]
    assert asked == [first[:1], ["Anew"], ["Anew", "Goes on"], first[:2], first]
    # Those that a question went on in are open again, and a chat goes on in the last one.
    assert home.sql("SELECT number FROM threads WHERE closed_at IS NULL ORDER BY id") == [1, 2, 3]
    assert home.seen()[-1] == "seen."
    assert home.run("ask", "--thread", "3", "/why").errors == "In thread #3.\n"
    told = home.run("-c", "context", "--json")
    assert (json.loads(told.output)["thread"], told.errors) == (2, "In thread #2.\n")


@pytest.mark.parametrize("undo", [("undo",), ("ask", "/undo")])
def test_what_was_asked_last_is_undone_and_redone_in_its_own_thread(home: Home, undo: Sequence[str]) -> None:
    home.run("ask", "-c", "In the chat")
    home.run("ask", UNHAPPY)
    turn = f'your message "{UNHAPPY}" and its reply\n'
    told = home.run(*undo)
    assert (told.errors, told.output) == ("In thread #2.\n", f"Undone: {turn}")
    assert home.run(*undo).errors.endswith("There is nothing to undo here.\n")
    assert home.run("redo").output == f"Redone: {turn}"
    assert home.run("undo", "--thread", "1").output == 'Undone: your message "In the chat" and its reply\n'
    home.run("ask", "-c", "More")
    assert home.run("retry").errors == "In thread #2.\n"


@pytest.mark.parametrize("where", [("--effort", "high", "ask"), ("ask", "--effort", "high")])
def test_an_effort_holds_for_one_run_and_changes_no_file(
    home: Home, monkeypatch: pytest.MonkeyPatch, where: Sequence[str]
) -> None:
    assert "Value: high\nFrom: this run\n" in home.run(*where, "/settings effort").output
    with recording() as server:
        monkeypatch.setenv("DEEPSEEK_API_BASE", server.address)
        monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-of-nobody")
        for arguments in (where, ["ask"]):
            assert home.run("--model", "deepseek/deepseek-v4-flash", *arguments, UNHAPPY).output == "seen.\n"
    assert [body.get("reasoning_effort") for body in server.bodies] == ["high", None]
    assert "Value: the provider's\nFrom: default\n" in home.run("ask", "/settings effort").output


def test_a_question_in_a_new_thread_costs_one_commit_and_its_reply_another(home: Home) -> None:
    def commits() -> int:
        with (home.path / "chorus.db").open("rb") as file:
            return int.from_bytes(file.read(28)[24:])

    before = commits()
    home.run("ask", UNHAPPY)
    assert commits() - before == 2
    assert "too large" in home.run("ask", stdin=b"five tokens and so on\n" * 40_000).errors
    assert home.sql("SELECT MAX(number) FROM threads") == [2]


@pytest.mark.parametrize(
    "where",
    [("--json", "ask", UNHAPPY), ("ask", "--json", UNHAPPY), ("ask", UNHAPPY, "--json"), ("ask", "--json", "/feel")],
)
def test_json_is_one_value_on_stdout_and_nothing_else(home: Home, where: Sequence[str]) -> None:
    (home.path / "commands").mkdir()
    (home.path / "commands" / "feel.md").write_text(UNHAPPY)
    outcome = home.run(*where)
    assert (outcome.code, outcome.errors) == (0, "")
    told = json.loads(outcome.output)
    assert list(told) == FACTS
    assert (told["reply"], told["usage"], told["model"], told["thread"]) == (ANSWER, {}, "chorus/eliza", 2)
    assert 0 < told["seconds"] < PATIENCE_SECONDS


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("Hello",), " Your message is kept; chorus ask --thread 2 /retry asks again.\n"),
        (("--json", "Hello"), " Your message is kept; chorus ask --thread 2 /retry asks again.\n"),
        (("/retry",), " Your message is kept; chorus ask --thread 1 /retry asks again.\n"),
        (("-c", "Hello"), " Your message is kept; chorus ask --thread 1 /retry asks again.\n"),
        (("--private", "Hello"), f"{NO_KEY}\n"),
    ],
)
def test_a_question_without_a_reply_says_how_it_is_asked_again_by_the_shell(
    home: Home, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str], advice: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    outcome = home.run("--model", "openai/gpt-4o", "ask", *arguments)
    assert outcome.code == 1
    assert outcome.errors.endswith(advice)
    assert ("/retry" in outcome.errors) == ("/retry" in advice)


@pytest.mark.parametrize("where", [("--thread", "1"), ("--persona", "frodo"), ("--persona", "chorus", "-c")])
def test_the_command_that_asks_again_reaches_the_thread_asked_in(
    home: Home, monkeypatch: pytest.MonkeyPatch, where: Sequence[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert home.run("ask", "/thread new other").code == 0
    errors = home.run("--model", "openai/gpt-4o", "ask", *where, UNHAPPY).errors
    command = errors.partition("Your message is kept; ")[2].partition(" asks again.")[0]
    assert home.run("ask", "--persona", "chorus", "--thread", "2", "Aside").code == 0
    assert home.run(*shlex.split(command)[1:]).output == f"{ANSWER}\n"


def test_json_of_a_reply_that_failed_has_its_status_and_the_error_goes_to_stderr(home: Home) -> None:
    outcome = home.run("ask", "--json", "--model", "chorus/nobody", UNHAPPY)
    told = json.loads(outcome.output)
    assert outcome.code == 1
    assert list(told) == [*FACTS, "status"]
    assert (told["reply"], told["model"], told["status"]) == ("", "chorus/nobody", "failed")
    assert "chorus/nobody" in outcome.errors


def test_a_reply_that_is_stopped_closes_its_new_thread_and_its_json_has_the_part_that_came(home: Home) -> None:
    with home.running("ask", "--json", LONG_MESSAGE) as asking:
        while home.sql("SELECT COUNT(*) FROM messages WHERE status = 'streaming' AND content <> ''") != [1]:
            assert asking.poll() is None
        asking.send_signal(signal.SIGINT)
        output, errors = asking.communicate(timeout=PATIENCE_SECONDS)
        assert asking.returncode == 128 + signal.SIGINT
    told = json.loads(output)
    assert (told["reply"], told["status"]) == home.replies()[-1] == (told["reply"], "interrupted")
    assert told["reply"]
    assert errors == b""
    assert home.sql("SELECT number, closed_at IS NULL FROM threads ORDER BY id") == [(1, 1), (2, 0)]


def test_the_next_chat_names_the_new_thread_whose_process_was_killed(home: Home) -> None:
    with slow() as provider, home.running("ask", "mountains", variables=provider.variables) as asking:
        assert asking.stdout
        assert asking.stdout.read(1)
        asking.kill()
        asking.communicate(timeout=PATIENCE_SECONDS)
    with home.chat() as chat:
        chat.await_text("The reply in thread #2 was interrupted; /retry there asks again.")
        chat.ask("/thread 2", "Thread #2 is open again.")


def test_a_chat_sends_nothing_either_while_settings_cannot_be_read(home: Home) -> None:
    settings = home.path / "personas" / "chorus" / "system.jsonc"
    whole = settings.read_text("utf-8")
    with home.chat() as chat:
        settings.write_text('{\n  "name" "Chorus"\n}\n', "utf-8")
        chat.say(UNHAPPY)
        chat.await_text("Nothing was sent: the settings of")
        chat.await_line(f"{PROMPT} {UNHAPPY}")
        assert "system.jsonc:2:" in chat.screen_text().replace("\n", "")
        settings.write_text(whole, "utf-8")
        chat.press("enter")
        chat.await_text(ANSWER)
    assert home.said() == ["Hello", UNHAPPY]
