"""Files on the web, served on loopback, and bodies that come compressed and are unpacked bit by bit."""

from __future__ import annotations

import gzip
import time
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.loopback import Quiet, listening
from chorus_cli.attachments.files.document_files import download
from chorus_cli.core.errors import AttachmentError
from chorus_cli.machine.unpacking import UnpackingError, unpacked
from tests.attached_files import FILES

TOO_MUCH = 20_000_001
ANSWERS: dict[str, tuple[int, bytes, dict[str, str]]] = {
    "/my%20photo.png?size=1": (200, FILES["photo.png"], {}),
    "/": (200, FILES["photo.png"], {}),
    "/moved": (302, b"", {"Location": "/my%20photo.png?size=1"}),
    "http://1.1.1.1/moved": (302, b"", {"Location": "http://2130706433:6379/keys"}),
    "/circle": (302, b"", {"Location": "/circle"}),
    "/slow": (200, b"late", {}),
    "/large": (200, b"x", {"Content-Length": str(TOO_MUCH)}),
    "/endless": (200, bytes(TOO_MUCH), {}),
    "/packed": (200, gzip.compress(FILES["photo.png"]), {"Content-Encoding": "gzip"}),
    "/swelling": (200, gzip.compress(bytes(2 * TOO_MUCH)), {"Content-Encoding": "gzip"}),
    "/twice": (200, gzip.compress(gzip.compress(bytes(TOO_MUCH))), {"Content-Encoding": "gzip, gzip"}),
    "/torn": (200, b"abc", {"Content-Encoding": "gzip"}),
}
"""Paths, and their status, body and headers."""


class _Handler(Quiet, BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/slow":
            time.sleep(1)
        status, body, headers = ANSWERS.get(self.path, (404, b"no", {}))
        with suppress(ConnectionError):
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)


@pytest.mark.parametrize(
    ("path", "name"), [("/my%20photo.png?size=1", "my photo.png"), ("/moved", "moved"), ("/packed", "packed")]
)
async def test_a_file_is_fetched_with_its_name_also_if_it_has_moved_or_is_packed(path: str, name: str) -> None:
    with listening(_Handler) as address:
        assert await download(f"{address}{path}") == (name, FILES["photo.png"])


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/gone", "/gone cannot be fetched: the server answered 404."),
        ("/circle", "/circle cannot be fetched: Exceeded maximum allowed redirects."),
        ("/slow", "/slow could not be fetched within 0.5 s."),
        ("/large", "large is 20.0 MB; the largest file that can be attached is 20 MB."),
        ("/endless", "endless is larger than 20 MB, which is too large to be attached."),
        ("/swelling", "swelling is larger than 20 MB, which is too large to be attached."),
        ("/twice", "/twice cannot be fetched: compressed more than once."),
        ("/torn", "/torn cannot be fetched: not compressed as it says."),
    ],
)
async def test_what_cannot_be_fetched_is_told_in_one_sentence(path: str, sentence: str) -> None:
    with listening(_Handler) as address, pytest.raises(AttachmentError) as refused:
        await download(f"{address}{path}", patience_seconds=0.5 if path == "/slow" else 20)
    assert sentence in str(refused.value)


async def test_the_web_cannot_lead_to_a_page_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(_Handler) as proxy:
        monkeypatch.setenv("http_proxy", proxy)
        with pytest.raises(AttachmentError) as refused:
            await download("http://1.1.1.1/moved")
    told = "http://1.1.1.1/moved leads to http://2130706433:6379/keys, on this machine or its network, so"
    assert str(refused.value).startswith(told)


@pytest.mark.parametrize("address", ["http://", "http://127.0.0.1:1/x", "http://[", "http://a b/"])
async def test_an_address_without_a_server_is_told(address: str) -> None:
    with pytest.raises(AttachmentError, match="cannot be fetched: "):
        await download(address)


async def test_the_password_of_an_address_is_in_no_name_and_in_no_error() -> None:
    with listening(_Handler) as address:
        private = address.replace("://", "://bob:hunter2@")
        assert await download(f"{private}/") == ("127.0.0.1", FILES["photo.png"])
        with pytest.raises(AttachmentError) as refused:
            await download(f"{private}/gone")
    assert str(refused.value).startswith("http://[redacted]@127.0.0.1:")


PACKING: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "X-Gzip": gzip.compress,
    "deflate": zlib.compress,
    "Deflate": lambda body: zlib.compress(body, wbits=-15),
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
    return [part async for part in unpacked(in_pieces([b"", *pieces]), encoding)]


@example(body=b"", size=1, encoding="deflate")
@given(body=st.binary(max_size=2_000), size=st.integers(1, 100), encoding=st.sampled_from([*PACKING]))
async def test_a_body_is_what_it_was_before_it_was_compressed(body: bytes, size: int, encoding: str) -> None:
    assert b"".join(await parts_of(PACKING[encoding](body), encoding, size)) == body


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
