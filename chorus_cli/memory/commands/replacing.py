"""``/memory replace`` and ``/memory inbox``: the commands that replace items, and that accept or drop proposals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from chorus_cli.core.errors import CommandError
from chorus_cli.core.text.code_points import cleaned_input
from chorus_cli.core.text.phrases import enumerated, quoted
from chorus_cli.framework.arguments import Candidate, Parameter
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Report, Table, Text, data_of
from chorus_cli.log.rules.log_acts import MemoryChange
from chorus_cli.log.rules.operations import Operation
from chorus_cli.log.rules.wording import local
from chorus_cli.memory.commands.items import CONTENT, ITEM, REVERTS, capitalized, named
from chorus_cli.memory.rows.inbox import Proposal
from chorus_cli.memory.rules.recall import without_keys
from chorus_cli.services import Services

GROUP: CommandGroup[Services] = CommandGroup("memory")

ANSWERS = "/memory inbox accept N, drop N, accept all or drop all."
_ANSWER = re.compile(r"(accept|drop)\s+(?:all|#?([1-9][0-9]{0,17}))", re.IGNORECASE)


def _answer(text: str, _now: datetime) -> tuple[bool, int | None]:
    """Return ``True`` to accept or ``False`` to drop, and the id of the proposed item, ``None`` for all proposals."""
    match = _ANSWER.fullmatch(text)
    if match is None:
        raise CommandError(
            f"{quoted(text)} is not an answer. Type accept or drop, then the number of a proposal, or all."
        )
    return match[1].lower() == "accept", int(match[2]) if match[2] else None


ANSWER = Parameter(
    "answer",
    _answer,
    "accept or drop, then the number of a proposal, or all",
    lambda _services, _text: [
        Candidate("accept all", "remember the facts, replace the older items"),
        Candidate("drop all", "drop the facts, keep old and new items"),
    ],
)


@GROUP.command("replace", guesses=("correct", "update"))
async def replace(services: Services, item: Annotated[int, ITEM], text: Annotated[str, CONTENT]) -> Text:
    """Replace an item that is no longer true.

    Only the new text is sent, with its date. The old item is closed and stays: /memory show prints both.

    Examples:
        /memory replace 12 The office is in Leeds
    """
    new = await services.memory.replace(services.current.slug, item, cleaned_input(text)[0])
    return Text(f"Replaced #{item} by {named(new)}. {REVERTS}")


@GROUP.command("inbox")
async def inbox(services: Services, answer: Annotated[tuple[bool, int | None] | None, ANSWER] = None) -> Text | Report:
    """List proposed facts and items that nearly repeat others, to accept or drop.

    An accepted fact becomes an item. If you accept an item, it replaces the older one; if you drop it, both stay. /undo
    reverts either.

    Examples:
        /memory inbox
        /memory inbox accept 13
        /memory inbox drop all
    """
    slug = services.current.slug
    if answer is not None:
        accepts, item_id = answer
        operation = await services.memory.settle(slug, item_id, accepts=accepts)
        return Text(f"{capitalized(operation.describe())}. {REVERTS}{_near(operation)}")
    found = await services.memory.proposals(slug)
    if not found:
        return Text("The inbox is empty. /memory distil has the model propose facts.", data_of(found))
    rows = []
    for item, old in ((each.item, each.old) for each in found if each.old):
        rows.append((f"#{item.id}", without_keys(item.content), f"#{old.id}", without_keys(old.content)))
    heads = ("Item", "Content", "Replaces", "Older content")
    tables = [Table("", heads, tuple(rows), cut=frozenset({"Content", "Older content"}))] if rows else []
    if facts := [each for each in found if each.old is None]:
        tables.insert(0, facts_table(facts))
    newest = found[-1].item.id
    return Report(
        (*tables, Text(f"/memory inbox accept {newest}, drop {newest}, accept all or drop all.")), data_of(found)
    )


def facts_table(facts: Sequence[Proposal]) -> Table:
    """Return a table of proposed facts, each uncut, with the number and time of the message that it comes from."""
    rows = []
    for item, _, said_at in facts:
        rows.append((f"#{item.id}", item.content, f"#{item.source_message_id}", local(said_at) if said_at else ""))
    return Table("", ("Item", "Fact", "From", "Said"), tuple(rows))


def _near(operation: Operation) -> str:
    """Say which older items accepted facts nearly repeat."""
    changes = operation.act.changes if isinstance(operation.act, MemoryChange) else ()
    near = [f"#{each.after.may_replace}" for each in changes if (each.after.may_replace or 0) > 0]
    return (
        f" {enumerated(near)} {'has' if len(near) == 1 else 'have'} nearly the same words; see /memory inbox."
        if near
        else ""
    )
