"""The list of all sentences has those of every kind, and nothing else."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.sentences import sentences, texts


def test_the_list_has_what_the_program_says_in_every_way() -> None:
    said = {(each.room, each.text) for each in sentences()}
    assert {
        ("sessions", "No saved sessions."),
        ("framework", "There is no command {quoted(typed)}.{suggestion} {listing}"),
        ("turns", "Start a new conversation; nothing is deleted."),
        ("settings", "How many hours back the model sees the conversation."),
        ("stores", "Overwrite all this for good? It cannot be undone."),
        ("cli", "That is a bug in Chorus ({type(error).__name__}), and its traceback cannot be kept: {problem}"),
    } <= {(room, text.rpartition("\n")[2]) for room, text in said}


def test_code_that_no_user_reads_is_not_on_the_list() -> None:
    code = """
def greeting():
    'A docstring of code.'
    logger.warning("A line for the log.")
    return f"Hello {user.name}."
"""
    assert [text for _, text in texts(ast.parse(code))] == ["Hello {name}."]


def test_each_sentence_is_written_once() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for each in sentences():
        for part in each.wholes:
            places[part].append(f"{each.path}:{each.line}")
    assert {part: found for part, found in places.items() if len(found) > 1} == {}
