"""``chorus log --copy-to`` and ``--copy-from`` copy the log between this machine and a server."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping

from chorus_cli.core.errors import CommandError
from chorus_cli.machine.clock import SystemClock
from chorus_cli.machine.paths import Paths, paths
from chorus_cli.run_storage import log_store
from chorus_cli.startup import finish_restore
from chorus_cli.storage.postgres.address import LOCAL, digest, without_password
from chorus_cli.storage.sqlite import Sqlite
from chorus_cli.storage.store import opened_store
from chorus_cli.stores.service.log_copies import CopiedLog, LogCopies, acquaint, complete_sessions
from chorus_cli.subcommands.conventions import print_json
from chorus_cli.subcommands.exit_codes import DONE
from chorus_cli.terminal.screen.output import standard_error, standard_output

_SELECTING = ("persona", "model", "of_thread", "since", "newest", "thoughts")


async def copy(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Copy the log of this machine to the server, or the server's log to this machine; print what was copied."""
    home, asides = paths(environment, vars(chosen).get("home")), standard_error()
    url = chosen.copy_to or chosen.copy_from
    if any(vars(chosen).get(name) for name in _SELECTING):
        raise CommandError(
            "A copy takes the whole log with all personas, so nothing was copied. Leave out the options that select "
            "messages, the persona or the model."
        )
    if vars(chosen).get("log", LOCAL) != LOCAL:
        raise CommandError("A copy is made between this machine's own log and the server. Leave out --log.")
    if chosen.copy_to and not home.database.exists():
        raise CommandError(f"There is no log in {home.data} yet, so there is nothing to copy.")
    if not home.obstacle:
        home.make()
        finish_restore(home)
    here, there = log_store(home, ""), log_store(home, url)
    copies = LogCopies(here.engine_apart(), there.engine_apart(), home.attachments, SystemClock(), asides.notice)
    try:
        if chosen.copy_to:
            async with opened_store(copies.here) as store:
                await complete_sessions(store, home.personas)
        copied = await (copies.to_server() if chosen.copy_to else copies.from_server())
    except asyncio.CancelledError:
        asides.notice("The copy was stopped. The same command goes on from there.")
        raise
    _print(copied, chosen, there.server, home)
    await acquaint([copies.here, Sqlite(home.beside(digest(url)))])
    return DONE


def _print(copied: CopiedLog, chosen: argparse.Namespace, server: str, home: Paths) -> None:
    if chosen.json:
        print_json(copied.as_json())
        return
    screen = standard_output()
    for line in copied.lines():
        screen.line(line)
    if copied.differs:
        screen.paragraph(
            "A row that was forgotten or purged in one log is hidden in the copy. Other changes, such as titles and "
            "pins, stay in the log where they were made."
        )
    if chosen.copy_to:
        screen.paragraph(
            f"Everything in this machine's log is now also at {server}; every row was compared. To go on there, put "
            f'"log": "{without_password(chosen.copy_to)}" into {home.config_file}.'
        )
    else:
        screen.paragraph(f"Everything in the log at {server} is now also in {home.database}; every row was compared.")
