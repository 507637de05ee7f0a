"""Colours are few and readable on any background; those of code come from lexers in a process of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from prompt_toolkit.styles import merge_styles
from prompt_toolkit.styles.defaults import default_ui_style
from pygments.lexers import get_all_lexers  # type: ignore[import-untyped]
from rich.console import Console
from rich.default_styles import DEFAULT_STYLES
from rich.style import Style

from chorus_cli.terminal.markdown import drawing
from chorus_cli.terminal.markdown.drawing import CODE, MARKDOWN
from chorus_cli.terminal.markdown.lexing import LexingProcess, is_too_costly, tokens_of
from chorus_cli.terminal.prompt.line import STYLE
from tests.terminal.command import await_death, is_alive
from tests.terminal.markdown.markdown_screens import DOCUMENTS, Size, at_once, cut, streamed

PROGRAM = 'def f(x: int) -> str:\n    """Say\n\n    more."""\n    return f"{x}\u20ac"\n\n\nf(1)\n'
PATIENCE_SECONDS = 30.0
RUNS = (" ", "\t", "\n", "a", "1", '"', "'", "(", "[", "{", "<", "/*", "#", "\\", "=", ".", "{{", "$", "%", "-")
STARTER = """
import sys, time
from chorus_cli.terminal.markdown.lexing import LexingProcess
lexing = LexingProcess()
lexing.tokens("python", "x = 1")
print(lexing._served.process.pid, flush=True)
time.sleep(60)
"""


def pid_of(lexing: LexingProcess) -> int:
    assert lexing._served is not None
    return lexing._served.process.pid


def test_the_colours_are_those_of_this_process() -> None:
    with closing(LexingProcess(PATIENCE_SECONDS)) as lexing:
        assert list(lexing.tokens("python", PROGRAM) or ()) == tokens_of("python", PROGRAM)


def test_text_and_code_that_costs_too_much_need_no_process() -> None:
    lexing = LexingProcess()
    assert lexing.tokens("text", "x") is lexing.tokens("c", "\n" * 12_000) is None
    assert lexing._served is None


def test_one_that_does_not_answer_is_killed_and_not_asked_again() -> None:
    with closing(LexingProcess(PATIENCE_SECONDS)) as lexing:
        assert lexing.tokens("python", PROGRAM)
        pid = pid_of(lexing)
        os.kill(pid, signal.SIGSTOP)
        lexing.hurry()
        begun = time.monotonic()
        assert lexing.tokens("python", PROGRAM) is None
        assert lexing.tokens("python", PROGRAM) is None
        assert time.monotonic() - begun < 5
        assert lexing._served is None
        assert not is_alive(pid)


def test_one_that_takes_long_ends_itself() -> None:
    with closing(LexingProcess(PATIENCE_SECONDS)) as lexing:
        begun = time.monotonic()
        assert lexing._answer("cpp", f"a{' ' * 12_000}!") is None
        assert time.monotonic() - begun < PATIENCE_SECONDS / 2
        assert lexing._served is None


def test_a_wait_that_has_begun_is_cut_short_when_the_user_has_stopped_the_reply() -> None:
    with closing(LexingProcess(PATIENCE_SECONDS)) as lexing, ThreadPoolExecutor() as thread:
        lexing.tokens("python", PROGRAM)
        os.kill(pid_of(lexing), signal.SIGSTOP)
        waiting = thread.submit(lexing.tokens, "python", PROGRAM)
        time.sleep(0.1)
        assert not waiting.done()
        lexing.hurry()
        assert waiting.result(PATIENCE_SECONDS / 2) is None


def test_while_it_starts_code_that_is_drawn_again_soon_has_no_colours() -> None:
    with closing(LexingProcess(PATIENCE_SECONDS)) as lexing:
        lexing.waits = False
        assert lexing.tokens("python", PROGRAM) is None
        lexing.waits = True
        assert lexing.tokens("python", PROGRAM) is not None


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_it_knows_no_keys_and_does_not_hear_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    with closing(LexingProcess(PATIENCE_SECONDS)) as lexing:
        lexing.tokens("python", PROGRAM)
        pid = pid_of(lexing)
        assert b"OPENAI_API_KEY" not in Path(f"/proc/{pid}/environ").read_bytes()
        assert os.getsid(pid) == pid


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_it_ends_with_its_starter_even_if_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", STARTER], stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        assert is_alive(pid)
        starter.kill()
    await_death(pid)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_every_lexer_answers_or_is_stopped_whatever_it_is_given() -> None:
    slowest, lexing = ("", "", 0.0), LexingProcess()
    for name in sorted(aliases[0] for _, aliases, _, _ in get_all_lexers() if aliases):
        for run in RUNS:
            for code in (run * 150 + "!", f'"{run * 60}\n' * 40):
                begun = time.monotonic()
                if lexing.tokens(name, code.expandtabs(4)) is None:
                    lexing.close()
                    lexing = LexingProcess()
                slowest = max(slowest, (name, run, time.monotonic() - begun), key=lambda found: found[2])
    lexing.close()
    assert slowest[2] < 5, slowest


STRING = 'int x = "y";\n'
TOO_MUCH = {
    "blanks": ("cpp", f"{STRING}a{' ' * 12_000}!"),
    "newlines": ("autohotkey", f"{STRING}{chr(10) * 1_500}x"),
    "tabs": ("autoit", f"{STRING}{chr(9) * 6_000}x"),
    "blanks of several kinds": ("c", STRING + " \n\t" * 400 + "x"),
    "a long line": ("python", STRING + "x = 1;" * 1_000),
    "few blanks, in 4 kB": ("c", STRING + " " * 4_000 + "x"),
}

pytestmark = pytest.mark.usefixtures("true_colours")


@pytest.mark.parametrize(("language", "code"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_no_lexer_looks_at_what_is_too_much_for_some(language: str, code: str) -> None:
    assert is_too_costly(code.expandtabs(4))
    named, plain = (streamed([f"```{name}\n{code}\n```\nend\n"], Size()).rows() for name in (language, "text"))
    assert named == plain


@pytest.mark.parametrize(
    ("code", "is_too_much"),
    [
        *[("x" * 40_000, True), ("x = 1\n" * 10_000, True)],
        *[("\n" * 100 + "x", False), ("x" + " " * 150 + "y", False), ("x = 1\n" * 2_000, False), ("x" * 2_000, False)],
    ],
)
def test_what_people_write_is_looked_at_and_very_much_code_is_not(code: str, *, is_too_much: bool) -> None:
    assert is_too_costly(code) == is_too_much


def test_a_string_over_the_seam_of_two_parts_keeps_its_text_and_may_lose_its_colour() -> None:
    text = '```python\nx = """\n' + "".join(f"  line {number}\n" for number in range(60)) + '"""\n```\n\nend\n'
    assert streamed(cut(text, 40), Size()).text() == at_once(text, Size()).text()


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
