"""The memory as tables: its tiers with bars, and its items with their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.core.text.phrases import counted, shortened
from chorus_cli.core.time.timeline import age, bar, gap
from chorus_cli.framework.replies import Report, Table, Text
from chorus_cli.log.rules.wording import local
from chorus_cli.memory.rules.items import ACTIVE, Item, Tier, importance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from chorus_cli.memory.rules.items import FlashReport, MemoryStatistics

_BAR_WIDTH = 20
_LONGEST_CONTENT = 200
_ORIGINS = {"capture": "output", "import": "document"}
_LONG_ORIGINS = {"capture": "the output of a command", "import": "a document"}


def drawn_memory(memory: MemoryStatistics, name: str) -> Report:
    """Draw items and tokens by tier, with ARCHIVED apart."""
    active, archived = memory.of(*ACTIVE), memory.of(Tier.ARCHIVED)
    rows: list[tuple[str, ...]] = []
    for tier in ACTIVE:
        items, tokens = memory.of(tier)
        rows.append((tier, f"{items:,}", _share(items, active.items), f"{tokens:,}", _share(tokens, active.tokens)))
    rows.append(("total", f"{active.items:,}", "", f"{active.tokens:,}", ""))
    put_away = f"ARCHIVED: {counted(archived.items, 'item')}, {counted(archived.tokens, 'token')}"
    lines = [
        f"{put_away}; /memory checkpoints lists the flash saves.",
        f"Last update: {local(memory.last_updated)}",
    ]
    table = Table(f"Memory of {name}", ("Tier", "Items", "", "Tokens", " "), tuple(rows))
    return Report((table, Text("\n".join(lines if archived.items else lines[1:]))))


def listed(items: Sequence[Item], now: datetime, origins: Mapping[int, str]) -> Table:
    """List items, each with its score, the parts of that for type, age and use, accesses, age and source.

    ``origins`` are the changes that brought in those without a source message.
    """
    heads = ("Item", "Type", "Tier", "Score", "Parts", "Used", "Age", "From", "Content")
    return Table("", heads, tuple(_row(item, now, origins) for item in items), cut=frozenset({"Content"}))


def described(item: Item, now: datetime, origin: str) -> Report:
    """Describe an item, which the change ``origin`` brought in, and show its content."""
    uses = "once" if item.access_count == 1 else f"{item.access_count:,} times"
    facts = (
        ("Item", f"#{item.id}"),
        ("Type", item.item_type),
        ("Tier", f"{item.tier} (pinned)" if item.pinned and item.tier is Tier.HOT else str(item.tier)),
        ("Score", f"{score(item, now)} (type + age + use)"),
        ("Used", f"{uses}, last on {local(item.last_accessed)}"),
        ("Remembered", f"{local(item.created_at)}, {gap(now - item.created_at)} ago"),
        ("From", f"message #{item.source_message_id}" if item.source_message_id else _LONG_ORIGINS.get(origin, "you")),
        ("Tokens", f"{item.token_count or 0:,}"),
    )
    return Report((Table("", ("", ""), facts), Text(item.content)))


def flash_saved(report: FlashReport) -> str:
    """Say what a flash save archived and how many tokens remain."""
    before, after = f"{report.token_count_before:,} before", f"{report.token_count_after:,} after"
    lines = [
        f"Checkpoint {report.checkpoint_id}: {counted(report.items_count, 'item')}, {report.items_archived:,} archived",
        f", {report.hot_items_retained:,} HOT kept.\n",
        f"Tokens of active items: {before}, {after} ({report.reduction_percentage:g}% less).",
    ]
    if report.items_archived:
        lines.append(f"\n/memory restore {report.checkpoint_id} brings the archived items back, and so does /undo.")
    return "".join(lines)


def score(item: Item, now: datetime) -> str:
    """Write the score of an item with its three parts: ``0.81 = 0.40+0.40+0.01``."""
    parts = importance(item.item_type, item.created_at, item.access_count, now)
    return f"{parts.total:.2f} = {parts.type_part:.2f}+{parts.age_part:.2f}+{parts.access_part:.2f}"


def capitalized(text: str) -> str:
    """Return a description as the beginning of a sentence."""
    return f"{text[0].upper()}{text[1:]}"


def _row(item: Item, now: datetime, origins: Mapping[int, str]) -> tuple[str, ...]:
    parts = importance(item.item_type, item.created_at, item.access_count, now)
    return (
        f"#{item.id}",
        item.item_type,
        "pinned" if item.pinned and item.tier is Tier.HOT else item.tier,
        f"{parts.total:.2f}",
        "+".join(f"{part:.2f}".removeprefix("0") for part in parts),
        f"{item.access_count:,}",
        age(now - item.created_at),
        f"#{item.source_message_id}" if item.source_message_id else _ORIGINS.get(origins.get(item.id, ""), "you"),
        shortened(item.content, _LONGEST_CONTENT),
    )


def _share(part: int, whole: int) -> str:
    return bar(part / whole, _BAR_WIDTH) if whole else ""
