"""All output is readable on a dark and on a light background: few colours, all of the terminal's own palette."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prompt_toolkit.styles import merge_styles
from prompt_toolkit.styles.defaults import default_ui_style
from rich.console import Console
from rich.default_styles import DEFAULT_STYLES

from chorus_cli.terminal.markdown import drawing
from chorus_cli.terminal.markdown.drawing import CODE, MARKDOWN
from chorus_cli.terminal.prompt.line import STYLE
from tests.terminal.markdown.markdown_corpus import DOCUMENTS
from tests.terminal.markdown.markdown_screens import Size, streamed

if TYPE_CHECKING:
    from rich.style import Style

PALETTE_COLOURS = {"red", "blue", "magenta"}
MODULES = sorted(Path(drawing.__file__).parent.parent.rglob("*.py"))
NUMBERED = re.compile(r"\\x1b\[([0-9;]*(?:[34]|9|10)[0-9;]*)m")
RED = {"31"}
NAMES = re.compile(r"\b(?:ansi|bright_?)?(?:black|red|green|yellow|blue|magenta|cyan|white|gr[ae]y)\b|\"#[0-9a-f]{3,6}")
OWN_GROUND = {"", "default"}
SHOWN_BY_THE_PROMPT = (
    *("completion-menu", "completion-menu.completion", "completion-menu.completion.current", "control-character"),
    *("completion-menu.meta.completion", "completion-menu.meta.completion.current", "scrollbar.background"),
    *("scrollbar.button", "scrollbar.arrow", "search", "incsearch", "incsearch.current", "selected"),
    *("bottom-toolbar", "bottom-toolbar.text", "warning"),
)
STYLES = Console(theme=MARKDOWN).get_style
NAMED = [name for name in DEFAULT_STYLES if name.startswith(("markdown.", "table."))]


def is_readable(style: Style) -> bool:
    """Tell whether letters have a colour of the palette, and no ground but the terminal's own."""
    return style.bgcolor is None and (style.color is None or style.color.name in PALETTE_COLOURS)


@pytest.mark.parametrize("style", [*map(STYLES, NAMED), *map(CODE.get_style_for_token, CODE.style_map)], ids=str)
def test_a_style_of_markdown_or_code_or_a_table_names_only_colours_of_the_palette(style: Style) -> None:
    assert is_readable(style)


@pytest.mark.parametrize("name", SHOWN_BY_THE_PROMPT)
def test_a_style_of_the_prompt_names_only_colours_of_the_palette(name: str) -> None:
    attributes = merge_styles([default_ui_style(), STYLE]).get_attrs_for_style_str(f"class:{name}")
    assert attributes.color in OWN_GROUND | {f"ansi{colour}" for colour in PALETTE_COLOURS}
    assert attributes.bgcolor in OWN_GROUND


@pytest.mark.parametrize("name", DOCUMENTS)
def test_whatever_markdown_shows_has_the_colours_of_the_palette_on_the_terminal_s_own_ground(name: str) -> None:
    cells = [cell for row in streamed([DOCUMENTS[name]], Size()).rows() for cell in row]
    assert {cell.fg for cell in cells} <= OWN_GROUND | PALETTE_COLOURS
    assert {cell.bg for cell in cells} <= OWN_GROUND


def test_no_module_of_the_terminal_writes_another_colour() -> None:
    """But for the two that are looked at above."""
    texts = {f"{path.parent.name}/{path.name}": path.read_text(encoding="utf-8") for path in MODULES}
    assert {"prompt/line.py", "markdown/stream.py", "screen/output.py", "terminal/repl.py"} <= texts.keys()
    assert [name for name, text in texts.items() if set(NUMBERED.findall(text)) - RED] == []
    assert [name for name, text in texts.items() if NAMES.search(text)] == ["markdown/drawing.py"]
