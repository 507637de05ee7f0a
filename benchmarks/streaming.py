"""The cost of showing a long reply while it streams, against rich's ``Live``, which redraws all of it each time."""

from __future__ import annotations

import io
import os
import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown

from benchmarks.figures import figure
from chorus_cli.core.text.safe_text import SafeTextStream
from chorus_cli.terminal.markdown.lexing import LexingProcess
from chorus_cli.terminal.markdown.stream import MarkdownStream
from chorus_cli.terminal.screen.output import TerminalGuard
from chorus_cli.terminal.screen.painted_rows import PaintedRows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.figures import Figure, Pair

GOAL = 0.05
_TOKENS = 32_000
_TOKEN_CHARACTERS = 4
_COLUMNS, _ROWS = 80, 24
# At fifty tokens a second Live draws ten frames and Chorus, at fifteen or so, every third token.
_TOKENS_PER_FRAME_OF_LIVE = 5
_TOKENS_PER_FRAME = 3
_ROUNDS, _QUICK_ROUNDS = 3, 1
# Live takes ten minutes for all its frames. They grow with the reply, so frames at equal distances stand for all.
_FRAMES_PER_SAMPLE, _QUICK_FRAMES_PER_SAMPLE = 40, 160

_SECTION = """## Part {number} of the journey

On day {number} we went over the *old* plan again and found **one more thing** that nobody had thought of: the bridge
near the `mill` is closed, and the [way around](https://example.org/{number}) takes an hour longer than the map says.

- Take the northern road, it is dry.
- Ask at the inn:
  - about the ferry,
  - about the weather in the hills, which nobody there can tell but everybody does.
- Do not wait for the others.

```python
def hours(day: int, *, detour: bool = False) -> float:
    \"\"\"How long day {number} takes.\"\"\"
    walked = sum(leg.miles / PACE for leg in legs_of(day))
    return walked + (1.0 if detour else 0.0)  # an hour, they say
```

| leg | miles | surface |
|-----|------:|---------|
| to the mill | {number} | gravel |
| to the inn | 7 | mud, mostly |

1. Pack the tent first.
2. Then everything else, and what is left over stays here.

> Nobody who has seen the river in spring
> speaks lightly of it.

"""


def measure(*, quick: bool) -> Iterator[Figure]:
    """Time one reply of 32 thousand tokens of four characters, on a terminal that shows nothing."""
    return compare(
        _TOKENS, _QUICK_ROUNDS if quick else _ROUNDS, _QUICK_FRAMES_PER_SAMPLE if quick else _FRAMES_PER_SAMPLE
    )


def compare(token_count: int, rounds: int, frames_per_sample: int) -> Iterator[Figure]:
    """Yield the figure; of Live only one frame of ``frames_per_sample`` is drawn, and counted for all."""
    tokens = _reply(token_count)
    pairs: list[Pair] = [
        (_seconds_of_chorus(tokens), _seconds_of_live(tokens, frames_per_sample)) for _ in range(rounds)
    ]
    yield figure(f"streaming a {token_count // 1000} k-token reply, CPU", "rich Live, 10 frames a second", pairs, GOAL)


def _reply(token_count: int) -> Sequence[str]:
    length = token_count * _TOKEN_CHARACTERS
    text = "".join(_SECTION.format(number=number) for number in range(1 + length // len(_SECTION)))
    return [text[start : start + _TOKEN_CHARACTERS] for start in range(0, length, _TOKEN_CHARACTERS)]


def _seconds_of_chorus(tokens: Sequence[str]) -> float:
    """Do all that the chat does between the model's events and the terminal."""
    guard = TerminalGuard(_Nowhere())
    begun, safe, lexing = _processor_seconds(), SafeTextStream(), LexingProcess()
    rows, size = PaintedRows(lambda text: _write(guard, text)), os.terminal_size((_COLUMNS, _ROWS))
    stream = MarkdownStream(lexing)
    for number, token in enumerate(tokens):
        stream.feed(safe.feed(token))
        if number % _TOKENS_PER_FRAME == 0:
            stream.advance(size)
            open_rows = stream.frame(size, _ROWS - 1)
            rows.show(stream.take_settled(), open_rows, *size)
    stream.finish(size)
    rows.show(stream.take_settled(), [], *size)
    lexing.close()
    return _processor_seconds() - begun


def _processor_seconds() -> float:
    """Return the time of this process and of those that it has ended."""
    return sum(os.times()[:4])


def _write(guard: TerminalGuard, text: str) -> None:
    guard.write(text)
    guard.flush()


def _seconds_of_live(tokens: Sequence[str], frames_per_sample: int) -> float:
    console = Console(file=_Nowhere(), force_terminal=True, width=_COLUMNS, height=_ROWS)
    step = _TOKENS_PER_FRAME_OF_LIVE * frames_per_sample
    begun = time.process_time()
    with Live(console=console, auto_refresh=False) as live:
        for count in range(step // 2, len(tokens), step):
            live.update(Markdown("".join(tokens[:count])), refresh=True)
        sampled = time.process_time() - begun
    return sampled * frames_per_sample


class _Nowhere(io.StringIO):
    """A terminal that discards its output."""

    def write(self, text: str) -> int:
        return len(text)
