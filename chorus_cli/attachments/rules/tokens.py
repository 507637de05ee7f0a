"""Estimates the tokens of attachments by the rules that the providers publish.

The count that a provider reports corrects the estimates for later requests, for attachments as for texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import partial

from chorus_cli.log.rules.attachments import Attachment, Kind

_BYTES_PER_PAGE = 50_000
_BYTES_PER_TOKEN = 3
_NAME_TOKENS = 16


def _claude(width: int, height: int) -> int:
    """Return width times height / 750, at most 1,600, after the longer side was reduced to at most 1568 pixels.

    Source: Anthropic, "Vision", section "Calculate image costs". "PDF support", section "Estimate your costs", counts
    1,500 to 3,000 tokens for a page of a PDF.
    """
    reduction = min(1.0, 1568 / max(width, height))
    return min(1_600, math.ceil(width * height * reduction**2 / 750))


def _gemini(width: int, height: int) -> int:
    """Return 258 if both sides have at most 384 pixels, else 258 for each tile of 768 by 768 pixels.

    Source: Google, "Understand and count tokens", section "Multimodal tokens". A page of a PDF counts as one tile.
    """
    small, tile = 384, 768
    tiles = 1 if max(width, height) <= small else math.ceil(width / tile) * math.ceil(height / tile)
    return 258 * tiles


def _tiled(base: int, tile: int, width: int, height: int) -> int:
    """Return ``base`` plus ``tile`` per 512 by 512 pixels, after a reduction to at most 2048 by 768 pixels.

    Source: OpenAI, "Images and vision", section "Calculating costs", for the high level of detail.
    """
    reduction = min(1.0, 2048 / max(width, height))
    reduction = min(reduction, 768 / min(width, height))
    return base + tile * math.ceil(width * reduction / 512) * math.ceil(height * reduction / 512)


def _patched(factor: float, width: int, height: int) -> int:
    """Return ``factor`` for each patch of 32 by 32 pixels, for at most 1,536 patches. Source: as for `_tiled`."""
    return math.ceil(min(1_536, math.ceil(width / 32) * math.ceil(height / 32)) * factor)


# The first pattern that is found in the model's name chooses the rule.
_RULES = (
    (re.compile("claude"), _claude),
    (re.compile("gemini"), _gemini),
    (re.compile(r"gpt-4o-mini"), partial(_tiled, 2833, 5667)),
    (re.compile(r"gpt-[45][.\d]*-nano"), partial(_patched, 2.46)),
    (re.compile(r"gpt-[45][.\d]*-mini"), partial(_patched, 1.62)),
    (re.compile(r"o4-mini"), partial(_patched, 1.72)),
    (re.compile(r"gpt-5"), partial(_tiled, 70, 140)),
    (re.compile(r"\bo[13]\b"), partial(_tiled, 75, 150)),
    (re.compile(""), partial(_tiled, 85, 170)),
)


def attachment_tokens(attachments: Iterable[Attachment], model: str) -> int:
    """Return the estimated tokens of the attachments of a message in a request to ``model``."""
    return sum(_tokens(each, model) for each in attachments)


def _tokens(attachment: Attachment, model: str) -> int:
    match attachment.kind:
        case Kind.TEXT:
            return _NAME_TOKENS + (attachment.tokens or math.ceil(attachment.size_bytes / _BYTES_PER_TOKEN))
        case Kind.PICTURE:
            return next(rule(attachment.width, attachment.height) for pattern, rule in _RULES if pattern.search(model))
        case Kind.PDF:
            pages = attachment.pages or math.ceil(attachment.size_bytes / _BYTES_PER_PAGE)
            return pages * (258 if "gemini" in model else 3_000)
        case Kind.OTHER:
            return _NAME_TOKENS
