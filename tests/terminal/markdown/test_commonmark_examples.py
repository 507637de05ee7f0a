"""The examples of the CommonMark specification stand on the screen in the end as if they had come at once."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import amount
from tests.terminal.markdown import commonmark
from tests.terminal.markdown.commonmark import with_definitions_ahead
from tests.terminal.markdown.markdown_screens import Size, assert_same, randomly_cut

EXAMPLES = commonmark.examples()
COLUMNS = (80, 33, 20)

pytestmark = pytest.mark.usefixtures("true_colours")


def test_all_examples_are_there() -> None:
    assert len(EXAMPLES) == 652
    assert EXAMPLES[0] == "\tfoo\tbaz\t\tbim\n"


@pytest.mark.parametrize(
    ("tried", "is_cut_everywhere"),
    [
        pytest.param(slice(None, None, 5), False, id="every fifth"),
        pytest.param(slice(None), False, id="each", marks=pytest.mark.slow),
        pytest.param(slice(None), True, id="cut everywhere", marks=pytest.mark.slow),
    ],
)
def test_every_example_stands_as_if_it_had_come_at_once(tried: slice, *, is_cut_everywhere: bool) -> None:
    for number, example in [*enumerate(EXAMPLES, 1)][tried]:
        random = Random(number)  # noqa: S311 - the same in each run
        text, size = with_definitions_ahead(example), Size(random.choice(COLUMNS), 24)
        chunks = list(text) if is_cut_everywhere else randomly_cut(text, random)
        assert_same(text, chunks, size, frames_every=random.randint(1, 5), name=f"example {number}: {chunks}")


@amount.examples(150)
@given(
    st.lists(st.sampled_from(EXAMPLES), min_size=2, max_size=6),
    st.sampled_from(["", "\n"]),
    st.randoms(use_true_random=False),
    st.sampled_from(COLUMNS),
)
def test_examples_one_after_another_stand_as_if_they_had_come_at_once(
    chosen: list[str], between: str, random: Random, columns: int
) -> None:
    text = with_definitions_ahead(between.join(chosen))
    assert_same(text, randomly_cut(text, random), Size(columns, 150), frames_every=random.randint(1, 5))
