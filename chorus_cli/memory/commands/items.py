"""``/memory`` and ``/remember``: the commands that list, add, correct, pin, forget, archive and bring back items."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Annotated, NamedTuple

from chorus_cli.attachments.files import document_files
from chorus_cli.core.errors import CommandError, JournalError, MemoryItemError
from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.core.text.phrases import counted, quoted, shortened
from chorus_cli.core.time.timeline import bar, gap
from chorus_cli.framework.arguments import NUMBER, TEXT, Candidate, Parameter, flag
from chorus_cli.framework.drafts import Refused, answered
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Question, Reply, Report, Table, Text, data_of, page_of
from chorus_cli.log.rules.wording import local
from chorus_cli.memory.rows.inbox import Version
from chorus_cli.memory.rows.item_changes import Added
from chorus_cli.memory.rules.items import ACTIVE, Item, ItemType, Source, Tier, checked_tier, checked_type, importance
from chorus_cli.memory.rules.recall import without_keys
from chorus_cli.services import Services
from chorus_cli.storage import typed_paths

_BAR_WIDTH = 20
_LONGEST_CONTENT = 200
_PREFIX = re.compile(r"\s*([A-Za-z_-]+(?: [A-Za-z]+)?)\s*:\s*(?P<text>.*)", re.DOTALL)
_MEANINGS = {
    "note": "a fact, or a part of a document or a lorebook",
    "code": "a piece of code, an error or a test result",
    "task": "something to be done",
    "hot": "in every request",
    "warm": "in a request that refers to it",
    "cold": "in no request",
    "archived": "archived by a flash save",
}
_TYPES, _TIERS = list(_MEANINGS)[:3], list(_MEANINGS)[3:]


class AskedItems(NamedTuple):
    """The page of items to list, counted from 1; without ``tier`` and ``types`` it is a page of all items."""

    name: str = ""
    tier: Tier | None = None
    types: tuple[ItemType, ...] = ()
    page: int = 1


def _asked_items(text: str, _now: datetime) -> AskedItems:
    *words, last = text.split()
    page = int(last) if re.fullmatch(r"[0-9]{1,6}", last) else None
    name = " ".join([*words, *([last] if page is None else [])])
    with suppress(MemoryItemError):
        return AskedItems(name, checked_tier(name) if name else None, page=1 if page is None else page)
    with suppress(MemoryItemError):
        types = [each for each in ItemType if each.shown == name.lower()] or [checked_type(name)]
        return AskedItems(name, types=tuple(types), page=1 if page is None else page)
    known = ", ".join([*_TIERS, *_TYPES])
    raise CommandError(f"{quoted(name)} is neither a tier nor a type. Choose one of: {known}.")


def _note(text: str, _now: datetime) -> tuple[ItemType, str]:
    """Return the type before a colon and the text after it; without such a type, return TASK and the whole text."""
    if match := _PREFIX.fullmatch(text):
        with suppress(MemoryItemError):
            return checked_type(match[1]), match["text"]
    return ItemType.TASK, text


def _candidates(names: Sequence[str], end: str = "") -> list[Candidate]:
    return [Candidate(name + end, _MEANINGS[name]) for name in names]


def _items(services: Services, text: str) -> Sequence[Candidate]:
    sign = text[: text.startswith("#")]
    offers = services.memory.offers(services.current.slug)
    return [Candidate(f"{sign}{id_}", shortened(without_keys(text))) for id_, text in offers]


ITEM = replace(NUMBER, name="item", help="the number of a memory item, such as 3 or #3", complete=_items)
TYPE = Parameter(
    "type",
    lambda text, _now: checked_type(text),
    "note, code or task",
    lambda _services, _text: _candidates(_TYPES),
)
TIER_OR_TYPE = Parameter(
    "tier or type",
    _asked_items,
    "a tier (hot, warm, cold, archived) or a type such as task; a number at the end is a page",
    lambda _services, _text: _candidates([*_TIERS, *_TYPES]),
)
CONTENT = replace(TEXT, help="the rest of the line, as typed")
NOTE = Parameter(
    "text",
    _note,
    "the text to remember as a task; to give it another type, write the type and a colon first",
    lambda _services, _text: _candidates(_TYPES, end=": "),
)
FORCE = flag("even if the next request has room")
CHECKPOINT = replace(NUMBER, name="checkpoint", help="the number of a checkpoint, such as 3")


GROUP: CommandGroup[Services] = CommandGroup(
    "memory", "Facts that a persona remembers beyond the conversation.", aliases=("mem",)
)

PAGE_ITEMS = 50
_NOTHING = "Nothing is remembered yet. /remember TEXT adds something."
REVERTS = "/undo reverts this."

DOCUMENT = Parameter(
    "file",
    lambda text, _now: text,
    "a Markdown or text file",
    lambda _services, text: [Candidate(path) for path in typed_paths.offered(text, document_files.ENDINGS)],
)


@GROUP.command("", "stats")
async def overview(services: Services) -> Text | Report:
    """Show the number of items and of tokens in each tier.

    Every request has the HOT items. A request has a WARM item if your message refers to it, and a COLD or ARCHIVED item
    only if your message or the reply before it has the item's keys.

    Examples:
        /memory
    """
    memory = await services.memory.statistics(services.current.slug)

    async def data() -> object:
        return memory.as_json() | {"items": await services.memory.listing(services.current.slug)}

    if not memory.of(*Tier).items:
        return Text(_NOTHING, data)
    active, archived = memory.of(*ACTIVE), memory.of(Tier.ARCHIVED)
    rows: list[tuple[str, ...]] = []
    for tier in ACTIVE:
        items, tokens = memory.of(tier)
        rows.append((tier, f"{items:,}", _share(items, active.items), f"{tokens:,}", _share(tokens, active.tokens)))
    rows.append(("total", f"{active.items:,}", "", f"{active.tokens:,}", ""))
    told = f"Last update: {local(memory.last_updated)}"
    if archived.items:
        put_away = f"{counted(archived.items, 'item')}, {counted(archived.tokens, 'token')}"
        told = f"ARCHIVED: {put_away}; /memory checkpoints lists the flash saves.\n{told}"
    name = services.current.target().persona.name
    table = Table(f"Memory of {name}", ("Tier", "Items", "", "Tokens", " "), tuple(rows))
    more = Text("/memory list shows the items; /memory edit N corrects one.")
    return Report((table, Text(told), more), data)


@GROUP.command("list", listed="everyday")
async def listing(services: Services, which: Annotated[AskedItems | None, TIER_OR_TYPE] = None) -> Text | Report:
    """List what is remembered, best first.

    Examples:
        /memory list
        /memory list warm
        /memory list task 2
    """
    asked = which or AskedItems()
    items = await services.memory.listing(services.current.slug, asked.tier, asked.types)
    if not items:
        return Text(f"There are no {asked.name} items." if asked.name else _NOTHING, data_of(items))
    shown, paging = page_of(items, asked.page, PAGE_ITEMS)
    table = Table("", ("Item", "Content", "From"), tuple(map(_row, shown)), cut=frozenset({"Content"}))
    return Report((table, *paging), data_of(items))


@GROUP.command("show")
async def show(services: Services, item: Annotated[int, ITEM]) -> Report:
    """Show an item in full, with its score and its earlier and later versions.

    The score decides the tier. It is the sum of three parts: one for the type, one for the age and one for the use.

    Examples:
        /memory show 3
        /memory show #3
    """
    versions = await services.memory.versions(services.current.slug, item)
    shown = next(each for each in versions if each.item.id == item)

    async def data() -> object:
        return shown.item._asdict() | {"versions": versions}

    parts = _described(shown, services.clock.now())
    if len(versions) > 1:
        rows = tuple(_version(each.item) for each in versions)
        parts = (*parts, Table("", ("Item", "Since", "From", "Content"), rows, cut=frozenset({"Content"})))
    return Report(parts, data)


@GROUP.command("add", listed="nowhere")
async def add(services: Services, item_type: Annotated[ItemType, TYPE], text: Annotated[str, CONTENT]) -> Text:
    """Remember a text of a given type.

    Examples:
        /memory add task call the plumber
        /memory add error TypeError: unhashable type: 'list'
    """
    return remembered(await services.memory.remember(services.current.slug, item_type, cleaned_input(text)[0]))


def remembered(result: Added) -> Text:
    """Say that an item was remembered, or that it was in the memory already."""
    (item,) = result.items
    if result.operation is None:
        return Text(f"Already remembered as #{item.id}; its age now counts from today.")
    known = "" if result.new else " The item was in the memory already."
    near = f" It nearly repeats #{item.may_replace}; see /memory inbox." if result.new and item.may_replace else ""
    return Text(f"Remembered {named(item)}.{known} {REVERTS}{near}")


@GROUP.command("edit")
async def edit(services: Services, item: Annotated[int, ITEM]) -> Reply:
    """Correct an item in your editor; it keeps its number.

    Examples:
        /memory edit 3
    """
    opened = await services.memory.item(services.current.slug, item)

    async def store(text: str) -> Reply | Refused:
        try:
            operation = await services.memory.edit(opened, cleaned_input(text)[0])
        except JournalError as error:
            return Refused(str(error))
        if operation is None:
            return Text("Nothing was changed.")
        return Text(f"Corrected {named(await services.memory.item(services.current.slug, item))}. {REVERTS}")

    edited = await services.drafts.edit("memory.md", f"{opened.content}\n")
    return await answered(services.drafts, edited, store, f"Memory item #{item}")


@GROUP.command("pin")
async def pin(services: Services, item: Annotated[int, ITEM]) -> Text:
    """Keep an item HOT, and so in every request.

    Examples:
        /memory pin 3
    """
    operation = await services.memory.pin(services.current.slug, item)
    return Text(f"{capitalized(operation.describe())}. It is sent with each message until /memory unpin {item}.")


@GROUP.command("unpin")
async def unpin(services: Services, item: Annotated[int, ITEM]) -> Text:
    """Let the score of an item decide its tier again.

    Examples:
        /memory unpin 3
    """
    operation = await services.memory.unpin(services.current.slug, item)
    found = await services.memory.item(services.current.slug, item)
    return Text(f"{capitalized(operation.describe())}. By its score it is {found.tier}.")


@GROUP.command("forget")
async def forget(services: Services, item: Annotated[int, ITEM]) -> Question:
    """Forget an item.

    Requests, lists and searches leave the item out. Its source message stays in the log. /undo brings the item back.

    Examples:
        /memory forget 3
    """
    found = await services.memory.item(services.current.slug, item)
    origin = f" The log keeps its source, message #{found.source_message_id}." if found.source_message_id else ""

    async def confirmed() -> Text:
        operation = await services.memory.forget(found.persona, item)
        return Text(f"{capitalized(operation.describe())}.{origin} /undo brings it back.")

    return Question(f"Forget {named(found)}?{origin}", confirmed, Text(f"Kept memory item #{item}."))


@GROUP.command("import")
async def import_document(services: Services, file: Annotated[str, DOCUMENT]) -> Text:
    """Remember a Markdown document, split at its headings.

    Examples:
        /memory import requirements.md
    """
    name, text = await asyncio.to_thread(document_files.read, file)
    added = await services.memory.import_sections(services.current.slug, text, name)
    known = f" Already known: {counted(len(added.known_ids), 'section')}." if added.known_ids else ""
    told = f"Imported {counted(len(added.new), 'section')} of {name}.{known}"
    return Text(f"{told} {REVERTS}" if added.new else told)


def named(item: Item) -> str:
    """Return the number and the first words of an item."""
    return f'#{item.id} "{shortened(without_keys(item.content))}"'


@GROUP.command("flash")
async def flash(services: Services, *, force: Annotated[bool, FORCE] = False) -> Text:
    """Archive the COLD items under a checkpoint.

    While the next request has room, nothing is archived unless you add --force. Nothing is deleted.

    Examples:
        /memory flash
        /memory flash --force
    """
    target = services.current.target()
    meter = (await services.context.planned(target, services.clock.now())).meter
    saved = await services.memory.flash(target.persona.slug, meter.tokens, meter.budget, force=force)
    before, after = f"{saved.token_count_before:,} before", f"{saved.token_count_after:,} after"
    told = (
        f"Checkpoint {saved.checkpoint_id}: {counted(saved.items_count, 'item')}, {saved.items_archived:,} archived, "
        f"{saved.hot_items_retained:,} HOT kept.\n"
        f"Tokens of active items: {before}, {after} ({saved.reduction_percentage:g}% less)."
    )
    if saved.items_archived:
        told += f"\n/memory restore {saved.checkpoint_id} brings the archived items back, and so does /undo."
    return Text(told)


@GROUP.command("checkpoints")
async def checkpoints(services: Services) -> Text | Table:
    """List the last ten checkpoints, newest first.

    Examples:
        /memory checkpoints
    """
    found = await services.memory.checkpoints(services.current.slug)
    if not found:
        return Text("There are no checkpoints. /memory flash archives COLD items under one.", data_of(found))
    rows = []
    for row in found:
        numbers = (row.items_count, row.items_archived, row.hot_items_retained, row.token_count_before)
        rows.append((str(row.checkpoint_id), local(row.created_at), *(f"{number:,}" for number in numbers)))
    return Table("", ("No.", "When", "Items", "Archived", "HOT", "Tokens"), tuple(rows), data=data_of(found))


@GROUP.command("restore")
async def restore(services: Services, checkpoint: Annotated[int, CHECKPOINT]) -> Text:
    """Bring back the archived items of a checkpoint; forgotten ones stay forgotten.

    Examples:
        /memory restore 3
    """
    operation = await services.memory.restore(services.current.slug, checkpoint)
    if operation is None:
        return Text(f"No item of checkpoint {checkpoint} is archived now, so nothing was changed.")
    return Text(f"{capitalized(operation.describe())}. /undo reverts this.")


TOP: CommandGroup[Services] = CommandGroup("", topic="memory")


@TOP.command("remember", listed="everyday")
async def remember(services: Services, note: Annotated[tuple[ItemType, str], NOTE]) -> Text:
    """Remember a fact beyond this conversation.

    The text is kept as a task, or as the type that you write before a colon.

    Examples:
        /remember call the plumber on Monday
        /remember code: make test runs the tests
    """
    item_type, text = note
    return remembered(await services.memory.remember(services.current.slug, item_type, cleaned_input(text)[0]))


def _described(shown: Version, now: datetime) -> tuple[Table | Text, ...]:
    item, closed_at = shown
    parts = importance(item.item_type, item.created_at, item.access_count, now)
    uses = "once" if item.access_count == 1 else f"{item.access_count:,} times"
    tier = f"{item.tier} (pinned)" if item.pinned and item.tier is Tier.HOT else str(item.tier)
    score = f"{parts.total:.2f} = {'+'.join(f'{part:.2f}' for part in parts)} (type + age + use)"
    standing = [("Tier", tier), ("Score", score)]
    if closed_at:
        standing = [("Closed", f"{local(closed_at)}, replaced by #{item.replaced_by}")]
    facts = (
        ("Item", f"#{item.id}"),
        ("Type", item.item_type.shown),
        *standing,
        ("Used", f"{uses}, last on {local(item.last_accessed)}"),
        ("Remembered", f"{local(item.created_at)}, {gap(now - item.created_at)} ago"),
        ("From", _from(item)),
        ("Tokens", f"{item.token_count or 0:,}"),
    )
    return Table("", ("", ""), facts), Text(item.content)


def _version(item: Item) -> tuple[str, ...]:
    content = shortened(without_keys(item.content), _LONGEST_CONTENT)
    return f"#{item.id}", local(item.created_at), _from(item), content


def capitalized(text: str) -> str:
    """Return a text with its first letter in upper case."""
    return f"{text[0].upper()}{text[1:]}"


def _row(item: Item) -> tuple[str, ...]:
    return f"#{item.id}", shortened(without_keys(item.content), _LONGEST_CONTENT), _from(item)


def _from(item: Item) -> str:
    source = {Source.YOU: "you", Source.MODEL: "the model"}.get(item.source, item.source.thing)
    return f"{source}{f', #{item.source_message_id}' if item.source_message_id else ''}"


def _share(part: int, whole: int) -> str:
    return bar(part / whole, _BAR_WIDTH) if whole else ""
