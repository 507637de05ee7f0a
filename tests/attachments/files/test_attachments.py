"""Files to be attached: known by their bytes, counted as providers publish, stored once, and named by an at sign."""

from __future__ import annotations

import stat
import time
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.attachments.files.attachments import AttachmentFolder, path_of
from chorus_cli.attachments.rules.mentions import begun_mention, escaped, mention_of, mentions, missing_files
from chorus_cli.attachments.rules.recognition import LARGEST_BYTES, Facts, attachment_of, is_picture, recognised
from chorus_cli.attachments.rules.tokens import attachment_tokens
from chorus_cli.core.errors import AttachmentError
from chorus_cli.log.rules.attachments import Attachment, Kind, as_json, from_text, to_text
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
        (b"junk\n%PDF-1.7\n\xff\n%%EOF", Facts("application/pdf")),
        (b"A PDF file begins with %PDF- and ends with %%EOF", Facts("text/plain")),
        (jpeg(640, 480) + b"\0\0\0\x18ftypmp42" + bytes(5_000), Facts("image/jpeg", 640, 480)),
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
        (b" \n\t", "x has nothing but spaces, so it was not attached."),
        (b"ab\xff", "x is not a picture (PNG, JPEG, GIF, WebP), a PDF or text in UTF-8 (byte 3). Convert it first."),
        (b"ab\0c", "x is not a picture (PNG, JPEG, GIF, WebP), a PDF or text in UTF-8 (byte 3). Convert it first."),
        (bytes(LARGEST_BYTES + 1), "x is 20.0 MB; the largest file that can be attached is 20 MB."),
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


GPT, CLAUDE, GEMINI = "openai/gpt-4o", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash"


def of_size(width: int, height: int) -> Attachment:
    return Attachment("photo.png", "image/png", 1_000_000, "0" * 64, width, height)


@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [
        (GPT, 1024, 1024, 765),
        (GPT, 2048, 4096, 1105),
        (GPT, 100, 100, 255),
        ("openai/gpt-4o-mini", 1024, 1024, 2833 + 4 * 5667),
        ("openai/gpt-5", 1024, 1024, 630),
        ("openai/gpt-4.1-mini", 1024, 1024, 1659),
        ("openai/o4-mini", 1024, 1024, 1762),
        (CLAUDE, 200, 200, 54),
        (CLAUDE, 1000, 1000, 1334),
        (CLAUDE, 1092, 1092, 1590),
        (CLAUDE, 4000, 3000, 1600),
        (GEMINI, 384, 384, 258),
        (GEMINI, 1536, 768, 516),
        ("some/unknown-model", 1024, 1024, 765),
    ],
)
def test_a_picture_costs_what_its_provider_publishes(model: str, width: int, height: int, tokens: int) -> None:
    assert attachment_tokens([of_size(width, height)], model) == tokens


@pytest.mark.parametrize(
    ("attachment", "model", "tokens"),
    [
        (Attachment("a.pdf", "application/pdf", 900_000, "", pages=3), GEMINI, 774),
        (Attachment("a.pdf", "application/pdf", 900_000, "", pages=3), CLAUDE, 9_000),
        (Attachment("a.pdf", "application/pdf", 100_000, ""), CLAUDE, 6_000),
        (Attachment("a.txt", "text/plain", 900, "", tokens=200), GPT, 216),
        (Attachment("a.txt", "text/plain", 900, ""), GPT, 316),
        (Attachment("a.zip", "application/zip", 900, ""), GPT, 16),
        (Attachment("a.png", "image/png", 900, ""), GPT, 16),
        (Attachment("a.heic", "image/heic", 900, ""), GPT, 16),
    ],
)
def test_a_pdf_counts_by_pages_and_a_text_by_its_words(attachment: Attachment, model: str, tokens: int) -> None:
    assert attachment_tokens([attachment], model) == tokens


def test_attachments_are_written_without_the_numbers_that_are_not_known() -> None:
    kept = (of_size(20, 30), Attachment("", "text/plain", 0, "0" * 64))
    assert from_text(to_text(kept)) == kept
    assert list(as_json(kept[1])) == ["name", "media_type", "size_bytes", "sha256"]


