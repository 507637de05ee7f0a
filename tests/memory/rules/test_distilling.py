"""The answer of a model that distils: only facts that name one of the messages are taken from it."""

from __future__ import annotations

import json

import pytest

from chorus_cli.memory.rules.distilling import MOST_FACTS, read

IDS = (3, 4)


@pytest.mark.parametrize(
    "answer",
    [
        '[{"fact": "Ann lives in York.", "message": 3}]',
        'Here:\n```json\n[{"fact": " Ann lives\\nin York. ", "message": "#3"}]\n```\nThat is all.',
        '[{"fact": "Ann lives in York.", "message": 3}] (see [3])',
        'As you asked [see above]: [{"fact": "Ann lives in York.", "message": 3}]',
        '{"facts": [{"fact": "Ann lives in York.", "message": "3", "sure": true}]}',
    ],
)
def test_a_list_of_facts_is_read_whatever_stands_around_it(answer: str) -> None:
    assert read(answer, IDS) == ({"Ann lives in York.": 3}, 0)


@pytest.mark.parametrize(
    "entry",
    [
        {"fact": "of another message", "message": 5},
        {"fact": "of no message"},
        {"fact": "of a part of a message", "message": 3.0},
        {"fact": "of the message True", "message": True},
        {"fact": "of a superscript", "message": "³"},
        {"fact": " ", "message": 3},
        {"fact": ["a list"], "message": 3},
        {"message": 3},
        "Ann lives in York.",
        None,
        {"fact": "Ann keeps bees.", "message": 4},
    ],
)
def test_an_entry_that_is_no_fact_of_a_message_or_repeats_one_is_dropped_and_counted(entry: object) -> None:
    answer = json.dumps([{"fact": "Ann keeps bees.", "message": 3}, entry])
    assert read(answer, IDS) == ({"Ann keeps bees.": 3}, 1)


@pytest.mark.parametrize("answer", ["", "I found nothing.", "[1, 2", '{"fact": "x", "message": 3}', "]["])
def test_an_answer_without_a_list_is_none(answer: str) -> None:
    assert read(answer, IDS) is None


def test_more_facts_than_were_asked_for_are_dropped() -> None:
    many = [{"fact": f"fact {number}", "message": 3} for number in range(MOST_FACTS + 5)]
    assert read(json.dumps(many), IDS) == ({f"fact {number}": 3 for number in range(MOST_FACTS)}, 5)
