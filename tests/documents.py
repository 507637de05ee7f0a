"""The documents about Chorus, with tables computed from the declarations, the program and its benchmarks.

``python -m tests.documents`` writes every table into its document."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from benchmarks import endurance
from chorus_cli.catalogue import registry
from chorus_cli.core.limits import LIMITS
from chorus_cli.core.text import code_points
from chorus_cli.core.text.redaction import KEY_SHAPES
from chorus_cli.framework.help import everyday
from chorus_cli.framework.registry import C, Command
from chorus_cli.imports.files.reading import FORMATS
from chorus_cli.models.providers.echoes import ECHO_RULES
from chorus_cli.models.providers.providers import PROVIDERS as ASKED_DIRECTLY
from chorus_cli.models.rules.choice import PROVIDERS
from chorus_cli.settings.rules.table import SETTINGS
from chorus_cli.terminal.screen.output import TerminalGuard
from chorus_cli.tools.service import BUILT_IN

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PACKAGE_PAGE = ROOT / "docs" / "package.md"
DOCUMENTS = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))
_LEFT_OUT = (
    f"[{code_points.CONTROLS}{code_points.C1_CONTROLS}{code_points.BIDI_CONTROLS}{code_points.NONCHARACTERS}"
    f"{code_points.SURROGATES}{code_points.IGNORABLES}{code_points.TAG_CHARACTERS}{code_points.CANCEL_TAG}]"
)


def _table(headings: str, rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table in Markdown; the headings are parted by bars."""
    lines = [f"| {headings} |", f"|{'---|' * (headings.count('|') + 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _code(*texts: str) -> str:
    """Write texts as code for a table, where a bar ends the cell even in code."""
    return ", ".join("`" + text.replace("|", r"\|") + "`" for text in texts)


def commands_table(commands: Iterable[Command[C]], *, only_in_chat: bool) -> str:
    rows = (
        (_code(re.sub(r" \[--[^]]*]", "", each.usage)), each.documentation.summary)
        for each in commands
        if each.only_in_chat is only_in_chat and each.listed != "nowhere"
    )
    return _table("command | description", rows)


def _addresses(prefix: str) -> str:
    asked = ASKED_DIRECTLY.get(prefix.removesuffix("/"))
    return _code(*asked.address_variables) if asked else "needs litellm"


def _thoughts() -> Iterable[tuple[str, str]]:
    models: dict[str, list[str]] = {}
    for rule in ECHO_RULES:
        models.setdefault(rule.echo.span.value, []).append(f"[{rule.title}](https://{rule.source})")
    return ((span, ", ".join(titles)) for span, titles in models.items())


@cache
def _figures() -> tuple[tuple[str, str], ...]:
    left_out = re.findall(_LEFT_OUT, "".join(map(chr, range(sys.maxunicode + 1))))
    letters = [letter for letter in map(chr, range(0x40, 0x7F)) if _passes(f"\x1b[1{letter}")]
    return (
        ("code points that are shown by a sign or left out", f"{len(left_out):,} of {sys.maxunicode + 1:,}"),
        ("final letters of the control sequences that pass the second filter", " ".join(map(_code, letters))),
        ("kinds of keys that are known by their shape", f"{len(KEY_SHAPES) + 1}"),
        ("tools of a model", _code(*(each.tool.name for each in BUILT_IN))),
        ("declared limits", f"{len(LIMITS)}"),
        (f"turn {endurance.TURNS:,} against turn {endurance.EARLY_TURN}, at most", f"{endurance.GOAL} times"),
    )


def _passes(sequence: str) -> bool:
    guard = TerminalGuard(io.StringIO())
    guard.write(sequence + "\n")
    guard.flush()
    return not guard.blocked


def tables() -> dict[str, str]:
    private_keys = f"private keys: {_code('-----BEGIN … PRIVATE KEY-----')}"
    return {
        "everyday": _table("command | what it does", ((_code(typed), told) for typed, told in everyday(registry()))),
        "commands": commands_table(registry(), only_in_chat=False),
        "chat commands": commands_table(registry(), only_in_chat=True),
        "settings": _table(
            "key | accepts | default | description",
            ((_code(each.key), each.range_text, each.default_text, each.help) for each in SETTINGS),
        ),
        "models": _table(
            "provider | key | default model | variables for another address",
            (
                (each.name, _code(each.key_variable), _code(each.default_model), _addresses(each.prefix))
                for each in PROVIDERS
            ),
        ),
        "addresses": _table(
            "models | address | variable for another one",
            (
                (_code(f"{prefix}/"), _code(each.address), _addresses(f"{prefix}/"))
                for prefix, each in ASKED_DIRECTLY.items()
                if f"{prefix}/" not in {provider.prefix for provider in PROVIDERS}
            ),
        ),
        "thoughts": _table("go back | thoughts of", _thoughts()),
        "formats": _table("of | what", ((each.title, each.files) for each in FORMATS)),
        "limits": _table("of | at most | beyond that", ((each.thing, each.size, each.beyond) for each in LIMITS)),
        "key shapes": "; ".join((*(f"{each.owner}: {_code(*each.beginnings)}" for each in KEY_SHAPES), private_keys)),
        "trust": _table("figure | value", _figures()),
    }


def marks(name: str) -> tuple[str, str]:
    return f"<!-- {name} -->", f"<!-- /{name} -->"


def renewed(text: str) -> str:
    for name, table in tables().items():
        opening, closing = marks(name)
        before, found, rest = text.partition(opening)
        _, _, after = rest.partition(closing)
        text = f"{before}{opening}\n{table}\n{closing}{after}" if found else text
    return text


if __name__ == "__main__":
    for document in DOCUMENTS:
        document.write_text(renewed(document.read_text(encoding="utf-8")), encoding="utf-8")
