"""ELIZA: what she answers, the mechanisms of the paper one by one, her script, and her client."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.models.eliza.responder import (
    ANY,
    CLAUSE_WORDS,
    GREETING,
    Keyword,
    Reassembly,
    Rule,
    clauses,
    decomposed,
    read_script,
    reply,
)
from chorus_cli.models.eliza.script import SCRIPT
from chorus_cli.models.router import ElizaClient
from chorus_cli.models.rules.events import ReplyEnd, TextDelta
from chorus_cli.models.rules.request import ModelRequest, PromptMessage
from tests.amount import examples
from tests.fakes import FakeClock

KEYWORDS = read_script(SCRIPT)
WORDS = sorted({word for keyword in KEYWORDS.values() for word in (keyword.word, keyword.replacement)})
RULES = [rule for keyword in KEYWORDS.values() for rule in keyword.rules]
MATCHED = [element for rule in RULES for element in rule.decomposition if isinstance(element, frozenset)]
ELEMENTS = sorted(frozenset[str]().union(*MATCHED))


FIRST_ANSWERS = {
    "That sounds hard. What has made you unhappy?": (
        "I am unhappy",
        "I'm so unhappy.",
        "I\u2019m unhappy",
        "I AM UNHAPPY!!!",
    ),
    "What has made you happy?": ("I am happy",),
    "Since when are you a carpenter?": ("I am a carpenter",),
    "What would change for you if you had a garden in Lisbon?": ("I want a garden in Lisbon",),
    "What would change for you if you could leave?": ("I want to leave", "I'd like to leave"),
    "What would happen if you could sleep?": ("I can't sleep",),
    "What would it take for you to sleep?": ("I don\u2019t sleep",),
    "When else do you feel empty?": ("I feel empty",),
    "What speaks for it that you are cursed?": ("I think that I am cursed",),
    "Tell me more about that: you have lost it.": ("I've lost it",),
    "Tell me more about that: you will stay.": ("I'll stay",),
    "What would it be like if that came true?": ("I wish I was taller",),
    "Were you really young?": ("I was young",),
    "Suppose you were wrong. What would follow?": ("was I wrong?",),
    "What gives you the idea that you might be wrong?": ("am I wrong?",),
    "What if they were not mean?": ("are they mean?", "cats are mean"),
    "What answer would you like best?": ("are cats mean", "where is it"),
    "What draws your attention to my rules?": ("your rules",),
    "What sort of person comes to mind when you say father?": ("My father is ill",),
    "Your kettle, you say. Please tell me more.": ("my kettle",),
    "Why has the sea come back to you now?": ("I remember the sea",),
    "My memory is short. What about the sea?": ("do you remember the sea",),
    "Suppose that it rains: what would come next?": ("if it rains",),
    "Was the sea ever on your mind by day?": ("I dreamt of the sea",),
    "How did you feel when you woke from that?": ("I dreamt I could fly",),
    "What do you make of that dream?": ("A dream",),
    "You leave the door open. What would close it?": ("maybe",),
    "Good to meet you, Bob. What shall we talk about?": ("my name is Bob",),
    "There is nothing to be sorry for.": ("sorry",),
    "You are welcome, though you did the work.": ("thank you",),
    "Goodbye. Type /quit to leave.": ("quit",),
    "Have machines been a trouble to you?": ("machines",),
    "Are there other reasons, too?": ("because it rained",),
    "Should I sleep, in your view?": ("why don't you sleep",),
    "Who says that you have to be able to sleep?": ("why can't I sleep",),
    "Would you like me to be able to swim?": ("can you swim",),
    "What keeps you from it, if you want to swim?": ("could I swim",),
    "Whom do you have in mind when you say nobody?": ("Nobody came", "no one came"),
    "Without any exception?": ("it never rains",),
    "What do they have in common, as you see it?": ("they are alike", "it is like a wall"),
    "You sound decided. Why is that?": ("yes",),
    "Is that a firm no?": ("no",),
    "You may well say so: I am a handful of rules from 1966, without any understanding.": ("you are wrong",),
    "In what way do I remind you of a clock?": ("you remind me of a clock",),
    "I am afraid that I have rules for English only.": ("Habla español",),
    "Yes, you. What of it?": ("I",),
    "Say a little more, please.": ("rain", "", "?!", " \n\t\n"),
}


def test_a_first_message_has_this_answer() -> None:
    for answer, messages in FIRST_ANSWERS.items():
        for said in messages:
            assert (said, reply([said])) == (said, answer)


@pytest.mark.parametrize(
    "question",
    [
        *("are you an AI?", "Are you human", "ARE YOU CHATGPT?", "you're a machine", "You are a program"),
        *("who are you?", "What are you?", "what model are you", "which model is this?"),
        *("what's your name?", "who made you?", "how do you work?", "help", "please help me"),
        *("can you help me with my code", "what can you do?", "tell me about yourself", "tell me a joke"),
        *("write a poem", "Could you explain recursion?", "do you understand me?", "Do you think?"),
        *("is this Ollama",),
    ],
)
def test_a_question_about_what_answers_gets_the_truth_and_the_way_out(question: str) -> None:
    for times in range(1, 4):
        answer = reply([question] * times)
        assert "ELIZA" in answer
        assert "Ollama" in answer
        assert "key" in answer


def test_somebody_in_danger_is_sent_to_people_and_nobody_else() -> None:
    for said in ("I want to die", "hello, i want to kill myself", "I don\u2019t want to live", "suicide"):
        assert "emergency number" in reply([said])
    for said in ("how do I kill a process", "my model railway", "I help my aunt", "I fix bikes"):
        assert not re.search("ELIZA|program", reply([said]))


TURNED = {
    "you hate me": "I hate you",
    "I know you are busy": "you know I am busy",
    "I hurt myself": "you hurt yourself",
    "I saw that you were there": "I was there",
    "I talk to you daily": "you talk to me daily",
    "I am fond of you today": "fond of me today",
    "I wonder where you live": "you wonder where I live",
    "I trust yourself and yours": "trust myself and mine",
    "I read your book": "read my book",
}


def test_person_and_verb_change_sides() -> None:
    for said, fragment in TURNED.items():
        assert any(fragment in reply([said] * times) for times in range(1, 5)), said


def test_reassembly_rules_take_turns_and_begin_again() -> None:
    answers = [reply(["perhaps"] * times) for times in range(1, 5)]
    assert len(set(answers)) == 3
    assert answers[3] == answers[0]


def test_keywords_stand_by_rank_and_then_in_their_order() -> None:
    (clause,) = clauses("you said perhaps my computer and I remember", KEYWORDS)
    assert [keyword.word for keyword in clause.keywords] == ["computer", "remember", "my", "you", "perhaps", "i"]


PARTED = {
    "Well, I am sad, he says.": ["Well", "you are sad", "he says"],
    "it rains but I am dry But cold": ["it rains", "you are dry", "cold"],
    "I read node.js code at 3.5": ["you read node.js code at 3.5"],
    "it rains\nI am wet": ["it rains", "you are wet"],
    "\u201cI am wet\u201d (he said)": ["you are wet he said"],
    "rain\u2014I am wet\u2014rain": ["rain", "you are wet", "rain"],
    "it rains.. (it pours!)": ["it rains", "it pours"],
    "...": [],
}


def test_signs_and_but_part_a_text_into_clauses() -> None:
    for text, parted in PARTED.items():
        assert [" ".join(clause.words) for clause in clauses(text, KEYWORDS)] == parted


@pytest.mark.parametrize("text", ["I am sad", "Well, I am sad", "Rain. I am sad, you know", "I am sad but I may laugh"])
def test_the_first_clause_that_holds_a_keyword_is_answered(text: str) -> None:
    assert reply([text]) == "That sounds hard. What has made you sad?"


def test_a_clause_that_never_ends_is_cut() -> None:
    first, *_ = clauses("I " * 10_000, KEYWORDS)
    assert len(first.words) == CLAUSE_WORDS


def test_what_was_said_of_my_something_comes_back_when_no_keyword_is_found() -> None:
    history = ["My brother sings", "My kettle leaks", "perhaps"]
    assert reply([*history, "rain"]) == "Let us go back to what you said before: your brother sings."
    assert reply([*history, "rain", "snow"]) == "There was something earlier: your kettle leaks. What about it now?"
    assert reply([*history, "rain", "snow", "hail"]) == "Say a little more, please."


def test_my_alone_is_nothing_to_remember_and_only_the_last_messages_count() -> None:
    assert reply(["my", "rain"]) == "And then?"
    assert reply(["My kettle leaks", *["perhaps"] * 200, "rain"]) == "Say a little more, please."


def test_a_huge_message_is_answered_from_its_beginning() -> None:
    assert reply(["I am sad. " + "perhaps " * 200_000] * 200).endswith("you were no longer sad?")


A, B = frozenset({"a"}), frozenset({"b"})
DECOMPOSED: dict[tuple[tuple[int | frozenset[str], ...], str], list[str] | None] = {
    ((ANY,), ""): [""],
    ((ANY,), "a b"): ["a b"],
    ((A, ANY), "A b"): ["A", "b"],
    ((2, ANY), "a b c"): ["a b", "c"],
    ((ANY, A | B, ANY), "c b a"): ["c", "b", "a"],
    ((2, ANY), "a"): None,
    ((ANY, A), "a b a"): ["a b", "a"],
    ((ANY, A, 1), "a b a c"): ["a b", "a", "c"],
    ((A,), "a b"): None,
    ((), "a"): None,
    ((), ""): [],
    ((ANY, A, ANY, B, ANY), "b a a b b"): ["b", "a", "a", "b", "b"],
}


def test_decomposition_gives_each_any_as_little_as_it_can() -> None:
    for (decomposition, words), parts in DECOMPOSED.items():
        found = decomposed(decomposition, words.split())
        assert (None if found is None else [" ".join(part) for part in found]) == parts


@examples(200)
@given(st.lists(st.text(), max_size=5))
def test_any_texts_have_an_answer_and_always_the_same(history: list[str]) -> None:
    answer = reply(history)
    assert answer.strip()
    assert reply(list(history)) == answer


@examples(300)
@given(st.lists(st.lists(st.sampled_from([*WORDS, *ELEMENTS, ",", "xyz"]), max_size=8).map(" ".join), max_size=6))
def test_any_mixture_of_the_scripts_words_has_an_answer_without_gaps(history: list[str]) -> None:
    answer = reply(history)
    assert answer
    assert "{" not in answer
    assert "  " not in answer
    assert " ?" not in answer


def test_the_notation_is_read_into_values() -> None:
    text = """
