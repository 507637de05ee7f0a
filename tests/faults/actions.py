"""What the program is struck at: the commands, the home each begins in, and the sign in the home that it was done."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from chorus_cli.storage.migrations import STEPS
from tests.faults.verdict import UNCONFIRMED
from tests.imports.service.foreign_talk import TAVERN
from tests.loopback_providers import call_chunk, piece
from tests.models.providers.fault_server import DONE, chunk
from tests.terminal.driver import Home
from tests.terminal.editors import editor, replacing
from tests.test_kept_home import ARCHIVE

if TYPE_CHECKING:
    from tests.faults.faulty_program import Ending

Sign = Callable[["Place", "Ending"], bool]
_REPLIES = "SELECT content, status FROM messages WHERE role = 'assistant' ORDER BY id"
_SONG = b"Far over the misty mountains cold."


class Place(NamedTuple):
    """A home and, beside it, the files that commands name. ``HOME`` and ``ASIDE`` stand for both in arguments."""

    folder: Path

    @property
    def home(self) -> Home:
        return Home(self.folder / "home")

    @property
    def aside(self) -> Path:
        return self.folder / "aside"

    def sql(self, statement: str) -> list[Any]:
        """Read the database, which is not made by that."""
        return self.home.sql(statement) if (self.home.path / "chorus.db").exists() else []

    def path(self, text: str) -> str:
        """Return an argument with the two folders put in."""
        return text.replace("HOME", str(self.home.path)).replace("ASIDE", str(self.aside))

    def copied(self, folder: Path) -> Place:
        """Return a copy in a folder that is made anew."""
        shutil.rmtree(folder, ignore_errors=True)
        return Place(Path(shutil.copytree(self.folder, folder)))


class Action(NamedTuple):
    """A command, those that prepare its home, and whether it was done; ``is_begun`` is what may remain of a part.

    ``variables`` are of its environment. ``replaces`` says that the messages before it may be gone once it is done.
    Each ``step``-th call is struck.
    """

    name: str
    arguments: tuple[str, ...]
    is_done: Sign
    prepared_by: tuple[tuple[str, ...], ...] = (("ask", "-c", "I am unhappy"),)
    is_begun: Sign = lambda _place, _ending: False
    variables: tuple[tuple[str, str], ...] = ()
    replaces: bool = False
    step: int = 1

    def prepare(self, place: Place, address: str) -> dict[str, str]:
        """Write the files that the command names, and return its environment, whose provider has this address."""
        place.aside.mkdir(parents=True)
        (place.aside / "chat.jsonl").write_text("\n".join(map(json.dumps, TAVERN)))
        (place.aside / "song.txt").write_bytes(_SONG)
        editor(place.aside, replacing("I am unhappy", "I am sad"), name="editor")
        if self.name == "a migration":
            with zipfile.ZipFile(ARCHIVE) as archive:
                archive.extractall(place.folder)
        return {name: value.replace("ADDRESS", address) for name, value in self.variables}


def answer(body: dict[str, Any]) -> tuple[int, list[bytes]]:
    """Answer as a model that remembers something by a tool and then has nothing more to say."""
    if body["messages"][-1]["role"] == "tool" or "milk" not in str(body["messages"][-1]["content"]):
        return 200, [chunk("Done.") + chunk(finish_reason="stop") + DONE]
    call = piece(json.dumps({"type": "TASK", "content": "buy milk"}), id_="c1", name="remember")
    return 200, [call_chunk(call) + chunk(finish_reason="tool_calls") + DONE]


def _replied(*statuses: str) -> Sign:
    """The reply that was shown is stored, and the questions are."""
    return lambda place, ending: place.sql(_REPLIES)[-1] == (ending.output.removesuffix("\n"), *statuses)


def _counts(statement: str, count: int = 1) -> Sign:
    return lambda place, _: place.sql(statement) == [count]


def _operation(kind: str) -> Sign:
    return _counts(f"SELECT count(*) FROM operations WHERE kind = '{kind}'")  # noqa: S608 - names of this file


def _asked(text: str, count: int = 1) -> Sign:
    return _counts(f"SELECT count(*) FROM messages WHERE role = 'user' AND content = '{text}'", count)  # noqa: S608 - see above


def _all(*signs: Sign) -> Sign:
    return lambda place, ending: all(sign(place, ending) for sign in signs)


def _setting(key: str, value: object) -> Sign:
    def is_set(place: Place, _: Ending) -> bool:
        text = (place.home.path / "personas" / "chorus" / "system.jsonc").read_text()
        return f'"{key}": {json.dumps(value)}' in text

    return is_set


def _is_migrated(place: Place, _: Ending) -> bool:
    return {*place.sql("SELECT name FROM schema_migrations")} == {name for name, _ in STEPS}


def _session_is_stored(place: Place, ending: Ending) -> bool:
    files = [*(place.home.path / "personas" / "chorus" / "sessions").glob("*.json")]
    return len(files) == 1 and _counts("SELECT count(*) FROM sessions")(place, ending)


def _session_is_in_a_file(place: Place, _: Ending) -> bool:
    files = [*(place.home.path / "personas" / "chorus" / "sessions").glob("*.json")]
    return [json.loads(file.read_bytes())["message_count"] for file in files] == [2]


def _succeeded(_: Place, ending: Ending) -> bool:
    return ending.code == 0


def _tool_told(words: str) -> Sign:
    return lambda place, _: words in place.sql("SELECT content FROM messages WHERE role = 'tool_result'")[0]


def _is_purged(place: Place, _: Ending) -> bool:
    """Return whether nothing has the word, and the rest of a session is in its row and its file."""
    sessions = [*(place.home.path / "personas" / "chorus" / "sessions").glob("*.json")]
    rows = place.sql("SELECT session_id || '.json' FROM sessions")
    held = [*sessions, place.home.path / "chorus.db"]
    return len(rows) == 1 and [path.name for path in sessions] == rows and not any(map(_has_word, held))


def _has_word(path: Path) -> bool:
    return "unhappy" in path.name or b"unhappy" in path.read_bytes()


def _backup_is_whole(place: Place, _: Ending) -> bool:
    path = place.aside / "backup.zip"
    if not path.exists():
        return False
    with zipfile.ZipFile(path) as archive:
        return archive.testzip() is None and "chorus.db" in archive.namelist()


def _attachment_is_stored(place: Place, _: Ending) -> bool:
    digest = sha256(_SONG).hexdigest()
    path = place.home.path / "attachments" / digest[:2] / digest
    rows = place.sql("SELECT attachments FROM messages WHERE content = 'Sing it.'")
    return path.exists() and path.read_bytes() == _SONG and len(rows) == 1 and digest in rows[0]


_TOLD = ("ask", "-c", "I am unhappy")
_REMEMBERED = ("ask", "/remember buy milk")
_SAVED = ("ask", "/context save first")
_BACKED_UP = ("backup", "ASIDE/before.zip")
_CALLED = (("OPENAI_BASE_URL", "ADDRESS"), ("OPENAI_API_KEY", "sk-of-nobody"), ("CHORUS_MODEL", "openai/test"))

ACTIONS = (
    Action("a turn", ("ask", "-c", "I am sad"), _replied("complete"), is_begun=_asked("I am sad")),
    Action("a setting", ("ask", "/settings set user_name Sam"), _setting("user_name", "Sam")),
    Action(
        "a window", ("ask", "/settings set context_hours 24"), _all(_setting("context_hours", 24), _operation("window"))
    ),
    Action(
        "a save",
        ("ask", "/context save first"),
        _session_is_stored,
        # A file without a row is a session too, and on a disk that is read-only from then on no file can be deleted.
        is_begun=lambda place, ending: (
            (ending.is_killed or "not recorded in the log" in ending.errors) and _session_is_in_a_file(place, ending)
        ),
    ),
    Action("an edit", ("ask", "/context edit"), _operation("edit"), variables=(("EDITOR", "ASIDE/editor"),)),
    Action("a restored session", ("ask", "/context restore first"), _operation("restore"), (_TOLD, _SAVED)),
    Action("a flash save", ("ask", "/memory flash --force"), _operation("flash"), (_TOLD, _REMEMBERED)),
    Action("a memory item", _REMEMBERED, _operation("memory")),
    # What fails after the migration concerns the reading; the log stays migrated.
    Action("a migration", ("log",), _all(_is_migrated, _succeeded), (), is_begun=_is_migrated),
    Action("a backup", ("backup", "ASIDE/backup.zip"), _backup_is_whole),
    Action(
        "a restored backup",
        ("restore", "--yes", "ASIDE/before.zip"),
        _asked("I am glad", 0),
        (_TOLD, _BACKED_UP, ("ask", "-c", "I am glad")),
        replaces=True,
    ),
    Action(
        "a purge",
        ("purge", "--yes", "thread", "1"),
        _is_purged,
        # One session has only what goes, the other one something else too, and a name that goes.
        (
            _TOLD,
            _SAVED,
            ("ask", "/thread new other"),
            ("ask", "--thread", "2", "I am glad"),
            ("ask", "/context save I am unhappy"),
            ("backup",),
        ),
        replaces=True,
    ),
    Action("an import", ("import", "ASIDE/chat.jsonl"), _operation("import")),
    Action(
        "an attachment",
        ("ask", "-a", "ASIDE/song.txt", "Sing it."),
        _all(_replied("complete"), _attachment_is_stored),
        # Bytes that no message names do no harm; a message that names none is found by the doctor.
        is_begun=lambda *_: True,
        variables=_CALLED,
    ),
    Action(
        "a tool's row",
        ("ask", "-c", "Remember the milk"),
        _all(
            _replied("complete"),
            _counts("SELECT count(*) FROM messages WHERE role = 'tool_result'"),
            # The model is told if the memory item cannot be stored, or is not confirmed, and goes on.
            lambda place, ending: (
                _tool_told(UNCONFIRMED)(place, ending)
                or _operation("memory")(place, ending) != _tool_told("SQLite reported an error")(place, ending)
            ),
        ),
        is_begun=_asked("Remember the milk"),
        variables=_CALLED,
    ),
    # Before it there is nothing that could be spoilt.
    Action("a first turn", ("ask", "-c", "I am sad"), _replied("complete"), (), is_begun=lambda *_: True, step=10),
    Action(
        "a job's start",
        ("ask", "/run echo begun > ASIDE/begun; sleep 60"),
        lambda _place, ending: "Job #1 is running" in ending.output,
    ),
)
