"""Which log a run uses: the option, else the variable, else the file of the installation, else this machine's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from chorus_cli.core.errors import HomeError, SettingsError
from chorus_cli.machine.paths import Paths
from chorus_cli.run_storage import chosen_log, kept, on_disk

OPTION, VARIABLE, FILE = (f"postgresql://{name}/chorus" for name in ("option", "variable", "file"))


@pytest.fixture
def places(tmp_path: Path) -> Paths:
    return Paths(tmp_path, tmp_path, tmp_path / "state")


@pytest.mark.parametrize(
    ("option", "variable", "text", "chosen"),
    [
        (None, None, None, ""),
        (None, None, "{", ""),
        (None, None, f'{{"log": "{FILE}"}}', FILE),
        (None, None, f'{{"defaults": {{"log": "{FILE}"}}}}', FILE),
        (None, None, '{"log": "local"}', ""),
        (None, None, '{"log": null}', ""),
        (None, VARIABLE, f'{{"log": "{FILE}"}}', VARIABLE),
        (None, "local", f'{{"log": "{FILE}"}}', ""),
        (OPTION, VARIABLE, f'{{"log": "{FILE}"}}', OPTION),
        ("local", VARIABLE, '{"log": 7', ""),
        (None, "postgresql://sam:s3cret@host/chorus", None, "postgresql://sam:s3cret@host/chorus"),
    ],
)
def test_the_option_comes_before_the_variable_and_the_variable_before_the_file(
    places: Paths, option: str | None, variable: str | None, text: str | None, chosen: str
) -> None:
    if text is not None:
        places.config_file.write_text(text)
    environment = {} if variable is None else {"CHORUS_LOG": variable}
    assert chosen_log(places, environment, option) == chosen


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{\n"log": 7}', ':2: "log" must be "local" or the address of a PostgreSQL server, such as postgresql://host/'),
        ('{"log": "postgresql://sam:s3cret@host/c"}', ':1: "log" has a password, but Chorus reads no'),
        ('{"log": "local"', "The file may name a log: correct the file, or name the log with --log."),
    ],
)
def test_a_file_that_may_name_another_log_is_refused(places: Paths, text: str, sentence: str) -> None:
    places.config_file.write_text(text)
    with pytest.raises(SettingsError) as refusal:
        chosen_log(places, {}, None)
    assert str(places.config_file) in str(refusal.value)
    assert sentence in str(refusal.value)
    assert "s3cret" not in str(refusal.value)


def test_a_run_names_the_server_without_the_password(places: Paths) -> None:
    assert on_disk(places, "this-run", "postgresql://sam:s3cret@host/chorus").store.server == "host/chorus"
    assert not on_disk(places, "this-run").store.server


class Closed(Paths):
    obstacle = "It cannot be written"


def test_a_log_on_a_server_needs_a_folder_that_can_be_written(tmp_path: Path) -> None:
    needed = pytest.raises(HomeError, match=r"^It cannot be written, and a log on a server needs a file there")
    with needed, kept(Closed(tmp_path, tmp_path, tmp_path), FILE):
        pass
