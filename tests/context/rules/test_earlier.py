"""The lines of turns from before the window in a preamble, and the messages that are read back from them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.context.rules import earlier
from chorus_cli.context.rules.earlier import EarlierTurn
from chorus_cli.context.rules.preamble import job_lines, preamble
from chorus_cli.jobs.rules import RunningJob
from chorus_cli.log.rules.messages import Message, Role
from chorus_cli.log.rules.speakers import Speakers
from chorus_cli.memory.rules.recall import memory_lines
from chorus_cli.personas.rules.persona import Persona
from chorus_cli.settings.rules.table import Settings
from tests.fakes import START
from tests.memory.remembered import item

CHORUS = Persona("chorus", Settings())
NAMES = Speakers("Chorus", "Ada")
PIECES = ("\r\n", "\n\n", "  ", "Said earlier:", "#3 (2026-02-12, Ada): forged", "\nFrom memory:\n", "\x85", "x", "#")
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1).map("\n".join)


def row(id_: int, content: str, role: Role = Role.USER) -> Message:
    return Message(id_, "chorus", 1, id_ - (role is Role.ASSISTANT), role, content, START)


def turn(id_: int, question: str, reply: str = "Yes.") -> EarlierTurn:
    rows = row(id_, question), row(id_ + 1, reply, Role.ASSISTANT)
    return EarlierTurn(rows[0], rows)


def words(text: str) -> int:
    return len(text.split())


def test_lines_have_number_date_and_speaker_the_oldest_first() -> None:
    lines = earlier.earlier_lines([turn(5, "How?\nWhy?"), turn(1, "Who?")], NAMES)
    assert lines.splitlines() == [
        "Said earlier:",
        "#1 (2026-02-12, Ada): Who?",
        "#2 (2026-02-12, Chorus): Yes.",
        "#5 (2026-02-12, Ada): How?",
        "  Why?",
        "#6 (2026-02-12, Chorus): Yes.",
    ]
    assert earlier.earlier_lines([], NAMES) == ""


def test_long_messages_are_cut_in_the_middle_the_one_that_was_found_less() -> None:
    found, beside = earlier.earlier_lines([turn(1, "a" * 2_000, "b" * 2_000)], NAMES).split("\n#")[1:]
    assert (found.count("a"), beside.count("b")) == (800 + "characters left".count("a") + 1, 400)


def test_at_most_three_turns_that_fit_are_taken_the_best_first() -> None:
    turns = [turn(9, "long " * 30), turn(7, "one"), turn(3, "two"), turn(5, "three"), turn(1, "four")]
    assert [each.found.id for each in earlier.fitting(turns, NAMES, 30, words)] == [7, 3, 5]
    assert [each.found.id for each in earlier.fitting(turns, NAMES, 20, words)] == [7, 3]
    assert earlier.fitting(turns, NAMES, 5, words) == []


@pytest.mark.parametrize(("messages", "most"), [(0, 3), (100, 5), (10_000, 500), (1_000_000, 1_000)])
def test_a_word_is_rare_if_three_messages_or_a_twentieth_have_it(messages: int, most: int) -> None:
    assert earlier.most_with_a_word_that_brings(messages) == most


def test_a_greeting_has_no_words_that_bring_turns() -> None:
    assert earlier.words_that_bring("Hello, good morning!") == earlier.words_that_bring("Guten Abend") == []
    assert earlier.words_that_bring("Morning tea with Anna?") == ["Morning", "tea", "Anna"]


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=3), TEXTS, TEXTS)
def test_what_a_preamble_has_is_read_back_from_any_texts(
    said: list[tuple[str, str]], remembered: str, output: str
) -> None:
    turns = [turn(10 * number, *texts) for number, texts in enumerate(said, 1)]
    kept = memory_lines([item(3, content=remembered)], CHORUS)
    others = preamble("[2 h later]", job_lines([RunningJob(1, "make", 3, output)]), kept)
    whole = preamble(others, earlier.earlier_lines(turns, NAMES))
    ids = {id_ for each in turns for id_ in (each.found.id, each.found.id + 1)}
    assert earlier.ids_in(whole) == ids
    assert earlier.without_earlier(whole) == others
    asked = row(99, "Well?")._replace(preamble=whole)
    assert [(use.id, use.by) for use in earlier.earlier_in([asked])] == [(id_, 99) for id_ in sorted(ids)]
