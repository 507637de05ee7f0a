"""Texts that could be mistaken for a part of the format, and editors that change none of it."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from chorus_cli.editing.rules.format import CONTEXT_LINE, END_LINE, Block
from chorus_cli.log.rules.messages import Role

# What could be taken for a part of the format, and what some programs take for the end of a line.
NASTY_LINES = (
    "[attachment: a.png 1 kB]",
    "\\[attachment: a.png 1 kB] ",
    "",
    " ",
    "\t ",
    "---",
    "----",
    CONTEXT_LINE,
    f"  {CONTEXT_LINE}  ",
    "-- context starts here -",
    END_LINE,
    f"{END_LINE}\t",
    f"{END_LINE} or not",
    "[2025-01-18 22:15:03] Human: hello",
    "[2025-01-18 22:15:03] Frodo (tool): hello",
    "[2025-01-18] a log",
    "[2025-1-8",
    "[20x5-01-18 22:15:03] Human: hello",
    "2025-01-18 22:15:03] Frodo: hello",
    "\\2025-01-18 22:15:03 human :",
    "[link](https://example.org)",
    "# a title",
    "\\",
    "\\\\ ",
    "\\[2025-01-18 22:15:03] Human: hello",
    f"\\\\{CONTEXT_LINE}",
    f"\\{END_LINE}",
    "\\n",
    "vim: set sw=13:",
    "ex: set sw=13:",
    "-*- mode: sh -*-",
    "\f",
    "Local Variables:",
    "\x0b",
    "\x1c",
    "\x85",
    "\u2028",
    "\u3000",
    "\ufeff",
    "plain",
)
LINES = st.sampled_from(NASTY_LINES) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"))
BODIES = st.lists(LINES, max_size=6).map("\n".join)
TIMES = st.datetimes().map(lambda moment: moment.isoformat(" ", "seconds"))
ATTACHMENT_LINES = st.lists(st.sampled_from(["[attachment: a.png 1 kB]", "[attachment: b c.pdf 2 MB, 2]"]), max_size=2)
BLOCKS = st.builds(
    Block,
    st.sampled_from([Role.USER, Role.ASSISTANT, Role.TOOL_USE]),
    TIMES,
    BODIES,
    st.just(0),
    ATTACHMENT_LINES.map(tuple),
)
BLOCK_LISTS = st.lists(BLOCKS, max_size=4)


def without_trailing_blanks(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n"))


LOSSLESS_EDITORS: dict[str, Callable[[str], str]] = {
    "as it was": lambda text: text,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "CR": lambda text: text.replace("\n", "\r"),
    "byte order mark": lambda text: f"\ufeff{text}",
    "byte order mark and CRLF": lambda text: "\ufeff" + text.replace("\n", "\r\n"),
    "last newline dropped": lambda text: text.removesuffix("\n"),
    "more newlines at the end": lambda text: text + "\n\n",
    "the footer cut off": lambda text: text[: text.rindex(END_LINE) + len(END_LINE)],
}
