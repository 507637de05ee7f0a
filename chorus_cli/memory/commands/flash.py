"""``/memory flash``, ``checkpoints`` and ``restore``: cold items are put away and brought back."""

from __future__ import annotations

from typing import Annotated

from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Table, Text
from chorus_cli.log.rules.wording import local
from chorus_cli.memory.commands.arguments import CHECKPOINT, FORCE
from chorus_cli.memory.commands.pictures import capitalized, flash_saved
from chorus_cli.memory.service.flash import RequestFigures
from chorus_cli.services import Services

GROUP: CommandGroup[Services] = CommandGroup("memory")


@GROUP.command("flash")
async def flash(services: Services, force: Annotated[bool, FORCE] = False) -> Text:  # noqa: FBT002 - a typed argument
    """Archive the COLD items under a checkpoint.

    It is refused while the next request has room, unless you add --force. Nothing is deleted.

    Examples:
        /memory flash
        /memory flash --force
    """
    target = services.focus.target()
    meter = (await services.context.planner.planned(target, services.machine.clock.now())).meter
    figures = RequestFigures(meter.tokens, meter.budget)
    saved = await services.memory.flashes.save(target.persona.slug, figures, force=force)
    return Text(flash_saved(saved.report))


@GROUP.command("checkpoints")
async def checkpoints(services: Services) -> Text | Table:
    """List the checkpoints of the last ten flash saves, newest first.

    Examples:
        /memory checkpoints
    """
    found = await services.memory.flashes.checkpoints(services.focus.slug)
    if not found:
        return Text("There are no checkpoints. /memory flash archives COLD items under one.")
    rows = [
        (
            str(row.id),
            local(row.created_at),
            f"{row.items_count:,}",
            f"{row.items_archived:,}",
            f"{row.hot_items_retained:,}",
            f"{row.token_count:,}",
        )
        for row in found
    ]
    return Table("", ("No.", "When", "Items", "Archived", "HOT", "Tokens"), tuple(rows))


@GROUP.command("restore")
async def restore(services: Services, checkpoint: Annotated[int, CHECKPOINT]) -> Text:
    """Bring back the items of a checkpoint that are archived.

    Forgotten items stay forgotten.

    Examples:
        /memory restore 3
    """
    operation = await services.memory.flashes.restore(services.focus.slug, checkpoint)
    if operation is None:
        return Text(f"No item of checkpoint {checkpoint} is archived now, so nothing was changed.")
    return Text(f"{capitalized(operation.describe())}. /undo reverts this.")
