"""The benchmarks run and print; how fast anything is, no test says."""

from __future__ import annotations

import http.client
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from benchmarks import context_edit, key_echo, long_log, streaming, streams_at_once
from benchmarks.figures import Figure, figure, table
from benchmarks.key_echo import Echo
from benchmarks.program import SIGN
from benchmarks.pseudo_terminal import PseudoTerminal
from benchmarks.stalling_server import FIRST_WORDS, stalling
from benchmarks.surroundings import isolated


def test_a_figure_is_the_medians_of_its_pairs_in_milliseconds() -> None:
    shown = figure("start", "tiny", [(0.3, 0.1), (0.2, 0.2), (0.9, 0.1)], goal=1.5)
    assert (shown.value, shown.reference_value) == pytest.approx((300, 100))
    assert (shown.ratio, shown.pair_ratio) == pytest.approx((3, 3))


@pytest.mark.parametrize(("value", "word"), [(150.0, "met"), (150.1, "MISSED")])
def test_the_table_says_whether_the_goal_is_met(value: float, word: str) -> None:
    headings, row = table([Figure("start", value, "tiny", 100.0, "ms", 1.6, goal=1.5)]).splitlines()
    assert headings.split() == ["what", "measured", "reference", "measured", "ratio", "by", "pairs", "goal"]
    assert row.split() == ["start", f"{value:.2f}", "ms", "tiny", "100.00", "ms", "1.50", "1.60", "≤", "1.5", word]


def test_columns_stand_below_their_headings() -> None:
    short = Figure("a", 1.0, "b", 1.0, "ms", 1.0, goal=2)
    long = Figure("a longer name", 1000.0, "b", 1.0, "ms", 1000.0, goal=2)
    headings, *rows = table([short, long]).splitlines()
    assert [row.index("≤") for row in rows] == [headings.index("goal")] * 2


def test_a_figure_as_json_has_what_follows_from_it_too() -> None:
    value = Figure("start", 300.0, "tiny", 100.0, "ms", 3.1, goal=1.5).as_json()
    assert value["ratio"] == 3
    assert value["is_met"] is False


def test_the_view_above_a_longer_log_is_measured_against_the_shortest() -> None:
    found = list(long_log.compare(long_log.Sizes(old=(3, 10, 20), in_window=6, rounds=1)))
    assert [shown.name for shown in found] == ["8 h view above 10 messages", "8 h view above 20 messages"]
    assert {shown.reference for shown in found} == {"above 3"}
    assert all(shown.value > 0 for shown in found)


def test_an_edit_of_a_longer_log_is_measured_against_a_short_one() -> None:
    (found,) = context_edit.compare(context_edit.Sizes(small=5, large=20, rounds=1))
    assert found.ratio > 0


def test_painting_a_reply_is_measured_against_rich_live() -> None:
    (found,) = streaming.compare(400, 1, 4)
    assert found.value > 0


def test_letter_after_letter_is_typed_and_seen_at_a_prompt(tmp_path: Path) -> None:
    with PseudoTerminal([sys.executable, "-m", "benchmarks.tiny_repl"], isolated(os.environ, tmp_path)) as terminal:
        terminal.wait_for_prompt(SIGN)
        typed = list(islice(key_echo.echoes(terminal), 30))
        terminal.type(b"\r")
        terminal.wait_for(b"\nABCDEF")
    assert [echo.age_seconds for echo in typed] == sorted(echo.age_seconds for echo in typed)
    assert all(echo.seconds > 0 for echo in typed)


def test_a_key_counts_while_the_import_lasts_and_nothing_else_begins(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"

    def typed() -> Iterator[Echo]:
        yield from (Echo(1, 0.1), Echo(2, 1.8), Echo(3, 2.1), Echo(4, 3.1))
        schema.touch()
        yield Echo(5, 3.2)

    assert list(key_echo.while_missing(schema, typed())) == [1, 2, 4]


def test_an_import_without_an_end_is_told(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"schema\.json was never written"):
        list(key_echo.while_missing(tmp_path / "schema.json", [Echo(1, 61)]))


def test_a_key_that_takes_longer_than_the_replies_counts_all_the_same() -> None:
    echoes = iter([Echo(9, 9), Echo(1, 10)])
    assert list(streams_at_once.seconds_until(0.0, echoes)) == [9]


def test_eight_replies_are_streamed_once_all_were_asked_for() -> None:
    def ask(number: int, address: str) -> str:
        body = json.dumps({"messages": [{"role": "user", "content": f"Tell me story {number}."}]})
        with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=10)) as connection:
            connection.request("POST", "/v1/chat/completions", body)
            return connection.getresponse().read().decode()

    with streams_at_once.streaming(0.1) as streams, ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(ask, number, streams.address) for number in range(8)]
        assert streams.ends == {}
        streams.all_came.wait(10)
        answers = [each.result() for each in asked]
    assert sorted(streams.ends) == list(range(8))
    assert all(answer.count("word") == streams.tokens == 5 for answer in answers)
    assert all(answer.endswith("data: [DONE]\n\n") for answer in answers)


def test_a_stalling_server_sends_the_first_words_and_no_end() -> None:
    with stalling() as address:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=0.1)
        connection.request("POST", "/v1/chat/completions", b"{}")
        answer = connection.getresponse()
        assert FIRST_WORDS in answer.readline().decode()
        assert answer.readline() == b"\n"
        with pytest.raises(TimeoutError):
            answer.readline()
        connection.close()
