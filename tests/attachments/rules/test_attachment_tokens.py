"""Estimated tokens of attachments, held against the examples that the providers publish."""

from __future__ import annotations

import pytest

from chorus_cli.attachments.rules.tokens import attachment_tokens
from chorus_cli.log.rules.attachments import Attachment, as_json, from_text, to_text

GPT, CLAUDE, GEMINI = "openai/gpt-4o", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash"


def picture(width: int, height: int) -> Attachment:
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
    assert attachment_tokens([picture(width, height)], model) == tokens


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
    kept = (picture(20, 30), Attachment("", "text/plain", 0, "0" * 64))
    assert from_text(to_text(kept)) == kept
    assert list(as_json(kept[1])) == ["name", "media_type", "size_bytes", "sha256"]


@pytest.mark.parametrize(
    ("name", "size", "line"),
    [
        ("photo.png", 1_234_567, "[attachment: photo.png 1.2 MB]"),
        ("a [draft]\n.txt", 12_400, "[attachment: a draft .txt 12 kB]"),
        ("", 1, "[attachment: file 1 byte]"),
        ("\x1b[31m", 999, "[attachment: 31m 999 bytes]"),
    ],
)
def test_a_line_stands_for_an_attachment(name: str, size: int, line: str) -> None:
    assert Attachment(name, "image/png", size, "").line == line
