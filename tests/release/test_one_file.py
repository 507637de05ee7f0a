"""The one file, of a Chorus with one module and a package that it needs: made, started, refused."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pexpect
import pytest

from release.one_file import MOST_BYTES, file_name, pack
from release.one_file_unpacking import unpack
from release.running import ReleaseError
from tests.terminal.command import Outcome, finished, signals_heard

EPOCH = 1_764_000_000
NEEDS = "Requires-Dist: little\nRequires-Dist: litellm\n"
MAIN = "import sys\nimport little\ndef run():\n    print('chorus', little.WORD, sys.argv[1:], sys.prefix)\n"


def put(site: Path, name: str, module: str, code: str, needs: str = "") -> None:
    """Put a package with one module among the others, as an installer does."""
    information = f"{name.replace('-', '_')}-1.0.dist-info"
    files = {
        module: code,
        f"{information}/METADATA": f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n{needs}",
        f"{information}/INSTALLER": "pip",
        f"{information}/direct_url.json": '{"url": "file:///somewhere"}',
    }
    files[f"{information}/RECORD"] = "".join(f"{file},,\n" for file in (*files, "../../../bin/tool"))
    for file, text in files.items():
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_text(text, encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    site = tmp_path / "site-packages"
    put(site, "chorus-cli", "chorus_cli/__main__.py", MAIN, NEEDS)
    put(site, "little", "little.py", "WORD = 'here'\n")
    put(site, "litellm", "litellm.py", "", "Requires-Dist: cloud\n")
    put(site, "cloud", "cloud.py", "")
    return site


@pytest.fixture
def file(site: Path, tmp_path: Path) -> Path:
    return pack(site, "1.0", tmp_path, EPOCH)


KILLED_AS_IT_DELETES = """import os, runpy, sys

is_deleting = False

def end(event, arguments):
    global is_deleting
    is_deleting |= event == "shutil.rmtree" and "0.9-" in str(arguments[0])
    if is_deleting and event == "os.remove":
        os._exit(9)

sys.addaudithook(end)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def started(file: Path, cache: Path, *arguments: str, by: tuple[str, ...] = ()) -> Outcome:
    return finished([sys.executable, *by, str(file), *arguments], {**os.environ, "XDG_CACHE_HOME": str(cache)})


def environment_in(cache: Path) -> Path:
    (made,) = (cache / "chorus").glob("1.0-*")
    return made


def test_it_has_what_chorus_needs_without_litellm_and_what_litellm_alone_needs(file: Path, tmp_path: Path) -> None:
    with ZipFile(file) as outer:
        outer.extract("packages.zip", tmp_path)
    with ZipFile(tmp_path / "packages.zip") as inner:
        assert inner.namelist() == [
            "chorus_cli-1.0.dist-info/METADATA",
            "chorus_cli/__main__.py",
            "little-1.0.dist-info/METADATA",
            "little.py",
        ]


def test_two_of_the_same_packages_are_equal(file: Path, site: Path, tmp_path: Path) -> None:
    first = file.read_bytes()
    assert pack(site, "1.0", tmp_path, EPOCH).read_bytes() == first


def test_it_is_named_after_version_python_and_platform(file: Path) -> None:
    assert file.name == file_name("1.0")
    assert file.name.startswith(f"chorus-1.0-cp{sys.version_info.major}{sys.version_info.minor}-{sys.platform}_")
    assert os.access(file, os.X_OK)


