"""The outer command line, as a shell and its scripts see it: subcommands, options, exit codes, streams and signals."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import unicodedata
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from chorus_cli import __version__
from tests.loopback_providers import slow
from tests.terminal.command import Outcome, finished
from tests.terminal.driver import LONG_MESSAGE, PATIENCE_SECONDS, Home

UNHAPPY, WHY_UNHAPPY = "I am unhappy", "That sounds hard. What has made you unhappy?\n"
HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b31m\x08\u202etxet \x1b]52;c;ZWNobw==\x1b\\done"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with a log, and a long one of another persona, for tests that only read them."""
    home = Home(tmp_path_factory.mktemp("archive") / "home")
    assert home.run("ask", "-c", UNHAPPY).code == 0
    home.say_by_sql("two hours ago", timedelta(hours=2))
    home.say_by_sql(HOSTILE, timedelta(minutes=5), role="assistant")
    home.say_by_sql("elsewhere", timedelta(minutes=5), thread=2)
    home.sql(
        "WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < ?) "
        "INSERT INTO messages(persona, thread_id, role, content, timestamp) SELECT "
        "'frodo', 9, 'user', 'row ' || n || ' ' || hex(zeroblob(60)), '2026-01-01T00:00:00.000000Z' FROM counted",
        MANY_ROWS,
    )
    return home


def test_ask_takes_its_text_from_the_arguments_from_stdin_or_from_both(home: Home) -> None:
    assert home.run("ask", "-c", stdin=b"I am unhappy\n").output == WHY_UNHAPPY
    assert home.run("ask", "-c", "what does this mean?", stdin="línea\nzwei\n".encode()).code == 0
    assert [said.rstrip("\n") for said in home.said()] == [UNHAPPY, "what does this mean?\n\nlínea\nzwei"]


def test_ask_carries_out_a_command_and_does_not_wait_for_stdin(home: Home) -> None:
    with home.running("ask", "/context 24h", stdin=subprocess.PIPE) as asking:
        assert asking.stdout
        assert asking.wait(PATIENCE_SECONDS) == 0
        assert asking.stdout.read().startswith(b"Context window set to 24h\n")
    assert home.said() == []


def test_ask_sends_a_text_with_two_slashes_as_a_message(home: Home) -> None:
    assert home.run("ask", "//new I am unhappy").code == 0
    assert home.said() == ["/new I am unhappy"]


def test_a_link_in_the_folder_of_a_persona_is_named_and_is_no_fault(home: Home, tmp_path: Path) -> None:
    assert home.run("paths").code == home.run("context").code == 0
    (tmp_path / "key").write_text("secret")
    (home.path / "personas" / "chorus" / "docs").mkdir(exist_ok=True)
    (home.path / "personas" / "chorus" / "docs" / "key.md").symlink_to(tmp_path / "key")
    told = f"key.md is a link, so the model is sent the text of {tmp_path}/key."
    assert told in home.run("ask", "Hello").errors
    assert told not in home.run("ask", "Hello").errors
    assert told in home.run("context").output
    (home.path / "personas" / "chorus" / "prompt.md").unlink()
    (home.path / "personas" / "chorus" / "prompt.md").symlink_to(tmp_path / "key")
    with home.chat() as chat:
        # A path longer than a line is broken anywhere.
        chat.until(lambda: "prompt.mdisalink,sothemodel" in "".join(chat.words().split()), "the notice of the link")
    with home.chat() as chat:
        chat.ask("Hello", "Hello")
        assert "is a link" not in chat.words()
    assert home.run("doctor").code == 0


@pytest.mark.parametrize("text", ["/etc/hosts is what?", "/* What is this? */\nint x;"])
def test_ask_sends_a_text_that_begins_with_a_path_or_has_several_lines_as_a_message(home: Home, text: str) -> None:
    assert home.run("ask", text).code == 0
    assert home.said() == [text]


