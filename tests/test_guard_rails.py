"""The guard around the tests holds, and the checks of the house leave out no test that needs a server."""

from __future__ import annotations

import os
import re
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests import guard


@pytest.fixture(scope="module")
def guarded_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second home to guard: the first belongs to whoever runs the tests."""
    home = tmp_path_factory.mktemp("home")
    guard.install(home)
    return home


def test_touching_the_real_home_raises(guarded_home: Path) -> None:
    place = Path(guard.places_of(guarded_home)[0])
    with pytest.raises(guard.RealHomeTouchedError):
        place.mkdir(parents=True)
    with pytest.raises(guard.RealHomeTouchedError):
        (place / "chorus.db").open("w")
    with pytest.raises(guard.RealHomeTouchedError):
        sqlite3.connect(place / "chorus.db")


def test_reaching_for_a_provider_raises() -> None:
    with socket.socket() as connection, pytest.raises(guard.RealProviderReachedError):
        connection.connect(("192.0.2.1", 443))


def test_loopback_is_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getpeername() == server.getsockname()


def test_programs_that_tests_start_find_no_home_and_no_key() -> None:
    assert not [name for name in os.environ if name.endswith("_API_KEY")]
    result = subprocess.run(
        [sys.executable, "-m", "chorus_cli", "ask", "-c", "hello"],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert result.returncode == 1
    assert "Chorus cannot keep anything in" in result.stderr


def test_every_test_that_needs_a_server_is_run_by_the_checks_with_one() -> None:
    root = Path(__file__).parents[1]
    _, _, with_server = (root / ".ci" / "run").read_text(encoding="utf-8").partition("pytest --postgres")
    run = [root / named for named in re.findall(r"\btests/\S+", with_server)]
    needing = [
        path
        for path in sorted((root / "tests").rglob("test_*.py"))
        if re.search(r"\bneeds_(?:a_)?server\b", path.read_text(encoding="utf-8"))
    ]
    assert len(needing) > 5
    assert [path for path in needing if not any(path.is_relative_to(each) for each in run)] == []