def test_the_first_start_unpacks_it_and_later_ones_run_the_same_environment(file: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = started(file, cache, "ask", "a  b")
    assert (first.code, first.errors) == (0, "")
    environment = environment_in(cache)
    assert first.output == f"chorus here ['ask', 'a  b'] {environment}\n"
    assert list(environment.rglob("little.*.pyc"))
    made = environment.stat()
    assert started(file, cache, "ask", "a  b").output == first.output
    assert environment.stat().st_ino == made.st_ino


def test_an_environment_whose_python_is_gone_is_made_anew(file: Path, tmp_path: Path) -> None:
    first = started(file, tmp_path / "cache")
    environment = environment_in(tmp_path / "cache")
    python = environment / "bin" / "python"
    python.unlink()
    python.symlink_to(tmp_path / "gone")
    again = started(file, tmp_path / "cache")
    assert (again.output, again.errors) == (first.output, "")


def test_first_starts_at_once_make_one_environment(file: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    both = [
        subprocess.Popen([sys.executable, str(file)], env=environment, stdout=subprocess.PIPE, text=True) for _ in "ab"
    ]
    outputs = {each.communicate()[0] for each in both}
    assert [each.returncode for each in both] == [0, 0]
    assert outputs == {f"chorus here [] {environment_in(tmp_path / 'cache')}\n"}


def test_a_first_start_deletes_what_a_killed_one_has_left(file: Path, tmp_path: Path) -> None:
    left = tmp_path / "cache" / "chorus" / ".unpacking-killed" / "made"
    left.mkdir(parents=True)
    assert started(file, tmp_path / "cache").code == 0
    assert sorted(each.name for each in (tmp_path / "cache" / "chorus").iterdir()) == [
        ".lock",
        environment_in(tmp_path / "cache").name,
    ]


def test_a_first_start_deletes_the_older_versions_that_are_not_in_use(site: Path, tmp_path: Path) -> None:
    put(site, "chorus-cli", "chorus_cli/__main__.py", f"{MAIN}    sys.stdout.flush()\n    input()\n", NEEDS)
    waiting = pack(site, "0.9", tmp_path, EPOCH)
    put(site, "chorus-cli", "chorus_cli/__main__.py", MAIN, NEEDS)
    first, old, new, newest = (pack(site, version, tmp_path, EPOCH) for version in ("0.8", "0.10", "0.11", "1.0"))
    cache, environment = tmp_path / "cache", {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def unpacked() -> list[str]:
        return sorted(each.name.partition("-")[0] for each in (cache / "chorus").glob("[0-9]*"))

    started(first, cache)
    (unlocked,) = (cache / "chorus").glob("0.8-*/bin/chorus")
    unlocked.write_text("from chorus_cli.__main__ import run\n\nrun()\n")
    piped = subprocess.PIPE
    with subprocess.Popen([sys.executable, waiting], env=environment, stdin=piped, stdout=piped, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("chorus here")
        for file, left in (
            (old, ["0.10", "0.8", "0.9"]),
            (newest, ["0.8", "0.9", "1.0"]),
            (new, ["0.11", "0.8", "0.9", "1.0"]),
        ):
            assert started(file, cache).code == 0
            assert unpacked() == left
        running.communicate("\n")
    started(pack(site, "1.1", tmp_path, EPOCH), cache)
    assert unpacked() == ["0.8", "1.1"]


def test_a_version_whose_deletion_is_killed_is_unpacked_anew(file: Path, site: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    older = pack(site, "0.9", tmp_path, EPOCH)
    assert started(older, cache).code == 0
    assert started(file, cache, by=("-c", KILLED_AS_IT_DELETES)).code == 9
    assert not list((cache / "chorus").glob("0.9-*"))
    assert started(older, cache).output.startswith("chorus here")
    assert not list((cache / "chorus").glob(".unpacking-*"))


def test_a_first_start_says_so_in_a_terminal_and_ctrl_c_ends_it(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "chorus"
    folder.mkdir(parents=True)
    with (folder / ".lock").open("w") as held, signals_heard():
        fcntl.flock(held, fcntl.LOCK_EX)
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        child = pexpect.spawn(sys.executable, [str(file)], env=environment, encoding="utf-8", dimensions=(24, 500))
        child.expect_exact(f"Chorus unpacks itself into {folder}/1.0-")
        child.sendintr()
        assert "Traceback" not in child.read()
        child.close()
    assert child.exitstatus == 130


def test_a_cache_that_cannot_be_written_is_named(file: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("", encoding="utf-8")
    refused = started(file, tmp_path / "cache")
    assert refused.code == 1
    assert f"Chorus cannot unpack itself into {tmp_path}/cache/chorus/1.0-" in refused.errors
    assert refused.errors.endswith("Set XDG_CACHE_HOME to a folder for it.\n")


def test_another_python_is_refused_in_a_sentence(tmp_path: Path) -> None:
    told = unpack("chorus.pyz", str(tmp_path / "made"), "CPython 3.99 on moon", ".cpython-399-moon.so")
    assert told is not None
    assert re.match(
        r"chorus\.pyz is for CPython 3\.99 on moon, and this is \w+ 3\.\d+\.\d+.* on \S+; use the file ", told
    )
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_too_large_is_refused_with_its_largest_package(site: Path, tmp_path: Path) -> None:
    (site / "little.py").write_bytes(os.urandom(MOST_BYTES))
    with pytest.raises(ReleaseError, match=r"\.pyz has more than 15,000,000 bytes; its largest package is little\.$"):
        pack(site, "1.0", tmp_path, EPOCH)
