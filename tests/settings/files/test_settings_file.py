"""Settings files on disk: reading never fails, changing one value never loses another."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chorus_cli.core.errors import JsoncError, SettingsError
from chorus_cli.core.json.jsonc import JsonValue, parse_object, same
from chorus_cli.settings.files import change_key, read_defaults, read_layer, read_text
from chorus_cli.settings.rules.table import Layer, resolve
from chorus_cli.storage.file_lock import locked
from chorus_cli.storage.files import sweep_stale

DATA = '\ufeff// Frodo\r\n{\r\n  "context_hours": 24, // a day\r\n  "mine": [1,],\r\n}\r\n'.encode()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Settings as their user wrote them, with a byte order mark, comments and keys of his own."""
    path = tmp_path / "system.jsonc"
    path.write_bytes(DATA)
    return path


def test_a_file_is_read_with_the_lines_of_its_keys(file: Path) -> None:
    layer, warnings = read_layer(file)
    assert layer == Layer(str(file), {"context_hours": 24, "mine": [1]}, {"context_hours": 3, "mine": 4})
    assert warnings == ()
    assert resolve([layer]).warnings == (f'{file}:4: unknown setting "mine"',)


def test_a_missing_file_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "system.jsonc"
    assert read_layer(path) == (Layer(str(path)), ())
    assert read_defaults(path) == (Layer(str(path)), ())


@pytest.mark.parametrize(
    ("data", "place_and_reason"),
    [
        (b'{\n  "clock": true\n  "tools": true\n}', ":3:3: expected ',' or '}', found '\"'"),
        (b"[]", ":1:1: expected '{', found '['"),
        (b'{\n"name": "\xe9"}', ":2:10: expected text in UTF-8, found the byte 0xe9"),
        ("{}".encode("utf-16"), ":1:1: expected text in UTF-8, found the byte 0xff"),
        (b'{ "name": "half', ":1:16: expected '\"' at the end of the text, found the end of the file"),
    ],
)
def test_a_damaged_file_says_nothing_with_a_warning_and_is_never_overwritten(
    file: Path, data: bytes, place_and_reason: str
) -> None:
    file.write_bytes(data)
    warning = f"{file}{place_and_reason}; Chorus ignores this file until you correct it"
    assert read_layer(file) == (Layer(str(file), readable=False), (warning,))
    assert read_defaults(file) == (Layer(str(file), readable=False), (warning,))
    for value in (None, 1):
        with pytest.raises(JsoncError) as refusal:
            change_key(file, "clock", value)
        assert str(refusal.value) == f"{file}{place_and_reason}"
    assert file.read_bytes() == data


def test_an_unreadable_file_says_nothing_with_a_warning_and_is_refused_with_a_sentence(tmp_path: Path) -> None:
    warning = f"{tmp_path} cannot be read: Is a directory; Chorus ignores this file"
    assert read_layer(tmp_path) == (Layer(str(tmp_path), readable=False), (warning,))
    with pytest.raises(SettingsError, match=r"cannot be read: Is a directory\."):
        read_text(tmp_path)


@pytest.mark.parametrize(
    ("text", "values", "lines"),
    [
        ("", {}, {}),
        ('{"model": "a"}', {"model": "a"}, {"model": 1}),
        ('{"model": "a",\n"defaults": {"clock": false}}', {"clock": False, "model": "a"}, {"clock": 2, "model": 1}),
        ('{"model": "a",\n"defaults": {"model": null}}', {"model": "a"}, {"model": 1}),
        ('{"mcp_serve": {"personas": []}}', {"mcp_serve": {"personas": []}}, {"mcp_serve": 1}),
        (
            '{"mcpServers": {},\n"defaults": {"clock": false}}',
            {"clock": False, "mcpServers": {}},
            {"clock": 2, "mcpServers": 1},
        ),
        ('{"$schema": "x", "defaults": {}}', {}, {}),
        ('{"defaults": null}', {}, {}),
    ],
)
def test_the_defaults_of_all_personas_stand_in_an_object_of_their_own(
    file: Path, text: str, values: dict[str, object], lines: dict[str, int]
) -> None:
    file.write_text(text)
    layer, warnings = read_defaults(file)
    assert (layer.name, layer.values, layer.lines, warnings) == (str(file), values, lines, ())


def test_what_config_says_in_the_wrong_place_gives_a_warning(file: Path) -> None:
    file.write_text('{"model": "a",\n"defaults": {"model": "b"}}')
    layer, warnings = read_defaults(file)
    assert (layer.values, layer.lines) == ({"model": "b"}, {"model": 2})
    assert warnings == (f'{file}:1: "model" has no effect here, because "defaults" has it too',)
    file.write_text('{\n"defaults": 5,\n"context_hours": 3,\n"colour": 1\n}')
    layer, warnings = read_defaults(file)
    assert layer.values == {}
    assert warnings == (
        f'{file}:3: "context_hours" does not belong here; settings for all personas go inside "defaults"',
        f'{file}:4: unknown key "colour"',
        f'{file}:2: "defaults" must be an object of settings',
    )


def test_what_is_for_all_personas_has_no_effect_in_the_file_of_one(file: Path) -> None:
    file.write_text('{\n"name": "Sam",\n"mcp_serve": {},\n"log": "local"\n}')
    layer, warnings = read_layer(file)
    assert (layer.values, layer.readable) == ({"name": "Sam"}, True)
    assert warnings == tuple(
        f'{file}:{line}: "{key}" is for all personas together; it belongs in config.jsonc'
        for line, key in ((3, "mcp_serve"), (4, "log"))
    )


