"""``/persona``: list, switch, create, edit, archive and delete personas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Annotated

from chorus_cli.commands.framework.arguments import TEXT, Candidate
from chorus_cli.commands.framework.command_context import CommandContext
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Question, Reply, Report, Table, Text
from chorus_cli.commands.settings import edit_settings
from chorus_cli.commands.wording import local
from chorus_cli.core.errors import UnknownPersonaError
from chorus_cli.core.personas.persona import DEFAULT_PERSONA
from chorus_cli.core.text.phrases import counted
from chorus_cli.services.personas.personas import Personas
from chorus_cli.services.personas.roster import PersonaEntry

GROUP: CommandGroup[CommandContext] = CommandGroup(
    "persona", "Your personas, each with a memory of its own.", aliases=("p",)
)


def _in_use(context: CommandContext, _text: str) -> Sequence[Candidate]:
    return _candidates(context.personas, context.personas.slugs())


def _archivable(context: CommandContext, _text: str) -> Sequence[Candidate]:
    return _candidates(context.personas, [slug for slug in context.personas.slugs() if slug != DEFAULT_PERSONA])


def _archived(context: CommandContext, _text: str) -> Sequence[Candidate]:
    return _candidates(context.personas, context.personas.archived())


def _candidates(personas: Personas, slugs: Sequence[str]) -> Sequence[Candidate]:
    chosen = [(slug, personas.own_settings(slug)) for slug in slugs]
    return [Candidate(settings.name or slug, settings.description) for slug, settings in chosen]


NAME = replace(TEXT, name="name", help="the new persona's name, at most 40 characters")
PERSONA = replace(TEXT, name="name", help="a name, an alias or a folder, or the beginning of one", complete=_in_use)
TO_ARCHIVE = replace(PERSONA, complete=_archivable)
ARCHIVED = replace(PERSONA, help="an archived persona", complete=_archived)


@GROUP.command("", "list")
async def listing(context: CommandContext) -> Table:
    """List your personas; the current one is marked, archived ones come last.

    Examples:
        /persona
    """
    members = await context.roster.members()
    rows = [_row(member, active=member.persona.slug == context.focus.slug) for member in members]
    return Table("", ("", "Persona", "Aliases", "Messages", "Last talked", "Description"), tuple(rows))


@GROUP.command("switch", default=True)
async def switch(context: CommandContext, name: Annotated[str, PERSONA]) -> Text | Report | Question:
    """Switch to another persona, in its last thread; offers to create one that does not exist.

    Give its name, an alias or its folder, in upper or lower case, or the unique beginning of one.

    Examples:
        /persona frodo
        /persona fro
        /p frodo
    """
    try:
        slug = context.personas.find(name)
    except UnknownPersonaError:
        return _offer(context, name)
    if slug == context.focus.slug:
        return Text(f"You are already talking to {context.personas.load(slug).name}.")
    return await _turn_to(context, slug)


@GROUP.command("new")
async def new(context: CommandContext, name: Annotated[str, NAME]) -> Report:
    """Create a persona, with commented settings to fill in, and switch to it.

    Its folder is named after it. If the log has messages of an earlier persona of that folder, they stay out of the
    context.

    Examples:
        /persona new Ada
    """
    return await _created(context, name)


@GROUP.command("edit")
async def edit(context: CommandContext, name: Annotated[str | None, PERSONA] = None) -> Reply:
    """Edit a persona's settings in your editor; without a name, those of the current one, as with /settings edit.

    Examples:
        /persona edit
        /persona edit frodo
    """
    return await edit_settings(context, context.focus.slug if name is None else context.personas.find_any(name))


@GROUP.command("info")
async def info(context: CommandContext, name: Annotated[str | None, PERSONA] = None) -> Table:
    """Show the details of a persona; without a name, those of the current one.

    Examples:
        /persona info
        /persona info frodo
    """
    member = await context.roster.member(context.focus.slug if name is None else context.personas.find_any(name))
    return Table("", ("", ""), tuple(_facts(context, member)))


@GROUP.command("archive")
async def archive(context: CommandContext, name: Annotated[str | None, TO_ARCHIVE] = None) -> Text | Report:
    """Archive a persona: you can no longer switch to it, but nothing is lost.

    Without a name, the current persona is archived and the default one takes over.

    Examples:
        /persona archive
        /persona archive frodo
    """
    slug = context.focus.slug if name is None else context.personas.find(name)
    shown = context.personas.load(slug).name
    await context.roster.archive(slug)
    done = Text(f"Archived {shown}. /persona unarchive {slug} brings it back.")
    if slug != context.focus.slug:
        return done
    arrived = await _turn_to(context, context.personas.first())
    return Report((done, *arrived.parts))


@GROUP.command("unarchive")
async def unarchive(context: CommandContext, name: Annotated[str, ARCHIVED]) -> Text:
    """Bring back an archived persona.

    Examples:
        /persona unarchive frodo
    """
    slug = context.personas.find_archived(name)
    await context.roster.unarchive(slug)
    return Text(f"{context.personas.load(slug).name} is back. /persona {slug} switches to it.")


@GROUP.command("delete")
async def delete(context: CommandContext, name: Annotated[str, ARCHIVED]) -> Question:
    """Delete an archived persona, after asking: its folder moves to the backups, its messages stay in the log.

    Examples:
        /persona delete frodo
    """
    slug = context.personas.find_archived(name)
    member = await context.roster.member(slug)

    async def confirmed() -> Text:
        target = await context.roster.delete(slug)
        name = member.persona.name
        return Text(f"Deleted {name}. Its folder is now {target}; chorus log --persona {slug} prints its messages.")

    messages = counted(member.messages, "message")
    return Question(
        f"Delete {member.persona.name}? Its folder moves to the backups; {messages} stay in the log.",
        confirmed,
        Text(f"{member.persona.name} was not deleted."),
    )


def _offer(context: CommandContext, name: str) -> Question:
    """Ask whether to create the unknown persona; an invalid name is refused at once."""
    checked = context.personas.check_name(None, name)
    context.personas.refuse_archived(checked)

    async def confirmed() -> Report:
        return await _created(context, checked)

    text = f"There is no persona called {checked!r}.{_meant(context, checked)} Create it?"
    return Question(text, confirmed, Text("No persona was created."))


def _meant(context: CommandContext, name: str) -> str:
    """Suggest a persona or a command of this group that the name resembles."""
    words = {candidate.text.casefold(): candidate.text for candidate in _in_use(context, "")}
    commands = {word: f"/persona {word}" for word in GROUP.words if word}
    first_word, *_ = name.casefold().split()
    near = get_close_matches(name.casefold(), words, 1) or get_close_matches(first_word, commands, 1)
    return f" Did you mean {(words | commands)[near[0]]}?" if near else ""


async def _created(context: CommandContext, name: str) -> Report:
    slug = await context.roster.create(name)
    done = f"Created {name} in {context.personas.settings_path(slug).parent}. /persona edit opens its settings."
    if await context.roster.had_a_namesake(slug):
        done += " The log has messages of an earlier persona of that folder; this one does not see them."
    arrived = await _turn_to(context, slug)
    return Report((Text(done), *arrived.parts))


async def _turn_to(context: CommandContext, slug: str) -> Report:
    await context.focus.turn_to(slug)
    await context.focus.settle()
    target = context.focus.target()
    says = f"Talking to {target.persona.name}: {target.choice.model} answers ({target.choice.reason})."
    return Report((Text(says), *map(Text, await context.focus.notices())))


def _row(member: PersonaEntry, *, active: bool) -> tuple[str, ...]:
    persona = member.persona
    called = [name for name in (persona.slug, *persona.settings.aliases) if name.casefold() != persona.name.casefold()]
    return (
        "●" if active else "",
        f"{persona.name} (archived)" if member.archived else persona.name,
        ", ".join(called),
        f"{member.messages:,}",
        local(member.last_spoken) if member.last_spoken else "never",
        persona.settings.description,
    )


def _facts(context: CommandContext, member: PersonaEntry) -> list[tuple[str, str]]:
    persona = member.persona
    chosen = persona.settings
    return [
        ("Name", persona.name + (" (archived)" if member.archived else "")),
        ("Aliases", ", ".join(chosen.aliases) or "none"),
        ("Description", chosen.description or "none"),
        ("Model", f"{chosen.model} (from {persona.sources['model']})" if chosen.model else "none named: detected"),
        ("Context window", f"{chosen.context_hours}h"),
        ("Messages", f"{member.messages:,}"),
        ("Last talked", local(member.last_spoken) if member.last_spoken else "never"),
        ("Documents", ", ".join(document.name for document in persona.documents) or "none"),
        ("Folder", str(context.personas.settings_path(persona.slug).parent)),
        *(("Warning", warning) for warning in persona.warnings),
    ]
