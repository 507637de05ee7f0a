"""Remembering and forgetting, at the keyboard of the real program and in the shell."""

from __future__ import annotations

import json

from tests.terminal.driver import PROMPT, Home

TIERS = "SELECT tier, COUNT(*) FROM context_items WHERE forgotten_by IS NULL GROUP BY tier"


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
