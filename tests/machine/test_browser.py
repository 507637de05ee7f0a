"""The user's browser, where the system cannot start it."""

from __future__ import annotations

import threading

import pytest

from chorus_cli.machine.browser import open_page


@pytest.mark.filterwarnings("error")
def test_a_browser_that_cannot_be_started_writes_nothing_to_the_screen(capfd: pytest.CaptureFixture[str]) -> None:
    # No system starts a program with an argument of that length.
    open_page({}, f"https://login.example/{'a' * 4_000_000}")
    for each in threading.enumerate():
        if each.name == "browser":
            each.join(20)
    assert "".join(capfd.readouterr()) == ""
