"""Shows a reply as plain text: where there is no terminal, and on a terminal without escape sequences."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

from chorus_cli.core.text.phrases import enumerated
from chorus_cli.core.text.safe_text import SafeTextStream, hidden_warning
from chorus_cli.models.rules import events as turn_events
from chorus_cli.terminal.reply.dim_lines import tool_line

if TYPE_CHECKING:
    from chorus_cli.log.rules.messages import Thought
    from chorus_cli.terminal.prompt.typing_ahead import ReplyKeyboard
    from chorus_cli.terminal.screen.output import Screen

_FENCE = re.compile(r" {0,3}(?:```|~~~)")


class PlainReply:
    """Appends one reply to ``answers``. Notices, errors and lines about tools go to ``asides``.

    Without a terminal, only a tool that changed something gets a line, and ``shows_thoughts`` has no effect. Until
    `close`, keys are read but not shown.
    """

    def __init__(
        self, answers: Screen, asides: Screen, keyboard: ReplyKeyboard | None = None, *, shows_thoughts: bool = False
    ) -> None:
        self._answers = answers
        self._asides = asides
        self._safe = SafeTextStream()
        self._block: list[str] = []
        self._open_line_text = ""
        self._is_fenced = False
        self._open_line = False
        self._closed = False
        self._shows_thoughts = shows_thoughts and answers.is_terminal
        self._thoughts: list[str] = []
        self._has_printed_thoughts = False
        self._keyboard = keyboard
        self.done: turn_events.TurnDone | None = None
        if keyboard is not None:
            keyboard.begin(lambda: None)

    def show(self, event: turn_events.TurnEvent) -> None:
        """Show one event of the turn; thoughts are shown when another event follows them."""
        if not isinstance(event, turn_events.ReasoningDelta):
            self._print_thoughts()
        match event:
            case turn_events.ReasoningDelta(text) if self._shows_thoughts:
                self._thoughts.append(text)
            case turn_events.TextDelta(text) if self._answers.is_terminal or not isinstance(event, turn_events.Fence):
                self._write(self._whole_blocks(self._safe.feed(text)))
            case turn_events.ToolUsed():
                self._end_line()
                if event.has_changed or self._asides.is_terminal:
                    columns = shutil.get_terminal_size().columns
                    self._asides.notice(tool_line(event, columns, unicode=self._asides.unicode))
            case turn_events.Connecting(servers) if self._asides.is_terminal:
                self._asides.notice(f"Connecting to {enumerated(servers)} …")
            case turn_events.Notice(text) | turn_events.WaitBegun(text):
                self._end_line()
                self._asides.notice(text)
            case turn_events.TurnDone():
                self.done = event
                self.close(event.thought)
                tell_end(event, self._asides)

    def name(self, speaker: str) -> None:
        """Show the name of the speaker of the following text."""
        self._answers.speaker(speaker)

    async def finish(self) -> None:
        """Do nothing: all text that has arrived is shown already."""

    def close(self, thought: Thought | None = None) -> None:
        """Show text that was held back; report hidden characters and the ``thought``. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._keyboard is not None:
            self._keyboard.end()
        self._print_thoughts()
        self._open_line_text += self._safe.close()
        self._end_line()
        warning = hidden_warning(self._safe)
        if warning:
            self._asides.notice(warning)
        if thought is not None and self._asides.is_terminal and not self._has_printed_thoughts:
            self._asides.notice(thought.words)

    def _print_thoughts(self) -> None:
        text = "".join(self._thoughts).strip()
        self._thoughts.clear()
        if text:
            self._has_printed_thoughts = True
            self._end_line()
            self._answers.notice(text)

    def _whole_blocks(self, text: str) -> str:
        """Return ``text``; on a plain terminal, hold it back until a blank line ends its block."""
        if not self._answers.is_plain:
            return text
        whole = ""
        *lines, self._open_line_text = f"{self._open_line_text}{text}".split("\n")
        for line in lines:
            self._block.append(f"{line}\n")
            self._is_fenced ^= bool(_FENCE.match(line))
            if not line and not self._is_fenced:
                whole += "".join(self._block)
                self._block.clear()
        return whole

    def _end_line(self) -> None:
        self._write("".join([*self._block, self._open_line_text]))
        self._block.clear()
        self._open_line_text = ""
        if self._open_line:
            self._answers.write("\n")
            self._open_line = False

    def _write(self, text: str) -> None:
        if text:
            self._answers.part_of_reply(text, text)
            self._answers.write(text)
            self._open_line = not text.endswith("\n")


def tell_end(done: turn_events.TurnDone | None, asides: Screen) -> None:
    """Say, below a reply, why it broke off and what the memory has captured from the turn."""
    if done is not None and done.error is not None:
        asides.error(done.complaint)
    if done is not None and done.remembered:
        asides.gap()
        asides.notice(done.remembered)
