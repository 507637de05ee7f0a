"""Counts tokens by the vocabulary that comes with Chorus, without the network."""

from __future__ import annotations

import hashlib
import threading
from base64 import b64decode
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from chorus_cli.core.errors import ModelError
from chorus_cli.core.text.code_points import join_surrogates
from chorus_cli.models.providers.model_files import SHIPPED

if TYPE_CHECKING:
    from tiktoken import Encoding

# tiktoken names a vocabulary's file by the SHA-1 of its address.
VOCABULARY_NAME = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
_VOCABULARY_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
_PIECES = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
    r"\s+(?!\S)|\s"
)
"""The pattern by which tiktoken takes a text apart for this vocabulary."""

# tiktoken encodes a run of letters or spaces as one piece, in time that grows faster than the run's length: ten million
# spaces take 9 s at once and 1.5 s in slices. A cut adds one or two tokens to the thousands of a slice.
_SLICE_LENGTH = 8192


class VocabularyCounter:
    """Counts tokens by OpenAI's ``cl100k_base``, which the first count loads; any thread may count."""

    def __init__(self, folder: Path = SHIPPED) -> None:
        self._folder = folder
        self._encoding: Encoding | None = None
        self._loading = threading.Lock()

    @property
    def is_ready(self) -> bool:
        """Whether the vocabulary is loaded."""
        return self._encoding is not None

    def load(self) -> None:
        """Load the vocabulary unless it is loaded; raise a ``ModelError`` if it is missing or damaged."""
        self._loaded()

    def at_most(self, text: str) -> int:
        """Return the count if the vocabulary is loaded, else the number of bytes: a token has at least one byte."""
        return self.count(text) if self.is_ready else len(text.encode(errors="surrogatepass"))

    def count(self, text: str) -> int:
        """Return the number of tokens of ``text``, in time linear in its length for any text."""
        if not text:
            return 0
        encoding = self._loaded()
        whole = join_surrogates(text)
        slices = (whole[start : start + _SLICE_LENGTH] for start in range(0, len(whole), _SLICE_LENGTH))
        return sum(len(encoding.encode_ordinary(piece)) for piece in slices)

    def _loaded(self) -> Encoding:
        with self._loading:
            if self._encoding is None:
                self._encoding = _encoding_from(self._folder)
            return self._encoding


@cache
def _encoding_from(folder: Path) -> Encoding:
    """Check and read the vocabulary; tiktoken itself would download a missing or damaged one."""
    file = folder / VOCABULARY_NAME
    remedy = "Reinstall Chorus."
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ModelError(f"Tokens cannot be counted: {file} cannot be read ({error.strerror}). {remedy}") from error
    if hashlib.sha256(content).hexdigest() != _VOCABULARY_SHA256:
        raise ModelError(f"Tokens cannot be counted: {file} is damaged. {remedy}")
    import tiktoken  # takes 40 ms, so a start without a count does not wait

    ranks = {b64decode(token): int(rank) for token, rank in map(bytes.split, content.splitlines())}
    return tiktoken.Encoding("cl100k_base", pat_str=_PIECES, mergeable_ranks=ranks, special_tokens={})
