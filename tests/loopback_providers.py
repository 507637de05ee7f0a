"""Providers on loopback that answer as tests tell them to, each in threads of this process."""

from __future__ import annotations

import json
import threading
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.loopback_server import serving
from tests.models.providers.fault_server import DONE, chunk, event, usage_chunk
from tests.remembering import summary_of, wants_summary

Messages = Sequence[dict[str, Any]]
_PATIENCE_SECONDS = 60
_END = chunk(finish_reason="stop") + DONE
ANSWER, THOUGHT_TOKENS = "Green *tea*.", 640


@dataclass
class Provider:
    """A running server: its address, and the bodies of the requests that it got, oldest first."""

    address: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)

    def environment(self, model: str = "openai/gpt-4o") -> dict[str, str]:
        return {"CHORUS_MODEL": model, "OPENAI_BASE_URL": self.address, "OPENAI_API_KEY": "sk-test-0123456789abcdef"}

    def answer(self, body: dict[str, Any]) -> tuple[int, Iterable[bytes]]:
        """Keep a request, and return the status and the pieces of the reply."""
        self.bodies.append(body)
        return self.reply(body["messages"])

    def reply(self, messages: Messages, /) -> tuple[int, Iterable[bytes]]:
        raise NotImplementedError

    def release(self) -> None:
        """Let go of what waits, in the end."""


P = TypeVar("P", bound=Provider)


@contextmanager
def running(provider: P) -> Iterator[P]:
    with serving(provider.answer) as provider.address:
        try:
            yield provider
        finally:
            provider.release()


@dataclass
class Recorder(Provider):
    """Answers ``seen.``; each answer reports ``tokens`` of prompt and reply, if there are any."""

    tokens: tuple[int, int] | None = None

    def contents(self) -> list[Any]:
        return [body["messages"][-1]["content"] for body in self.bodies]

    def reply(self, _messages: Messages, /) -> tuple[int, list[bytes]]:
        usage = usage_chunk(*self.tokens) if self.tokens else b""
        return 200, [chunk("seen."), chunk(finish_reason="stop") + usage + DONE]


def recording() -> AbstractContextManager[Recorder]:
    return running(Recorder())


@dataclass
class CallingProvider(Provider):
    """Answers by a script, tools and all; without an answer left it says ``ok``."""

    _script: deque[tuple[int, bytes]] = field(default_factory=deque)

    @property
    def asked(self) -> list[dict[str, Any]]:
        return self.bodies

    def say(self, text: str) -> None:
        self._script.append((200, chunk(text) + _END))

    def call(self, *pieces: dict[str, Any], before: str = "", reason: str = "tool_calls") -> None:
        """Enqueue a reply whose calls come in these pieces, a chunk each."""
        words = chunk(before) if before else b""
        self._script.append((200, words + b"".join(map(call_chunk, pieces)) + chunk(finish_reason=reason) + DONE))

    def refuse(self, status: int, message: str) -> None:
        self._script.append((status, json.dumps({"error": {"message": message}}).encode()))

    def reply(self, _messages: Messages, /) -> tuple[int, list[bytes]]:
        status, reply = self._script.popleft() if self._script else (200, chunk("ok") + _END)
        return status, [reply]


def calling() -> AbstractContextManager[CallingProvider]:
    return running(CallingProvider())


def piece(
    arguments: str | None = None, *, index: int | None = 0, id_: str | None = None, name: str | None = None
) -> dict[str, Any]:
    """Return a piece of a call in the shape of the OpenAI API, without what is ``None``."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    whole = {"index": index, "id": id_, "type": "function" if id_ else None, "function": function}
    return {key: value for key, value in whole.items() if value is not None}


def call_chunk(*pieces: dict[str, Any]) -> bytes:
    delta = {"role": "assistant", "content": None, "tool_calls": list(pieces)}
    choices = [{"index": 0, "delta": delta, "finish_reason": None}]
    return event({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices})


def split_call(name: str, arguments: object, id_: str = "c1", index: int = 0) -> list[dict[str, Any]]:
    """Return a call in as many pieces as its arguments have characters, and one before them."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return [piece("", index=index, id_=id_, name=name), *(piece(sign, index=index) for sign in written)]


