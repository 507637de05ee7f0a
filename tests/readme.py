"""The tables of the README, computed from the declarations; ``python -m tests.readme`` writes them into it."""

from __future__ import annotations

from pathlib import Path

from chorus_cli.commands.catalogue import registry
from chorus_cli.core.model_choice import PROVIDERS
from chorus_cli.core.settings import SETTINGS

README = Path(__file__).resolve().parent.parent / "README.md"


def settings_table() -> str:
    rows = [
        f"| `{setting.key}` | {setting.range_text} | {setting.default_text} | {setting.help} |" for setting in SETTINGS
    ]
    return "\n".join(["| key | takes | default | what it is for |", "|---|---|---|---|", *rows])


def models_table() -> str:
    rows = [f"| {each.name} | `{each.key_variable}` | `{each.default_model}` |" for each in PROVIDERS]
    return "\n".join(["| provider | key | model if none is named |", "|---|---|---|", *rows])


def renewed(text: str) -> str:
    """Return the README with every table as it should be."""
    tables = {"commands": registry().markdown_table(), "settings": settings_table(), "models": models_table()}
    for name, table in tables.items():
        opening, closing = f"<!-- {name} -->", f"<!-- /{name} -->"
        before, _, rest = text.partition(opening)
        _, _, after = rest.partition(closing)
        text = f"{before}{opening}\n{table}\n{closing}{after}"
    return text


if __name__ == "__main__":
    README.write_text(renewed(README.read_text(encoding="utf-8")), encoding="utf-8")
