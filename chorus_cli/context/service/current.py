"""The persona, the thread and the model in use, and the notices for a user who switches to them."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING

from chorus_cli.core.errors import DatabaseDamagedError, DatabaseFullError, MessageDamagedError, StorageError
from chorus_cli.core.text.phrases import shortened
from chorus_cli.core.time.timeline import age, window_reaching
from chorus_cli.core.time.timestamps import WindowHours, in_hours
from chorus_cli.log.rows import thread_rows
from chorus_cli.log.rows.thread_rows import ThreadKey
from chorus_cli.models.rules.choice import ModelChoice, Naming, detected_model, way_on, way_to_a_model
from chorus_cli.personas.rules.persona import DEFAULT_PERSONA, Persona, Target
from chorus_cli.settings.files import read_layer
from chorus_cli.settings.rules.table import WINDOW_KEY
from chorus_cli.storage import meta_rows
from chorus_cli.storage.port import Connection
from chorus_cli.storage.sqlite import for_this_run
from chorus_cli.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from chorus_cli.context.files.open_threads import OpenThreads
    from chorus_cli.context.rows.thread_views import WindowFill
    from chorus_cli.log.rows.interrupted_replies import BrokenOff, Interrupted
    from chorus_cli.log.rules.threads import Exchange
    from chorus_cli.machine.ports import Clock
    from chorus_cli.personas.service.personas import Personas

SHARED = "Another Chorus is open in this thread."


def _read_on_arrival(connection: Connection, target: Target, now: datetime) -> tuple[WindowFill, Interrupted | None]:
    # The import runs in the store's thread, so that it does not delay the keyboard.
    from chorus_cli.context.rows.thread_views import read_on_arrival  # noqa: PLC0415 - the prompt does not need it

    return read_on_arrival(connection, target, now)


def interrupted_elsewhere(target: Target, interrupted: Sequence[BrokenOff]) -> Iterator[str]:
    """Yield a sentence about each interrupted reply in another thread than the target's."""
    for each in interrupted:
        if not _is_in(target, each):
            where = "" if each.persona == target.persona.slug else f" of {each.persona}"
            way = way_on(each.model).replace(" ", " there ", 1)
            yield f"The reply in thread #{each.thread_number}{where} was interrupted; {way}."


def question_in(target: Target, interrupted: Sequence[BrokenOff]) -> str:
    """Return the question whose reply was interrupted in the target's thread; empty if there is none."""
    return next((each.question for each in interrupted if _is_in(target, each)), "")


def _is_in(target: Target, reply: BrokenOff) -> bool:
    return (reply.persona, reply.thread_number) == (target.persona.slug, target.thread_number)


def window_notice(fill: WindowFill, hours: WindowHours, now: datetime) -> str:
    """Say how many reachable messages the window has or that it is empty; ``""`` if it has all or nothing was said."""
    if fill.last_spoken is None or (fill.held == fill.reachable > 0):
        return ""
    talked = f"Last talked {age(now - fill.last_spoken)} ago"
    if fill.oldest is None:
        return (
            f"{talked}; the {in_hours(hours)} window is empty. "
            "/context all brings everything back, /context edit lets you choose; chorus log prints it all."
        )
    wider = window_reaching(now - fill.oldest)
    return (
        f"{talked}; the {in_hours(hours)} window holds {fill.held:,} of {fill.reachable:,} messages. "
        f"/context {wider}h brings all back."
    )


