"""Facts about models come from Chorus's own files, made from litellm's, unless a newer litellm is installed."""

from __future__ import annotations

import json
import sys
from datetime import UTC, date, datetime
from importlib import metadata
from pathlib import Path

import pytest

from chorus_cli.models.providers.model_files import MODELS, SHIPPED, SOURCE, newest_folder, package_folder
from chorus_cli.models.providers.model_map import ModelMap
from release.model_map import made
from tests.models.providers.test_model_map import facts

NOTED = json.loads((SHIPPED / SOURCE).read_bytes())
LITELLM, INSTALLED = package_folder("litellm") or Path("nowhere"), metadata.version("litellm")
only_of_the_noted_version = pytest.mark.skipif(
    NOTED["version"] != INSTALLED, reason="another version of litellm is installed"
)


@only_of_the_noted_version
def test_the_files_can_be_made_again_and_a_new_date_alone_is_no_change() -> None:
    assert made(LITELLM, date(2099, 1, 1)) == {path.name: path.read_bytes() for path in SHIPPED.iterdir()}


@only_of_the_noted_version
def test_the_models_have_the_names_and_facts_that_litellm_gives_them() -> None:
    own, whole = ModelMap(SHIPPED), ModelMap(LITELLM)
    assert (own.names(), own.conversation_names()) == (whole.names(), whole.conversation_names())
    assert own.providers() == whole.providers()
    for name in sorted(own.names())[::5]:
        assert facts(own, name) == facts(whole, name), name


def test_the_files_say_what_they_are_from_and_are_small() -> None:
    assert date.fromisoformat(NOTED["date"]) <= datetime.now(UTC).date()
    for library in ("litellm", "tiktoken"):
        assert "MIT" in (SHIPPED / f"LICENSE-{library}").read_text(encoding="utf-8")
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 3_000_000


@pytest.mark.parametrize(("noted", "is_litellms"), [("1.9.9", True), (INSTALLED, False), ("99.0", False)])
def test_an_installed_litellm_counts_if_it_is_newer(tmp_path: Path, noted: str, *, is_litellms: bool) -> None:
    (tmp_path / SOURCE).write_text(json.dumps({**NOTED, "version": noted}))
    (tmp_path / MODELS).write_text("{\n}")
    found = newest_folder(tmp_path)
    assert found == (LITELLM if is_litellms else tmp_path)
    assert bool(ModelMap(found).names()) is is_litellms


@pytest.mark.parametrize("has_map", [True, False])
def test_a_newer_litellm_without_its_map_of_models_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_map: bool
) -> None:
    (tmp_path / "litellm").mkdir()
    (tmp_path / "litellm-99.0.dist-info").mkdir()
    for name in ("__init__.py", *(["model_prices_and_context_window_backup.json"] if has_map else [])):
        (tmp_path / "litellm" / name).touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "litellm", raising=False)
    assert newest_folder() == (tmp_path / "litellm" if has_map else SHIPPED)
