"""Plays a story in the real program, in a pseudo-terminal, with the built-in tools."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.strict.server import Held
from tests.terminal.driver import PROMPT, Home, Terminal
from tests.terminal.editors import ask_anew, say_anew

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.strict.providers import Strict
    from tests.strict.story import Actor

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
            self.chat.await_line(f"{PROMPT} {_UNDONE.findall(self.chat.words())[-1]}")
            self.chat.press("ctrl-c")
        self.chat.await_line(PROMPT)
        screen = self.chat.words()
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
