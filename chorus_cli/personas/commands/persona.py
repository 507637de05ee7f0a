"""``/persona``: list, switch, create, edit, archive and delete personas."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import chain
from typing import Annotated

from chorus_cli.core.errors import PersonaError, UnknownPersonaError
from chorus_cli.core.text.phrases import counted, enumerated
from chorus_cli.core.time.timestamps import in_hours
from chorus_cli.framework.arguments import TEXT, Candidate
from chorus_cli.framework.registry import CommandGroup
from chorus_cli.framework.replies import CURRENT, Question, Reply, Report, Table, Text, data_of
from chorus_cli.log.rules.wording import local
from chorus_cli.personas.commands.settings import edit_settings
from chorus_cli.personas.rules import macros
from chorus_cli.personas.rules.persona import COMMAND_WORDS, DEFAULT_PERSONA
from chorus_cli.personas.service.persona_admin import PersonaEntry
from chorus_cli.services import Services

GROUP: CommandGroup[Services] = CommandGroup("persona", "Your personas, each with a memory of its own.", aliases=("p",))


def _in_use(services: Services, _text: str) -> Sequence[Candidate]:
    return _candidates(services, services.personas.slugs())


def _candidates(services: Services, slugs: Sequence[str]) -> Sequence[Candidate]:
    chosen = [(slug, services.personas.own_settings(slug)) for slug in slugs]
    return [Candidate(settings.name or slug, settings.description) for slug, settings in chosen]


NAME = replace(TEXT, name="name", help="the new persona's name, at most 40 characters")
PERSONA = replace(TEXT, name="name", help="a name, an alias or a folder, or the beginning of one", complete=_in_use)
ARCHIVED = replace(
    PERSONA,
    help="an archived persona",
    complete=lambda services, _text: _candidates(services, services.personas.archived()),
)


@GROUP.command("", "list", aliases=("personas",))
async def listing(services: Services) -> Table:
    """List your personas, the current one marked, archived ones last.

    If the settings of a persona cannot be read, the list shows the reason in place of the description.

    Examples:
        /persona
    """
    members = await services.persona_admin.members()
    rows = [_row(services, member) for member in members]
    if not services.is_chat:
        unreadable = [member.persona for member in members if member.persona.unreadable]
        for warning in chain.from_iterable(persona.warnings for persona in unreadable):
            services.notifier.progress(warning)
    heads = ("", "Persona", "Aliases", "Messages", "Last talked", "Description")
    values = [member.as_json(active=member.persona.slug == services.current.slug) for member in members]
    return Table("", heads, tuple(rows), data=data_of(values))


@GROUP.command("switch", default=True, listed="everyday")
async def switch(services: Services, name: Annotated[str, PERSONA]) -> Text | Report | Question:
    """Talk to another persona; /persona lists them.

    Give its name, an alias or its folder, in capital or small letters, or a beginning that only its name has.
    Chorus offers to create a persona that does not exist; from a shell, it only says how to create it.

    Examples:
        /persona frodo
        /persona fro
        /p frodo
    """
    try:
        slug = services.personas.find(name)
    except UnknownPersonaError as error:
        return _offer(services, name, error)
    if slug == services.current.slug:
        return Text(f"You are already talking to {services.personas.load(slug).name}.")
    return await turn_to(services, slug)


@GROUP.command("new")
async def new(services: Services, name: Annotated[str, NAME]) -> Report:
    """Create a persona with commented settings, and switch to it.

    The folder is named after the persona. If the log has messages of an earlier persona of that folder, they stay out
    of the context.

    Examples:
        /persona new Ada
    """
    slug, has_namesake = await services.persona_admin.create(name)
    folder = services.personas.settings_path(slug).parent
    done = f"Created {name} in {folder}. Its prompt is prompt.md there; /persona edit opens its settings."
    if has_namesake:
        done += (
            " The log has messages of an earlier persona of that folder; the new persona does not see them."
            if await services.persona_admin.begins_anew(slug)
            else f" It continues with the messages and memory of {slug} at {services.context.store.server}; "
            "/new begins a new conversation."
        )
    # Another Chorus may have deleted the earlier persona; jobs of that persona may still run here.
    stopped = await services.jobs.forget(slug)
    arrived = await turn_to(services, slug, is_new=True)
    return Report((Text("\n".join([done, *stopped])), *arrived.parts))


@GROUP.command("edit")
async def edit(services: Services, name: Annotated[str | None, PERSONA] = None) -> Reply:
    """Edit the settings of this persona, or another, in your editor.

    Examples:
        /persona edit
        /persona edit frodo
    """
    return await edit_settings(services, _any(services, name))


@GROUP.command("info")
async def info(services: Services, name: Annotated[str | None, PERSONA] = None) -> Table:
    """Show the details of this persona, or another.

    Examples:
        /persona info
        /persona info frodo
    """
    member = await services.persona_admin.member(_any(services, name))
    values = member.as_json(active=member.persona.slug == services.current.slug)
    return Table("", ("", ""), tuple(_facts(services, member)), data=data_of(values))


@GROUP.command("archive")
async def archive(services: Services, name: Annotated[str | None, PERSONA] = None) -> Text | Report:
    """Archive a persona: nothing is lost, but you cannot switch to it.

    Without a name, Chorus archives the current persona and switches to the default one. Chorus
    refuses while the persona has a running reply or job, or a waiting message.

    Examples:
        /persona archive
        /persona archive frodo
    """
    slug = services.current.slug if name is None else services.personas.find(name)
    shown = services.personas.load(slug).name
    if slug != DEFAULT_PERSONA:
        _refuse_busy(services, slug, shown)
    await services.persona_admin.archive(slug)
    done = Text(f"Archived {shown}. /persona unarchive {slug} brings it back.")
    if slug != services.current.slug:
        return done
    arrived = await turn_to(services, services.personas.first())
    return Report((done, *arrived.parts))


@GROUP.command("unarchive")
async def unarchive(services: Services, name: Annotated[str, ARCHIVED]) -> Text:
    """Bring back an archived persona.

    Examples:
        /persona unarchive frodo
    """
    slug = services.personas.find_archived(name)
    await services.persona_admin.unarchive(slug)
    return Text(f"{services.personas.load(slug).name} is back. /persona {slug} switches to it.")


@GROUP.command("delete")
async def delete(services: Services, name: Annotated[str, ARCHIVED]) -> Question:
    """Delete an archived persona: its folder moves to the backups, its messages stay.

    Examples:
        /persona delete frodo
    """
    slug = services.personas.find_archived(name)
    member = await services.persona_admin.member(slug)

    async def confirmed() -> Text:
        target = await services.persona_admin.delete(slug)
        # A new persona of this folder begins without them.
        services.current.use_model(slug, None)
        services.personas.forget_this_run(slug)
        name = member.persona.name
        done = f"Deleted {name}. Its folder is now {target}; chorus log --persona {slug} prints its messages."
        return Text("\n".join([done, *await services.jobs.forget(slug)]))

    messages = counted(member.messages, "message")
    return Question(
        f"Delete {member.persona.name}? Chorus will move its folder to the backups and keep {messages} in the log.",
        confirmed,
        Text(f"{member.persona.name} was not deleted."),
    )


def _any(services: Services, name: str | None) -> str:
    return services.current.slug if name is None else services.personas.find_any(name)


def _offer(services: Services, name: str, unknown: UnknownPersonaError) -> Question:
    """Ask whether to create the unknown persona; refuse an invalid name; from a shell, refuse every name."""
    checked = services.personas.check_name(None, name)
    if not services.is_chat:
        raise PersonaError(f"{unknown} Create one with: chorus persona new {shlex.quote(checked)}") from unknown

    async def confirmed() -> Report:
        return await new(services, checked)

    text = f"There is no persona called {checked!r}.{_meant(services, checked)} Create it?"
    return Question(text, confirmed, Text("No persona was created."))


def _meant(services: Services, name: str) -> str:
    """Suggest archived personas whose names begin with ``name``, or else a persona or a command of a similar name."""
    if archived := services.personas.archived_begun(name):
        return f" Archived: {enumerated(archived)}; /persona unarchive {archived[0]} brings {archived[0]} back."
    words = {candidate.text.casefold(): candidate.text for candidate in _in_use(services, "")}
    commands = {word: f"/persona {word}" for word in COMMAND_WORDS}
    first_word, *_ = name.casefold().split()
    near = get_close_matches(name.casefold(), words, 1) or get_close_matches(first_word, commands, 1)
    return f" Did you mean {(words | commands)[near[0]]}?" if near else ""


def _refuse_busy(services: Services, slug: str, name: str) -> None:
    threads, jobs = services.replies.busy_threads(slug), services.jobs.running(slug)
    stops = [*(f"/thread kill {each}" for each in threads), *(f"/jobs kill {job.number}" for job in jobs)]
    if stops:
        way = f"/persona {slug}, then " if threads and slug != services.current.slug else ""
        raise PersonaError(f"{name} is still busy. Stop that first: {way}{enumerated(stops)}.")


async def turn_to(services: Services, slug: str, *, is_new: bool = False) -> Report:
    """Switch to a persona; report its model and notices, but only a notice about sharing if the persona ``is_new``."""
    await services.current.turn_to(slug)
    await services.current.settle()
    target = services.current.target()
    says = f"You are now talking to {target.persona.name} ({target.choice.model})."
    notices = services.current.sharing_notices() if is_new else await services.current.notices()
    return Report((Text(says), *map(Text, notices)))


def _row(services: Services, member: PersonaEntry) -> tuple[str, ...]:
    persona = member.persona
    path = services.personas.settings_path(persona.slug)
    # Warnings about the persona's own file come first.
    flaw = persona.warnings[0].replace(str(path), path.name) if str(path) in persona.unreadable else ""
    called = [name for name in (persona.slug, *persona.settings.aliases) if name.casefold() != persona.name.casefold()]
    return (
        CURRENT if persona.slug == services.current.slug else "",
        f"{persona.name} (archived)" if member.archived else persona.name,
        ", ".join(called),
        f"{member.messages:,}",
        local(member.last_spoken) if member.last_spoken else "never",
        flaw or macros.sent(persona, persona.settings.description),
    )


def _facts(services: Services, member: PersonaEntry) -> list[tuple[str, str]]:
    persona = member.persona
    chosen = persona.settings
    return [
        ("Name", persona.name + (" (archived)" if member.archived else "")),
        ("Aliases", ", ".join(chosen.aliases) or "none"),
        ("Description", macros.sent(persona, chosen.description) or "none"),
        ("Model", f"{chosen.model} (from {persona.sources['model']})" if chosen.model else "not set: detected"),
        ("Context window", in_hours(chosen.context_hours)),
        ("Messages", f"{member.messages:,}"),
        ("Last talked", local(member.last_spoken) if member.last_spoken else "never"),
        *([("Card", "made from a character card; /persona export writes it")] if persona.has_card else []),
        ("Documents", ", ".join(document.name for document in persona.documents) or "none"),
        ("Folder", str(services.personas.settings_path(persona.slug).parent)),
        *(("Warning", warning) for warning in persona.notices),
    ]
