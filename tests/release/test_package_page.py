from __future__ import annotations

import re
from pathlib import Path

from release.package_page import package_page, project_urls

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "package.md").read_text(encoding="utf-8")
REPOSITORY = "https://example.org/me/chorus"
TARGET = re.compile(r"\]\(([^)]+)\)")


def test_without_a_repository_the_page_has_neither_pictures_nor_links() -> None:
    page = package_page(PAGE, "", "0.2.0")
    assert TARGET.findall(page) == []
    assert "`/context` shows" in page
    assert "![" not in page
    assert "\n\n\n" not in page


def test_with_a_repository_all_of_them_lead_to_the_tag_of_the_version() -> None:
    page = package_page(PAGE, REPOSITORY, "0.2.0")
    found = TARGET.findall(page)
    assert f"{REPOSITORY}/raw/v0.2.0/docs/repl.svg" in found
    assert f"{REPOSITORY}/blob/v0.2.0/docs/context.md" in found
    assert all(target.startswith(f"{REPOSITORY}/") for target in found)
    assert TARGET.sub("", page).count("\n") == PAGE.count("\n")


def test_a_whole_address_in_the_page_stays() -> None:
    text = "See [there](https://example.org/a).\n"
    assert package_page(text, "", "0.2.0") == package_page(text, REPOSITORY, "0.2.0") == text


def test_the_links_beside_the_page_come_of_the_repository() -> None:
    assert project_urls("", "0.2.0") == {}
    assert project_urls(REPOSITORY, "0.2.0") == {
        "Source": REPOSITORY,
        "Changelog": f"{REPOSITORY}/blob/v0.2.0/CHANGELOG.md",
        "Issues": f"{REPOSITORY}/issues",
    }
