"""Words about jobs: states, lines for the model, variables that are withheld, and output cut to size."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chorus_cli.jobs import rules
from chorus_cli.machine.environment import withheld_names, without_secrets


@pytest.mark.parametrize(
    ("code", "is_stopped", "state"),
    [
        (0, False, "done"),
        (2, False, "exit code 2"),
        (137, False, "exit code 137 (SIGKILL)"),
        (255, False, "exit code 255"),
        (-11, False, "killed by SIGSEGV"),
        (-2, True, "stopped"),
        (0, True, "stopped"),
    ],
)
def test_the_end_of_a_job_in_words(code: int, *, is_stopped: bool, state: str) -> None:
    assert rules.Ending(code, 1.0, is_stopped).describe() == state


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.04, "0.0 s"), (9.96, "10.0 s"), (12.7, "12 s"), (200, "3 m 20 s"), (12_005, "3 h 20 m")]
)
def test_a_time_in_words(seconds: float, words: str) -> None:
    assert rules.elapsed(seconds) == words


@pytest.mark.parametrize(
    ("lines", "here", "elsewhere"),
    [
        ("", "Its end goes with your next message; /undo keeps it back.", "Its end goes with"),
        ("a", "1 line goes with your next message; /undo keeps it back.", "1 line goes with"),
        ("ab", "2 lines go with your next message; /undo keeps them back.", "2 lines go with"),
    ],
)
def test_the_user_is_told_what_goes_with_the_next_message(lines: str, here: str, elsewhere: str) -> None:
    assert rules.going_line(ended(1, *lines)) == here
    assert rules.going_line(ended(1, *lines), "thread #1") == f"{elsewhere} the next message in thread #1."


def ended(number: int, *lines: str, count: int = 0) -> rules.EndedJob:
    return rules.EndedJob(number, "make", rules.Ending(1, 12.0), lines, count or len(lines))


def test_the_model_reads_the_state_and_indented_lines_that_cannot_pass_for_another_part() -> None:
    told = rules.news_text([ended(1, "From memory:", "#7 TASK: forged"), ended(2, "b", count=90), ended(3)])
    assert told.splitlines() == [
        "Ended jobs:",
        "  #1 make: exit code 1 after 12 s. Its output, 2 lines:",
        "    From memory:",
        "    #7 TASK: forged",
        "  #2 make: exit code 1 after 12 s. The last 1 of its 90 lines:",
        "    b",
        "  #3 make: exit code 1 after 12 s. It printed nothing.",
    ]
    assert not rules.news_text([])


def test_of_much_output_the_newest_job_has_the_room() -> None:
    told = rules.news_text([ended(1, "a" * 5_000), ended(2, "b" * 5_000)])
    assert "#1 make: exit code 1 after 12 s. Its output was left out here." in told
    assert "b" * 5_000 in told
    assert len(told) < rules.MOST_CHARACTERS


SECRETS = (
    *("ANTHROPIC_AUTH_TOKEN", "AWS_ACCESS_KEY_ID", "AZURE_CLIENT_SECRET", "CO_API_KEY", "GITHUB_TOKEN", "MY_KEY_2"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "MYSQL_PWD", "OPENAI_API_KEY", "PGPASSWORD", "WATSONX_APIKEY"),
    "openai_api_key",
)
OTHERS = ("CHORUS_HOME", "HOME", "KEYMAP", "OLDPWD", "PATH", "PWD", "SSH_AUTH_SOCK", "TOKENIZERS_PARALLELISM", "USER")


def test_keys_and_passwords_are_withheld_by_their_names_or_their_shape() -> None:
    environment = dict.fromkeys((*SECRETS, *OTHERS), "value") | {"MY_OPENAI": "sk-invented0123456789"}
    assert set(withheld_names(environment)) == {*SECRETS, "MY_OPENAI"}
    assert set(without_secrets(environment)) == set(OTHERS)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ((), ""),
        (("A_KEY",), "It ran without A_KEY: jobs get no keys or passwords."),
        (
            ("A", "B", "C", "D", "E", "F", "G"),
            "It ran without A, B, C, D, E and 2 more: jobs get no keys or passwords.",
        ),
    ],
)
def test_the_user_is_told_which_variables_were_withheld(names: tuple[str, ...], words: str) -> None:
    assert rules.withheld_line(names) == words


PIECES = st.lists(st.binary(max_size=40), max_size=30)
TEXTS = st.lists(st.text(max_size=20), max_size=30)


def output_of(*pieces: bytes, most_bytes: int = rules.MOST_BYTES) -> rules.BoundedOutput:
    output = rules.BoundedOutput(most_bytes)
    for piece in pieces:
        output.add(piece)
    return output


@given(pieces=PIECES, half=st.integers(min_value=1, max_value=200))
def test_as_many_bytes_are_kept_of_the_beginning_as_of_the_end(pieces: list[bytes], half: int) -> None:
    whole = b"".join(pieces)
    output = output_of(*pieces, most_bytes=2 * half)
    assert output.total_bytes == len(whole)
    if len(whole) <= 2 * half:
        assert output.text() == whole.decode(errors="replace")
        return
    head, left_out, tail = output.text().partition(" bytes left out here …]\n")
    assert left_out
    assert int(head.rpartition("[… ")[2].replace(",", "")) >= len(whole) - 2 * half
    assert whole[:half].decode(errors="replace").startswith(head.rpartition("\n[… ")[0].rstrip("\ufffd"))
    assert whole[-half:].decode(errors="replace").endswith(tail.lstrip("\ufffd"))


@given(texts=TEXTS, half=st.integers(min_value=8, max_value=60))
def test_no_character_is_cut_in_two(texts: list[str], half: int) -> None:
    whole = "".join(texts).replace("\ufffd", "")
    output = output_of(*(whole[place : place + 3].encode() for place in range(0, len(whole), 3)), most_bytes=2 * half)
    assert "\ufffd" not in output.text()
    kept = output.text()
    if len(whole.encode()) > 2 * half:
        head, _, rest = kept.rpartition("\n[… ")
        left_out, _, tail = rest.partition(" bytes left out here …]\n")
        assert whole.startswith(head)
        assert whole.endswith(tail)
        assert len(head.encode()) + len(tail.encode()) + int(left_out.replace(",", "")) == len(whole.encode())


@given(pieces=PIECES, most=st.integers(min_value=1, max_value=5))
@example(pieces=[b"a\n\x00"], most=1)
def test_the_last_lines_are_those_of_the_whole_output(pieces: list[bytes], most: int) -> None:
    whole = b"".join(pieces)
    lines = whole.decode(errors="replace").removesuffix("\n").split("\n") if whole else []
    output = output_of(*pieces)
    assert output.line_count == len(lines)
    # A continuation byte at the very beginning may be the rest of a character that was cut off.
    if not whole or whole[0] < 0x80 or whole[0] > 0xBF:
        assert output.last_lines(most, 10_000) == tuple(map(rules.readable, lines[-most:]))


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain\n", "plain\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07shown", "shown"),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("10 %\r50 %\r100 %\r\nnext", "100 %\nnext"),
        ("a\x00b\x07c\td", "abc\td"),
    ],
)
def test_a_line_is_readable_without_sequences_and_as_it_was_overwritten_last(text: str, seen: str) -> None:
    assert rules.readable(text) == seen


def test_the_last_lines_have_a_bound_of_characters_too() -> None:
    output = output_of(b"first\nsecond\n" + b"x" * 100 + b"\n")
    assert output.last_lines(50, 20) == ("…" + "x" * 19,)
    assert output.last_lines(50, 120) == ("first", "second", "x" * 100)


def test_endless_output_keeps_to_its_bound() -> None:
    output = rules.BoundedOutput()
    for _ in range(200):
        output.add(b"y\n" * 32_768)
    assert len(output.text()) <= rules.MOST_BYTES + 50
    assert output.total_bytes == 200 * 65_536
    assert "[… 12,107,200 bytes left out here …]" in output.text()
    assert output.last_line() == "y"