@pytest.mark.parametrize(
    ("name", "size", "line"),
    [
        ("photo.png", 1_234_567, "[attachment: photo.png 1.2 MB]"),
        ("a [draft]\n.txt", 12_400, "[attachment: a draft .txt 12.4 kB]"),
        ("", 1, "[attachment: file 1 byte]"),
        ("\x1b[31m", 999, "[attachment: 31m 999 bytes]"),
    ],
)
def test_a_line_stands_for_an_attachment(name: str, size: int, line: str) -> None:
    assert Attachment(name, "image/png", size, "").line == line


BYTES = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
DIGEST = sha256(BYTES).hexdigest()


@pytest.mark.parametrize("data", [BYTES, b"", bytes(20_000_000)], ids=["picture", "empty", "20 MB"])
def test_bytes_come_back_as_they_were_stored(tmp_path: Path, data: bytes) -> None:
    folder = AttachmentFolder(tmp_path / "attachments")
    assert folder.read(folder.store(data)) == data


def test_the_same_bytes_are_stored_once(tmp_path: Path) -> None:
    assert AttachmentFolder(tmp_path).store(BYTES) == DIGEST
    first = path_of(tmp_path, DIGEST).stat()
    assert AttachmentFolder(tmp_path).store(BYTES) == DIGEST
    assert path_of(tmp_path, DIGEST).stat().st_ino == first.st_ino
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [path_of(tmp_path, DIGEST)]


def test_only_the_owner_may_read_them(tmp_path: Path) -> None:
    folder = tmp_path / "attachments"
    path = path_of(folder, AttachmentFolder(folder).store(BYTES))
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (folder, path.parent, path)]
    assert modes == [0o700, 0o700, 0o600]


def test_a_file_that_was_cut_short_is_stored_again(tmp_path: Path) -> None:
    path = path_of(tmp_path, AttachmentFolder(tmp_path).store(BYTES))
    path.write_bytes(BYTES[:10])
    AttachmentFolder(tmp_path).store(BYTES)
    assert AttachmentFolder(tmp_path).read(DIGEST) == BYTES


def test_bytes_that_are_gone_or_damaged_are_told(tmp_path: Path) -> None:
    with pytest.raises(AttachmentError, match=r"is gone, so the attachment cannot be read\.$"):
        AttachmentFolder(tmp_path).read(DIGEST)
    path_of(tmp_path, AttachmentFolder(tmp_path).store(BYTES)).write_bytes(BYTES[::-1])
    with pytest.raises(AttachmentError, match=r"is damaged: its bytes have changed since it was stored\.$"):
        AttachmentFolder(tmp_path).read(DIGEST)


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "A" * 64, DIGEST[:-1]])
def test_a_path_is_made_of_a_digest_only(tmp_path: Path, digest: str) -> None:
    with pytest.raises(AttachmentError, match="is not a SHA-256"):
        AttachmentFolder(tmp_path).read(digest)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AttachmentError, match=r"^The attachment cannot be kept in .*: Not a directory\.$"):
        AttachmentFolder(tmp_path / "file" / "attachments").store(BYTES)


NAMES = {"photo.png", "my photo.png", "a/b.txt", "what?", "it's.txt", "~/notes.md", 'a"b.txt', "e.g."}


NO_MENTIONS = ("ada@photo.png is an address", "@ada said so", "@", "@@photo.png", r"\@photo.png", '@"my photo')


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("look at @photo.png please", ("photo.png",)),
        ("@photo.png", ("photo.png",)),
        ("what is @photo.png?", ("photo.png",)),
        ("is it (@photo.png)?", ("photo.png",)),
        ("(see @a/b.txt), and @photo.png!", ("a/b.txt", "photo.png")),
        ("read @what? then", ("what?",)),
        ("see @e.g.", ("e.g.",)),
        ('@"my photo.png" and more', ("my photo.png",)),
        ("@'my photo.png'", ("my photo.png",)),
        (r"@my\ photo.png", ("my photo.png",)),
        ("@~/notes.md", ("~/notes.md",)),
        ("@photo.png @photo.png", ("photo.png",)),
        ("first\n@photo.png", ("photo.png",)),
        *((each, ()) for each in NO_MENTIONS),
    ],
)
def test_a_word_that_names_a_file_is_a_mention(text: str, paths: tuple[str, ...]) -> None:
    assert mentions(text, NAMES.__contains__).paths == paths


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("what is @photo.png?", "what is @photo.png?"),
        (r"\@photo.png is text", "@photo.png is text"),
        (r"C:\@x and a\@b", r"C:\@x and a\@b"),
    ],
)
def test_a_mention_stays_in_the_text_and_an_escaped_at_sign_loses_its_backslash(typed: str, sent: str) -> None:
    assert mentions(typed, NAMES.__contains__).text == sent


