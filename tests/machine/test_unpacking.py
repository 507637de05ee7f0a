"""Bodies that come compressed are unpacked bit by bit, however their bytes come and whatever they become."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.machine.unpacking import UnpackingError, unpacked

PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "X-Gzip": gzip.compress,
    "deflate": zlib.compress,
    " identity, gzip": gzip.compress,
    "": bytes,
    "identity": bytes,
}
MEGABYTE = 1_000_000


async def in_pieces(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def parts_of(packed: bytes, encoding: str, size: int = 65_536) -> list[bytes]:
    pieces = [packed[start : start + size] for start in range(0, len(packed), size)]
    return [part async for part in unpacked(in_pieces(pieces), encoding)]


@given(body=st.binary(max_size=2_000), size=st.integers(1, 100), encoding=st.sampled_from([*PACKED]))
async def test_a_body_is_what_it_was_before_it_was_compressed(body: bytes, size: int, encoding: str) -> None:
    assert b"".join(await parts_of(PACKED[encoding](body), encoding, size)) == body


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 131_072, MEGABYTE])
async def test_a_long_body_comes_whole_and_in_small_parts(size: int) -> None:
    parts = await parts_of(gzip.compress(bytes(size)), "gzip")
    assert b"".join(parts) == bytes(size)
    assert max(map(len, parts)) <= 65_536


async def test_a_reader_that_stops_has_needed_little_memory() -> None:
    packed = gzip.compress(bytes(100 * MEGABYTE))
    tracemalloc.start()
    try:
        async for part in unpacked(in_pieces([packed]), "gzip"):
            assert part == bytes(65_536)
            break
        assert tracemalloc.get_traced_memory()[1] < MEGABYTE
    finally:
        tracemalloc.stop()


async def test_what_comes_after_the_end_is_left_out() -> None:
    assert await parts_of(gzip.compress(b"all") + gzip.compress(b"more"), "gzip", 5) == [b"all"]


@pytest.mark.parametrize(
    ("packed", "encoding", "words"),
    [
        (gzip.compress(gzip.compress(b"a")), "gzip, gzip", "compressed more than once"),
        (gzip.compress(zlib.compress(b"a")), "deflate,gzip", "compressed more than once"),
        (b"a", "gzip, " * 1000, "compressed more than once"),
        (b"a", "br", "compressed in a way that was not asked for"),
        (b"a", "zstd", "compressed in a way that was not asked for"),
        (b"abc", "gzip", "not compressed as it says"),
        (b"\xff\xff", "deflate", "not compressed as it says"),
        (gzip.compress(bytes(99))[:20] + b"\xff" * 99, "gzip", "not compressed as it says"),
    ],
    ids=["gzip twice", "deflate and gzip", "a thousand times", "br", "zstd", "no gzip", "no deflate", "damaged"],
)
async def test_what_cannot_be_unpacked_is_told_in_a_few_words(packed: bytes, encoding: str, words: str) -> None:
    with pytest.raises(UnpackingError, match=words):
        await parts_of(packed, encoding)
