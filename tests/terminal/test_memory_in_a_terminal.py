"""Remembering and forgetting, at the keyboard of the real program and in the shell."""

from __future__ import annotations

import json

from tests.terminal.driver import PROMPT, Home

TIERS = "SELECT tier, COUNT(*) FROM context_items WHERE forgotten_by IS NULL GROUP BY tier"

TIERS_BY_NAME = ("HOT", "WARM", "COLD", "ARCHIVED")
TIERS_AND_TOKENS = "SELECT tier, COUNT(*), SUM(token_count) FROM context_items WHERE forgotten_by IS NULL GROUP BY tier"


def test_a_text_is_remembered_shown_forgotten_and_brought_back(home: Home) -> None:
    with home.chat() as chat:
        chat.ask("/remember call the plumber", 'Remembered #1 "call the plumber" as TASK, HOT. /undo reverts this.')
        chat.ask("/memory", "Memory of Chorus")
        chat.ask("/memory list", ".40+.40+.01")
        chat.type("/memory show ")
        chat.press("tab")
        chat.await_text("TASK: call the plumber")
        chat.press("ctrl-c")
        chat.say("/memory forget 1")
        chat.await_text("(y/n)")
        chat.ask("y", 'Forgot #1 "call the plumber". /undo brings it back.')
        chat.ask("/memory list", "Nothing is remembered yet.")
        assert home.sql(TIERS) == []
        chat.ask("/undo", 'Undone: forgot #1 "call the plumber"')
        chat.await_line(PROMPT)
    assert home.sql("SELECT content FROM context_items WHERE forgotten_by IS NULL") == ["call the plumber"]


def test_chorus_memory_prints_what_is_remembered_as_text_or_as_one_json_value(home: Home) -> None:
    home.run("ask", "/remember call the plumber")
    home.run("ask", "/memory add code make test")
    assert home.run("memory").output.startswith("Memory of Chorus\n")
    value = json.loads(home.run("memory", "--json").output)
    figures = ("total_items", "hot_count", "warm_count", "cold_count", "archived_count", "total_tokens")
    assert [value[name] for name in figures] == [2, 1, 1, 0, 0, 5]
    assert [(item["id"], item["item_type"], item["tier"]) for item in value["items"]] == [
        (1, "TASK", "HOT"),
        (2, "CODE", "WARM"),
    ]
    assert json.loads(home.run("memory", "--persona", "frodo", "--json").output)["items"] == []


def test_chorus_memory_counts_as_sql_does(home: Home) -> None:
    for text in ("/remember call the plumber", "/memory add prd_section an old part", "/memory add task buy milk"):
        home.run("ask", text)
    home.sql("UPDATE context_items SET tier = 'ARCHIVED' WHERE id = 2")
    home.sql("UPDATE context_items SET forgotten_by = 9 WHERE id = 3")
    value = json.loads(home.run("memory", "--json").output)
    counted = {name: (value[f"{name.lower()}_count"], value[f"{name.lower()}_tokens"]) for name in TIERS_BY_NAME}
    by_sql = {tier: (number, tokens) for tier, number, tokens in home.sql(TIERS_AND_TOKENS)}
    assert counted == {name: by_sql.get(name, (0, 0)) for name in TIERS_BY_NAME}
    assert sorted(by_sql) == ["ARCHIVED", "HOT"]