# a comment
/colour: red blue
a b > c 3
  y
  0 x|y /colour 2
    An answer with {2}
      that goes on.
    NEWKEY
    PRE so {1} =d
  =d
d
"""
    decomposition = (ANY, frozenset({"x", "y"}), frozenset({"red", "blue"}), 2)
    shared = (Reassembly("An answer with {2} that goes on."), Reassembly(), Reassembly("so {1}", "d"))
    rules = (Rule((frozenset({"y"}),), shared), Rule(decomposition, shared), Rule((ANY,), (Reassembly(keyword="d"),)))
    assert read_script(text) == {
        "a": Keyword("a", "c", 3, rules),
        "b": Keyword("b", "c", 3, rules),
        "d": Keyword("d", "d", 0, ()),
    }


def test_the_script_has_many_keywords_every_link_has_an_end_and_every_answer_uses_parts_of_its_rule() -> None:
    assert sum(bool(keyword.rules) for keyword in KEYWORDS.values()) > 80
    for rule in RULES:
        assert rule.reassemblies
        for template, linked in rule.reassemblies:
            assert not linked or KEYWORDS[linked].rules
            assert not template or template.format("", *["x"] * len(rule.decomposition))


async def streamed(*messages: PromptMessage) -> tuple[str, ReplyEnd, list[float]]:
    """Return the reply, its end, and the pauses between its words."""
    clock = FakeClock()
    client = ElizaClient(clock, seconds_per_word=0.5)
    *deltas, end = [event async for event in client.stream(ModelRequest("chorus/eliza", messages))]
    assert isinstance(end, ReplyEnd)
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)), end, clock.slept


async def test_the_words_come_one_by_one_and_the_end_reports_no_usage() -> None:
    said, end, pauses = await streamed(PromptMessage("user", "I am unhappy"))
    assert said == reply(["I am unhappy"])
    assert pauses == [0.5] * (len(said.split()) - 1)
    assert end == ReplyEnd("stop", {})


async def test_only_the_users_messages_count_in_their_order_and_without_any_it_greets() -> None:
    system, kettle = PromptMessage("system", "my secret"), PromptMessage("user", "my kettle leaks")
    talk = (system, kettle, PromptMessage("assistant", "my answer"), PromptMessage("tool", "my result"))
    assert (await streamed(*talk, PromptMessage("user", "rain")))[0] == reply(["my kettle leaks", "rain"])
    assert (await streamed(system))[0] == reply([]) == GREETING
    assert "ELIZA" in GREETING


async def test_neither_a_preamble_nor_a_note_is_answered() -> None:
    preamble, note = "[2 h later]\nRunning jobs:\n  #1 make (3 s)", "[Note: Be brief.]"
    message = PromptMessage("user", f"{note}\n\n{preamble}\n\nI am unhappy", note=note, preamble=preamble)
    assert (await streamed(message))[0] == reply(["I am unhappy"])
