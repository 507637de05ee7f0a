from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from release.building import sums, unequal_files
from release.papers import check_bill, hashed_requirements, missing_repository
from release.running import ReleaseError, run

BILL = json.dumps(
    {
        "bomFormat": "CycloneDX",
        "components": [{"name": "Rich", "version": "15.0.0"}, {"name": "json_repair", "version": "0.64.6"}],
        "metadata": {"component": {"name": "chorus-cli", "type": "application", "version": "0.2.0"}},
    }
)


def test_a_bill_of_chorus_with_all_that_it_needs_is_taken() -> None:
    check_bill(BILL, "0.2.0", ["chorus-cli", "rich", "json-repair"])


@pytest.mark.parametrize(
    ("bill", "version", "sentence"),
    [
        (BILL, "0.3.0", "The bill of materials does not name chorus-cli 0.3.0; see what cyclonedx-py writes."),
        ('{"metadata": {}}', "0.2.0", "The bill of materials does not name chorus-cli 0.2.0; see what "),
        (BILL.replace("Rich", "poor"), "0.2.0", "The bill of materials lacks rich; see what cyclonedx-py writes."),
    ],
)
def test_another_bill_is_refused(bill: str, version: str, sentence: str) -> None:
    with pytest.raises(ReleaseError) as error:
        check_bill(bill, version, ["chorus-cli", "rich", "json-repair"])
    assert str(error.value).startswith(sentence)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "made"
    made.mkdir()
    (made / "b.whl").write_bytes(b"wheel")
    (made / "a.tar.gz").write_bytes(b"sources")
    return made


def test_the_sums_are_those_that_sha256sum_checks(folder: Path) -> None:
    (folder / "SHA256SUMS").write_text(sums(folder), encoding="utf-8")
    assert (folder / "SHA256SUMS").read_text(encoding="utf-8") == sums(folder)
    assert run("sha256sum", ["sha256sum", "--check", "SHA256SUMS"], folder) == "a.tar.gz: OK\nb.whl: OK\n"


def test_requirements_have_the_hashes_of_the_release_above_those_of_its_needs(folder: Path) -> None:
    text = hashed_requirements("0.2.0", [folder / "b.whl", folder / "a.tar.gz"], "rich==15.0.0 --hash=sha256:00\n")
    wheel, sources = (hashlib.sha256(content).hexdigest() for content in (b"wheel", b"sources"))
    assert text == (f"chorus-cli==0.2.0 --hash=sha256:{wheel} --hash=sha256:{sources}\nrich==15.0.0 --hash=sha256:00\n")


def test_files_that_differ_or_lack_a_pair_are_named(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.tar.gz").write_bytes(b"sources")
    assert unequal_files(folder, other) == ["b.whl"]
    (other / "b.whl").write_bytes(b"Wheel")
    assert unequal_files(folder, other) == ["b.whl"]
    (other / "b.whl").write_bytes(b"wheel")
    assert unequal_files(folder, other) == []


def test_a_release_says_that_no_repository_is_named() -> None:
    told = missing_repository('[tool.chorus]\nrepository = ""\n')
    assert told == "[tool.chorus] in pyproject.toml names no repository: the package page has no links and no pictures."
    assert missing_repository('[tool.chorus]\nrepository = "https://example.org/chorus"\n') is None
