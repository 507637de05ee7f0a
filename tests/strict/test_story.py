"""The whole story over each strict provider with another in its middle, by services and in the real program."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.strict.by_services import Stage
from tests.strict.providers import PROVIDERS, Strict
from tests.strict.server import Held, StrictServer, serving
from tests.strict.story import Actor, Story
from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.editors import ask_anew, say_anew

EVERY = [*PROVIDERS]


def _flowing(chat: Terminal) -> str:
    return " ".join(chat.screen_text().split())


def other_than(name: str) -> str:
    """Return the next provider whose address is another."""
    ring = EVERY[EVERY.index(name) + 1 :] + EVERY
    return next(each for each in ring if PROVIDERS[each].variable != PROVIDERS[name].variable)


@pytest.mark.parametrize("name", EVERY)
async def test_a_talk_of_many_turns_by_services(name: str, stage: Stage) -> None:
    async with stage.players(name, other_than(name)) as (player, (main, other)):
        await Story(player, main, other).play()
    assert {*player.notices} <= {"From memory: #1 Look for the ring."}


_STOPPED = "Stopped"
_UNDONE = re.compile('Undone: your message "(.*?)"')
_SLOWLY = "Do it slowly."
# It makes remembering this item take two seconds or so.
_TRIGGER = (
    "CREATE TRIGGER slow BEFORE INSERT ON context_items WHEN NEW.content = 'Do it slowly.' BEGIN "
    "SELECT count(*) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000000) "
    "SELECT i FROM n); END"
)


@dataclass(slots=True)
class InTerminal:
    """The player. ``environment`` holds addresses and keys."""

    home: Home
    environment: Mapping[str, str]
    _chat: Terminal | None = field(default=None, init=False)

    def open(self, strict: Strict) -> None:
        """Open the chat for the first time, with the model of a provider."""
        self.home.run("log")
        settings = {"name": "Chorus", "model": strict.model} | ({"effort": strict.effort} if strict.effort else {})
        (self.home.path / "personas" / "chorus" / "system.jsonc").write_text(json.dumps(settings))
        self.home.sql(_TRIGGER)
        self._editor.write_text(f'#!/bin/sh\nfor file; do :; done\n. "{self._script}"\n')
        self._editor.chmod(0o700)
        self._begin()

    def close(self) -> None:
        """End the chat."""
        if self._chat is not None:
            self._chat.close()

    async def say(self, text: str, answer: str) -> None:
        ask_anew(self.chat, text, answer)

    async def retry(self, answer: str, model: str | None = None) -> None:
        ask_anew(self.chat, f"/retry {model or ''}".strip(), answer)

    async def stop(self, text: str, actor: Actor, held: Held) -> None:
        if held is Held.SPEAKING:
            say_anew(self.chat, text, "Hardly")
        else:
            self.chat.say(text)
        assert actor.server.holding.wait(10)
        actor.server.holding.clear()
        self._interrupt()

    async def stop_at_work(self, text: str) -> None:
        self.chat.say(text)
        self.chat.until(self._is_at_work, "the slow tool")
        self._interrupt()

    def slow_call(self) -> tuple[str, dict[str, object]]:
        return "remember", {"type": "TASK", "content": _SLOWLY}

    async def command(self, line: str, told: str) -> str:
        say_anew(self.chat, line, told)
        if line == "/undo":
            # The question is in the line again.
            self.chat.await_line(f"{PROMPT} {_UNDONE.findall(_flowing(self.chat))[-1]}")
            self.chat.press("ctrl-c")
        self.chat.await_line(PROMPT)
        screen = _flowing(self.chat)
        return screen[screen.rindex(told) :]

    async def edit(self, script: str) -> None:
        self._script.write_text(script)
        await self.command("/context edit", "Context edited:")

    async def restart(self) -> None:
        self.chat.say("/quit")
        assert self.chat.await_end() == 0
        self.close()
        self._begin()

    @property
    def chat(self) -> Terminal:
        assert self._chat is not None
        return self._chat

    def _begin(self) -> None:
        own = {"VISUAL": str(self._editor), **self.environment}
        self._chat = Terminal({**self.home.environment, **own})
        self._chat.await_line(PROMPT)

    def _interrupt(self) -> None:
        times = self.chat.screen_text().count(_STOPPED) + 1
        self.chat.press("ctrl-c")
        self.chat.await_text(_STOPPED, times=times)
        self.chat.await_line(PROMPT)

    def _is_at_work(self) -> bool:
        calls = "SELECT count(*) FROM messages WHERE role = 'tool_use' AND status = 'streaming' AND tool_calls LIKE ?"
        return self.home.sql(calls, f"%{_SLOWLY}%") == [1]

    @property
    def _editor(self) -> Path:
        return self.home.path.parent / "editor"

    @property
    def _script(self) -> Path:
        return self.home.path.parent / "script"


@pytest.mark.parametrize(("name", "other_name"), [("claude", "gemini-3"), ("responses", "openrouter")])
async def test_a_talk_of_many_turns(name: str, other_name: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        names = (name, other_name)
        servers = [stack.enter_context(serving(StrictServer(each, PROVIDERS[each].protocol))) for each in names]
        main, other = (Actor(PROVIDERS[each], server) for each, server in zip(names, servers, strict=True))
        main.server.others, other.server.others = [other.server], [main.server]
        addresses = (actor.strict.environment(actor.server.address) for actor in (main, other))
        environment = {variable: value for each in addresses for variable, value in each.items()}
        player = stack.enter_context(closing(InTerminal(Home(tmp_path / "home"), environment)))
        player.open(main.strict)
        await Story(player, main, other).play()
