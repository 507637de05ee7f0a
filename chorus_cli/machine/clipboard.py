"""The user's clipboard. Installed tools copy to it, and so does the terminal by OSC 52, which works over SSH.

OSC 52 needs no filter for unsafe text, because only its base64 varies. Only tools can read a picture.
"""

from __future__ import annotations

import shutil
import subprocess
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Timer
from typing import TextIO

from chorus_cli.core import limits
from chorus_cli.core.errors import AttachmentError, OutputError
from chorus_cli.machine.environment import without_secrets

_OTHER_WAY = "(wl-copy, xclip, xsel, pbcopy). /export FILE writes the conversation to a file."
LARGEST_SEQUENCE_BYTES = 100_000
_PATIENCE_SECONDS = 3.0
_OVER_SSH = ("SSH_CONNECTION", "SSH_TTY")
_TOOLS = (
    # Each command, and the variable that must be set for the command to reach a clipboard.
    (("pbcopy",), ""),
    (("wl-copy",), "WAYLAND_DISPLAY"),
    (("xclip", "-selection", "clipboard"), "DISPLAY"),
    (("xsel", "--clipboard", "--input"), "DISPLAY"),
)
_PICTURE_TOOLS = (
    (("pngpaste", "-"), ""),
    (("wl-paste", "--type", "image/png"), "WAYLAND_DISPLAY"),
    (("xclip", "-selection", "clipboard", "-t", "image/png", "-o"), "DISPLAY"),
)
_TMUX = (("tmux", "load-buffer", "-w", "-"), "TMUX")  # tmux ignores OSC 52 by default


@dataclass(frozen=True, slots=True)
class Clipboard:
    """The user's clipboard. ``terminal`` is the output of Chorus, which need not be a terminal."""

    environment: Mapping[str, str]
    terminal: TextIO | None

    def copy(self, text: str) -> str:
        """Copy a text in every available way; return the ways, such as ``by wl-copy``, or raise an ``OutputError``."""
        ways = [f"by {name}" for name in self._taken_by(text)]
        if self._offer_to_terminal(text):
            ways.append("by your terminal, if it allows that (OSC 52)")
        if ways:
            return " and ".join(ways)
        if self._is_terminal:
            raise OutputError(
                f"The reply is too long for the terminal's clipboard ({len(text.encode()):,} bytes), and there "
                f"is no clipboard tool {_OTHER_WAY}"
            )
        raise OutputError(
            f"There is no clipboard here: the output is not a terminal, and no clipboard tool works {_OTHER_WAY}"
        )

    def picture(self) -> bytes:
        """Return the picture in the clipboard in PNG; raise an ``AttachmentError`` if there is none."""
        tools = [tool for command, variable in _PICTURE_TOOLS if (tool := self._tool(command, variable))]
        if not tools:
            raise AttachmentError(
                "The clipboard cannot be read: neither wl-paste nor xclip nor pngpaste works here. /attach FILE "
                "attaches a picture that is in a file."
            )
        found = next(filter(None, map(self._output, tools)), b"")
        if not found:
            raise AttachmentError("There is no picture in the clipboard.")
        return found

    def _output(self, command: list[str]) -> bytes:
        """Return a tool's output, cut at one byte more than an attachment may have; empty if the tool fails."""
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=without_secrets(self.environment),
            )
        except OSError:
            return b""
        patience = Timer(_PATIENCE_SECONDS, process.kill)
        patience.start()
        with process:
            found = process.stdout.read(limits.ATTACHMENT.most + 1) if process.stdout else b""
            is_too_long = len(found) > limits.ATTACHMENT.most
            if is_too_long:
                process.kill()
        patience.cancel()
        return found if is_too_long or process.returncode == 0 else b""

    def _tool(self, command: tuple[str, ...], variable: str) -> list[str]:
        """Return the command of a tool with its path; empty if it is not installed, or ``variable`` is not set."""
        name, *arguments = command
        program = shutil.which(name, path=self.environment.get("PATH"))
        if program is None or (variable and not self.environment.get(variable)):
            return []
        return [program, *arguments]

    def _taken_by(self, text: str) -> Iterator[str]:
        """Copy by the first desktop tool that works and by tmux, and yield the names of the tools that worked."""
        if any(map(self.environment.get, _OVER_SSH)):
            desktop = [tool for tool in _TOOLS if tool[1] == "DISPLAY"]  # SSH forwards only this one
        else:
            desktop = list(_TOOLS)
        for command, variable in desktop:
            if self._took(command, variable, text):
                yield command[0]
                break
        if self._took(*_TMUX, text):
            yield _TMUX[0][0]

    def _took(self, command: tuple[str, ...], variable: str, text: str) -> bool:
        tool = self._tool(command, variable)
        if not tool:
            return False
        try:
            # Some tools stay in the background to serve the text, and would keep a pipe for their output open.
            done = subprocess.run(
                tool,
                input=text.encode(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=without_secrets(self.environment),
                timeout=_PATIENCE_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0

    @property
    def _is_terminal(self) -> bool:
        return self.terminal is not None and self.terminal.isatty() and self.environment.get("TERM") != "dumb"

    def _offer_to_terminal(self, text: str) -> bool:
        """Write OSC 52, unless it is too long or there is no terminal; return whether it was written."""
        sequence = f"\x1b]52;c;{b64encode(text.encode()).decode()}\x1b\\"
        if self.terminal is None or not self._is_terminal or len(sequence) > LARGEST_SEQUENCE_BYTES:
            return False
        try:
            self.terminal.write(sequence)
            self.terminal.flush()
        except OSError:
            return False
        return True