NO_PATHS = (
    *("how do I install @angular/core and @types/node?", "@org/team use @media/print", "@what? @photo.png!"),
    *("@ada said so @3pm, @gmail.com", r"\@/nope.png and ada@nope.png", "@app.route('/nope') @Input({x:'/'})"),
)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("see @/nope.png, please", ("/nope.png",)),
        ("(@nope.PDF)?", ("nope.PDF",)),
        ("@./nope and @./a/b.txt and @./nope.", ("./nope", "./a/b.txt")),
        ("@../nope, @~/nope and @a/nope.png", ("../nope", "~/nope", "a/nope.png")),
        ("@\"my nope.txt\" or @'your nope.txt'", ("my nope.txt", "your nope.txt")),
        *((each, ()) for each in NO_PATHS),
    ],
)
def test_a_word_that_looks_like_the_path_of_no_file_is_found(text: str, paths: tuple[str, ...]) -> None:
    assert missing_files(text, NAMES.__contains__) == paths


@pytest.mark.parametrize(
    ("text", "typed", "paths"),
    [
        ("see @photo.png", [], ()),
        ("see @photo.png", [4], ("photo.png",)),
        ("@a/b.txt and x @photo.png y", [0], ("a/b.txt",)),
        ("@photo.png and x @photo.png y", [17], ("photo.png",)),
        ('@"a @photo.png', [0], ()),
        ("(@photo.png)", [], ()),
    ],
)
def test_only_a_mention_whose_at_sign_was_typed_attaches(text: str, typed: list[int], paths: tuple[str, ...]) -> None:
    assert mentions(escaped(text, typed), NAMES.__contains__) == (text, paths)


@given(st.text(st.sampled_from("a@ ('\"\n.")))
def test_an_escaped_text_is_sent_as_it_was_and_attaches_nothing(text: str) -> None:
    assert mentions(escaped(text), lambda _path: True) == (text, ())


@given(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1))
def test_any_path_can_be_mentioned(path: str) -> None:
    if '"' in path and path[-1] in ".,;:!?)]}'\"\\":
        return
    assert mentions(f"see {mention_of(path)} please", path.__eq__).paths == (path,)


@given(st.text())
def test_no_text_is_too_odd(text: str) -> None:
    assert mentions(text, lambda _path: False).paths == ()
    missing_files(text, lambda _path: False)
    begun_mention(text)


@pytest.mark.parametrize("text", ["@" + "." * 9_000, "@" + "." * 400_000, "@a..." * 20_000, "@a... " * 20_000])
def test_few_files_are_looked_for_however_long_a_text_is(text: str) -> None:
    asked: list[str] = []

    def is_file(path: str) -> bool:
        asked.append(path)
        return False

    mentions(text, is_file)
    assert len(asked) <= 17 * text.count(" @") + 17


@pytest.mark.parametrize(
    ("before_cursor", "path"),
    [
        *(("look at @pho", "pho"), ("@", ""), ('@"my ph', "my ph"), (r"@my\ ph", "my ph")),
        *(("ada@pho", None), ("@photo and", None), (r"\@pho", None)),
        # A key must not wait until a very long word is searched.
        *(("@" + "a" * 1_999, "a" * 1_999), ("@" + "a" * 2_000, None), ("a@" + "a" * 1_999, None)),
    ],
)
def test_a_mention_that_is_being_typed_can_be_completed(before_cursor: str, path: str | None) -> None:
    begun = begun_mention(before_cursor)
    assert (begun.path if begun else None) == path