def test_a_change_touches_one_value_and_keeps_the_text_before_it(file: Path) -> None:
    assert change_key(file, "context_hours", 48) == 24
    assert file.read_bytes() == DATA.replace(b"24", b"48")
    assert file.with_name("system.jsonc.bak").read_bytes() == DATA
    assert change_key(file, "context_hours", None) == 48
    assert file.read_bytes() == DATA.replace(b'"context_hours": 24, ', b"")
    assert change_key(file, "name", "Frodo") is None
    assert parse_object(file.read_text()).values == {"mine": [1], "name": "Frodo"}


def test_a_change_that_changes_nothing_writes_nothing(file: Path) -> None:
    before = file.stat()
    assert change_key(file, "context_hours", 24) == 24
    assert change_key(file, "missing", None) is None
    assert change_key(file, "mine", [1]) == [1]
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert not file.with_name("system.jsonc.bak").exists()


def test_values_are_the_same_only_if_they_are_of_one_kind() -> None:
    alike: list[tuple[JsonValue, JsonValue]] = [(1, 1), ("a", "a"), (None, None), (["a"], ["a"])]
    unlike: list[tuple[JsonValue, JsonValue]] = [(1, True), (1, 1.0), (None, False), (["a"], [])]
    assert [same(*pair) for pair in (*alike, *unlike)] == [True] * 4 + [False] * 4


def test_a_missing_file_is_made(tmp_path: Path) -> None:
    file = tmp_path / "config.jsonc"
    assert change_key(file, "model", "m") is None
    assert file.read_text() == '{\n  "model": "m"\n}\n'
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.jsonc", "config.jsonc.lock"]


def test_a_linked_file_keeps_its_link_and_its_privacy(tmp_path: Path, file: Path) -> None:
    link = tmp_path / "link.jsonc"
    link.symlink_to(file.name)
    file.chmod(0o644)
    change_key(link, "context_hours", 48)
    assert link.is_symlink()
    assert file.read_bytes() == DATA.replace(b"24", b"48")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_takes_no_file_is_told_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "missing" / "system.jsonc"
    with pytest.raises(SettingsError) as refusal:
        change_key(file, "clock", value=True)
    assert str(refusal.value) == f"{file} cannot be changed: No such file or directory."


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_file_is_left_alone(file: Path) -> None:
    file.chmod(0o400)
    with pytest.raises(SettingsError, match="is read-only"):
        change_key(file, "clock", value=True)
    assert file.read_bytes() == DATA


def test_a_full_disk_is_told_in_a_sentence_and_costs_nothing(file: Path) -> None:
    script = (
        "import pathlib, resource, sys\n"
        "from chorus_cli.core.errors import SettingsError\n"
        "from chorus_cli.settings.files import change_key\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n"
        "    change_key(pathlib.Path(sys.argv[1]), 'name', 'x' * 10_000)\n"
        "except SettingsError as error:\n"
        "    print(error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, file], capture_output=True, text=True, check=True)
    assert ended.stdout == f"{file} cannot be changed: File too large.\n"
    assert file.read_bytes() == DATA
    assert not list(file.parent.glob(".chorus-*"))


CHANGES = """
import pathlib, sys
from chorus_cli.settings.files import change_key
for number in range(int(sys.argv[3])):
    change_key(pathlib.Path(sys.argv[1]), sys.argv[2], number)
"""


def test_processes_that_change_different_keys_lose_nothing(file: Path) -> None:
    commands = [[sys.executable, "-c", CHANGES, str(file), key, "40"] for key in ("left", "right")]
    processes = [subprocess.Popen(command) for command in commands]
    assert [process.wait() for process in processes] == [0, 0]
    assert parse_object(file.read_text()).values == {"context_hours": 24, "mine": [1], "left": 39, "right": 39}
    assert file.read_bytes().startswith(DATA[: DATA.index(b"\r\n}")])


def test_a_change_that_has_waited_begins_with_the_text_of_the_one_before(file: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        with locked(file):
            waiting = pool.submit(change_key, file, "mine", 2)
            time.sleep(0.2)
            file.write_bytes(DATA.replace(b"24", b"12"))
        assert waiting.result(10) == [1]
    assert parse_object(file.read_text()).values == {"context_hours": 12, "mine": 2}


def kill_while_writing(file: Path, pause_seconds: float) -> None:
    script = CHANGES.replace("number)", "'x' * 200_000 + str(number))\n    print(flush=True)")
    command = [sys.executable, "-c", script, str(file), "name", "100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(pause_seconds)
        process.kill()


def check_killed_writes(file: Path, rounds: int) -> None:
    chance = random.Random(7)  # noqa: S311 - moments to kill at, no secret
    for _ in range(rounds):
        kill_while_writing(file, chance.uniform(0, 0.03))
        values = parse_object(file.read_text()).values
        assert str(values["name"]).startswith("x" * 200_000)
        assert (values["context_hours"], values["mine"]) == (24, [1])
        parse_object(file.with_name("system.jsonc.bak").read_text())
    with locked(file, patience_seconds=1):
        for leftover in file.parent.glob(".chorus-*"):
            os.utime(leftover, (0, 0))
    sweep_stale(file.parent)
    names = ["system.jsonc", "system.jsonc.bak", "system.jsonc.lock"]
    assert sorted(path.name for path in file.parent.iterdir()) == names


def test_a_writer_killed_at_any_moment_leaves_a_whole_file(file: Path) -> None:
    check_killed_writes(file, rounds=3)


@pytest.mark.slow
def test_writers_killed_at_very_many_moments_leave_a_whole_file(file: Path) -> None:
    check_killed_writes(file, rounds=100)