def test_options_may_stand_between_the_words_of_a_message(home: Home) -> None:
    assert home.run("ask", "I", "--json", "am", "--effort", "low", "unhappy").code == 0
    assert home.said() == [UNHAPPY]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("ask", "/nonsense"), 1, "There is no command '/nonsense'"),
        *((("ask", "/context set"), 1, "needs"), (("ask", "/context tomorrow"), 1, "future")),
        (("--persona", "gollum", "ask", "-c", "hi"), 1, "There is no persona called 'gollum'"),
        (("log", "--since", "soon"), 1, "'soon'"),
        (("log", "--since", "9"), 1, "write since 9:00 or 9h"),
        (("log", "--thread", "99"), 1, "There is no thread #99 of chorus. Its threads are #1 and #2."),
        (("log", "--thread", "9", "--json"), 1, "There is no thread #9 of chorus."),
        *((("ask",), 1, "There is nothing to ask"), ((), 1, "terminal"), (("bogus",), 2, "usage: chorus")),
        (("jobs",), 2, "'jobs' is a command of the chat: run chorus, then /jobs."),
        (("run", "ls", "-l"), 2, "'run' is a command of the chat: run chorus, then /run."),
        (("help", "quit"), 2, "'quit' is a command of the chat: run chorus, then /quit."),
        (("import", ""), 2, "argument FILE: the path is empty; name a file or folder"),
        (("backup", ""), 2, "argument FILE: the path is empty; name a file or folder"),
        (("restore", ""), 2, "argument FILE: the path is empty; name a file or folder"),
        (("export", "--all", ""), 2, "argument --all: the path is empty; name a file or folder"),
        (("ask", "-a", "", "hi"), 2, "argument -a/--attach: the path is empty; name a file or folder"),
        *((("log", "--thread", "one"), 2, "usage: chorus"), (("purge",), 1, "purge needs one of: message,")),
        (("restore",), 1, "chorus restore needs FILE; chorus restore --help explains it."),
        (("completion",), 1, "chorus completion needs SHELL"),
        (("purge", "thread", "x", "--yes"), 1, "'x' is not a whole number"),
        (("purge", "backups", "x", "--yes"), 2, "unrecognized arguments: x"),
        (("purge", "everything", "--yes"), 2, "invalid choice"),
        (("purge", "search", "--yes"), 1, "chorus purge search needs <words>, for example: chorus purge search"),
        (("purge", "search", "said", "--persona", "nobody", "--yes"), 1, "nobody"),
        (("log", "-n", "0"), 2, "'0' is not a whole number above 0"),
        *(
            (("log", *option, "--copy-to", "postgresql://127.0.0.1:1/x"), 1, "A copy takes the whole log")
            for option in (("--persona", "frodo"), ("--since", "1h"), ("--thread", "2"), ("-n", "1"), ("--thoughts",))
        ),
    ],
)
def test_what_cannot_be_done_is_said_on_stderr(
    archive: Home, arguments: Sequence[str], code: int, sentence: str
) -> None:
    outcome = archive.run(*arguments)
    assert (outcome.code, outcome.output) == (code, "")
    assert sentence in outcome.errors
    assert "Traceback" not in outcome.errors


@pytest.mark.parametrize(
    ("arguments", "usage", "sentence"),
    [
        (("status", "extra"), "chorus status ", "chorus status: error: unrecognized arguments: extra"),
        (("memory", "list", "--zzz"), "chorus memory list ", "error: unrecognized arguments: --zzz"),
        (("doctor", "extra", "--json"), "chorus doctor ", "chorus doctor: error: unrecognized arguments: extra"),
        (("personas", "x"), "chorus personas ", "chorus personas: error: unrecognized arguments: x"),
        (("schema", "x y"), "chorus schema ", "chorus schema: error: unrecognized arguments: 'x y'"),
        (("--home", "log", "paths", "x"), "chorus paths ", "chorus paths: error: unrecognized arguments: x"),
        (("log", "--last", "-1"), "chorus log ", "chorus log: error: unrecognized arguments: --last -1"),
        (("--bogus", "log"), "chorus [-h]", "chorus: error: unrecognized arguments: --bogus"),
        (("--persona", "frodo", "mcp", "serve"), "chorus mcp serve ", "unrecognized arguments: --persona frodo"),
        (("backup", "--model", "m"), "chorus backup ", "chorus backup: error: unrecognized arguments: --model"),
        (("--bogus",), "chorus [-h]", "chorus: error: unrecognized arguments: --bogus"),
    ],
)
def test_an_unknown_argument_is_refused_with_the_usage_of_its_command(
    archive: Home, arguments: Sequence[str], usage: str, sentence: str
) -> None:
    outcome = archive.run(*arguments)
    assert (outcome.code, outcome.output) == (2, "")
    assert outcome.errors.startswith(f"usage: {usage}")
    assert outcome.errors.count("usage:") == 1
    assert outcome.errors.endswith(f"{sentence}\n")


