"""``python -m release.model_map`` makes the facts about models that come with Chorus, from the installed litellm."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime
from importlib import metadata
from pathlib import Path

from chorus_cli.models.providers.model_files import MODELS, SHIPPED, SOURCE, models_text, package_folder, providers
from chorus_cli.models.providers.token_counter import VOCABULARY_NAME

Entry = Mapping[str, object]

_KEPT_MODES = {"chat", "responses", "completion"}
_DENIABLE = "supports_sampling_params"
FIELDS = (
    *("litellm_provider", "mode", "alias_of", "max_input_tokens", "max_tokens", "max_output_tokens"),
    *(
        "input_cost_per_token",
        "output_cost_per_token",
        "cache_read_input_token_cost",
        "cache_creation_input_token_cost",
    ),
    *("supports_assistant_prefill", "supports_function_calling", "supports_pdf_input", "supports_prompt_caching"),
    *("supports_reasoning", _DENIABLE, "supports_system_messages", "supports_vision"),
)
"""The fields of an entry that Chorus reads."""


def models(document: Mapping[str, Entry]) -> str:
    """Return the models of litellm's map that can be asked for text, one a line, with the fields that Chorus reads."""
    asked = {name for name, entry in document.items() if entry.get("mode") in _KEPT_MODES}
    lines = (
        f"{json.dumps(name)}: {json.dumps(_kept(entry), separators=(',', ':'))}"
        for name, entry in document.items()
        if name in asked or entry.get("alias_of") in asked
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _kept(entry: Entry) -> Entry:
    """Return the fields that tell something: an ability if the model has it, a temperature if the model takes none."""
    told = {name: entry[name] for name in FIELDS if entry.get(name) is not None}
    abilities = {name for name in told if name.startswith("supports_")}
    return {name: value for name, value in told.items() if name not in abilities or value is (name != _DENIABLE)}


def made(litellm: Path, today: date, before: Path = SHIPPED) -> dict[str, bytes]:
    """Return the files by name; the date in ``before`` stays if nothing else changes, so a release can be repeated."""
    vocabulary = litellm / "litellm_core_utils" / "tokenizers" / VOCABULARY_NAME
    source: dict[str, object] = {
        "library": "litellm",
        "version": metadata.version("litellm"),
        "date": today.isoformat(),
        "providers": sorted(providers(litellm)),
    }
    files = {
        MODELS: models(json.loads(models_text(litellm))).encode(),
        VOCABULARY_NAME: vocabulary.read_bytes(),
        **{f"LICENSE-{library}": _license(library) for library in ("litellm", "tiktoken")},
    }
    if all((before / name).is_file() and (before / name).read_bytes() == content for name, content in files.items()):
        noted = json.loads((before / SOURCE).read_bytes())
        source = noted if {**noted, "date": None} == {**source, "date": None} else source
    return files | {SOURCE: json.dumps(source, indent=1).encode() + b"\n"}


def _license(library: str) -> bytes:
    found = next(file for file in metadata.files(library) or () if file.name == "LICENSE")
    return Path(str(found.locate())).read_bytes()


def main() -> int:
    """Write the files into the package."""
    litellm = package_folder("litellm")
    if litellm is None:
        sys.stderr.write("The facts about models are made from litellm. Install it with: pip install litellm\n")
        return 1
    SHIPPED.mkdir(exist_ok=True)
    for name, content in made(litellm, datetime.now(UTC).date()).items():
        (SHIPPED / name).write_bytes(content)
        sys.stdout.write(f"{SHIPPED / name}: {len(content):,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
