"""A persona's settings in a real file, with a keyboard and an editor."""

from __future__ import annotations

from chorus_cli.framework.command_line import completions
from chorus_cli.framework.replies import plain
from chorus_cli.log.rules.log_acts import Act
from tests.world import World

TEXT = '// mine\n{\n  "temperature": 0.2, // calm\n  "aliases": ["a", "b"],\n}\n'


class Desk:
    """A keyboard and an editor, and the files that they change."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.services = world.services
        self.type, self.ask = world.carry_out, world.asked_back
        self.editor = world.editor
        self.drafts = world.folder / "drafts"
        self.path = world.personas.settings_path("chorus")

    async def text(self, line: str) -> str:
        return plain(await self.type(line))

    async def windows(self) -> list[Act]:
        return [entry.operation.act for entry in await self.world.journal.entries(self.world.current.target())]

    def offers(self, line: str) -> dict[str, str]:
        found = completions(self.services.registry, self.services, line)
        return {candidate.text: candidate.description for candidate in found.candidates}

    def kept(self) -> list[str]:
        return [draft.read_text() for draft in sorted(self.drafts.glob("*"))]