def test_the_refusal_and_the_help_of_a_group_name_the_same_commands(archive: Home) -> None:
    refused, helped = archive.run("purge", "nonsense").errors, archive.run("purge", "--help").output
    chosen = refused.rpartition("(choose from ")[2].rstrip(")\n").split(", ")
    assert chosen == ["message", "thread", "persona", "since", "search", "backups"]
    assert re.findall(r"^    (\w+) ", helped, re.MULTILINE) == chosen


@pytest.mark.parametrize("words", [(), ("search",), ("memory", "list"), ("doctor",)])
def test_help_is_a_synonym_of_the_option(archive: Home, words: tuple[str, ...]) -> None:
    helped = archive.run("help", *words)
    assert (helped.code, helped.errors) == (0, "")
    assert helped.output == archive.run(*words, "--help").output


def test_a_command_that_is_nearly_one_is_suggested(archive: Home) -> None:
    outcome = archive.run("serach", "ring")
    assert (outcome.code, outcome.output) == (2, "")
    assert outcome.errors.endswith("there is no command 'serach'; did you mean search?\n")


@pytest.mark.parametrize(
    "arguments", [("ask", "-c", f"--{HOSTILE}".replace(" ", "")), (HOSTILE,), ("log", "--thread", HOSTILE)]
)
def test_what_is_no_argument_is_shown_without_what_it_hides(archive: Home, arguments: Sequence[str]) -> None:
    outcome = archive.run(*arguments)
    assert (outcome.code, outcome.output) == (2, "")
    assert "usage: chorus" in outcome.errors
    assert "52;c;ZWNobw==" in outcome.errors
    assert [sign for sign in outcome.errors if unicodedata.category(sign) in {"Cc", "Cf"} and sign != "\n"] == []


def test_context_as_json_has_the_promised_shape(archive: Home) -> None:
    report = json.loads(archive.run("context", "--json").output)
    assert list(report) == [
        *("persona", "thread", "model", "limit", "budget", "tokens"),
        *("parts", "left_out", "messages", "memory", "earlier"),
    ]
    assert (report["persona"], report["thread"], report["model"]) == ("chorus", 1, "chorus/eliza")
    assert all(list(part) == ["name", "tokens", "reason"] for part in report["parts"])
    assert sum(part["tokens"] for part in report["parts"]) == report["tokens"] <= report["budget"] < report["limit"]
    assert [message["content"] for message in report["messages"][1:3]] == [UNHAPPY, WHY_UNHAPPY.strip()]


def test_context_as_json_tells_what_is_left_out_and_sends_nothing(home: Home) -> None:
    home.run("ask", "-c", UNHAPPY)
    home.say_by_sql("too old", timedelta(hours=9))
    before = home.said()
    report = json.loads(home.run("context", "--json").output)
    [omission] = report["left_out"]
    assert list(omission) == ["reason", "messages", "tokens"]
    assert (omission["reason"], omission["messages"]) == ("older than the window", 1)
    assert "too old" not in str(report["messages"])
    assert home.said() == before


def test_log_prints_what_was_said_of_one_thread_or_since_a_time(archive: Home) -> None:
    everything = archive.run("log").output
    assert f"Human: {UNHAPPY}\n" in everything
    assert f"Chorus: {WHY_UNHAPPY}" in everything
    assert "two hours ago" in everything
    assert "elsewhere" in everything
    assert "two hours ago" not in archive.run("log", "--since", "1h").output
    assert archive.run("log", "--thread", "2").output.rstrip().endswith("Human: elsewhere")
    assert UNHAPPY not in archive.run("log", "--thread", "2").output


