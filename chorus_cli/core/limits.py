"""How large each thing may be, and the consequence of more; ``docs/limits.md`` is made from this module."""

from __future__ import annotations

from typing import Literal, NamedTuple

from chorus_cli.core.text.phrases import size_in_words

Unit = Literal["bytes", "characters", "pieces"]

_KB, _MB, _GB = 1_000, 1_000_000, 1_000_000_000


class Limit(NamedTuple):
    """How much of a thing is accepted, in which unit, and a sentence about the consequence of more."""

    thing: str
    most: int
    beyond: str
    unit: Unit = "bytes"

    @property
    def size(self) -> str:
        """The limit in words: ``8 MB``, ``100,000 characters``, ``16``."""
        if self.unit == "bytes":
            return size_in_words(self.most).replace(".0 ", " ")
        return f"{self.most:,}" if self.unit == "pieces" else f"{self.most:,} {self.unit}"


_CUT = "Its middle is cut out."
_NO_TOOL = "The tool is left out."

MESSAGE = Limit("a message", 8 * _MB, "Refused and not stored.")
PASTE = Limit("a paste at the prompt", _MB, "Left out; the text typed before it is kept.", "characters")
STANDARD_INPUT = Limit("standard input of `chorus ask`", 20 * _MB, "Nothing is sent.")
INPUT_LINE = Limit("a line of the input history", 100 * _KB, "Sent, but Up does not bring it back.", "characters")
INPUT_LINES = Limit("lines of a persona's input history", 2_000, "The oldest are deleted.", "pieces")

REPLY = Limit("a reply", 8 * _MB, "Stopped; the part received is kept, marked as cut.", "characters")
THOUGHTS = Limit("the thoughts before a reply", 8 * _MB, "The reply is stopped.", "characters")
EVENT = Limit("an event of a provider's stream", 64 * _MB, "The reply ends as invalid.")
ERROR_BODY = Limit("a provider's error", _MB, "The rest is not read.")
ERROR_WORDS = Limit("the words of a provider's error", 10 * _KB, "The middle is ignored.", "characters")
ARGUMENTS = Limit("the arguments of a tool call", 250 * _KB, "Not carried out; the model is told.", "characters")
ARRIVING_CALLS = Limit("the text of a reply's tool calls", 16 * _MB, "The reply is stopped.", "characters")
CALLS = Limit("tool calls of a reply", 16, "The others are not carried out; the model is told.", "pieces")
KEPT_CALLS = Limit("tool calls of a reply that are kept", 1_000, "The reply is stopped.", "pieces")
ROUNDS = Limit("rounds of tool calls for a message", 10, "The model must answer without tools.", "pieces")
TOOL_RESULT = Limit("a tool's result in a request", 20 * _KB, _CUT, "characters")
WHOLE_RESULT = Limit("a tool's result in the log", 8 * _MB, _CUT, "characters")
RESULT_FILES = Limit("pictures and PDF files of a tool's result", 16, "The others are only named.", "pieces")
SERVER_LINE = Limit("a message of a tool server", 16 * _MB, "The call fails; a local server is stopped.")
SIGN_IN = Limit("an answer at the sign-in to a tool server", _MB, "The sign-in is refused.")
TOKENS_FILE = Limit("the file of tokens", 4 * _MB, "Ignored; you sign in again.")
OFFERED_TOOLS = Limit("tools in a request", 128, "The last servers' tools are left out.", "pieces")
DESCRIPTION = Limit("the description of a server's tool", 8 * _KB, "Its end is cut off.", "characters")
SCHEMA = Limit("the schema of a server's tool", 64 * _KB, _NO_TOOL, "characters")
DECLARATIONS = Limit("a server's declarations of all its tools", _MB, "The last tools are left out.", "characters")
TOOL_NAME = Limit("the name of a server's tool", 200, _NO_TOOL, "characters")
SHOWN_PROMPT = Limit("a server's prompt, as shown to you", 10 * _KB, _CUT, "characters")
JOB_OUTPUT = Limit("the output of a job or a `!` command", _MB, _CUT)

SETTINGS_FILE = Limit("a settings file", _MB, "Ignored; Chorus writes none so large.")
PROJECT_FILE = Limit("`AGENTS.md` or `CLAUDE.md` of a folder", 64 * _KB, "Not sent.")
SERVERS_FILE = Limit("a file for `/mcp import`", 64 * _MB, "Refused.")
SETTING = Limit("a text or list in the settings", _KB, "Refused.", "characters")
SYSTEM_PROMPT = Limit("the setting `system_prompt`", 400 * _KB, "Refused.", "characters")
NOTE = Limit("the setting `note`", 100 * _KB, "Refused.", "characters")
PERSONA_NAME = Limit("a persona's name", 40, "Refused.", "characters")
PERSONA_DOCUMENT = Limit("a persona's document (`docs/*.md`)", 4 * _MB, "Left out.")
PERSONA_DOCUMENTS = Limit("all documents of a persona", 16 * _MB, "The last ones are left out.")
OWN_COMMAND = Limit("a command of your own (`commands/*.md`)", _MB, "Left out.")
CARD = Limit("a character card, with its picture", 100 * _MB, "Refused.")
CARD_JSON = Limit("the JSON of a character card", 20 * _MB, "Refused.")

MEMORY_ITEM = Limit("a memory item", 100 * _KB, "Refused; a document is split.", "characters")
CAPTURED_MESSAGE = Limit("a message or output to capture memory from", _MB, "Nothing is captured.", "characters")
MEMORY_DOCUMENT = Limit("a document for the memory", 10 * _MB, "Refused.")
ATTACHMENT = Limit("an attachment", 20 * _MB, "Refused; nothing is sent.")
STORED_ATTACHMENT = Limit("an attachment that an import stored", 256 * _MB, "Reported as damaged.")
SESSION = Limit("a saved session", 256 * _MB, "Neither written nor read.")
DRAFT = Limit("a text saved in the editor", 64 * _MB, "Not read back; the draft is kept.")
BACKUP = Limit(
    "an unpacked backup (or a hundred times the packed size, if that is more)", _GB, "Refused; nothing is changed."
)
LOG_FILE = Limit("the log of bugs and warnings", 5 * _MB, "It becomes `chorus.log.old`.")

IMPORTED_ARCHIVE = Limit("an archive to import, unpacked", 16 * _GB, "Refused.")
IMPORTED_ENTRIES = Limit("files in an archive to import", 200_000, "Refused.", "pieces")
IMPORTED_FILE = Limit("a file with one conversation to import", 256 * _MB, "Refused.")
IMPORTED_ENTRY = Limit("a file within an archive to import", 128 * _MB, "Left out.")
IMPORTED_CONVERSATION = Limit("a conversation in an export of JSON", 64 * _MB, "Left out, with the rest of its file.")
IMPORTED_LINE = Limit("a line of a file to import", 64 * _MB, "Left out.")
IMPORTED_MESSAGE = Limit("a message to import", 8 * _MB, "Its end is cut off; a line says how much.", "characters")

LIMITS: tuple[Limit, ...] = tuple(value for value in [*vars().values()] if isinstance(value, Limit))
"""All limits, in the order of the document."""
