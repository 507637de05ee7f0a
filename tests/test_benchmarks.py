"""The benchmarks run, with little to measure: programs, servers and figures of theirs do what they are for."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice, pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from benchmarks import (
    assembly,
    cache,
    context_edit,
    endurance,
    evidence,
    httpx_script,
    imports,
    key_echo,
    long_log,
    recall,
    round_trips,
    search,
    streaming,
    streams_at_once,
)
from benchmarks.cache import Charge, charges, repeated_tokens
from benchmarks.chatgpt_export import write_export
from benchmarks.figures import Figure, Skipped, figure, table
from benchmarks.key_echo import Echo
from benchmarks.one_question import installed_llm, seconds_to_first_character
from benchmarks.played_talk import Sent, Talk, play
from benchmarks.program import SIGN
from benchmarks.pseudo_terminal import PseudoTerminal
from benchmarks.stalling_server import FIRST_WORDS, stalling
from benchmarks.stored_log import PERSONA, stored_log
from benchmarks.surroundings import isolated
from benchmarks.syncs import syncs
from chorus_cli.imports.files.reading import sources
from chorus_cli.imports.rules.conversation import Skipped as LeftOut
from chorus_cli.log.rows import operation_rows
from chorus_cli.memory.rows import item_rows
from chorus_cli.models.rules.budget import TOKENS_PER_MESSAGE
from chorus_cli.models.rules.request import PromptMessage
from tests.loopback_server import serving
from tests.models.providers.fault_server import DONE, chunk

SYSTEM, HELLO = PromptMessage("system", "Short"), PromptMessage("user", "Hello")
HELP, REPLY = PromptMessage("user", "Help"), PromptMessage("assistant", "Hello")
WHOLE = 5 + TOKENS_PER_MESSAGE


def test_a_figure_is_the_medians_of_its_pairs_in_milliseconds_and_its_json_has_what_follows() -> None:
    shown = figure("start", "tiny", [(0.3, 0.1), (0.2, 0.2), (0.9, 0.1)], goal=1.5)
    assert (shown.value, shown.reference_value) == pytest.approx((300, 100))
    assert (shown.ratio, shown.pair_ratio) == pytest.approx((3, 3))
    assert (shown.as_json()["ratio"], shown.as_json()["is_met"]) == (pytest.approx(3), False)


@pytest.mark.parametrize(("value", "word"), [(150.0, "met"), (150.1, "MISSED")])
def test_the_table_says_whether_the_goal_is_met_and_what_was_skipped(value: float, word: str) -> None:
    shown = [Figure("start", value, "tiny", 100.0, "ms", 1.6, goal=1.5), Figure("a", 1.0, "b", 1.0, "ms", 1.0, goal=2)]
    headings, row, other, last = table([Skipped("a, against llm", "no network"), *shown]).splitlines()
    assert headings.split() == ["what", "measured", "reference", "measured", "ratio", "by", "pairs", "goal"]
    assert row.split() == ["start", f"{value:.2f}", "ms", "tiny", "100.00", "ms", "1.50", "1.60", "≤", "1.5", word]
    assert row.index("≤") == other.index("≤") == headings.index("goal")
    assert last == "a, against llm: skipped, no network"
    assert Skipped("a", "b").as_json() == {"name": "a", "skipped": "b"}


FIGURES: dict[str, tuple[Callable[[], Iterator[Figure]], list[str], str]] = {
    "long log": (
        lambda: long_log.compare(long_log.Sizes(old=(3, 10, 20), in_window=6, rounds=1)),
        ["8 h view above 10 messages", "8 h view above 20 messages"],
        "above 3",
    ),
    "edit": (lambda: context_edit.compare(context_edit.Sizes(small=5, large=20, rounds=1)), [""], ""),
    "streaming": (lambda: streaming.compare(400, 1, 4), [""], ""),
    "search": (
        lambda: search.compare(search.Sizes(messages=20_000, rounds=1)),
        [
            "search 20,000 messages for a word",
            "search 20,000 messages for three required words",
            "search 20,000 messages for a part of a Chinese sentence",
            "search 20,000 messages for a question",
        ],
        "LIKE",
    ),
    "recall": (
        lambda: recall.compare(recall.Sizes(messages=4, few=1, many=5, rounds=1)),
        ["assembling with 5 memory items"],
        "",
    ),
    "assembly": (
        lambda: assembly.compare(assembly.Sizes(tokens=300, words=[((5, 10), (10, 20))], rounds=1)),
        ["assembling 300 tokens in "],
        "",
    ),
}


@pytest.mark.parametrize("benchmark", FIGURES)
def test_a_benchmark_measures_against_its_reference(benchmark: str) -> None:
    compare, names, reference = FIGURES[benchmark]
    found = list(compare())
    assert all(each.name.startswith(name) for each, name in zip(found, names, strict=True))
    assert {each.reference for each in found} == {reference or found[0].reference}
    assert all(each.value > 0 and each.ratio > 0 for each in found)


def test_the_evidence_of_questions_is_looked_for_in_talks_if_there_is_a_file(tmp_path: Path) -> None:
    said = [{"speaker": "Ann", "dia_id": f"D1:{number}", "text": text} for number, text in enumerate(TALK, 1)]
    talk = {
        "conversation": {"speaker_a": "Ann", "session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": said},
        "qa": [
            {"question": "Which pet does Ann keep?", "evidence": ["D1:2"], "category": 1},
            {"question": "Where does the zebra live?", "evidence": ["D1:1"], "category": 2},
            {"question": "Which pet?", "evidence": ["D1:1"], "category": 5},
        ],
        "observation": {"session_1_observation": {"Ann": [["Ann keeps a parrot as a pet.", "D1:2"]]}},
    }
    (tmp_path / "talks.json").write_text(json.dumps([talk]))
    found = [each for each in evidence.measure(tmp_path / "talks.json") if isinstance(each, Figure)]
    assert [each.value for each in found] == [0.5] * 4
    assert not any(each.is_met for each in found)
    (skipped,) = evidence.measure(None)
    assert isinstance(skipped, Skipped)


TALK = ["Good morning!", "My pet is a parrot.", "It talks."]


def test_an_import_is_measured_by_memory_time_and_a_search() -> None:
    memory, speed, searched = imports.compare(100_000)
    assert (memory.reference_value, memory.is_met) == (imports.MEMORY_CEILING_MEBIBYTES, True)
    assert "a second" in speed.name
    assert (searched.reference, searched.value > 0) == ("LIKE", True)


def test_a_generated_export_is_read_as_it_was_counted(tmp_path: Path) -> None:
    written = write_export(tmp_path / "export.zip", 2_000_000, turns=4)
    (source,) = sources(tmp_path / "export.zip")
    assert not isinstance(source, LeftOut)
    read = [item for item in source.conversations() if not isinstance(item, LeftOut)]
    source.close()
    assert written.json_bytes >= 2_000_000
    assert len(read) == written.conversations > 100
    assert sum(len(item.messages) for item in read) == written.messages
    assert sum(len(item.messages) - len(item.live) for item in read) == written.superseded > 100


def test_each_item_is_captured_in_an_operation_of_its_own(tmp_path: Path) -> None:
    with stored_log(tmp_path / "chorus.db", []) as connection:
        recall.fill_memory(connection, 3)
        assert item_rows.number(connection, PERSONA) == 3
        acts = [operation.act.describe() for operation in operation_rows.all_of(connection, PERSONA, None)]
    assert [act.split()[:2] for act in acts] == [["captured", f"#{number}"] for number in (1, 2, 3)]


def test_letter_after_letter_is_typed_and_seen_at_a_prompt(tmp_path: Path) -> None:
    with PseudoTerminal([sys.executable, "-m", "benchmarks.tiny_repl"], isolated(os.environ, tmp_path)) as terminal:
        terminal.wait_for_prompt(SIGN)
        typed = list(islice(key_echo.echoes(terminal), 30))
        terminal.type(b"\r")
        terminal.wait_for(b"\nABCDEF")
    assert [echo.age_seconds for echo in typed] == sorted(echo.age_seconds for echo in typed)
    assert all(echo.seconds > 0 for echo in typed)


def test_a_key_counts_while_the_import_lasts_and_an_import_without_an_end_is_told(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"

    def typed() -> Iterator[Echo]:
        yield from (Echo(1, 0.1), Echo(2, 1.8), Echo(3, 2.1), Echo(4, 3.1))
        schema.touch()
        yield Echo(5, 3.2)

    assert list(key_echo.while_missing(schema, typed())) == [1, 2, 4]
    with pytest.raises(RuntimeError, match=r"other\.json was never written"):
        list(key_echo.while_missing(tmp_path / "other.json", [Echo(1, 61)]))


def test_a_key_that_takes_longer_than_the_replies_counts_all_the_same() -> None:
    assert list(streams_at_once.seconds_until(0.0, iter([Echo(9, 9), Echo(1, 10)]))) == [9]


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
    with (
        stalling() as address,
        closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=0.1)) as connection,
    ):
        connection.request("POST", "/v1/chat/completions", b"{}")
        answer = connection.getresponse()
        assert FIRST_WORDS in answer.readline().decode()
        assert answer.readline() == b"\n"
        with pytest.raises(TimeoutError):
            answer.readline()


def test_a_program_is_timed_until_its_first_character() -> None:
    program = "import time; print('a', flush=True); time.sleep(0.3)"
    assert seconds_to_first_character([sys.executable, "-c", program], os.environ) > 0
    with pytest.raises(RuntimeError, match="wrote nothing"):
        seconds_to_first_character([sys.executable, "-c", "pass"], os.environ)


def test_the_script_of_the_reference_prints_the_answer_as_it_comes() -> None:
    with serving(lambda _body: (200, [chunk("Hi "), chunk("there."), DONE])) as address:
        environment = {**os.environ, "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-invented"}
        command = [sys.executable, "-m", httpx_script.__name__, "hello"]
        asked = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert asked.stdout == "Hi there."


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace counts them")
def test_the_waits_for_the_disk_of_a_program_and_its_children_are_counted(tmp_path: Path) -> None:
    program = (
        f"import os, threading; file = open({str(tmp_path / 'file')!r}, 'w'); os.fork() or os.fsync(file); "
        "os.fsync(file); threading.Thread(target=os.fdatasync, args=(file,)).start()"
    )
    assert syncs([sys.executable, "-c", program], os.environ, tmp_path) == 5


def test_what_a_turn_asks_of_the_log_is_counted_over_each_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    statements, on_server = round_trips.measure(quick=True)
    assert isinstance(statements, Figure)
    assert statements.is_met
    if round_trips.SERVER in os.environ:
        assert isinstance(on_server, Figure)
        assert on_server.is_met
    else:
        assert isinstance(on_server, Skipped)


@pytest.mark.slow
def test_a_reference_that_cannot_be_installed_is_an_error_of_the_installer(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        installed_llm(tmp_path, "http://127.0.0.1:1/v1", str(tmp_path / "no such package"))


def test_a_talk_tells_how_its_turns_went(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with endurance.serving() as address, endurance.talking(address) as talk:
        stretch = talk.take(2)
    assert len(stretch.seconds) == 2
    assert stretch.mebibytes > 10
    assert stretch.descriptors > 3


@pytest.mark.slow
def test_the_end_of_a_talk_is_measured_against_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    found = list(endurance.compare(4, 1, early_turn=2))
    assert [shown.name for shown in found] == ["turn 4", "memory after turn 4", "open descriptors after turn 4"]
    assert all(shown.ratio > 0 for shown in found)


@pytest.mark.parametrize(
    ("before", "after", "repeated"),
    [
        ((), (SYSTEM, HELLO), 0),
        ((SYSTEM, HELLO), (SYSTEM, HELLO, REPLY, HELP), 2 * WHOLE),
        ((SYSTEM, HELLO, REPLY), (SYSTEM, HELP, REPLY), WHOLE + len("Hel")),
        ((SYSTEM, HELLO, HELP), (SYSTEM, REPLY, HELP), WHOLE),
        ((SYSTEM, HELLO), (HELLO, SYSTEM), 0),
    ],
)
def test_what_repeats_ends_with_the_first_letter_that_differs(
    before: tuple[PromptMessage, ...], after: tuple[PromptMessage, ...], repeated: int
) -> None:
    assert repeated_tokens(before, after, len) == repeated


def test_a_request_is_compared_unless_it_is_the_first_or_follows_a_fold() -> None:
    first, second, for_summary = Sent((SYSTEM,)), Sent((SYSTEM, HELLO)), Sent((HELP,), is_for_summary=True)
    assert list(charges([first, second, for_summary, second, second], len)) == [
        Charge(WHOLE, 0, is_compared=False),
        Charge(2 * WHOLE, WHOLE, is_compared=True),
        Charge(len("Help") + TOKENS_PER_MESSAGE, 0, is_compared=False),
        Charge(2 * WHOLE, 2 * WHOLE, is_compared=False),
        Charge(2 * WHOLE, 2 * WHOLE, is_compared=True),
    ]


def test_what_is_in_the_cache_costs_a_tenth() -> None:
    assert Charge(110, 100, is_compared=True).price == pytest.approx(20)


async def test_turns_that_grow_too_old_leave_the_beginning_of_the_next_requests_as_it_is() -> None:
    sent = await play(Talk(hours=1, limit_tokens=100_000, minutes_between_old_turns=1, turns=4))
    assert len(sent) == 4
    assert all(after.messages[: len(before.messages)] == before.messages for before, after in pairwise(sent))


async def test_a_talk_with_memory_remembers_captures_and_calls_a_tool() -> None:
    talk = Talk(hours=8, limit_tokens=100_000, minutes_between_old_turns=60, turns=10, has_memory=True)
    sent = await play(talk)
    last = sent[-1].messages
    assert "Memory:\n#1 (" in last[0].content
    assert any(message.content.startswith("From memory:\n#") for message in last if message.role == "user")
    assert any(message.tool_calls for message in last)
    assert all(after.messages[: len(before.messages)] == before.messages for before, after in pairwise(sent))


def test_a_talk_that_is_folded_is_measured_against_one_that_is_not() -> None:
    found = list(cache.compare(Talk(hours=1, limit_tokens=2_000, minutes_between_old_turns=20, turns=8)))
    window = "1 h window, 8 turns"
    talks = [
        *("", ", never folded", ", summariser down", ", memory and tools"),
        *(f", memory, tools, thoughts sent again {span}" for span in ("within the turn", "for ever")),
    ]
    names = [*(f"{window}{talk}: not in the request before" for talk in talks), f"{window}: summariser's calls"]
    assert [shown.name for shown in found] == [*names, *[f"{window}: price of a turn"] * 2]
    assert all(shown.value > 0 for shown in found)
    new, *_, uncached, cached = found
    assert new.ratio < 1
    assert uncached.reference_value > cached.reference_value
