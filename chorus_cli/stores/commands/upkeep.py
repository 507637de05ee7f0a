"""``/backup`` and ``/rescue``: a copy of everything, and texts that could not be stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.framework.arguments import TEXT, Candidate
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Question, Report, Table, Text
from chorus_cli.log.rules.wording import local
from chorus_cli.services import Services
from chorus_cli.storage import typed_paths

GROUP: CommandGroup[Services] = CommandGroup("rescue", "Texts that could not be stored, and backups.")

_ENDINGS = frozenset({".zip"})
_NONE = Text("There is no text that could not be stored.")


def _offered(_services: Services, text: str) -> Sequence[Candidate]:
    return [Candidate(path) for path in typed_paths.offered(text, _ENDINGS)]


FILE = replace(TEXT, name="file", help="a new file, or a folder", complete=_offered)


@GROUP.command("backup", aliases=("backup",), stoppable=True)
async def backup(services: Services, file: Annotated[str, FILE] = "") -> Text:
    """Copy everything to one file.

    It holds the log, personas, sessions, settings and attachments. Without a file, a new one is made beside the daily
    backups. chorus restore FILE brings it back.

    Examples:
        /backup
        /backup /media/stick/chorus.zip
    """
    return Text((await services.backups.make(file)).sentence())


@GROUP.command("", "list")
async def rescued(services: Services) -> Text | Report:
    """List texts that were not stored, and messages not sent.

    Examples:
        /rescue
    """
    found = await services.rescued.find()
    unreadable = [Text(f"{path} cannot be read; look at it in an editor.") for path in found.unreadable]
    if not found.texts:
        return Report((_NONE, *unreadable))
    rows = tuple((local(at), text.persona, text.role, shortened(text.content)) for text, at, *_ in found.texts)
    table = Table("", ("When", "Persona", "Role", "Text"), rows, cut=frozenset({"Text"}))
    advice = Text("/rescue keep brings them into the log, /rescue discard deletes them.")
    return Report((table, advice, *unreadable))


@GROUP.command("keep")
async def keep(services: Services) -> Text:
    """Bring the texts into the log, in a closed thread of each persona.

    Examples:
        /rescue keep
    """
    found = await services.rescued.find(must_be_rows=True)
    if not found.texts:
        return _NONE
    brought = await services.rescued.bring_in(found.texts)
    lines = [
        f"{counted(each.texts, 'text')} of {each.persona} in thread #{each.thread_number}, which is closed; "
        f"/thread {each.thread_number} opens it."
        for each in brought
    ]
    return Text("\n".join(["In the log now:", *lines]))


@GROUP.command("discard")
async def discard(services: Services) -> Text | Question:
    """Delete the texts.

    Examples:
        /rescue discard
    """
    found = await services.rescued.find(must_be_rows=True)
    if not found.texts:
        return _NONE

    async def confirmed() -> Text:
        await services.rescued.discard(found.texts)
        return Text(f"Deleted {counted(len(found.texts), 'text')}.")

    question = f"Delete {counted(len(found.texts), 'text')} for good? They are not in the log."
    return Question(question, confirmed, Text("Nothing was deleted; /rescue shows them."))
