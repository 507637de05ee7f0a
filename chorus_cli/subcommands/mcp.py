"""``chorus mcp serve`` lets other programs read the log, over the Model Context Protocol."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext

from chorus_cli.core.errors import BackupError, CommandError
from chorus_cli.core.text.phrases import counted
from chorus_cli.core.time import timestamps
from chorus_cli.machine.bug_report import report_bug
from chorus_cli.machine.clock import SystemClock
from chorus_cli.machine.installation import install_command
from chorus_cli.machine.paths import Paths, paths
from chorus_cli.mcp.history import Seen, visible
from chorus_cli.meaning.embedding import Embedder
from chorus_cli.meaning.service import Meaning
from chorus_cli.memory.service.memory import Memory
from chorus_cli.models.providers.token_counter import VocabularyCounter
from chorus_cli.personas.rules.persona import Persona
from chorus_cli.personas.service.personas import Personas
from chorus_cli.recall.service import Search
from chorus_cli.run_storage import chosen_log, is_restoring, log_store, running
from chorus_cli.sessions.service.sessions import Listing, listed
from chorus_cli.storage import meta_rows
from chorus_cli.storage.permissions import is_there
from chorus_cli.storage.store import Store
from chorus_cli.subcommands.exit_codes import DONE

_UNFINISHED = "A {} has not ended. Start chorus once, which completes it."


async def serve(chosen: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Let the program that started this one read the log, until it closes standard input."""
    try:
        from chorus_cli.mcp import serving
    except ImportError as error:
        needed = "chorus mcp serve needs the package mcp, version 2.3 or later"
        raise CommandError(f"{needed} ({error}). Install it with: {install_command('chorus-cli[mcp]')}.") from error
    home = paths(environment, vars(chosen).get("home"))
    log = ServedLog(home, environment, chosen_log(home, environment, vars(chosen).get("log")))
    await serving.serve(log.opened, lambda error: report_bug(home.log_file, error, environment))
    return DONE


class ServedLog:
    """The log at ``url``, or the log of this machine if ``url`` is empty, for the calls of other programs.

    It is open during a call only: between calls this process does not count as a running Chorus, so that the user can
    restore a backup while other programs run.
    """

    def __init__(self, home: Paths, environment: Mapping[str, str], url: str = "") -> None:
        self._home = home
        self._url = url
        self._personas = Personas(home.personas, home.config_file)
        self._embedder = Embedder(environment)
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Seen, None]:
        """Yield what a call may read, one call at a time."""
        home = self._home
        if not (self._url or is_there(home.database)):
            at = "if it is elsewhere, add --home DIR to the command of the server"
            raise CommandError(f"There is no log in {home.data} yet; {at}.")
        if is_restoring(home):
            raise BackupError(_UNFINISHED.format("restore"))
        async with self._turn:
            personas = await asyncio.to_thread(visible, self._personas)
            if not home.obstacle:
                home.make()
            with nullcontext() if home.obstacle else running(home):
                store = log_store(home, self._url)
                try:
                    yield await self._seen(store, personas)
                finally:
                    await store.close()

    async def _seen(self, store: Store, personas: Mapping[str, Persona]) -> Seen:
        clock = SystemClock()
        await store.open()
        # No call may add rows to the log; only the search index is still brought up to date.
        await store.seal()
        if await store.read(meta_rows.value, meta_rows.PURGE) is not None:
            raise CommandError(_UNFINISHED.format("purge"))

        async def sessions(slug: str) -> Sequence[str]:
            return session_texts(await listed(store, self._home.personas, slug))

        search = Search(store, clock, Meaning(store, clock, self._embedder))
        return Seen(search, Memory(store, clock, VocabularyCounter(), lambda _sentence: None), personas, sessions)


def session_texts(found: Listing) -> list[str]:
    """Return a text for each saved session: its name, its time, how many messages it has, and its summary."""
    return [
        f"{row.session_id}, {timestamps.local(row.timestamp):%Y-%m-%d %H:%M}, "
        f"{counted(row.message_count, 'message')}: {row.description}\n{row.summary}"
        for row in found.rows
    ]
