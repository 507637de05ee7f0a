from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from chorus_cli import __version__
from release.running import ReleaseError
from release.versions import PLACES, bumped, check_changelog, check_next, current_version, dated

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_is_in_each_place_once_and_is_the_same() -> None:
    assert current_version((ROOT / "pyproject.toml").read_text(encoding="utf-8")) == __version__
    for name in PLACES:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert bumped(name, bumped(name, text, __version__, "99.0.0"), "99.0.0", __version__) == text


def test_a_place_without_the_version_is_named() -> None:
    with pytest.raises(ReleaseError, match=r"^docs/package\.md has 'Chorus 0\.1\.0\.' 0 times, and a release changes"):
        bumped("docs/package.md", "Chorus 0.1.1. No API key", "0.1.0", "0.2.0")


@pytest.mark.parametrize("wanted", ["0.1.1", "0.2.0rc1", "0.10.0", "1.0.0"])
def test_a_higher_version_is_taken(wanted: str) -> None:
    check_next("0.1.0", wanted)


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("0.1.0", "0.1.0 is not higher than 0.1.0"),
        ("0.0.9", "0.0.9 is not higher than 0.1.0"),
        ("0.1.0rc1", "is not higher than"),
        ("two", "'two' is no version; write one such as 0.2.0."),
        ("v0.2.0", "'v0.2.0' is not written as versions of Chorus are"),
        ("0.2", "'0.2' is not written as versions of Chorus are"),
    ],
)
def test_another_version_is_refused_in_a_sentence(wanted: str, sentence: str) -> None:
    with pytest.raises(ReleaseError) as error:
        check_next("0.1.0", wanted)
    assert sentence in str(error.value)


DAY = date(2026, 11, 27)
CHANGES = (
    "# Changelog\n\nNewest first.\n\n## Unreleased\n\n- A thing.\n\n## 0.1.0 \N{EN DASH} 2026-11-01\n\n- The first.\n"
)


def test_a_release_dates_what_was_unreleased_and_leaves_an_empty_place_above() -> None:
    head, heading, rest = dated(CHANGES, "0.2.0", DAY).partition("\n## 0.2.0 \N{EN DASH} 2026-11-27\n")
    assert (head, heading != "") == ("# Changelog\n\nNewest first.\n\n## Unreleased\n", True)
    assert rest == CHANGES.partition("## Unreleased\n")[2]


@pytest.mark.parametrize("changes", [CHANGES.replace("- A thing.\n\n", ""), "# Changelog\n", "## Unreleased\n"])
def test_without_anything_unreleased_there_is_no_release(changes: str) -> None:
    with pytest.raises(ReleaseError, match=r"^CHANGELOG\.md has nothing under Unreleased"):
        check_changelog(changes)


def test_a_second_release_of_the_changelog_has_nothing_to_tell() -> None:
    check_changelog(CHANGES)
    with pytest.raises(ReleaseError):
        check_changelog(dated(CHANGES, "0.2.0", DAY))
