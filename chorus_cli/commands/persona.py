"""``/persona``: who there is to talk to, turning to somebody else, making somebody new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from chorus_cli.commands.framework.arguments import Candidate
from chorus_cli.commands.framework.command_context import CommandContext
from chorus_cli.commands.framework.parameters import TEXT
from chorus_cli.commands.framework.registry import CommandGroup
from chorus_cli.commands.framework.replies import Question, Reply, Report, Table, Text
from chorus_cli.commands.settings import edit_settings
from chorus_cli.commands.wording import counted, local
from chorus_cli.core.errors import UnknownPersonaError
from chorus_cli.core.personas.persona import DEFAULT_PERSONA
from chorus_cli.services.personas.personas import Personas
from chorus_cli.services.personas.roster import PersonaEntry

GROUP: CommandGroup[CommandContext] = CommandGroup(
    "persona", "Who there is to talk to, each with a memory of its own.", aliases=("p",)
)


def _in_use(context: CommandContext, _text: str) -> Sequence[Candidate]:
    return _candidates(context.personas, context.personas.slugs())


def _archivable(context: CommandContext, _text: str) -> Sequence[Candidate]:
    return _candidates(context.personas, [slug for slug in context.personas.slugs() if slug != DEFAULT_PERSONA])


def _put_away(context: CommandContext, _text: str) -> Sequence[Candidate]:
    return _candidates(context.personas, context.personas.archived())


def _candidates(personas: Personas, slugs: Sequence[str]) -> Sequence[Candidate]:
    chosen = [(slug, personas.own_settings(slug)) for slug in slugs]
    return [Candidate(settings.name or slug, settings.description) for slug, settings in chosen]


NAME = replace(TEXT, name="name", help="what a new persona is called, in up to 40 characters")
PERSONA = replace(TEXT, name="name", help="a name, an alias or a folder, or how one of them begins", complete=_in_use)
TO_ARCHIVE = replace(PERSONA, complete=_archivable)
ARCHIVED = replace(PERSONA, help="the name of an archived persona", complete=_put_away)


@GROUP.command("", "list")
async def listing(context: CommandContext) -> Table:
    """List the personas, the one talked to marked, the archived ones last.

    Examples:
        /persona
    """
    members = await context.roster.members()
    rows = [_row(member, active=member.persona.slug == context.focus.slug) for member in members]
    return Table("", ("", "Persona", "Also", "Messages", "Last talked", "What it is"), tuple(rows))


@GROUP.command("switch", default=True)
async def switch(context: CommandContext, name: Annotated[str, PERSONA]) -> Text | Report | Question:
    """Talk to somebody else, in the thread last used; offers to make a persona that is not known.

    A name, an alias or the folder will do, in any case, or the beginning of one if only one begins so.

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
        return Text(f"You are talking to {context.personas.load(slug).name} already.")
    return await _turn_to(context, slug)


@GROUP.command("new")
async def new(context: CommandContext, name: Annotated[str, NAME]) -> Report:
    """Make a persona, with commented settings to fill in, and talk to it.

    Its folder is named after it. If there was a persona of that folder before, the new one begins a new conversation.

    Examples:
        /persona new Ada
    """
    return await _created(context, name)


@GROUP.command("edit")
async def edit(context: CommandContext, name: Annotated[str | None, PERSONA] = None) -> Reply:
    """Open a persona's settings in your editor, those of the one talked to without a name; /settings edit is the same.

    Examples:
        /persona edit
        /persona edit frodo
    """
    return await edit_settings(context, context.focus.slug if name is None else context.personas.find_any(name))


@GROUP.command("info")
async def info(context: CommandContext, name: Annotated[str | None, PERSONA] = None) -> Table:
    """Show everything about a persona, or about the one talked to.

    Examples:
        /persona info
        /persona info frodo
    """
    member = await context.roster.member(context.focus.slug if name is None else context.personas.find_any(name))
    return Table("", ("", ""), tuple(_facts(context, member)))


@GROUP.command("archive")
async def archive(context: CommandContext, name: Annotated[str | None, TO_ARCHIVE] = None) -> Text | Report:
    """Put a persona away: it is no longer listed for talking, and nothing of it is lost.

    Without a name it is the one talked to; then the default persona takes over.

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
    """Bring an archived persona back.

    Examples:
        /persona unarchive frodo
    """
    slug = context.personas.find_archived(name)
    await context.roster.unarchive(slug)
    return Text(f"{context.personas.load(slug).name} is back. /persona {slug} talks to it.")


@GROUP.command("delete")
async def delete(context: CommandContext, name: Annotated[str, ARCHIVED]) -> Question:
    """Delete an archived persona, after asking: its folder moves to the backups, the log keeps what was said.

    Examples:
        /persona delete frodo
    """
    slug = context.personas.find_archived(name)
    member = await context.roster.member(slug)

    async def confirmed() -> Text:
        target = await context.roster.delete(slug)
        name = member.persona.name
        return Text(f"Deleted {name}. Its folder is now {target}; chorus log --persona {slug} prints what was said.")

    spoken = counted(member.messages, "message")
    return Question(
        f"Delete {member.persona.name}? Its folder moves to the backups; {spoken} of the log stay.",
        confirmed,
        Text(f"{member.persona.name} stays as it is."),
    )


def _offer(context: CommandContext, name: str) -> Question:
    """Ask whether to make the persona that is not known; a name that nobody can have is refused at once."""
    checked = context.personas.check_name(None, name)
    context.personas.refuse_archived(checked)

    async def confirmed() -> Report:
        return await _created(context, checked)

    text = f"There is no persona called {checked!r}.{_meant(context, checked)} Make a new one?"
    return Question(text, confirmed, Text("Nobody was made."))


def _meant(context: CommandContext, name: str) -> str:
    """Say what the name may be cut or mistyped from: a persona or a command of this group."""
    # Only a name that nobody has comes here.
    from difflib import get_close_matches  # noqa: PLC0415

    words = {candidate.text.casefold(): candidate.text for candidate in _in_use(context, "")}
    commands = {word: f"/persona {word}" for word in GROUP.words if word}
    first_word, *_ = name.casefold().split()
    near = get_close_matches(name.casefold(), words, 1) or get_close_matches(first_word, commands, 1)
    return f" Did you mean {(words | commands)[near[0]]}?" if near else ""


async def _created(context: CommandContext, name: str) -> Report:
    slug = await context.roster.create(name)
    done = f"Made {name} in {context.personas.settings_path(slug).parent}. /persona edit opens its settings."
    if await context.roster.had_a_namesake(slug):
        done += " An earlier persona of that folder is in the log; this one sees nothing of it."
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
