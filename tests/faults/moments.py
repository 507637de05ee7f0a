"""The phases of a chat in which a signal may arrive: how the chat gets there, and the text that must come back."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from chorus_cli.sessions.rules import format as session_format
from tests.loopback_providers import call_chunk, piece
from tests.loopback_server import serving
from tests.models.providers.fault_server import DONE, chunk
from tests.remembering import wants_summary
from tests.terminal.driver import LONG_MESSAGE, PROMPT, Home, Terminal
from tests.terminal.editors import editor

if TYPE_CHECKING:
    from pathlib import Path

_WORDS, _WORD_SECONDS = 100, 0.02


class Talk(NamedTuple):
    """A chat in a terminal, and the folder beside its home."""

    chat: Terminal
    folder: Path


class Phase(NamedTuple):
    """How a chat gets into a phase, for how long a signal may be delayed then, and the text that must not be lost.

    An open editor has the keys: the signals of Ctrl-C and Ctrl-\\ are for it.
    """

    name: str
    enter: Callable[[Talk], object]
    seconds: float
    typed: str = ""
    has_model: bool = False
    has_editor: bool = False


def _typing(talk: Talk) -> None:
    talk.chat.type("one two three")
    talk.chat.await_line(f"{PROMPT} one two three")
    for letter in " four five six":
        talk.chat.type(letter)


def _answered(line: str, seen: str) -> Callable[[Talk], None]:
    def enter(talk: Talk) -> None:
        talk.chat.say(line)
        talk.chat.await_text(seen)

    return enter


def _streaming(talk: Talk) -> None:
    talk.chat.say(LONG_MESSAGE)
    talk.chat.await_text(" word0", times=2)
    talk.chat.type("typed ahead")
    talk.chat.await_text("typed ahead")


def _editing(line: str) -> Callable[[Talk], None]:
    def enter(talk: Talk) -> None:
        talk.chat.say("I am sad")
        talk.chat.await_text("sad?")
        talk.chat.await_line(PROMPT)
        talk.chat.say(line)
        talk.chat.until((talk.folder / "open").exists, "the editor")

    return enter


def _composing(talk: Talk) -> None:
    talk.chat.type("one two three")
    talk.chat.await_line(f"{PROMPT} one two three")
    talk.chat.type("\x18\x05")
    talk.chat.until((talk.folder / "open").exists, "the editor")


def _in_job(line: str) -> Callable[[Talk], None]:
    def enter(talk: Talk) -> None:
        talk.chat.say(line.format(talk.folder / "open"))
        talk.chat.until((talk.folder / "open").exists, "the job")

    return enter


def _importing(talk: Talk) -> None:
    path = talk.folder / "chat.jsonl"
    said = [{"name": "You", "is_user": True, "mes": f"{number} words " * 20} for number in range(2000)]
    path.write_text("\n".join(map(json.dumps, [{"user_name": "You", "character_name": "Chorus"}, *said])))
    talk.chat.say(f"/import {path}")


def _leaving(talk: Talk) -> None:
    talk.chat.press("ctrl-d")


PHASES = (
    Phase("start", lambda _: None, 1.0),
    Phase("prompt", lambda talk: talk.chat.await_line(PROMPT), 0.5),
    Phase("typing", _typing, 0.1, typed="one two three"),
    Phase("preparing", lambda talk: talk.chat.say("I am late"), 0.1, typed="I am late", has_model=True),
    Phase("waiting", _answered("I am late", "waiting for"), 0.5, typed="I am late", has_model=True),
    Phase("streaming", _streaming, 0.5, typed="typed ahead"),
    Phase(
        "tool round", lambda talk: talk.chat.say("Remember the milk"), 1.0, typed="Remember the milk", has_model=True
    ),
    Phase("fold", _answered("/context compact", "… 1 s"), 0.5, has_model=True),
    Phase("save", _answered("/context save", "… 1 s"), 0.5, has_model=True),
    Phase(
        "confirmation",
        _answered("/persona new Gollum\r/persona archive gollum\r/persona delete gollum", "Delete Gollum?"),
        0.3,
    ),
    Phase("editor", _composing, 0.3, typed="one two three", has_editor=True),
    Phase("context edit", _editing("/context edit"), 0.3, typed="I am sad", has_editor=True),
    Phase("job", _in_job("/run echo > {}; exec sleep 100"), 0.3),
    Phase("command", _in_job("!echo > {}; exec sleep 100"), 0.3),
    Phase("import", _importing, 0.5),
    Phase("exit", _leaving, 0.1),
)


def opened_editor(folder: Path) -> str:
    """Return an editor that stays open until it is ended."""
    return editor(folder, *[f"echo > {folder / 'open'}; exec sleep 100"] * 3)


def _pieces(body: dict[str, Any]) -> Iterator[bytes]:
    messages = body["messages"]
    said = str(messages[-1]["content"])
    system = str(messages[0]["content"])
    if wants_summary(system) or system.startswith(session_format.TASK) or "late" in said:
        yield from (chunk(f"word{number} ") for number in _slowly())
    elif messages[-1]["role"] != "tool" and "milk" in said:
        call = piece(json.dumps({"type": "TASK", "content": "buy milk"}), id_="c1", name="remember")
        yield call_chunk(call) + chunk(finish_reason="tool_calls") + DONE
        return
    yield chunk("Done.") + chunk(finish_reason="stop") + DONE


def _slowly() -> Iterator[int]:
    for number in range(_WORDS):
        time.sleep(_WORD_SECONDS if number else 3.0)
        yield number


@contextmanager
def model() -> Iterator[dict[str, str]]:
    """Serve a model that takes its time, and yield the variables of a chat that asks it."""
    with serving(lambda body: (200, _pieces(body))) as address:
        yield {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-of-nobody", "CHORUS_MODEL": "openai/test"}


def told(home: Home) -> None:
    """Say a few things, so that there is something to fold, to save and to edit."""
    for text in ("I am unhappy", "I am tired", "I am alone", "I am glad"):
        assert home.run("ask", "-c", text).code == 0
    # ELIZA has answered, whose talk no other model is sent.
    home.sql("UPDATE messages SET model = 'openai/test' WHERE model IS NOT NULL")
