"""``/attach`` and ``/paste`` attach files to the next message."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated

from chorus_cli.attachments.rules.mentions import is_address
from chorus_cli.attachments.rules.tokens import attachment_tokens
from chorus_cli.core.text.phrases import enumerated, size_in_words
from chorus_cli.framework.arguments import TEXT, Candidate
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Table, Text
from chorus_cli.log.rules.attachments import Attachment
from chorus_cli.services import Services
from chorus_cli.storage import typed_paths
from chorus_cli.storage.typed_paths import bare

GROUP: CommandGroup[Services] = CommandGroup("attach", "Files for your next message.", topic="files", only_in_chat=True)

_PASTED_NAME = "clipboard.png"


FILE = replace(
    TEXT,
    name="file",
    help="the path or the web address of a picture, a PDF or a text",
    complete=lambda _services, text: [Candidate(path) for path in typed_paths.offered(text, None)],
)


@GROUP.command("", "list")
async def listing(services: Services) -> Table | Text:
    """List the files that wait for your next message.

    Examples:
        /attach
    """
    waiting, model = services.attachments.waiting, services.current.target().choice.model
    if not waiting:
        return Text("Nothing is attached. /attach FILE, or @FILE in your next message, attaches a file.")
    rows = tuple(
        (each.name, size_in_words(each.size_bytes), f"~{attachment_tokens([each], model):,}") for each in waiting
    )
    return Table("Attached to your next message:", ("File", "Size", "Tokens"), rows)


@GROUP.command("add", default=True)
async def attach(services: Services, file: Annotated[str, FILE]) -> Text:
    """Attach a file to your next message: a picture, a PDF or a text.

    A picture is PNG, JPEG, GIF or WebP; a file can be up to 20 MB. A file on the web is fetched at once. @FILE in a
    message attaches a file too; write @"my file.png" if its name has spaces.

    Examples:
        /attach photo.png
        /attach https://example.com/paper.pdf
    """
    model = services.current.target().choice.model
    if is_address(file):
        attached = await services.attachments.of_bytes(*await services.download(file), model)
    else:
        attached = await services.attachments.of_file(bare(file), model)
    return _waiting(services, attached, model)


@GROUP.command("clear")
async def clear(services: Services) -> Text:
    """Remove all files from your next message.

    Examples:
        /attach clear
    """
    cleared = services.attachments.clear()
    if not cleared:
        return Text("There was no file to remove.")
    return Text(f"Removed {enumerated([each.name for each in cleared])} from your next message.")


@GROUP.command("paste", aliases=("paste",))
async def paste(services: Services) -> Text:
    """Attach the picture in the clipboard to your next message.

    wl-paste, xclip or pngpaste reads the clipboard of the machine on which Chorus runs.

    Examples:
        /paste
    """
    data = await asyncio.to_thread(services.picture)
    model = services.current.target().choice.model
    return _waiting(services, await services.attachments.of_bytes(_PASTED_NAME, data, model), model)


def _waiting(services: Services, attached: Attachment, model: str) -> Text:
    known = next((each for each in services.attachments.waiting if each.sha256 == attached.sha256), attached)
    if known.name != attached.name:
        return Text(f"{attached.name} is attached already, as {known.name}.")
    services.attachments.wait([attached])
    size = f"{size_in_words(attached.size_bytes)}, ~{attachment_tokens([attached], model):,} tokens"
    return Text(f"Attached {attached.name} ({size}) to your next message. /attach clear removes it.")
