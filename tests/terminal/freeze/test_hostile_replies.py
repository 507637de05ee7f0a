"""No reply that is made to hold up a terminal does: keys are read, Ctrl-C acts, and nothing is obeyed."""

from __future__ import annotations

import json
import os
import re
import select
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from chorus_cli.core import limits
from chorus_cli.core.text.code_points import join_surrogates
from tests.loopback_server import serving
from tests.models.providers.fault_server import DONE, chunk
from tests.terminal.driver import PATIENCE_SECONDS, PROMPT, Home, Terminal
from tests.terminal.forked import WATCHED_PROGRAM
from tests.terminal.freeze.watched import HEARTBEAT_SECONDS, Step, steps

_REPEATED = dict(
    [
        *(("quotes", ">"), ("quotes with blanks", "> "), ("lines of quotes", "> > > q\n")),
        *(("items in a row", "- "), ("items", "- a\n"), ("numbers", "1. a\n"), ("loose items", "- a\n\n")),
        *(("deep items", "- - - - - a\n"), ("quotes in items", "> - > 1. "), ("brackets", "[")),
        *(("parentheses", "("), ("begun links", "[a]("), ("begun images", "!["), ("closed brackets", "[]")),
        *(("links in links", "[a[b"), ("links", "[a](b) "), ("titles without an end", '[a](b "')),
        *(("emphasis", "*_"), ("stars", "*"), ("stars in words", "a**b"), ("strikes", "a~~b~")),
        *(("backticks", "` "), ("fences", "```\n"), ("closed fences", "```\na\n```\n"), ("entities", "&amp;")),
        *(("entities of signs", "&#x202e;"), ("ampersands", "&"), ("tags", "<b>"), ("begun tags", "<a ")),
        *(("begun attributes", '<a b="c" '), ("begun comments", "<!--"), ("cdata", "<![CDATA[")),
        *(("divisions", "<div>\n"), ("addresses", "<http://a/"), ("bars", "|"), ("rows", "|a|b|\n|-|-|\n")),
        *(("definitions", "[a]: /b\n"), ("uses", "[a] "), ("headings", "# a\n"), ("underlined headings", "a\n=\n")),
        *(("rules", "---\n"), ("paragraphs", "a\n\n"), ("broken lines", "a  \n"), ("indented code", "    x\n")),
        *(("backslashes", "\\*"), ("blanks", " "), ("empty lines", "\n"), ("tabs", "\t")),
        *(("carriage returns", "a\r"), ("marks", "a\u0301\u0302"), ("marks alone", "\u0301")),
        *(("families", "\U0001f469\u200d\U0001f469\u200d\U0001f467 "), ("joiners", "\U0001f469\u200d")),
        *(("selectors", "\u2764\ufe0f"), ("flags", "\U0001f3f4\U000e0067\U000e0062\U000e007f")),
        *(("hidden letters", "a\U000e0041"), ("nothing", "a\u200b"), ("overrides", "\u202e")),
        *(("colours", "\x1b[31m"), ("clipboard", "\x1b]52;c;AAAA\x07"), ("requests", "\x1bP1$r\x1b\\")),
        ("all controls", "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))),
        *(("halves", "\udc00\ud800"), ("wide letters", "\u65e5"), ("a line", "x"), ("words", "word ")),
        ("lines", "line\n"),
    ]
)
_BEGUN = {
    "a fence of empty lines": ("```c\n", "\n"),
    "a fence of blanks": ("```cpp\na", " "),
    "a fence of perl": ("```perl\n", "s{{\n"),
    "a fence of python": ("```python\n", 'def f(x):\n    return {"a": x}  # c\n'),
    "a fence of json": ("```json\n", '{"a": [1, true]},\n'),
    "a fence of a line": ("```\n", "x"),
    "a quote that goes on": ("> ", "a\n"),
    "an item that goes on": ("- ", "a\n"),
    "a title that goes on": ('[a]: /u "', "x\n"),
    "a label that goes on": ("[", "x\n"),
    "a comment that goes on": ("<!--\n", "x\n\n"),
    "a table": ("|" + "a|" * 20 + "\n|" + "-|" * 20 + "\n", "|" + "b|" * 20 + "\n"),
    "a table of a thousand columns": ("|" + "a|" * 1000 + "\n|" + "-|" * 1000 + "\n", "|" + "b|" * 1000 + "\n"),
    "a table of empty rows": ("|a|b|\n|-|-|\n", "|\n"),
    "a table of wide letters": ("|a|b|\n|-|-|\n", "|" + "\u65e5" * 50 + "|b|\n"),
    "a long cell": ("|a|b|\n|-|-|\n|", "x y "),
}
_COUNTED: Mapping[str, Callable[[int], str]] = {
    "nested items": lambda number: " " * (2 * number) + "- a\n",
    "growing backticks": lambda number: "`" * number + " ",
    "growing quotes": lambda number: ">" * number + " a\n",
    "growing stars": lambda number: "*" * number + "a",
    "definitions of many": lambda number: f"[r{number}]: /u{number}\n",
    "uses of many": lambda number: f"[r{number}] ",
    "uses before definitions": lambda number: f"[r{number}]\n\n[r{number}]: /u{number}\n\n",
}


def hostile_replies(length: int) -> dict[str, str]:
    """Return replies of so many characters, by their names."""
    repeated = {name: _filled(piece, length) for name, piece in _REPEATED.items()}
    begun = {name: begin + _filled(piece, length) for name, (begin, piece) in _BEGUN.items()}
    return {**repeated, **begun, **{name: _counted(piece, length) for name, piece in _COUNTED.items()}}


def _filled(piece: str, length: int) -> str:
    return (piece * (length // len(piece) + 1))[:length]


def _counted(piece: Callable[[int], str], length: int) -> str:
    text: list[str] = []
    so_far = 0
    for number in count(1):
        text.append(piece(number))
        so_far += len(text[-1])
        if so_far >= length:
            break
    return "".join(text)[:length]


END = "and that is the end"
_PIECE = 20_000
_STOPPED = "Stopped"
_CUT = f"Chorus stopped the reply at {limits.REPLY.size}"
_LIMIT = 10**9
_GAUGE = f"/ {_LIMIT:,}"
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[=>])")
_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
_LONGEST_BYTES = 1_000  # words that are waited for take less, with a colour for each letter
_BEGUN_SEQUENCE = re.compile(rb"\x1b(?:\[[0-9;?]*)?\Z")
_OBEYED = re.compile("[\x00-\x06\x0b-\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class WatchedChat:
    """``replies`` are said by the provider when the user says their names."""

    def __init__(self, terminal: Terminal, file: Path, replies: dict[str, str]) -> None:
        self.terminal = terminal
        self.replies = replies
        self._file = file
        self._begin = 0
        self._clock = (~terminal.pid << 3) | 2
        """Linux's number for the processor time of another process."""

    def shown(self, name: str, seconds: float) -> float | None:
        """Have a reply shown for so long and then stopped: return what that took, ``None`` if it ended before.

        It ends by itself, or at the limit of a reply.
        """
        self.terminal.say(name)
        if self.seen(END, seconds, or_else=_CUT):
            self._await_prompt()
            return None
        begun, worked = time.monotonic(), time.clock_gettime(self._clock)
        self.terminal.press("ctrl-c")
        assert self.seen(_STOPPED)
        taken = min(time.monotonic() - begun, time.clock_gettime(self._clock) - worked)
        self._await_prompt()
        return taken

    def begin_thread(self) -> None:
        self.terminal.say("/thread new")
        assert self.seen("Thread #")
        self._await_prompt()

    def seen(self, words: str, seconds: float = PATIENCE_SECONDS, *, or_else: str = "") -> bool:
        """Read what the terminal is sent until it was sent ``words``; the emulator, which is slow, reads nothing."""
        begin, number, deadline = len(self.terminal.drawn), self.terminal._child.child_fd, time.monotonic() + seconds
        awaited = [each.encode() for each in (words, or_else) if each]
        looked_up_to = begin
        while not any(each in self._plain(max(begin, looked_up_to - _LONGEST_BYTES)) for each in awaited):
            looked_up_to = len(self.terminal.drawn)
            if not select.select([number], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return False
            self.terminal.drawn += os.read(number, 65_536)
        return True

    def _plain(self, begin: int) -> bytes:
        """Return what was drawn from there on without colours: each letter may have one of its own in code."""
        return _COLOUR.sub(b"", self.terminal.drawn[begin:])

    def _await_prompt(self) -> None:
        # It may have come with the words that were waited for.
        assert PROMPT in self._tail() or self.seen(PROMPT)

    def long_steps(self) -> list[Step]:
        found = steps(self._file)
        new, self._begin = found[self._begin :], len(found)
        return new

    def obeyed(self) -> list[str]:
        """Return signs on the terminal since the last call that it would obey and that are none of ours."""
        drawn, self.terminal.drawn = self.terminal.drawn, b""
        if begun := _BEGUN_SEQUENCE.search(drawn):
            # Its end has not been read yet.
            drawn, self.terminal.drawn = drawn[: begun.start()], drawn[begun.start() :]
        return _OBEYED.findall(_SEQUENCE.sub("", drawn.decode(errors="replace")))

    def _tail(self) -> str:
        return self.terminal.drawn[-300:].decode(errors="replace")


@contextmanager
def watching(home: Home, replies: dict[str, str]) -> Iterator[WatchedChat]:
    """Open the chat with a watchdog, and wait until it has loaded all that it needs later."""
    folder = home.path / "personas" / "chorus"
    folder.mkdir(parents=True)
    settings = {"name": "Chorus", "system_prompt": "Be brief.", "model": "openai/small", "context_token_limit": _LIMIT}
    (folder / "system.jsonc").write_text(json.dumps(settings))
    file = home.path / "steps"
    file.touch()

    def answer(body: dict[str, Any]) -> tuple[int, Iterator[bytes]]:
        said = str(body["messages"][-1]["content"]).rsplit("\n", 1)[-1]
        return 200, _said(replies.get(said, "Noted."))

    with serving(answer) as address:
        environment = {**home.environment, "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-of-nobody"}
        command = [*WATCHED_PROGRAM, str(file)]
        with closing(Terminal(environment, command=command)) as terminal:
            terminal.await_line(PROMPT)
            terminal.ask("hello", END)
            # The gauge of the context is the last that is loaded.
            terminal.await_text(_GAUGE)
            chat = WatchedChat(terminal, file, replies)
            chat.long_steps()
            chat.obeyed()
            yield chat


def _said(text: str) -> Iterator[bytes]:
    for start in range(0, len(text), _PIECE):
        yield chunk(text[start : start + _PIECE])
    yield chunk(f"\n\n{END}\n")
    yield chunk(finish_reason="stop") + DONE


STOP_SECONDS = 0.1
MIXED = (
    *("a fence of empty lines", "a table of empty rows", "emphasis", "brackets", "a title that goes on", "marks"),
    "all controls",
)
HUGE = (
    *("brackets", "emphasis", "quotes in items", "nested items", "growing quotes", "a line", "lines", "marks alone"),
    *("families", "blanks", "empty lines", "carriage returns", "overrides", "quotes"),
)
_ATTEMPTS = 3  # times that a reply is shown until nothing took long: other work on the machine can only add to a time


def complaints(chat: WatchedChat, names: Iterable[str], seconds: float) -> list[str]:
    found: list[str] = []
    for name in names:
        slow: list[str] = []
        for _ in range(_ATTEMPTS):
            slow = delays(chat, name, seconds)
            found += [f"{name}: the terminal was sent {sign!r}" for sign in set(chat.obeyed())]
            if not slow:
                break
        found += slow
    return found


def delays(chat: WatchedChat, name: str, seconds: float) -> list[str]:
    chat.begin_thread()
    taken = chat.shown(name, seconds)
    # On a crowded machine the drawing that was given up has processor time while the loop waits for its own.
    is_crowded = os.getloadavg()[0] > 2 * (os.cpu_count() or 1)
    found = [f"{name}: {step}" for step in chat.long_steps() if step.seconds > HEARTBEAT_SECONDS]
    if taken is not None and taken > STOP_SECONDS * (1 + is_crowded):
        found.append(f"{name}: Ctrl-C took {taken:.3f} s")
    return found


def test_hostile_replies_hold_up_neither_ctrl_c_nor_the_heartbeat(home: Home) -> None:
    texts = hostile_replies(5_000)
    mixed = "\n\n".join(texts[name] for name in MIXED)
    with watching(home, {"mixed": mixed, "signs": texts["all controls"]}) as chat:
        # The first is shown to its end, however crowded the machine is.
        assert complaints(chat, ["signs"], PATIENCE_SECONDS) + complaints(chat, ["mixed"], 2) == []
        chat.terminal.type("the keyboard is alive")
        assert chat.seen("alive")
    whole = {"signs": f"{texts['all controls']}\n\n{END}\n", "mixed": f"{mixed}\n\n{END}\n"}
    stored = list(zip(home.said()[1:], home.replies()[1:], strict=True))
    assert {name for name, _ in stored} == set(whole)
    assert whole["signs"] in [content for _, (content, _) in stored]
    assert [name for name, (content, _) in stored if not whole[name].startswith(content)] == []


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_the_whole_corpus_does_not_either(home: Home) -> None:
    assert_none_holds_up(home, hostile_replies(100_000), 2)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_ten_megabytes_do_not_either(home: Home) -> None:
    assert_none_holds_up(home, {name: text for name, text in hostile_replies(10_000_000).items() if name in HUGE}, 8)


def assert_none_holds_up(home: Home, texts: dict[str, str], seconds: float) -> None:
    with watching(home, texts) as chat:
        assert complaints(chat, texts, seconds) == []
    whole = {name: f"{join_surrogates(text)}\n\n{END}\n" for name, text in texts.items()}
    stored = zip(home.said()[1:], home.replies()[1:], strict=True)
    assert [name for name, (content, _) in stored if not whole[name].startswith(content)] == []
