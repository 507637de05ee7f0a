"""``/persona import``, ``export`` and ``greeting``: character cards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from chorus_cli.cards import files as card_files
from chorus_cli.cards.service.cards import Taken
from chorus_cli.core.errors import CommandError, UnknownPersonaError
from chorus_cli.framework.arguments import NUMBER, TEXT, Candidate
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import Inquiry, Question, Reply, Report, Said, Text, unless_there
from chorus_cli.personas.commands.persona import turn_to
from chorus_cli.services import Services
from chorus_cli.settings.rules.table import setting_of
from chorus_cli.storage import typed_paths
from chorus_cli.storage.typed_paths import typed_path

GROUP: CommandGroup[Services] = CommandGroup("persona")

_WRITTEN = frozenset({".png", ".json"})


def _offered(services: Services, text: str) -> Sequence[Candidate]:
    name, blank, begun = text.rpartition(" ")
    if blank:
        return [Candidate(f"{name} {path}") for path in typed_paths.offered(begun, _WRITTEN)]
    files = services.personas
    return [Candidate(files.own_settings(slug).name or slug) for slug in files.slugs()]


CARD = replace(
    TEXT,
    name="file",
    help="a character card: PNG, JSON or CHARX",
    complete=lambda _services, text: [Candidate(path) for path in typed_paths.offered(text, card_files.ENDINGS)],
)
PERSONA_AND_FILE = replace(
    TEXT, name="name file", help="a persona, and a file ending in .png or .json, or a folder", complete=_offered
)
GREETING = replace(NUMBER, name="number", help="the number of a greeting of the card, from 1")


@GROUP.command("import")
async def import_card(services: Services, file: Annotated[str, CARD]) -> Reply:
    """Create a persona from a character card, and switch to it.

    Chorus reads cards of versions 1, 2 and 3, as PNG, JSON or CHARX. The card's greeting opens the first thread. The
    entries of its lorebook become memory items; the model gets an item when a message has one of its keys.

    Examples:
        /persona import seraphina.png
    """
    path = typed_path(file)
    found = await asyncio.to_thread(card_files.read, path)
    if found is None:
        raise CommandError(f"There is no character card in {file}. Cards are PNG pictures, JSON or CHARX.")

    async def taken_in() -> Report:
        return await arrived(services, await services.cards.take_in(found))

    return await introduced(services, [path], taken_in)


async def introduced(services: Services, paths: Sequence[Path], taken_in: Callable[[], Awaitable[Reply]]) -> Reply:
    """Take files in; if `first_stranger` finds a new card, ask for the user's name first."""
    name = await services.cards.first_stranger(paths)
    if not name:
        return await taken_in()

    async def named(user: str) -> Reply:
        services.notifier.progress(await services.cards.call_user(user))
        return await taken_in()

    default = setting_of("user_name").default
    question, declined = f"What should {name} call you? (Enter: {default})", Text("Nothing was imported.")
    return Inquiry(question, named, declined, taken_in)


async def arrived(services: Services, taken: Taken) -> Report:
    """Switch to the persona of a card unless the persona is archived, and tell the user about the persona."""
    if taken.slug in services.personas.archived():
        return Report((Text(taken.told),))
    turned = await turn_to(services, taken.slug)
    return Report((Text(taken.told), *turned.parts, *([Said(taken.greeting, taken.name)] if taken.greeting else [])))


@GROUP.command("greeting")
async def greeting(services: Services, number: Annotated[int | None, GREETING] = None) -> Said:
    """Put a greeting of the persona's character card into this thread.

    It replaces an unanswered greeting, which stays in the log.

    Examples:
        /persona greeting
        /persona greeting 2
    """
    target = services.current.target()
    return Said(await services.cards.greet(target, number or 1), target.persona.name)


@GROUP.command("export")
async def export(services: Services, where: Annotated[str | None, PERSONA_AND_FILE] = None) -> Text | Question:
    """Write a persona as a character card: PNG, or JSON if the file ends in .json.

    The card has the system prompt, the description, the documents, and the other fields of an imported card. It has no
    messages and no memory. Chorus asks before it overwrites a file.

    Examples:
        /persona export
        /persona export frodo frodo.json
    """
    slug, typed = _named(services, where) if where else (services.current.slug, "")
    path, name = typed_paths.file_for(typed, f"{slug}.png", _WRITTEN), services.personas.load(slug).name

    async def written(*, replace: bool) -> Text:
        await services.cards.export(slug, path, replace=replace)
        return Text(f"Exported {name} to {path.absolute()}")

    return await unless_there(path, written)


def _named(services: Services, text: str) -> tuple[str, str]:
    """Return the slug of the persona with the longest name that begins ``text``, and the rest of the text."""
    words = text.split(" ")
    for number in range(len(words), 0, -1):
        try:
            return services.personas.find_any(" ".join(words[:number])), " ".join(words[number:]).strip()
        except UnknownPersonaError as error:
            unknown = error
    raise unknown
