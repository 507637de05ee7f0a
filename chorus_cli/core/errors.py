"""All errors that are shown to the user: each is a sentence that says what happened, where, and what to do.

Each class is caught by its type somewhere, or names the subject that failed.
"""

from __future__ import annotations

from collections.abc import Sequence


class ChorusError(Exception):
    """The root of the tree: its text is a sentence for the user."""


class CommandError(ChorusError):
    """A command line that cannot be carried out."""


class UsageError(CommandError):
    """Options of the outer command line that do not go with the text."""


class TimeSpanError(ChorusError):
    """A time that cannot be read, or that lies in the future."""


class JsoncError(ChorusError):
    """A document that is not valid JSONC, with the place and the expected element."""

    def __init__(self, line: int, column: int, expected: str, *, name: str = "") -> None:
        """Keep the 1-based position; ``name`` is the file, if there is one."""
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
    """A malformed model name, or one without a provider that litellm does not know."""


class HomeError(ChorusError):
    """The folders that hold everything cannot be found, made or written."""


class PersonaError(ChorusError):
    """A persona that cannot be found, made, changed, archived or deleted."""


class UnknownPersonaError(PersonaError):
    """There is no persona of that name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        listing = ", ".join(known) or "none"
        super().__init__(f"There is no persona called {name!r}. Known personas: {listing}.")


class ThreadError(ChorusError):
    """A thread that cannot be used as asked."""


class UnknownThreadError(ThreadError):
    """A number or title that no thread has: ``#7``, ``called 'rome'``; ``meant`` may name another."""

    def __init__(self, wanted: str, meant: str = "") -> None:
        self.wanted = wanted
        sentences = (f"There is no thread {wanted} here.", meant, "/thread lists them, /thread new opens one.")
        super().__init__(" ".join(filter(None, sentences)))


class ThreadBusyError(ThreadError):
    """A thread in which a reply is being written; the sentence says that a message waits for it."""


class MessageRefusedError(ChorusError):
    """A message that was not stored, and why."""


class AttachmentError(ChorusError):
    """A file that cannot be attached to a message, kept, or read again."""


class OutputError(ChorusError):
    """The output cannot be written."""


class EditorError(ChorusError):
    """No editor can be started, or the draft cannot be written or read; the sentence names a kept draft."""


class EditFormatError(ChorusError):
    """A context that was edited as text and cannot be read back, with the 1-based line of the text and the problem."""

    def __init__(self, line: int, problem: str) -> None:
        self.line = line
        super().__init__(f"Line {line}: {problem}")


class SessionError(ChorusError):
    """A session that cannot be saved, found or read; nothing was changed."""


class ImportFormatError(ChorusError):
    """A file that is in no known format, broken, or beyond a limit; nothing of it was imported."""


class MemoryItemError(ChorusError):
    """A value that a memory item cannot have, or a checkpoint that cannot be read; nothing was changed."""


class JobError(ChorusError):
    """A job that cannot be started, or that there is none of."""


class ToolError(ChorusError):
    """A tool that cannot do what the model asks of it; the sentence is the result that the model is given."""


class JournalError(ChorusError):
    """An operation that cannot be made, undone or redone."""


class StorageError(ChorusError):
    """The database failed; nothing was half-written."""


class DatabaseBusyError(StorageError):
    """Another process uses the database and did not finish in time."""


class DatabaseFullError(StorageError):
    """There is no room on the disk."""


class DatabaseReadOnlyError(StorageError):
    """The database can be read and not written."""


class DatabaseUnconfirmedError(StorageError):
    """A change that the disk does not confirm: it may be stored, and may be lost again."""


class DatabaseDamagedError(StorageError):
    """The file is not a sound database."""


class DatabaseTooNewError(StorageError):
    """The database was made by a newer Chorus."""


class MessageNotStoredError(StorageError):
    """A message could not be stored; its text is the caller's to keep, unless the sentence names a file or has it."""


class BackupError(ChorusError):
    """A backup that cannot be made, read or restored; nothing was changed."""


class PurgeError(ChorusError):
    """A purge that cannot begin, or that is not complete yet; the text says which."""


class ModelError(ChorusError):
    """The provider refused, failed or fell silent; a retry may succeed if ``retryable``, and needs no ``advice``."""

    def __init__(
        self,
        problem: str,
        *,
        advice: str = "",
        status_code: int | None = None,
        retryable: bool = False,
        retry_after_seconds: float | None = None,
    ) -> None:
        self.problem = problem
        self.status_code = status_code
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"{problem} {advice}".rstrip())


class RequestRejectedError(ModelError):
    """The provider rejected a request for no reason that is known here."""


class ToolsRefusedError(ModelError):
    """The provider refused a request because it offers tools."""
