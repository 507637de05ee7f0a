"""``/memory``: the items of a persona's memory, listed, added, corrected, pinned and forgotten."""

from __future__ import annotations

import asyncio
from typing import Annotated

from chorus_cli.attachments.files import document_files
from chorus_cli.core.errors import CommandError, JournalError
from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.framework.arguments import Candidate, Parameter
from chorus_cli.framework.editing import Refused, answered
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Question, Reply, Report, Text
from chorus_cli.memory.commands.arguments import CONTENT, ITEM, TIER_OR_TYPE, TYPE, AskedItems, cleaned
from chorus_cli.memory.commands.pictures import capitalized, described, drawn_memory, listed
from chorus_cli.memory.rules.items import Item, ItemType
from chorus_cli.memory.service.memory import Remembered
from chorus_cli.services import Services
from chorus_cli.storage import export_files

GROUP: CommandGroup[Services] = CommandGroup(
    "memory", "Facts that a persona remembers besides the conversation.", aliases=("mem",)
)

PAGE_ITEMS = 50
_NOTHING = "Nothing is remembered yet. /remember TEXT adds something."
_REVERTS = "/undo reverts this."

DOCUMENT = Parameter(
    "file",
    lambda text, _now: text,
    "a Markdown or text file",
    lambda _services, text: [Candidate(path) for path in export_files.offered(text, document_files.ENDINGS)],
)


@GROUP.command("", "stats")
async def overview(services: Services) -> Text | Report:
    """Show how much is remembered: items and tokens by tier.

    HOT items are in every request, WARM ones in requests that refer to them, COLD and ARCHIVED ones in none.

    Examples:
        /memory
    """
    memory = await services.memory.statistics(services.focus.slug)
    if not memory.total_items and not memory.archived_count:
        return Text(_NOTHING)
    drawn = drawn_memory(memory, services.focus.target().persona.name)
    return Report((*drawn.parts, Text("/memory list shows the items, each with the number by which it is corrected.")))


@GROUP.command("list")
async def listing(services: Services, which: Annotated[AskedItems | None, TIER_OR_TYPE] = None) -> Text | Report:
    """List the items with their scores, best first; of one tier or type if that is given.

    A score is the sum of three parts: for the type, for the age, and for the use. Each item names the message that it
    comes from, which /search finds, or you, the output of a command, or a document.

    Examples:
        /memory list
        /memory list warm
        /memory list task 2
    """
    asked = which or AskedItems()
    items = await services.memory.listing(services.focus.slug, asked.tier, asked.item_type)
    if not items:
        kind = asked.tier or asked.item_type
        return Text(f"There are no {kind} items." if kind else _NOTHING)
    pages = -(-len(items) // PAGE_ITEMS)
    if asked.page > pages:
        raise CommandError(f"There is no page {asked.page}; the last is {pages}.")
    shown = items[(asked.page - 1) * PAGE_ITEMS : asked.page * PAGE_ITEMS]
    origins = await services.memory.origins(services.focus.slug, shown)
    table = listed(shown, services.machine.clock.now(), origins)
    more = [Text(f"Page {asked.page} of {pages}; a number at the end shows another.")] if pages > 1 else []
    return Report((table, *more))


@GROUP.command("show")
async def show(services: Services, item: Annotated[int, ITEM]) -> Report:
    """Show an item in full; this counts as a use.

    Examples:
        /memory show 3
        /memory show #3
    """
    found = await services.memory.show(services.focus.slug, item)
    origins = await services.memory.origins(found.persona, (found,))
    return described(found, services.machine.clock.now(), origins.get(found.id, ""))


@GROUP.command("add")
async def add(services: Services, item_type: Annotated[ItemType, TYPE], text: Annotated[str, CONTENT]) -> Text:
    """Remember a text of a given type.

    Examples:
        /memory add task call the plumber
        /memory add error TypeError: unhashable type: 'list'
    """
    return remembered(await services.memory.remember(services.focus.slug, item_type, cleaned(text)))


def remembered(result: Remembered) -> Text:
    """Say what was remembered, or that it was already."""
    item = result.item
    if result.operation is None:
        return Text(f"Already remembered as #{item.id}; its age starts again.")
    known = " It was known under this number." if result.was_known else ""
    return Text(f"Remembered {_named(item)} as {item.item_type}, {item.tier}.{known} {_REVERTS}")


@GROUP.command("edit")
async def edit(services: Services, item: Annotated[int, ITEM]) -> Reply:
    """Correct an item in your editor; it keeps its number.

    Examples:
        /memory edit 3
    """
    opened = await services.memory.item(services.focus.slug, item)

    async def store(text: str) -> Reply | Refused:
        try:
            operation = await services.memory.edit(opened, cleaned(text))
        except JournalError as error:
            return Refused(str(error))
        if operation is None:
            return Text("Nothing was changed.")
        return Text(f"Corrected {_named(await services.memory.item(services.focus.slug, item))}. {_REVERTS}")

    edited = await services.editing.drafts.edit("memory.md", f"{opened.content}\n")
    return await answered(services.editing.drafts, edited, store, f"Memory item #{item}")


@GROUP.command("pin")
async def pin(services: Services, item: Annotated[int, ITEM]) -> Text:
    """Keep an item HOT whatever its score, so that it is in every request.

    Examples:
        /memory pin 3
    """
    operation = await services.memory.pin(services.focus.slug, item)
    return Text(f"{capitalized(operation.describe())}. It is HOT until /memory unpin {item}.")


@GROUP.command("unpin")
async def unpin(services: Services, item: Annotated[int, ITEM]) -> Text:
    """Let an item have the tier of its score again.

    Examples:
        /memory unpin 3
    """
    operation = await services.memory.unpin(services.focus.slug, item)
    found = await services.memory.item(services.focus.slug, item)
    return Text(f"{capitalized(operation.describe())}. By its score it is {found.tier}.")


@GROUP.command("forget")
async def forget(services: Services, item: Annotated[int, ITEM]) -> Question:
    """Forget an item: it leaves every request, list and search.

    The message that it comes from stays where it is. /undo brings the item back.

    Examples:
        /memory forget 3
    """
    found = await services.memory.item(services.focus.slug, item)
    origin = f" Message #{found.source_message_id}, which it comes from, stays." if found.source_message_id else ""

    async def confirmed() -> Text:
        operation = await services.memory.forget(found.persona, item)
        return Text(f"{capitalized(operation.describe())}.{origin} /undo brings it back.")

    question = f"Forget {_named(found)}?{origin}"
    return Question(question, confirmed, Text(f"Memory item #{item} stays."))


@GROUP.command("import")
async def import_document(services: Services, file: Annotated[str, DOCUMENT]) -> Text:
    """Remember a Markdown document, split at its headings.

    Examples:
        /memory import requirements.md
    """
    name, text = await asyncio.to_thread(document_files.read, file)
    added = await services.memory.import_sections(services.focus.slug, text, name)
    new = len(added.items) - len(added.known_ids)
    known = f" {counted(len(added.known_ids), 'section')} known already." if added.known_ids else ""
    if not new:
        return Text(f"Nothing new in {name}:{known.lower()}")
    return Text(f"Imported {counted(new, 'section')} of {name}.{known} {_REVERTS}")


def _named(item: Item) -> str:
    return f'#{item.id} "{shortened(item.content)}"'
