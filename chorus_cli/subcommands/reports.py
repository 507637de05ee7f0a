"""Subcommands that report on the present state: ``context``, ``memory`` and ``personas``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.app import opened
from chorus_cli.context.service.report import context_report
from chorus_cli.core.time import timestamps
from chorus_cli.subcommands.conventions import options, print_json
from chorus_cli.subcommands.exit_codes import DONE
from chorus_cli.terminal.one_command import carry_out
from chorus_cli.terminal.screen.output import standard_error, standard_output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from chorus_cli.core.json.jsonc import JsonValue
    from chorus_cli.memory.rules.items import Item


async def context(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Show the request that would be sent now."""
    async with opened(options(chosen, environment), environment) as app:
        if not chosen.json:
            return await carry_out("/context", app.services(), standard_output(), standard_error())
        await app.current.settle()
        target = app.current.target()
        report = await context_report(app.services().context, target, app.clock.now())
        for warning in filter(None, (*target.persona.warnings, report.plan.snapshot.unread)):
            standard_error().notice(warning)
        print_json(report.as_json())
    return DONE


async def memory(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Show items and tokens of a persona's memory by tier; as JSON, the items too."""
    async with opened(options(chosen, environment), environment) as app:
        if not chosen.json:
            return await carry_out("/memory", app.services(), standard_output(), standard_error())
        remembered, slug = app.services().memory, app.current.slug
        items = await remembered.listing(slug)
        print_json((await remembered.statistics(slug)).as_json() | {"items": [_item_as_json(item) for item in items]})
    return DONE


def _item_as_json(item: Item) -> dict[str, JsonValue]:
    times = {name: timestamps.to_text(getattr(item, name)) for name in ("created_at", "last_accessed")}
    return {**item._asdict(), **times}


async def personas(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """List the personas."""
    async with opened(options(chosen, environment), environment) as app:
        members = await app.services().persona_admin.members()
        for warning in (each for member in members if member.persona.unreadable for each in member.persona.warnings):
            standard_error().notice(warning)
        if not chosen.json:
            return await carry_out("/persona", app.services(), standard_output(), standard_error())
        print_json([member.as_json(active=member.persona.slug == app.current.slug) for member in members])
    return DONE
