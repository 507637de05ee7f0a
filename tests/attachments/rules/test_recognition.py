"""Kinds of files, told from their bytes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.attachments.rules.recognition import LARGEST_BYTES, Facts, attachment_of, is_picture, recognised
from chorus_cli.core.errors import AttachmentError
from chorus_cli.log.rules.attachments import Kind
from tests.attached_files import gif, jpeg, pdf, png, webp


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (png(20, 30), Facts("image/png", 20, 30)),
        (jpeg(640, 480), Facts("image/jpeg", 640, 480)),
        (gif(40, 30), Facts("image/gif", 40, 30)),
        (webp(b"VP8X"), Facts("image/webp", 800, 600)),
        (webp(b"VP8L"), Facts("image/webp", 800, 600)),
        (webp(b"VP8 "), Facts("image/webp", 800, 600)),
        (pdf(12), Facts("application/pdf", pages=12)),
        (b"%PDF-1.7\ncompressed\n%%EOF", Facts("application/pdf")),
        (b"# notes", Facts("text/plain")),
        ("\ufeffgrüße".encode(), Facts("text/plain")),
        (b"<svg/>", Facts("text/plain")),
        (png(2, 2, filling=bytes(LARGEST_BYTES - 200)), Facts("image/png", 2, 2)),
    ],
    ids=lambda value: value.media_type if isinstance(value, Facts) else "",
)
def test_the_bytes_tell_the_kind_and_the_size(data: bytes, facts: Facts) -> None:
    assert recognised("a.file", data) == facts


@pytest.mark.parametrize("suffix", ["png", "txt", "pdf", ""])
def test_the_suffix_of_a_name_does_not_count(suffix: str) -> None:
    assert recognised(f"a.{suffix}", b"only words").media_type == "text/plain"
    assert recognised(f"a.{suffix}", png()).media_type == "image/png"


BROKEN = "but is cut short or damaged, so it was not attached."


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (png()[:40], f"x begins like a PNG file, {BROKEN}"),
        (b"\x89PNG\r\n\x1a\n", f"x begins like a PNG file, {BROKEN}"),
        (png(0, 3), f"x begins like a PNG file, {BROKEN}"),
        (jpeg()[:-2], f"x begins like a JPEG file, {BROKEN}"),
        (b"\xff\xd8\xff\xd9", f"x begins like a JPEG file, {BROKEN}"),
        (gif()[:-1], f"x begins like a GIF file, {BROKEN}"),
        (webp()[:-1], f"x begins like a WebP file, {BROKEN}"),
        (pdf()[:-20], f"x begins like a PDF file, {BROKEN}"),
        (b"", "x is empty, so it was not attached."),
        (b" \n\t", "x has nothing but blanks, so it was not attached."),
        (b"BM\xff\x00", "x is a BMP picture, which models do not take. Convert it to PNG, JPEG, PDF or text."),
        (b"\0\0\0\x18ftypheic\xff", "x is a HEIC or AVIF picture, which models do not take."),
        (b"PK\x03\x04\xff", "x is a zip archive, as office documents are, which models do not take."),
        (b"ab\xff", "x is neither a picture (PNG, JPEG, GIF, WebP) nor a PDF, and no text either: it is not UTF-8 (by"),
        (b"ab\0c", "it has a zero byte (byte 3). Convert it first."),
        (bytes(LARGEST_BYTES + 1), "x has 20.0 MB; the largest file that can be attached has 20 MB."),
    ],
)
def test_a_file_of_no_use_is_refused_with_one_sentence(data: bytes, sentence: str) -> None:
    with pytest.raises(AttachmentError) as refused:
        recognised("x", data)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("data", "is_one"),
    [(png(), True), (jpeg(), True), (gif(), True), (webp(), True), (pdf(), True), (b"diff --git", False), (b"", False)],
)
def test_pictures_on_standard_input_are_told_from_text(data: bytes, *, is_one: bool) -> None:
    assert is_picture(data[:16]) is is_one


@given(st.sampled_from([png(), jpeg(), gif(), webp(), pdf(), b""]), st.binary(max_size=60), st.integers(0, 60))
def test_any_bytes_are_recognised_or_refused(begun: bytes, data: bytes, cut: int) -> None:
    try:
        facts = recognised("x", begun[:cut] + data)
    except AttachmentError:
        return
    assert facts.media_type


@pytest.mark.parametrize(
    ("data", "claimed", "media_type", "kind"),
    [
        (jpeg(), "image/png", "image/jpeg", Kind.PICTURE),
        (png(), "", "image/png", Kind.PICTURE),
        (png()[:30], "image/png", "image/png", Kind.OTHER),
        (b"words", "image/png", "image/png", Kind.OTHER),
        (b"words", "text/markdown", "text/markdown", Kind.TEXT),
        (b"words", "application/javascript", "text/plain", Kind.TEXT),
        (b"\0", "audio/wav", "audio/wav", Kind.OTHER),
        (b"", "text/plain", "text/plain", Kind.TEXT),
    ],
)
def test_a_file_of_another_program_is_what_its_bytes_say(
    data: bytes, claimed: str, media_type: str, kind: Kind
) -> None:
    attached = attachment_of("x", data, "0" * 64, claimed)
    assert (attached.media_type, attached.kind) == (media_type, kind)


@pytest.mark.parametrize("unit", [b"/Type/Pages ", b"/Count 1 /Type/Page", b"/Type" + b" " * 100_000])
def test_the_pages_of_a_hostile_pdf_are_counted_at_once(unit: bytes) -> None:
    data = b"%PDF-1.4\n" + unit * (LARGEST_BYTES // 2 // len(unit)) + b"\n%%EOF"
    begun = time.monotonic()
    recognised("paper.pdf", data)
    assert time.monotonic() - begun < 5
