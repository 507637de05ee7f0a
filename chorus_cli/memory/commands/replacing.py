"""``/memory replace`` and ``/memory inbox``: the commands that close an item with a newer one."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated

from chorus_cli.core.errors import CommandError
from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.core.text.phrases import quoted
from chorus_cli.framework.arguments import Candidate, Parameter
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Report, Table, Text, data_of
from chorus_cli.memory.commands.items import CONTENT, ITEM, REVERTS, capitalized, named
from chorus_cli.memory.rules.recall import without_keys
from chorus_cli.services import Services

GROUP: CommandGroup[Services] = CommandGroup("memory")

_ANSWER = re.compile(r"(accept|drop)\s+(?:all|#?([1-9][0-9]{0,17}))", re.IGNORECASE)


def _answer(text: str, _now: datetime) -> tuple[bool, int | None]:
    """Return whether to accept or drop the proposal of an item, and the item's id, ``None`` for all proposals."""
    match = _ANSWER.fullmatch(text)
    if match is None:
        raise CommandError(f"{quoted(text)} is not an answer. Type accept or drop, and the number of an item or all.")
    return match[1].lower() == "accept", int(match[2]) if match[2] else None


ANSWER = Parameter(
    "answer",
    _answer,
    "accept or drop, and the number of a proposal or all",
    lambda _services, _text: [
        Candidate("accept all", "replace the older items"),
        Candidate("drop all", "keep the older items too"),
    ],
)


@GROUP.command("replace", guesses=("correct", "update"))
async def replace(services: Services, item: Annotated[int, ITEM], text: Annotated[str, CONTENT]) -> Text:
    """Replace an item that is no longer true.

    Requests have the new text with its date. The old item is closed and stays: /memory show prints both.

    Examples:
        /memory replace 12 The office is in Leeds
    """
    new = await services.memory.replace(services.current.slug, item, cleaned_input(text)[0])
    return Text(f"Replaced #{item} by {named(new)}. {REVERTS}")


@GROUP.command("inbox")
async def inbox(services: Services, answer: Annotated[tuple[bool, int | None] | None, ANSWER] = None) -> Text | Report:
    """List new items that nearly repeat an older one, to accept or to drop.

    An accepted proposal closes the older item; a dropped one keeps both. /undo reverts either.

    Examples:
        /memory inbox
        /memory inbox accept 13
        /memory inbox drop all
    """
    slug = services.current.slug
    if answer is not None:
        accepts, item_id = answer
        operation = await services.memory.settle(slug, item_id, accepts=accepts)
        return Text(f"{capitalized(operation.describe())}. {REVERTS}")
    found = await services.memory.proposals(slug)
    if not found:
        return Text("The inbox is empty: no item nearly repeats an older one.", data_of(found))
    rows = []
    for item, old in found:
        rows.append((f"#{item.id}", without_keys(item.content), f"#{old.id}", without_keys(old.content)))
    table = Table(
        "", ("Item", "Content", "Replaces", "Older content"), tuple(rows), cut=frozenset({"Content", "Older content"})
    )
    newest = found[-1].item.id
    return Report(
        (table, Text(f"/memory inbox accept {newest}, drop {newest}, accept all or drop all.")), data_of(found)
    )