@pytest.mark.parametrize(
    ("options", "contents"),
    [
        (("-n", "2"), [HOSTILE, "elsewhere"]),
        (("-n", "1", "--thread", "1"), [HOSTILE]),
        (("-n", "1", "--since", "1h"), ["elsewhere"]),
        (("-n", "99", "--thread", "2"), ["elsewhere"]),
    ],
)
def test_log_prints_the_newest_messages_as_many_as_asked_for(
    archive: Home, options: Sequence[str], contents: Sequence[str]
) -> None:
    rows = json.loads(archive.run("log", "--json", *options).output)
    assert [row["content"] for row in rows] == contents


def test_log_marks_what_was_taken_back_and_where_the_context_begins(home: Home) -> None:
    for text in (UNHAPPY, "/undo", "hello", "/new", "again"):
        assert home.run("ask", "-c", text).code == 0
    lines = [line.partition("] ")[2] for line in home.run("log").output.splitlines()]
    assert f"Human: {UNHAPPY} [undone]" in lines
    assert "[CONTEXT_CLEARED]" in lines[lines.index("Human: hello") : lines.index("Human: again")]
    undone = [row.get("undone", row.get("marker")) for row in json.loads(home.run("log", "--json").output)]
    assert undone == [True, True, False, False, "[CONTEXT_CLEARED]", False, False]
    newest = json.loads(home.run("log", "--json", "-n", "3").output)
    assert [row.get("marker", row.get("role")) for row in newest] == [
        *("assistant", "[CONTEXT_CLEARED]", "user", "assistant")
    ]


@pytest.mark.parametrize(
    "arguments",
    [("log",), ("log", "--json"), ("context",), ("context", "--json"), ("ask", "/context"), ("ask", "/help")],
)
def test_no_control_sequence_reaches_a_stdout_that_is_no_terminal(archive: Home, arguments: Sequence[str]) -> None:
    outcome = archive.run(*arguments)
    assert outcome.code == 0
    assert outcome.output
    assert {sign for sign in outcome.output if unicodedata.category(sign) in {"Cc", "Cf"}} == {"\n"}


