"""Settings from the keyboard of the real program, with a real editor that is a script."""

from __future__ import annotations

from pathlib import Path

from tests.terminal.driver import PROMPT, Home
from tests.terminal.editors import editor


def test_settings_are_edited_checked_mended_and_undone(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    tmp_path.joinpath("home").mkdir()
    settings = home.path / "personas" / "chorus" / "system.jsonc"
    wrong = """printf '{"context_hours": 500}\\n' > "$file" """
    right = """printf '// mended\\n{"name": "Chorus", "context_hours": 50}\\n' > "$file" """
    with home.chat(EDITOR=editor(tmp_path, wrong, right)) as terminal:
        before = settings.read_bytes()
        terminal.say("/settings edit")
        terminal.await_text("system.jsonc:1: context_hours is 500; it must be a whole number from 1 to 168.")
        terminal.await_text("Edit again? (y/n, or d to discard it)")
        assert settings.read_bytes() == before
        terminal.ask("y", "Context window set to 50h")
        terminal.ask("/settings context_hours", "Value: 50")
        terminal.ask("/context undo", "Undone: window default → 50h")
        terminal.ask("/context", "Context window: 8h (default: 8h)")
    assert settings.read_text() == '// mended\n{"name": "Chorus"}\n'
    assert list((home.path / "state" / "drafts").iterdir()) == []


def test_keys_and_values_are_completed(tmp_path: Path) -> None:
    with Home(tmp_path).chat() as terminal:
        terminal.type("/settings set on_i")
        terminal.await_text("What happens when nothing was said")
        terminal.press("tab")
        terminal.await_line(f"{PROMPT} /settings set on_idle")
        terminal.type(" of")
        terminal.await_text(" off")
        terminal.press("tab")
        terminal.await_line(f"{PROMPT} /settings set on_idle off")
        terminal.press("enter")
        terminal.await_text("on_idle is now off")
        terminal.await_line(PROMPT)
        terminal.type("/p frod")
        terminal.await_text("A companion for a role-play")
