from __future__ import annotations

from pathlib import Path

import pytest

from release.checkout import Checkout
from release.running import ReleaseError, run


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Return a repository with one commit."""
    made = Checkout(tmp_path / "my checkout")
    run("git init", ["git", "init", "--quiet", made.path])
    for name, value in (("user.name", "Mira"), ("user.email", "mira@example.org"), ("commit.gpgsign", "false")):
        made.git("config", name, value)
    (made.path / "version").write_text("0.1.0", encoding="utf-8")
    made.commit("The first")
    return made


def state(checkout: Checkout) -> tuple[str, str, str]:
    return checkout.git("rev-parse", "HEAD"), checkout.git("status", "--porcelain"), checkout.git("tag", "--list")


@pytest.mark.parametrize("name", ["version", "new", "a new file \N{EN DASH} two"])
def test_a_checkout_with_a_change_is_refused(checkout: Checkout, name: str) -> None:
    checkout.check_clean("v0.2.0")
    (checkout.path / name).write_text("0.1.1", encoding="utf-8")
    with pytest.raises(ReleaseError, match=rf"/my checkout has uncommitted changes, such as {name}; commit or remove"):
        checkout.check_clean("v0.2.0")


def test_a_version_with_a_tag_is_refused(checkout: Checkout) -> None:
    checkout.git("tag", "v0.2.0")
    with pytest.raises(ReleaseError, match=r"^The tag v0\.2\.0 is there already; choose a higher version\.$"):
        checkout.check_clean("v0.2.0")


@pytest.fixture
def clone(checkout: Checkout, tmp_path: Path) -> Checkout:
    """Return a clone with the two commits of a release."""
    made = checkout.cloned(tmp_path / "clone")
    (made.path / "version").write_text("0.2.0", encoding="utf-8")
    made.commit("Chorus 0.2.0", "v0.2.0")
    (made.path / "home").write_text("kept", encoding="utf-8")
    made.commit("A home")
    return made


def test_a_clone_leaves_the_checkout_as_it_is_until_it_is_taken_over(checkout: Checkout, clone: Checkout) -> None:
    assert state(checkout)[1:] == ("", "")
    assert (checkout.path / "version").read_text(encoding="utf-8") == "0.1.0"
    checkout.take_over(clone, "v0.2.0")
    assert state(checkout) == state(clone) == (clone.git("rev-parse", "HEAD"), "", "v0.2.0")
    assert checkout.git("log", "-1", "--format=%s", "v0.2.0^{commit}") == "Chorus 0.2.0"
    assert checkout.git("for-each-ref", "--format=%(objecttype) %(contents:subject)", "refs/tags") == "tag Chorus 0.2.0"
    assert checkout.git("log", "-1", "--format=%an %ae") == "Mira mira@example.org"
    assert (checkout.path / "version").read_text(encoding="utf-8") == "0.2.0"


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_checkout_that_has_changed_meanwhile_is_left_as_it_is(
    checkout: Checkout, clone: Checkout, *, is_committed: bool
) -> None:
    (checkout.path / "version").write_text("0.1.1", encoding="utf-8")
    if is_committed:
        checkout.commit("Another")
    before = state(checkout)
    with pytest.raises(ReleaseError, match=r"^git merge failed with exit code \d+: "):
        checkout.take_over(clone, "v0.2.0")
    assert state(checkout) == before
    assert (checkout.path / "version").read_text(encoding="utf-8") == "0.1.1"


def test_a_failed_command_is_a_sentence_with_its_last_line(checkout: Checkout) -> None:
    with pytest.raises(ReleaseError, match=r"^git tag failed with exit code \d+: .*v9") as error:
        checkout.git("tag", "--delete", "v9")
    assert error.value.output
    with pytest.raises(ReleaseError, match=r"^twine check failed: .*no-such-program"):
        run("twine check", ["no-such-program"])