def test_the_options_stand_before_or_after_the_command(home: Home, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    before, after = home.run("--home", other, "paths"), home.run("paths", "--home", other)
    assert before == after
    assert before.code == 0
    assert all(line.split()[1].startswith(other) for line in before.output.splitlines())
    assert home.run("--persona", "frodo", "ask", "-c", "hello", "--model", "chorus/eliza").code == 0
    assert home.run("--model", "chorus/eliza", "ask", "--persona", "frodo", "hello").code == 0
    assert home.sql("SELECT DISTINCT persona, model FROM messages WHERE role = 'assistant'") == [
        ("frodo", "chorus/eliza")
    ]


@pytest.mark.parametrize(
    ("command", "offered"),
    [
        ("ask", {"--persona P  the persona to talk to; otherwise the last one", "--model M"}),
        ("log", {"--persona P      messages of this persona; otherwise of the last one"}),
        ("search", {"--persona P  only the messages of this persona"}),
        ("personas", {"--persona P", "--model M"}),
        ("doctor", {"--persona P", "--model M"}),
        ("schema", set()),
        ("paths", set()),
    ],
)
def test_help_offers_the_options_that_have_an_effect(home: Home, command: str, offered: set[str]) -> None:
    told = home.run(command, "--help").output
    assert all(option in told for option in offered)
    assert {name for name in ("--persona", "--model") if name in told} == {each.split()[0] for each in offered}


def test_paths_and_version_make_nothing(home: Home) -> None:
    places = dict(line.split(maxsplit=1) for line in home.run("paths").output.splitlines())
    assert places["database"] == str(home.path / "chorus.db")
    assert places["personas"] == str(home.path / "personas")
    assert places["log"] == str(home.path / "state" / "chorus.log")
    assert json.loads(home.run("paths", "--json").output) == places
    assert len({line.index(str(home.path)) for line in home.run("paths").output.splitlines()}) == 1
    assert home.run("--version").output == f"chorus {__version__}\n"
    assert not home.path.exists()


def test_the_next_run_goes_on_with_the_persona_last_talked_to(home: Home) -> None:
    home.run("ask", "/persona frodo")
    home.run("log", "--persona", "reviewer")
    home.run("ask", "--persona", "reviewer", "hello")
    assert json.loads(home.run("context", "--json").output)["persona"] == "frodo"


MANY_ROWS = 2000
FULL = Path("/dev/full")
CLOSED = "The output cannot be written: it is closed.\n"
NO_SPACE = "The output cannot be written: No space left on device.\n"
is_there = pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")


def test_a_reader_that_has_enough_is_no_error(archive: Home) -> None:
    outcome = archive.shell('{ chorus --persona frodo log; echo "code $?" >&2; } | head -1')
    assert "Human: row 1 " in outcome.output
    assert outcome.errors == "code 0\n"


def test_a_reader_that_leaves_a_reply_leaves_none_in_progress(home: Home) -> None:
    with home.running("ask", "-c", LONG_MESSAGE) as asking:
        assert asking.stdout
        assert asking.stderr
        assert asking.stdout.read(1)
        asking.stdout.close()
        assert asking.stderr.read() == b""
        assert asking.wait(PATIENCE_SECONDS) == 0
    [(content, status)] = home.replies()
    assert content
    assert status in {"complete", "interrupted"}


@pytest.mark.parametrize(
    ("redirection", "outcome"),
    [*((each, Outcome(0, WHY_UNHAPPY, "")) for each in ("", "<&-", "2>&-")), (">&-", Outcome(1, "", CLOSED))],
)
def test_a_question_is_answered_and_kept_also_if_a_stream_is_closed(
    home: Home, redirection: str, outcome: Outcome
) -> None:
    assert home.shell(f"chorus ask {UNHAPPY} {redirection}") == outcome
    assert home.said() == [UNHAPPY]
    assert home.replies() == [(WHY_UNHAPPY.strip(), "complete")]


@is_there
@pytest.mark.parametrize(("output", "sentence"), [("&-", CLOSED), (FULL, NO_SPACE)], ids=["closed", "full"])
def test_whatever_was_asked_an_output_that_takes_nothing_gets_a_sentence(
    archive: Home, output: str | Path, sentence: str
) -> None:
    for command in ("log", "search --json row", "schema", "--version", "log --help"):
        outcome = archive.shell(f"chorus {command} >{output}")
        assert (outcome.code, outcome.errors) == (1, sentence), command


def test_without_any_stream_the_exit_code_still_tells(home: Home) -> None:
    assert home.shell("chorus <&- >&- 2>&-").code == 1
    assert home.shell("chorus ask <&- >&- 2>&-").code == 1
    assert home.shell('chorus ask "/nonsense" <&- >&- 2>&-').code == 1


@is_there
def test_an_output_that_takes_nothing_gets_a_sentence_and_the_reply_is_kept(home: Home) -> None:
    assert home.shell(f'chorus ask "{UNHAPPY}" >{FULL}') == Outcome(1, "", NO_SPACE)
    assert home.said() == [UNHAPPY]
    assert home.sql("SELECT COUNT(*) FROM messages WHERE status = 'streaming'") == [0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_reply_and_keeps_what_has_arrived(home: Home, number: signal.Signals) -> None:
    with slow() as provider, home.running("ask", "-c", "mountains", variables=provider.variables) as asking:
        assert asking.stdout
        first = asking.stdout.read(1)
        asking.send_signal(number)
        rest, errors = asking.communicate(timeout=PATIENCE_SECONDS)
        assert asking.returncode == 128 + number
    assert home.replies() == [("About mountains", "interrupted")]
    assert (first + rest).decode().strip() == "About mountains"
    assert b"Traceback" not in errors


def test_ctrl_c_while_the_program_is_being_loaded_ends_it_without_a_traceback(home: Home) -> None:
    interrupting = (
        "import signal, sys\n"
        "class Loading:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'chorus_cli.cli': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Loading())\n"
        "from chorus_cli.__main__ import run\n"
        "run()\n"
    )
    outcome = finished([sys.executable, "-c", interrupting], home.environment)
    assert (outcome.code, outcome.output, outcome.errors) == (-signal.SIGINT, "", "")
