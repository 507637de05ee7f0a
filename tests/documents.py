"""The documents about Chorus, with tables computed from the declarations.

``python -m tests.documents`` writes every table into its document.
"""

from __future__ import annotations

from pathlib import Path

from chorus_cli.commands.catalogue import registry
from chorus_cli.core.models.choice import PROVIDERS
from chorus_cli.core.settings.table import SETTINGS

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PACKAGE_PAGE = ROOT / "docs" / "package.md"
DOCUMENTS = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))


def settings_table() -> str:
    rows = [
        f"| `{setting.key}` | {setting.range_text} | {setting.default_text} | {setting.help} |" for setting in SETTINGS
    ]
    return "\n".join(["| key | accepts | default | description |", "|---|---|---|---|", *rows])


def models_table() -> str:
    rows = [f"| {each.name} | `{each.key_variable}` | `{each.default_model}` |" for each in PROVIDERS]
    return "\n".join(["| provider | key | default model |", "|---|---|---|", *rows])


def tables() -> dict[str, str]:
    """Return the tables by the names in the marks around them."""
    return {"commands": registry().markdown_table(), "settings": settings_table(), "models": models_table()}


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
