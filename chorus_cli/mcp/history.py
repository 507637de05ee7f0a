"""The tools with which other programs read the log, sessions and memory, and the threads, offered as resources.

A thread's name is its persona and its number, such as ``frodo/3``, because each persona counts its own threads.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

from chorus_cli.core.errors import PersonaError, SettingsError, ThreadError
from chorus_cli.core.text.phrases import counted, cut_to_characters, enumerated
from chorus_cli.core.time import timestamps
from chorus_cli.log.rows import operation_rows, thread_lists
from chorus_cli.log.rows.found_messages import Scope
from chorus_cli.log.rules.threads import Thread
from chorus_cli.memory.rules.items import Item, Source
from chorus_cli.memory.rules.recall import indented, sent_items
from chorus_cli.memory.service.memory import Memory
from chorus_cli.models.rules.declaration import Arguments, Parameter
from chorus_cli.personas import rows as persona_rows
from chorus_cli.personas.rules.persona import Persona, folded
from chorus_cli.personas.service.personas import Personas
from chorus_cli.recall.service import Search
from chorus_cli.settings.files import read_defaults
from chorus_cli.settings.rules.table import BY_KEY, SERVED, SERVED_PERSONAS
from chorus_cli.tools import service as tools
from chorus_cli.tools.service import MOST_SEARCHED, Handled, Telling, built_in, fitting, read, searched

ADDRESS = "chorus://thread/"
"""The beginning of a thread's address; the thread's name follows."""

_thread_name = "{}/{}".format

MOST_LISTED = 50
_LONGEST_ITEM = 6_000
_THREAD = re.compile(r"(?:(?P<persona>[^/]+)/)?#?(?P<number>[0-9]{1,18})")


class Seen(NamedTuple):
    """The services that a call reads from, and the personas that other programs may see, by slug.

    ``sessions`` returns a text for each saved session of a persona, the newest first.
    """

    search: Search
    memory: Memory
    personas: Mapping[str, Persona]
    sessions: Callable[[str], Awaitable[Sequence[str]]]

    def chosen(self, name: str) -> Mapping[str, Persona]:
        """Return the personas with this slug or name, all for an empty ``name``; raise a ``PersonaError`` for none."""
        wanted = folded(name)
        found = {slug: each for slug, each in self.personas.items() if wanted in {"", slug, folded(each.name)}}
        if not found:
            raise PersonaError(f"No persona {name!r} may be read here. There are: {enumerated([*self.personas])}.")
        return found


def visible(personas: Personas) -> Mapping[str, Persona]:
    """Return the personas that other programs may see, by slug: those in use, limited by the setting ``mcp_serve``.

    If the setting cannot be read, raise a ``SettingsError``, because the user may have hidden a persona there.
    """
    layer, warnings = read_defaults(personas.config_file)
    value = layer.values.get(SERVED)
    fits = value is None or BY_KEY[SERVED].accepts(value)
    if not (layer.readable and fits):
        fault = warnings[0] if fits else f"{layer.place(SERVED)}: {BY_KEY[SERVED].misfit(value)}"
        raise SettingsError(f"{fault}. Until that is corrected, other programs see nothing.")
    in_use = personas.slugs()
    names = value.get(SERVED_PERSONAS) if isinstance(value, dict) else None
    if isinstance(names, list):
        called = {personas.called(str(name)) for name in names}
        in_use = tuple(slug for slug in in_use if slug in called)
    if not in_use:
        raise PersonaError(f'No persona may be seen by other programs: see "{SERVED}" in {personas.config_file}.')
    return {slug: personas.load(slug) for slug in in_use}


Handler: TypeAlias = "Callable[[Seen, Arguments], Awaitable[str]]"


_PERSONA = Parameter(
    "persona", "Only this persona, as list_personas names it; without it, all of them.", is_required=False
)


@built_in(
    "Search everything that the user and the personas (assistants) of Chorus ever said to each other, conversations "
    "imported from other programs too. Returns the best messages, each with those before and after it, its number "
    "(#12), its date and its thread (frodo/3), which read_thread opens.",
    *tools.search_history.tool.parameters,
    _PERSONA,
)
async def search_history(seen: Seen, arguments: Arguments) -> str:
    """Find messages by their words."""
    personas = seen.chosen(arguments.text("persona"))
    begins = {slug: await seen.search.store.read(operation_rows.beginning, slug) for slug in personas}
    scope = Scope(None, None, MOST_SEARCHED, among=begins)
    return (await searched(seen.search, arguments, scope, _telling(seen))).text


@built_in(
    "Read a thread (conversation) of Chorus: its newest messages, or those around one, as far as they fit.",
    Parameter("id", "The thread as search_history names it: its persona and its number, such as frodo/3."),
    tools.read_thread.tool.parameters[1],
)
async def read_thread(seen: Seen, arguments: Arguments) -> str:
    """Read the newest part of a thread, or the part around a message."""
    name = arguments.text("id").strip().removeprefix(ADDRESS)
    match = _THREAD.fullmatch(name)
    if match is None:
        raise ThreadError(f"{name!r} names no thread. Write its persona and its number, such as frodo/3.")
    personas = seen.chosen(match["persona"] or "")
    if len(personas) > 1:
        names = enumerated([_thread_name(slug, int(match["number"])) for slug in personas], "or")
        raise ThreadError(f"Every persona counts its own threads. Write {names}.")
    (slug,) = personas
    around = arguments.number("around")
    return (await read(seen.search.store, slug, int(match["number"]), around, _telling(seen))).text


@built_in("List the personas (assistants) of Chorus, with what they are for and how much was said with each.")
async def list_personas(seen: Seen, _arguments: Arguments) -> str:
    """List the personas that may be seen."""
    activity = await seen.search.store.read(persona_rows.activity)

    def line(slug: str, persona: Persona) -> str:
        messages, newest = activity.get(slug, (0, None))
        at = f", the newest of {timestamps.local(newest):%Y-%m-%d %H:%M}" if newest else ""
        told = (f"{slug}: {persona.name}.", persona.settings.description, f"({counted(messages, 'message')}{at})")
        return " ".join(filter(None, told))

    return "\n".join(line(slug, persona) for slug, persona in seen.personas.items())


@built_in("List the sessions that the user saved in Chorus, the newest first, each with a summary.", _PERSONA)
async def list_sessions(seen: Seen, arguments: Arguments) -> str:
    """List saved sessions."""
    personas = seen.chosen(arguments.text("persona"))
    told = [f"{slug}, {text}" for slug in personas for text in await seen.sessions(slug)]
    return "\n\n".join(_fitting(told, "session")) or "No session is saved."


@built_in(
    "Look into the memory of Chorus, where facts, decisions, tasks, code and errors are kept beyond conversations. "
    "Returns the items that match best.",
    *tools.recall_memory.tool.parameters,
    _PERSONA,
)
async def recall_memory(seen: Seen, arguments: Arguments) -> str:
    """Find memory items by their words or numbers, without counting that as an access."""
    found: list[list[str]] = []
    for slug, persona in seen.chosen(arguments.text("persona")).items():
        items = sent_items(persona, await seen.memory.recall(slug, arguments.text("query")))
        found.append([_item(persona, item) for item in items])
    # The best item of each persona comes first, then the second best.
    told = [text for rank in zip_longest(*found) for text in rank if text is not None]
    return "\n".join(_fitting(told, "item")) or "No item of the memory has any of these words."


TOOLS: tuple[Handled[Handler], ...] = (search_history, read_thread, list_personas, list_sessions, recall_memory)


async def newest_threads(seen: Seen) -> list[tuple[str, Thread]]:
    """Return the most recently active threads that have messages, each with its name; the newest comes first."""
    found = [
        (_thread_name(slug, thread.number), thread)
        for slug in seen.personas
        for thread in await seen.search.store.read(thread_lists.all_threads, slug)
        if thread.messages
    ]
    return sorted(found, key=lambda each: each[1].last_active, reverse=True)[:MOST_LISTED]


def _fitting(told: Sequence[str], name: str) -> list[str]:
    whole = fitting(told, len)
    return whole if len(whole) == len(told) else [*whole, f"Left out: {counted(len(told) - len(whole), name)}."]


def _telling(seen: Seen) -> Telling:
    return Telling(_thread_name, lambda slug: seen.personas[slug].speakers)


def _item(persona: Persona, item: Item) -> str:
    source = {Source.YOU: "the user", Source.MODEL: persona.name}.get(item.source, item.source.thing)
    at = timestamps.local(item.created_at)
    head = f"{persona.slug} #{item.id} ({at:%Y-%m-%d}{source and f', from {source}'}; {item.tier})"
    return f"{head}: {cut_to_characters(indented(item.content), _LONGEST_ITEM)}"