@dataclass
class SlowProvider(Provider):
    """Begins every reply at once, and ends it when it is told to.

    The reply to a message whose last line begins with ``word`` is ``About word``, and ``: all.`` after it is finished.
    """

    _may_finish: dict[str, threading.Event] = field(default_factory=lambda: defaultdict(threading.Event))

    @property
    def asked(self) -> list[Messages]:
        return [body["messages"] for body in self.bodies]

    @property
    def variables(self) -> Mapping[str, str]:
        return self.environment("openai/slow")

    def finish(self, *words: str) -> None:
        """End the replies to these messages, also those to come."""
        for word in words:
            self._may_finish[word].set()

    def request_of(self, word: str) -> Messages:
        """Return the messages of the newest request whose last message begins with ``word``."""
        return next(messages for messages in reversed(self.asked) if _first_word(messages) == word)

    def reply(self, messages: Messages, /) -> tuple[int, Iterator[bytes]]:
        return 200, self._pieces(_first_word(messages))

    def _pieces(self, word: str) -> Iterator[bytes]:
        yield chunk(f"About {word}")
        self._may_finish[word].wait(_PATIENCE_SECONDS)
        yield chunk(": all.") + _END


def slow() -> AbstractContextManager[SlowProvider]:
    return running(SlowProvider())


def _first_word(messages: Messages) -> str:
    return str(messages[-1]["content"]).rsplit("\n", 1)[-1].split()[0]


@dataclass
class ThinkingProvider(Provider):
    """Sends ``thoughts`` in pieces, the answer once it ``may_answer``, and at the end the tokens of the thoughts.

    Each of the ``calls`` to come is a round of its own, which begins with the thoughts too.
    """

    thoughts: Sequence[str] = ("The user", " asks for tea.\n\n", "Green is best.")
    calls: list[str] = field(default_factory=list)
    may_answer: threading.Event = field(default_factory=threading.Event)

    @property
    def variables(self) -> Mapping[str, str]:
        return self.environment("openai/tea")

    def reply(self, _messages: Messages, /) -> tuple[int, Iterator[bytes]]:
        return 200, self._pieces()

    def _pieces(self) -> Iterator[bytes]:
        yield from (chunk(reasoning=piece) for piece in self.thoughts)
        self.may_answer.wait(_PATIENCE_SECONDS)
        if self.calls:
            yield from map(call_chunk, split_call(self.calls.pop(), "{}"))
            yield chunk(finish_reason="tool_calls")
        else:
            yield chunk(ANSWER)
            yield chunk(finish_reason="stop")
        details = {"reasoning_tokens": THOUGHT_TOKENS}
        usage = {"prompt_tokens": 100, "completion_tokens": 700, "completion_tokens_details": details}
        yield event({"id": "1", "object": "chat.completion.chunk", "choices": [], "usage": usage}) + DONE

    def release(self) -> None:
        self.may_answer.set()


def thinking() -> AbstractContextManager[ThinkingProvider]:
    return running(ThinkingProvider())


@dataclass
class RememberingProvider(Provider):
    """Answers with the first word of what was said; its summaries keep every word with an exclamation mark.

    A request for a summary is answered with ``status``, or without a word if the provider ``is_mute``. It waits while
    ``may_write`` is clear; ``writes_once`` clears that when a summary was written. ``tokens`` are those of prompt and
    text that each summary reports.
    """

    status: int = 200
    is_mute: bool = False
    writes_once: bool = False
    tokens: tuple[int, int] | None = None
    may_write: threading.Event = field(default_factory=threading.Event)

    @property
    def asked(self) -> list[Messages]:
        return [body["messages"] for body in self.bodies]

    def reply(self, messages: Messages, /) -> tuple[int, list[bytes]]:
        said = str(messages[-1]["content"])
        if not is_for_summary(messages):
            return 200, [chunk(f"Noted: {said.split(maxsplit=1)[0]}") + _END]
        self.may_write.wait(_PATIENCE_SECONDS)
        if self.writes_once:
            self.may_write.clear()
        usage = usage_chunk(*self.tokens) if self.tokens else b""
        text = chunk("" if self.is_mute else summary_of(said)) + chunk(finish_reason="stop") + usage + DONE
        return self.status, [text if self.status == 200 else b""]

    def release(self) -> None:
        self.may_write.set()


def remembering() -> AbstractContextManager[RememberingProvider]:
    provider = RememberingProvider()
    provider.may_write.set()
    return running(provider)


def is_for_summary(messages: Messages) -> bool:
    return wants_summary(str(messages[0]["content"]))