class Current:
    """The persona and thread in focus, and the models chosen in this run; the folder of ``slug`` may be gone."""

    def __init__(
        self, personas: Personas, store: Store, clock: Clock, naming: Naming, open_threads: OpenThreads
    ) -> None:
        self._personas = personas
        self._store = store
        self._clock = clock
        self._naming = naming
        self._open_threads = open_threads
        self._known_as_shared: tuple[str, int] | None = None
        self._noted_files: dict[str, tuple[int, int]] = {}
        self._given_warnings: tuple[str, ...] = ()
        self._asking_ollama: asyncio.Future[str | None] | None = None
        self._detected: ModelChoice | None = None
        self._set_by_hand: dict[str, ModelChoice] = {}
        self.slug = DEFAULT_PERSONA
        self.is_aside = False
        """Whether this persona and thread are for this run alone, so that the next run does not go on with them."""
        self.thread_id = 0
        self.thread_number = 0

    async def choose(self, name: str | None) -> None:
        """Switch to persona ``name``, else to ``CHORUS_PERSONA``, else to the last used or the first persona."""
        if wanted := name or self._naming.environment.get("CHORUS_PERSONA"):
            self.slug = self._personas.find(wanted)
            return
        last = await self._store.read(meta_rows.value, meta_rows.LAST_PERSONA)
        self.slug = last if last in self._personas.slugs() else self._personas.first()

    async def arrive(self, slug: str = "") -> None:
        """Enter the last used thread of ``slug`` or of the persona in focus; first call `note_edit` for the persona."""
        await self.note_edit(slug or self.slug)
        await self.turn_to_last_thread(slug)

    async def turn_to(self, slug: str) -> None:
        """Switch to the persona ``slug`` and its last used thread, for this run and the next."""
        await self.arrive(slug)
        await self._store.write(meta_rows.store, meta_rows.LAST_PERSONA, slug)

    async def turn_to_thread(self, thread_id: int) -> None:
        """Switch to another thread of the persona in focus, for this run and the next; reopen it if it is closed."""
        self.go_on_in(await self._store.write(for_this_run, thread_rows.use, self.slug, thread_id))

    async def look_into(self, number: int | None = None) -> None:
        """Switch to thread ``number``, else to the thread of the user's newest message; either may be closed."""
        if number is not None:
            self.go_on_in(await self._store.read(thread_rows.numbered, self.slug, number))
        elif thread := await self._store.read(thread_rows.last_spoken_in, self.slug):
            self.go_on_in(thread)

    def begin_own_thread(self) -> None:
        """Switch to no thread: the next message opens a thread for itself, and closes it."""
        self.is_aside = True
        self.go_on_in(ThreadKey(0, 0))

    def go_on_in(self, thread: ThreadKey) -> None:
        """Switch to a thread that is already stored as the last used."""
        self.thread_id, self.thread_number = thread

    async def turn_to_last_thread(self, slug: str = "") -> None:
        """Switch to the last used thread of ``slug`` or of the persona in focus, as the database has it."""
        slug = slug or self.slug
        thread = await self._store.read(thread_rows.last_used, slug)
        if thread is None:
            thread = await self._store.write(for_this_run, thread_rows.last_used_or_new, slug, self._clock.now())
        self.go_on_in(thread)
        self.slug = slug

    def use_model(self, slug: str, model: str | None, reason: str = "set by /model") -> None:
        """Let ``model`` answer for a persona in this run, whatever its files name; ``None`` ends this."""
        self._set_by_hand.pop(slug, None)
        if model:
            self._set_by_hand[slug] = ModelChoice(model, reason)

    async def notices(self) -> tuple[str, ...]:
        """Return the notices for a user who switches to the thread in focus; if the log is damaged, one says so."""
        target, now = self.target(), self._clock.now()
        told = await self.new_warnings(target, are_repeated=True)
        try:
            fill, reply = await self._store.read(_read_on_arrival, target, now)
            left_out = window_notice(fill, target.persona.settings.context_hours, now)
        except DatabaseDamagedError as error:
            advice = " chorus doctor repairs the log." if isinstance(error, MessageDamagedError) else ""
            left_out, reply = f"{error}{advice}", None
        found = [left_out] if left_out else []
        if reply is not None:
            found.append(f'The reply to "{shortened(reply.question)}" was interrupted; {way_on(reply.model)}.')
        return (*self.sharing_notices(), *told, *found)

    async def last_exchange(self) -> Exchange | None:
        """Return the last turn in context, ``None`` if there is none or it cannot be read; `notices` reports damage."""
        from chorus_cli.context.rows.thread_views import last_exchange_of  # noqa: PLC0415 - the prompt does not need it

        with suppress(StorageError):
            return await self._store.read(last_exchange_of, self.slug, self.thread_id)
        return None

    async def new_warnings(self, target: Target, *, are_repeated: bool = False) -> tuple[str, ...]:
        """Return the warnings about the persona's files that the last call did not give, or all if ``are_repeated``.

        Sentences about links to files in other folders follow if they differ from those given last in any run.
        """
        warnings, links = target.persona.warnings, target.persona.links
        given, self._given_warnings = self._given_warnings, warnings
        new = warnings if are_repeated else tuple(warning for warning in warnings if warning not in given)
        key, sentences = meta_rows.LINKS_TOLD + target.persona.slug, "\n".join(links)
        # If the log cannot be used, another error says so, and the sentences come again.
        with suppress(StorageError):
            if links and await self._store.read(meta_rows.value, key) == sentences:
                links = ()
            elif links:
                await self._store.write(meta_rows.store, key, sentences)
        return (*new, *links)

    def sharing_notices(self) -> tuple[str, ...]:
        """Announce the thread in focus; return a notice, once, if another Chorus has it open too."""
        here = self.slug, self.thread_id
        self._open_threads.announce(*here)
        known, self._known_as_shared = self._known_as_shared, here if self._open_threads.is_shared(*here) else None
        return (SHARED,) if self._known_as_shared not in {None, known} else ()

    def way_to_a_model(self, choice: ModelChoice) -> str:
        """Say how the user gets a language model instead of ELIZA; empty if ``choice`` is a language model."""
        return way_to_a_model(choice, self._naming.environment)

    def target(self) -> Target:
        """Return the target in focus, with the persona's files read anew; its model is ELIZA until one is known."""
        persona = self._personas.load(self.slug)
        choice = self._named(persona) or self._detected or detected_model(None)
        return Target(persona, self.thread_id, choice, self.thread_number, self.is_aside)

    async def target_of(self, slug: str) -> Target:
        """Return the target of a message to the persona ``slug``; detect the model if necessary."""
        if slug == self.slug:
            await self.settle()
            return self.target()
        persona = await asyncio.to_thread(self._personas.load, slug)
        thread = await self._store.read(thread_rows.last_used, slug) or ThreadKey(0, 0)
        return Target(persona, thread.id, self._named(persona) or await self._detect(), thread.number)

    def _named(self, persona: Persona) -> ModelChoice | None:
        set_by_hand = self._set_by_hand.get(persona.slug)
        return set_by_hand or self._naming.named(persona.settings.model, persona.sources)

    @property
    def is_settled(self) -> bool:
        """Whether the model is known."""
        return self._detected is not None or self._named(self._personas.load(self.slug)) is not None

    async def settle(self) -> None:
        """Find the model; if none is named, ask a running Ollama, once in a run."""
        if not self.is_settled:
            await self._detect()

    async def _detect(self) -> ModelChoice:
        if self._asking_ollama is None:
            self._asking_ollama = asyncio.ensure_future(asyncio.to_thread(self._naming.ask_ollama))
        self._detected = detected_model(await asyncio.shield(self._asking_ollama))
        return self._detected

    async def note_edit(self, slug: str) -> None:
        """If the user has edited the window in a persona's file, store an operation; a full disk delays this."""
        path = self._personas.settings_path(slug)
        state = (0, 0)
        with suppress(OSError):
            state = path.stat().st_mtime_ns, path.stat().st_ino
        if self._noted_files.get(slug) == state:
            return
        own, _ = read_layer(path)
        present = json.dumps(own.values.get(WINDOW_KEY))
        if await self._store.read(meta_rows.value, meta_rows.WINDOW + slug) != present:
            from chorus_cli.personas.rows import note_edit  # noqa: PLC0415 - edits are rare

            try:
                await self._store.write(for_this_run, note_edit, path, slug, self._clock.now())
            except DatabaseFullError:
                return
        self._noted_files[slug] = state
