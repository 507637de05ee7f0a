"""The outer command line among pipes, closed and full streams, and signals."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.terminal.command import Outcome, finished
from tests.terminal.driver import LONG_MESSAGE, PATIENCE_SECONDS, Home

UNHAPPY, WHY_UNHAPPY = "I am unhappy", "That sounds hard. What has made you unhappy?\n"
MANY_ROWS = 2000
FULL = Path("/dev/full")
CLOSED = "The output cannot be written: it is closed.\n"
NO_SPACE = "The output cannot be written: No space left on device.\n"
is_there = pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with a long log, for tests that only read it."""
    home = Home(tmp_path_factory.mktemp("archive") / "home")
    assert home.run("ask", UNHAPPY).code == 0
    home.sql(
        "WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < ?) "
        "INSERT INTO messages(persona, thread_id, role, content, timestamp) SELECT "
        "'frodo', 9, 'user', 'row ' || n || ' ' || hex(zeroblob(60)), '2026-01-01T00:00:00.000000Z' FROM counted",
        MANY_ROWS,
    )
    return home


def test_a_reader_that_has_enough_is_no_error(archive: Home) -> None:
    outcome = archive.shell('{ chorus --persona frodo log; echo "code $?" >&2; } | head -1')
    assert "Human: row 1 " in outcome.output
    assert outcome.errors == "code 0\n"


def test_a_reader_that_leaves_a_reply_leaves_none_in_progress(home: Home) -> None:
    with home.running("ask", LONG_MESSAGE) as asking:
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
    [("<&-", Outcome(0, WHY_UNHAPPY, "")), (">&-", Outcome(1, "", CLOSED)), ("2>&-", Outcome(0, WHY_UNHAPPY, ""))],
)
def test_a_closed_stream_does_not_keep_a_message_from_being_answered(
    home: Home, redirection: str, outcome: Outcome
) -> None:
    assert home.shell(f'chorus ask "{UNHAPPY}" {redirection}') == outcome
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
    with home.running("ask", LONG_MESSAGE) as asking:
        assert asking.stdout
        first = asking.stdout.read(1)
        asking.send_signal(number)
        rest, errors = asking.communicate(timeout=PATIENCE_SECONDS)
        assert asking.returncode == 128 + number
    [(content, status)] = home.replies()
    assert status == "interrupted"
    assert content.strip() == (first + rest).decode().strip()
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
