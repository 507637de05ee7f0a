"""The ``AGENTS.md`` of the folder that Chorus was started in: it is sent with each message once the user allows it."""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple, TypeAlias

from chorus_cli.core import limits
from chorus_cli.personas.rules.persona import Document
from chorus_cli.settings.rules.table import PROJECT_ASK, PROJECT_OFF, PROJECT_ON
from chorus_cli.storage.files import read_within, write_atomically
from chorus_cli.storage.permissions import is_there

NAMES = ("AGENTS.md", "CLAUDE.md")
"""The names of files for coding agents; ``CLAUDE.md`` is used only if no folder has an ``AGENTS.md``."""

_YES, _NO, _NOT_ASKED = "yes", "no", ""
_Signature: TypeAlias = tuple[int, int, int]
"""A file's time of change, inode and size; a file with another signature is read again."""


class _File(NamedTuple):
    """A file that was found, with its text, or with a clause ``fault`` that says why the file is not sent."""

    path: Path
    text: str = ""
    fault: str = ""

    @property
    def digest(self) -> str:
        return sha256(self.text.encode()).hexdigest()


class Project:
    """The ``AGENTS.md`` for ``folder``, and the user's answer for each such file; the file ``kept`` stores the answers.

    Only a chat has a folder; without a folder there is no ``AGENTS.md``. Without ``kept``, answers last until the run
    ends. For each method, ``setting`` is the value of the setting ``project``.
    """

    def __init__(self, folder: Path | None = None, kept: Path | None = None) -> None:
        self.folder = folder
        self._kept = kept
        self._answers: tuple[_Signature | None, dict[str, tuple[str, str]]] | None = None
        self._last_told = ""
        self._read: tuple[_Signature, _File] | None = None

    def document(self, setting: str) -> Document | None:
        """Return the file as a document to send; ``None`` if it is not sent."""
        file = self._found()
        return Document(str(file.path), file.text) if file and self._is_sent(file, setting) else None

    def question(self, setting: str) -> str:
        """Return the question to ask before a message is sent; empty if there is none."""
        file = self._found()
        if file is None or file.fault or setting != PROJECT_ASK or self._answer_for(file):
            return ""
        return f"This folder has a text for models: {file.path}. Send it with your messages?"

    def answer(self, *, is_sent: bool) -> None:
        """Store the answer to the question."""
        if file := self._found():
            self._keep(file, _YES if is_sent else _NO)

    def forget(self) -> None:
        """Forget the answer, so that the question is asked again."""
        if file := self._found():
            self._keep(file, _NOT_ASKED)

    def news(self, setting: str) -> str:
        """Return a sentence, once, if the file has changed since it was sent, or cannot be sent; else return ``""``."""
        file = self._found()
        if file is None or setting == PROJECT_OFF:
            return ""
        told = f"{file.path} is not sent: {file.fault}." if file.fault else ""
        if self._is_sent(file, setting):
            answer, digest = self._known().get(str(file.path), (_NOT_ASKED, file.digest))
            self._keep(file, answer)
            told = "" if digest == file.digest else f"{file.path} has changed; it is sent as it is now."
        before, self._last_told = self._last_told, told
        return told if told != before else ""

    def state(self, setting: str) -> str:
        """Say whether the file is sent, and how to change that; empty if there is no file or it cannot be sent."""
        file = self._found()
        if file is None or file.fault:
            return ""
        if self._is_sent(file, setting):
            return f"{file.path} is sent with your messages. /set project off ends that, /set project ask asks again."
        is_asked = setting == PROJECT_ASK and not self._answer_for(file)
        ways = "Your next message asks about it." if is_asked else "/set project ask asks again."
        return f"{file.path} is not sent. {ways}"

    def _is_sent(self, file: _File, setting: str) -> bool:
        is_allowed = setting == PROJECT_ON or (setting == PROJECT_ASK and self._answer_for(file) == _YES)
        return is_allowed and not file.fault

    def _answer_for(self, file: _File) -> str:
        return self._known().get(str(file.path), (_NOT_ASKED, ""))[0]

    def _known(self) -> dict[str, tuple[str, str]]:
        signature = None
        with suppress(OSError):
            signature = _signature(self._kept) if self._kept else None
        # Another Chorus may have stored an answer meanwhile.
        if self._answers is None or self._answers[0] != signature:
            self._answers = signature, {}
            with suppress(OSError, ValueError, TypeError, AttributeError):
                text = read_within(self._kept, limits.SETTINGS_FILE).decode() if self._kept else "{}"
                known = {path: (str(answer), str(digest)) for path, (answer, digest) in json.loads(text).items()}
                self._answers = signature, known
        return self._answers[1]

    def _keep(self, file: _File, answer: str) -> None:
        entry, known = (answer, file.digest), self._known()
        if known.get(str(file.path)) == entry:
            return
        known[str(file.path)] = entry
        # If the answer cannot be stored, the next run asks again.
        with suppress(OSError):
            if self._kept:
                write_atomically(self._kept, json.dumps(known, indent=2) + "\n")

    def _found(self) -> _File | None:
        """Return the file in the folder or in the nearest folder above it, up to the root of its git repository.

        As in git, the search ends at another device or at another owner's folder, whose text must not reach the model.
        """
        if self.folder is None:
            return None
        own = _place(self.folder)
        above = [self.folder, *takewhile(lambda each: _place(each) == own, self.folder.parents)]
        root = next((each for each in above if is_there(each / ".git")), self.folder)
        folders = above[: above.index(root) + 1]
        paths = (folder / name for name in NAMES for folder in folders)
        found = next((path for path in paths if is_there(path)), None)
        return self._file(found, root) if found else None

    def _file(self, path: Path, root: Path) -> _File:
        try:
            signature = _signature(path)
            if self._read is None or self._read[0] != signature or self._read[1].path != path:
                self._read = signature, _read(path, root)
            return self._read[1]
        except OSError as error:
            return _File(path, fault=f"it cannot be read ({error.strerror or error})")


def _signature(path: Path) -> _Signature:
    state = path.stat()
    return state.st_mtime_ns, state.st_ino, state.st_size


def _place(folder: Path) -> tuple[int, int] | None:
    """Return the owner and the device of a folder; ``None`` if it is gone."""
    with suppress(OSError):
        state = folder.stat()
        return state.st_uid, state.st_dev
    return None


def _read(path: Path, root: Path) -> _File:
    if not path.resolve().is_relative_to(root.resolve()):
        return _File(path, fault=f"it is a link that leads out of {root}")
    try:
        text = read_within(path, limits.PROJECT_FILE).decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return _File(path, fault="it is not UTF-8")
    return _File(path, text) if text else _File(path, fault="it is empty")
