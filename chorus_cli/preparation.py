"""What is done in the background once the prompt is drawn: loading what answers, and clearing up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.adapters.models.litellm_library import warm
from chorus_cli.core.models.choice import ELIZA
from chorus_cli.core.settings.schema import schema_text
from chorus_cli.storage.files import drafts, file_lock, persona_files, session_files
from chorus_cli.storage.files.durable_files import sweep_stale

if TYPE_CHECKING:
    from typing import Protocol

    from chorus_cli.adapters.machine.paths import Paths
    from chorus_cli.commands.framework.command_context import CommandContext

    class Prepared(Protocol):
        """A running Chorus, whose parts are made when they are first asked for."""

        @property
        def paths(self) -> Paths:
            """Where everything is kept."""
            ...

        @property
        def commands(self) -> CommandContext:
            """The commands and the services behind them."""
            ...


def prepare(app: Prepared) -> None:
    """Make what answers, load what it needs, and delete what a crash may have left behind."""
    commands = app.commands
    target = commands.focus.target()
    commands.context.counter.count("warm")
    if target.choice.model != ELIZA:
        # Two seconds of import that only those wait for who talk to a provider.
        warm()
    # The schema lies where the settings of personas point to, for editors that complete and check by it.
    persona_files.renew_schema(app.paths.personas, schema_text())
    commands.context.limit_of(target.choice.model)
    commands.models.load()
    file_lock.sweep(app.paths.run)
    sweep_stale(app.paths.personas / target.persona.slug)
    sweep_stale(session_files.folder(app.paths.personas, target.persona.slug))
    drafts.sweep(app.paths.drafts, commands.clock.now())
