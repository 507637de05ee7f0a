"""Any text is counted, soon, by the shipped vocabulary, and the network is never asked for another."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import ModelError
from chorus_cli.models.providers import token_counter
from chorus_cli.models.providers.model_files import SHIPPED
from chorus_cli.models.providers.token_counter import VOCABULARY_NAME, VocabularyCounter
from tests.amount import examples

COUNTER = VocabularyCounter()
MEBIBYTE = 1024 * 1024


def test_a_text_has_its_tokens() -> None:
    words = {"": 0, "hello world": 2, "tiktoken is great!": 6, "<|endoftext|>": 7, "\0": 1}
    halves = {"\N{GRINNING FACE}": 2, "\ud83d\ude00": 2, "\ud83d": 1, "a\ud83db\udc00": 4}
    for text, tokens in (words | halves).items():
        assert (text, COUNTER.count(text)) == (text, tokens)


LONG = {
    "one letter": ("a", 131072),
    "spaces": (" ", 8192),
    "newlines": ("\n", 32768),
    "halves": ("\ud800", 262144),
    "emoji": ("\N{GRINNING FACE}", 2 * MEBIBYTE),
    "ten megabytes of words": ("hello world ", 1_748_909),
}


@pytest.mark.parametrize(("piece", "tokens"), LONG.values(), ids=LONG)
def test_no_text_takes_long(piece: str, tokens: int) -> None:
    text = piece * (MEBIBYTE if len(piece) == 1 else 873_814)
    began = time.perf_counter()
    assert COUNTER.count(text) == pytest.approx(tokens, rel=0.001)
    assert time.perf_counter() - began < 10


def test_counting_in_slices_is_off_by_less_than_one_in_a_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(SHIPPED))
    encoding = tiktoken.get_encoding("cl100k_base")
    assert encoding._pat_str == token_counter._PIECES
    text = "def double(number):\n    return number + number\n\n# A comment that says why.\n" * 2000
    assert COUNTER.count(text) == pytest.approx(len(encoding.encode_ordinary(text)), rel=0.001)


@examples(100)
@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=100))
def test_every_text_can_be_counted(text: str) -> None:
    assert 0 <= COUNTER.count(text) <= 4 * len(text)


def test_several_threads_may_make_the_first_count() -> None:
    counter = VocabularyCounter()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(counter.count, ["hello world"] * 8)) == [2] * 8


def test_counting_neither_imports_litellm_nor_makes_a_socket() -> None:
    program = (
        "import os, socket, sys\n"
        "before = dict(os.environ)\n"
        "class Refused(socket.socket):\n"
        "    def __new__(*_, **__): raise SystemExit('a socket was made')\n"
        "socket.socket = Refused\n"
        "from chorus_cli.models.providers.token_counter import VocabularyCounter\n"
        "assert 'tiktoken' not in sys.modules\n"
        "count = VocabularyCounter().count\n"
        "assert [count('hello world'), count('<|endoftext|>'), count('a' * 1048576)] == [2, 7, 131072]\n"
        "assert 'litellm' not in sys.modules and 'requests' not in sys.modules\n"
        "assert dict(os.environ) == before\n"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")


def test_a_missing_vocabulary_is_an_error_that_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"Tokens cannot be counted: .* cannot be read .*\. Reinstall Chorus"):
        VocabularyCounter(tmp_path).count("hello")


def test_a_damaged_vocabulary_is_an_error_and_stays_where_it_is(tmp_path: Path) -> None:
    damaged = tmp_path / VOCABULARY_NAME
    damaged.write_bytes((SHIPPED / VOCABULARY_NAME).read_bytes()[:-1])
    with pytest.raises(ModelError, match=r"is damaged\. Reinstall Chorus"):
        VocabularyCounter(tmp_path).count("hello")
    assert damaged.exists()


def test_without_text_no_vocabulary_is_needed(tmp_path: Path) -> None:
    assert VocabularyCounter(tmp_path).count("") == 0


@given(st.text(st.characters(), max_size=200))
def test_a_text_has_at_most_as_many_tokens_as_are_said_before_the_vocabulary_is_loaded(text: str) -> None:
    late = VocabularyCounter()
    bound = late.at_most(text)
    assert not late.is_ready
    assert COUNTER.at_most(text) == COUNTER.count(text) <= bound
