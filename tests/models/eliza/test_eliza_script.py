"""The notation of ELIZA's script, and the script itself."""

from __future__ import annotations

from chorus_cli.models.eliza.responder import ANY, Keyword, Reassembly, Rule, read_script
from chorus_cli.models.eliza.script import SCRIPT

KEYWORDS = read_script(SCRIPT)


def test_the_notation_is_read_into_values() -> None:
    text = """
# a comment
/colour: red blue
a b > c 3
  0 x|y /colour 2
    An answer with {2}
      that goes on.
    NEWKEY
    PRE so {1} =d
  =d
d
"""
    decomposition = (ANY, frozenset({"x", "y"}), frozenset({"red", "blue"}), 2)
    rules = (
        Rule(decomposition, (Reassembly("An answer with {2} that goes on."), Reassembly(), Reassembly("so {1}", "d"))),
        Rule((ANY,), (Reassembly(keyword="d"),)),
    )
    assert read_script(text) == {
        "a": Keyword("a", "c", 3, rules),
        "b": Keyword("b", "c", 3, rules),
        "d": Keyword("d", "d", 0, ()),
    }


def test_the_script_has_many_keywords_and_every_link_has_an_end() -> None:
    assert sum(bool(keyword.rules) for keyword in KEYWORDS.values()) > 80
    for keyword in KEYWORDS.values():
        for rule in keyword.rules:
            assert rule.reassemblies
            for reassembly in rule.reassemblies:
                if reassembly.keyword:
                    assert KEYWORDS[reassembly.keyword].rules


def test_every_answer_of_the_script_uses_parts_that_its_rule_has() -> None:
    for keyword in KEYWORDS.values():
        for rule in keyword.rules:
            for reassembly in rule.reassemblies:
                template = reassembly.template
                assert template.format("", *["x"] * len(rule.decomposition)) or not template
