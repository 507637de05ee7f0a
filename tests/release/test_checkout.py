from __future__ import annotations

from pathlib import Path

import pytest

from release.checkout import Checkout
from release.running import ReleaseError, run


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Return a repository with one commit."""
    made = Checkout(tmp_path / "checkout")
    run("git init", ["git", "init", "--quiet", made.path])
    for name, value in (("user.name", "Mira"), ("user.email", "mira@example.org"), ("commit.gpgsign", "false")):
        made.git("config", name, value)
    (made.path / "version").write_text("0.1.0", encoding="utf-8")
    made.commit("The first")
    return made


def state(checkout: Checkout) -> tuple[str, str, str]:
    return checkout.git("rev-parse", "HEAD"), checkout.git("status", "--porcelain"), checkout.git("tag", "--list")


@pytest.mark.parametrize("name", ["version", "new"])
def test_a_checkout_with_a_change_is_refused(checkout: Checkout, name: str) -> None:
    checkout.check_clean("v0.2.0")
    (checkout.path / name).write_text("0.1.1", encoding="utf-8")
    with pytest.raises(
        ReleaseError, match=rf"/checkout has uncommitted changes, such as {name}; commit or remove them"
    ):
        checkout.check_clean("v0.2.0")


def test_a_version_with_a_tag_is_refused(checkout: Checkout) -> None:
    checkout.git("tag", "v0.2.0")
    with pytest.raises(ReleaseError, match=r"^The tag v0\.2\.0 is there already; choose a higher version\.$"):
        checkout.check_clean("v0.2.0")


def test_a_clone_leaves_the_checkout_as_it_is_until_it_is_taken_over(checkout: Checkout, tmp_path: Path) -> None:
    before = state(checkout)
    clone = checkout.cloned(tmp_path / "clone")
    (clone.path / "version").write_text("0.2.0", encoding="utf-8")
    release = clone.commit("Chorus 0.2.0")
    (clone.path / "home").write_text("kept", encoding="utf-8")
    home = clone.commit("A home")
    assert state(checkout) == before
    checkout.take_over(clone, release, "v0.2.0")
    assert state(checkout) == (home, "", "v0.2.0")
    assert checkout.git("rev-parse", "v0.2.0^{commit}") == release
    assert checkout.git("log", "-1", "--format=%an %ae") == "Mira mira@example.org"
    assert (checkout.path / "version").read_text(encoding="utf-8") == "0.2.0"


def test_a_failed_command_is_a_sentence_with_its_last_line(checkout: Checkout) -> None:
    with pytest.raises(ReleaseError, match=r"^git tag failed with exit code \d+: .*v9") as error:
        checkout.git("tag", "--delete", "v9")
    assert error.value.output
    with pytest.raises(ReleaseError, match=r"^twine check failed: .*no-such-program"):
        run("twine check", ["no-such-program"])
