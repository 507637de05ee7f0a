"""The errors that the user sees: their texts say what happened, where, and what to do.

Each class exists because code catches it by its type, or because it names the subject that failed.
"""

from __future__ import annotations

from collections.abc import Sequence


class ChorusError(Exception):
    """The base of all errors here; their texts are for the user."""


class CommandError(ChorusError):
    """A command line that cannot be carried out."""


class UsageError(CommandError):
    """An option of the outer command line needs a message, but a command was given."""


class TimeSpanError(ChorusError):
    """A time that cannot be read, or that is in the future."""


class JsoncError(ChorusError):
    """A document that is not valid JSONC; ``expected`` says what was expected at the position and what was found."""

    def __init__(self, line: int, column: int, expected: str, *, name: str = "") -> None:
        """Keep the position, which is 1-based; ``name`` is the file, or empty for a text without a file."""
        self.line = line
        self.column = column
        self.expected = expected
        self.name = name
        super().__init__(f"{name + ':' if name else ''}{line}:{column}: {expected}")

    def named(self, name: str) -> JsoncError:
        """Return the same error for the file ``name``."""
        return JsoncError(self.line, self.column, self.expected, name=name)


class SettingsError(ChorusError):
    """A setting that does not exist, does not take this value, or cannot be written."""


class ModelNameError(ChorusError):
    """A model name that is malformed, or that has no provider and is unknown to litellm."""


class HomeError(ChorusError):
    """A folder for the user's data cannot be found, made or written to."""


class PersonaError(ChorusError):
    """A persona that cannot be found, made, changed, archived or deleted."""


class UnknownPersonaError(PersonaError):
    """There is no persona called ``name``; the sentence lists the ``known`` personas."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        listing = ", ".join(known) or "none"
        super().__init__(f"There is no persona called {name!r}. Known personas: {listing}.")


class ThreadError(ChorusError):
    """A thread that does not exist, is closed, or is not named clearly."""


class UnknownThreadError(ThreadError):
    """There is no thread ``wanted`` (``#7``, ``called 'rome'``); ``meant`` asks if another is meant, or is empty."""

    def __init__(self, wanted: str, meant: str = "") -> None:
        self.wanted = wanted
        sentences = (f"There is no thread {wanted} here.", meant, "/thread lists them, /thread new opens one.")
        super().__init__(" ".join(filter(None, sentences)))


class ThreadBusyError(ThreadError):
    """A thread in which a reply is being written; the sentence says that the turn waits for that reply."""


class MessageRefusedError(ChorusError):
    """A message was refused before it was stored; the sentence says why."""


class AttachmentError(ChorusError):
    """A file that cannot be attached to a message, kept, or read again."""


class OutputError(ChorusError):
    """The screen, a file or the clipboard cannot be written to, or a file cannot be deleted."""


class EditorError(ChorusError):
    """No editor can be started, or the draft cannot be written or read; the sentence names the draft if it is kept."""


class EditFormatError(ChorusError):
    """A context that the user edited as text cannot be read back; ``line`` is the 1-based line with the problem."""

    def __init__(self, line: int, problem: str) -> None:
        self.line = line
        super().__init__(f"Line {line}: {problem}")


class SessionError(ChorusError):
    """A session that cannot be saved, found or read; nothing was changed."""


class ImportFormatError(ChorusError):
    """A file is in an unknown format, is broken, or exceeds a limit; nothing of the file was imported."""


class MemoryItemError(ChorusError):
    """A value that a memory item cannot have, or a checkpoint that cannot be read; nothing was changed."""


class JobError(ChorusError):
    """A job that cannot be started, or that does not exist."""


class ToolError(ChorusError):
    """A tool cannot do what the model asks; the model gets the sentence as the tool's result."""


class SignInError(ChorusError):
    """The user cannot be signed in to a server; the text is a clause that says why."""


class JournalError(ChorusError):
    """An operation that cannot be made, undone or redone."""


class StorageError(ChorusError):
    """The database failed; each change was made as a whole or not at all."""


class DatabaseBusyError(StorageError):
    """Another process uses the database and did not finish in time."""


class DatabaseFullError(StorageError):
    """There is no room left for the database."""


class DatabaseReadOnlyError(StorageError):
    """The database can be read but not written."""


class DatabaseUnconfirmedError(StorageError):
    """The disk or the server does not confirm a change, so the change may be lost."""


class DatabaseDamagedError(StorageError):
    """The database is damaged, missing, or not made by Chorus."""


class MessageDamagedError(DatabaseDamagedError):
    """A message in the log cannot be read."""


class DatabaseTooNewError(StorageError):
    """The database was made by a newer Chorus."""


class LogUnreachableError(StorageError):
    """The server of the log does not answer, or refuses this user."""


class MessageNotStoredError(StorageError):
    """A message could not be stored; the caller keeps the text, unless the sentence quotes it or names its file."""


class BackupError(ChorusError):
    """A backup that cannot be made, read or restored, or a restore that cannot be finished."""


class PurgeError(ChorusError):
    """A purge that cannot begin, or that is not complete yet; the text says which."""


class MeaningError(ChorusError):
    """The model for the search by meaning is missing, or fails."""


class ModelError(ChorusError):
    """A model cannot be asked or failed to answer; ``retryable`` if a retry may succeed. ``advice`` ends the text."""

    def __init__(
        self,
        problem: str,
        *,
        advice: str = "",
        retryable: bool = False,
        retry_after_seconds: float | None = None,
    ) -> None:
        self.problem = problem
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"{problem} {advice}".rstrip())


class RequestRejectedError(ModelError):
    """The provider rejected a request, and Chorus does not know why."""


class ToolsRefusedError(ModelError):
    """The provider refused a request because it offers tools."""
