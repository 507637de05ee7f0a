"""The documents about Chorus, with tables computed from the declarations.

``python -m tests.documents`` writes every table into its document.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from chorus_cli.catalogue import registry
from chorus_cli.core.limits import LIMITS
from chorus_cli.core.text.redaction import KEY_SHAPES
from chorus_cli.imports.files.reading import FORMATS
from chorus_cli.models.providers.echoes import ECHO_RULES
from chorus_cli.models.providers.providers import PROVIDERS as ASKED_DIRECTLY
from chorus_cli.models.rules.choice import PROVIDERS
from chorus_cli.settings.rules.table import SETTINGS
from tests.trust import trust_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chorus_cli.framework.registry import C, Command

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PACKAGE_PAGE = ROOT / "docs" / "package.md"
DOCUMENTS = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))


def commands_table(commands: Iterable[Command[C]], *, only_in_chat: bool) -> str:
    rows = []
    for command in commands:
        if command.only_in_chat is only_in_chat:
            names = ", ".join(map(_code, (command.usage, *command.other_names)))
            rows.append(f"| {names} | {command.documentation.summary} |")
    return "\n".join(["| command | description |", "|---|---|", *rows])


def _code(text: str) -> str:
    """Write as code for a Markdown table, where a bar ends the cell even in code."""
    return "`" + text.replace("|", r"\|") + "`"


def settings_table() -> str:
    rows = [
        f"| `{setting.key}` | {setting.range_text} | {setting.default_text} | {setting.help} |" for setting in SETTINGS
    ]
    return "\n".join(["| key | accepts | default | description |", "|---|---|---|---|", *rows])


def models_table() -> str:
    rows = [f"| {each.name} | `{each.key_variable}` | `{each.default_model}` |" for each in PROVIDERS]
    return "\n".join(["| provider | key | default model |", "|---|---|---|", *rows])


def addresses_table() -> str:
    rows = [
        f"| `{prefix}/` | `{each.address}` | {', '.join(map(_code, each.address_variables))} |"
        for prefix, each in ASKED_DIRECTLY.items()
    ]
    return "\n".join(["| models | address | variables for another one |", "|---|---|---|", *rows])


def thoughts_table() -> str:
    models: dict[str, list[str]] = {}
    for rule in ECHO_RULES:
        models.setdefault(f"{rule.form} | {rule.echo.span.value}", []).append(rule.title)
    rows = [f"| {', '.join(titles)} | {returned} |" for returned, titles in models.items()]
    return "\n".join(["| models | what goes back | how long |", "|---|---|---|", *rows])


def formats_table() -> str:
    rows = [f"| {each.title} | {each.files} |" for each in FORMATS]
    return "\n".join(["| of | what |", "|---|---|", *rows])


def limits_table() -> str:
    rows = [f"| {each.thing} | {each.size} | {each.beyond} |" for each in LIMITS]
    return "\n".join(["| of | at most | beyond that |", "|---|---|---|", *rows])


def key_shapes_table() -> str:
    rows = [f"| {each.owner} | {', '.join(map(_code, each.beginnings))} |" for each in KEY_SHAPES]
    return "\n".join(["| of | begin with |", "|---|---|", *rows, "| private keys | `-----BEGIN … PRIVATE KEY-----` |"])


def tables() -> dict[str, str]:
    """Return the tables by the names in the marks around them."""
    return {
        "commands": commands_table(registry(), only_in_chat=False),
        "chat commands": commands_table(registry(), only_in_chat=True),
        "settings": settings_table(),
        "models": models_table(),
        "addresses": addresses_table(),
        "thoughts": thoughts_table(),
        "formats": formats_table(),
        "limits": limits_table(),
        "key shapes": key_shapes_table(),
        "trust": trust_table(),
    }


def marks(name: str) -> tuple[str, str]:
    """Return the marks before and after a table."""
    return f"<!-- {name} -->", f"<!-- /{name} -->"


def renewed(text: str) -> str:
    """Return a document with up-to-date tables."""
    for name, table in tables().items():
        opening, closing = marks(name)
        before, found, rest = text.partition(opening)
        _, _, after = rest.partition(closing)
        text = f"{before}{opening}\n{table}\n{closing}{after}" if found else text
    return text


if __name__ == "__main__":
    for document in DOCUMENTS:
        document.write_text(renewed(document.read_text(encoding="utf-8")), encoding="utf-8")
