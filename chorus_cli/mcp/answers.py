"""Turns the library's objects for servers' declarations and answers into Chorus's own values."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from chorus_cli.attachments.rules.recognition import recognised
from chorus_cli.core import limits
from chorus_cli.core.errors import AttachmentError
from chorus_cli.core.text.code_points import join_surrogates
from chorus_cli.core.text.phrases import counted, cut_to_characters, shortened
from chorus_cli.log.rules.attachments import Attachment, Kind
from chorus_cli.mcp.rules.declarations import Declared, declared
from chorus_cli.mcp.rules.offers import Argument, Offers, Part, Prompt, Resource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from mcp import Client, types

    Streams = tuple[Any, Any]

_MOST_PAGES, _MOST_LISTED = 100, 1_000
_MOST_ARGUMENTS, _LONGEST_URI = 100, 10_000
_LISTING_SECONDS = 3.0
_TOO_LONG = {"name": "x" * (limits.TOOL_NAME.most + 1), "inputSchema": {"type": "object"}}
"""Replaces an invalid tool, because of which the library would refuse all. `declared` drops it for its long name."""
_LIST_OF_TOOLS = ("tools/list", "2025-11-25")


class Result(NamedTuple):
    """The result of a call: a ``text`` for the model, and its ``outcome`` in a few words for the user.

    ``files`` are its pictures and PDF files, each with its bytes.
    """

    text: str
    outcome: str
    is_error: bool = False
    files: tuple[tuple[Attachment, bytes], ...] = ()


class _Sifting:
    """A stream of a server's messages, with a placeholder for each invalid declaration of a tool."""

    def __init__(self, streams: Streams) -> None:
        self._stream, _ = streams

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stream.__aexit__(*error)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> object:
        arrived = await self._stream.__anext__()
        result = getattr(getattr(arrived, "message", None), "result", None)
        if isinstance(result, dict) and isinstance(tools := result.get("tools"), list):
            result["tools"] = [each if _is_tool(each) else _TOO_LONG for each in tools[:_MOST_LISTED]]
        return arrived


@asynccontextmanager
async def sifted(transport: AbstractAsyncContextManager[Streams]) -> AsyncIterator[Streams]:
    """Yield the streams of a transport, with placeholders for invalid declarations of tools."""
    async with transport as streams:
        yield _Sifting(streams), streams[1]


def _is_tool(declaration: object) -> bool:
    try:
        import_module("mcp_types.methods").validate_server_result(*_LIST_OF_TOOLS, {"tools": [declaration]})
    except ValueError:
        return False
    return True


async def offers(client: Client) -> Offers:
    """List the prompts and resources that a user can type; do not request a kind that the server does not declare."""
    return Offers(await _prompts(client), await _resources(client))


async def _prompts(client: Client) -> tuple[Prompt, ...]:
    if client.server_capabilities.prompts is None:
        return ()
    return tuple(
        Prompt(
            join_surrogates(each.name),
            _described(each),
            tuple(Argument(join_surrogates(it.name), _described(it), bool(it.required)) for it in each.arguments or ()),
        )
        for each in await pages(client.list_prompts, "prompts")
        if len(each.name) <= limits.TOOL_NAME.most and len(each.arguments or ()) <= _MOST_ARGUMENTS
        if all(_is_typed(argument.name, limits.TOOL_NAME.most) for argument in each.arguments or ())
    )


async def _resources(client: Client) -> tuple[Resource, ...]:
    """List resources, then resource templates, whose addresses have parts to fill in."""
    if client.server_capabilities.resources is None:
        return ()
    found: list[tuple[str, Any]] = []
    # A server without templates may refuse the second request, and prompts must not wait long for a list that fails.
    with suppress(Exception):
        async with asyncio.timeout(_LISTING_SECONDS):
            found += [(str(each.uri), each) for each in await pages(client.list_resources, "resources")]
            templates = await pages(client.list_resource_templates, "resource_templates")
            found += [(each.uri_template, each) for each in templates]
    return tuple(Resource(uri, _described(each)) for uri, each in found if _is_typed(uri, _LONGEST_URI))


def _is_typed(word: str, most: int) -> bool:
    return 0 < len(word) <= most and word.isprintable()


async def pages(page_at: Callable[..., Awaitable[Any]], name: str) -> list[Any]:
    """Return up to 1,000 entries of a list that comes in pages; ``name`` is a page's attribute with its entries."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await page_at(cursor=cursor, cache_mode="refresh")
        found += getattr(page, name)
        cursor = page.next_cursor
        if cursor is None or len(found) >= _MOST_LISTED:
            break
    return found[:_MOST_LISTED]


def _described(offered: Any) -> str:  # noqa: ANN401 - one of several types of the library
    # Completion shows one line of a description, and may draw a thousand of them at each key press.
    return shortened(join_surrogates(offered.description or offered.title or "")[: limits.DESCRIPTION.most])


def declared_tool(tool: types.Tool) -> Declared | None:
    """Return a tool's declaration, or ``None`` if it is too large or cannot be written as JSON."""
    hints = tool.annotations
    return declared(
        tool.name,
        tool.description or "",
        tool.input_schema,
        says_it_only_reads=bool(hints and hints.read_only_hint),
    )


def words_of(error: BaseException) -> str:
    """Return an error's message; for an invalid answer, return a clause in place of the library's long report."""
    if type(error).__name__ != "ValidationError":
        return str(error)
    # The location continues with names of the library's classes.
    place = ".".join(map(str, cast("Any", error).errors(include_url=False)[0]["loc"][:2]))
    return f"its answer is not as the protocol demands{place and f' (at {place})'}"


def result(answer: types.CallToolResult, server: str, tool: str) -> Result:
    """Return the result of a call of a server's tool; counting the lines of its text may take seconds."""
    structured = getattr(answer, "structured_content", None)
    return result_of(
        [_part(each) for each in answer.content],
        "" if structured is None else json.dumps(structured, ensure_ascii=False, indent=1),
        server=server,
        tool=tool,
        is_error=bool(answer.is_error),
    )


def result_of(
    parts: Sequence[Part], structured: str = "", *, server: str = "", tool: str = "", is_error: bool = False
) -> Result:
    """Return a result made from ``parts`` and the JSON text ``structured``; ``server`` and ``tool`` name its files."""
    told: list[str] = []
    kept: list[tuple[Attachment, bytes]] = []
    for part in parts:
        if attachment := _attachment(part, server, tool, len(kept) + 1):
            kept.append((attachment, part.data))
        else:
            told.append(part.told)
    # Servers repeat a structured value as text, for clients that cannot read it.
    if structured and not any(each.text for each in parts):
        told.append(structured)
    text = cut_to_characters(join_surrogates("\n\n".join(told)), limits.WHOLE_RESULT.most)
    if is_error:
        return Result(text, f"error: {shortened(text)}" if text.strip() else "error", is_error, tuple(kept))
    files = [each.label for each in parts if each.is_file]
    lines = sum(bool(line.strip()) for line in text.splitlines()) + len(kept) - len(files)
    counts = [counted(lines, "line")] if lines > 0 else []
    return Result(text, ", ".join([*counts, *files]) or "no text", is_error, tuple(kept))


def _attachment(part: Part, server: str, tool: str, number: int) -> Attachment | None:
    """Return a picture or PDF file as an attachment; ``None`` for another part, or if ``number`` is too large."""
    if not part.data or number > limits.RESULT_FILES.most:
        return None
    try:
        facts = recognised("", part.data)
    except AttachmentError:
        return None
    ending = f"{'' if number == 1 else f'-{number}'}.{facts.media_type.partition('/')[2]}"
    found = Attachment(
        f"{server}.{tool}{ending}", facts.media_type, len(part.data), sha256(part.data).hexdigest(),
        facts.width, facts.height, facts.pages, server=server,
    )  # fmt: skip
    return found if found.kind in {Kind.PICTURE, Kind.PDF} else None


def prompted(answer: types.GetPromptResult) -> tuple[Part, ...]:
    """Return a prompt's messages as parts; raise a ``ValueError`` if there are more than 1,000."""
    _check_number(answer.messages)
    return tuple(_part(each.content, each.role) for each in answer.messages)


def contents(answer: types.ReadResourceResult) -> tuple[Part, ...]:
    """Return the texts and files of a resource; raise a ``ValueError`` if there are more than 1,000."""
    _check_number(answer.contents)
    return tuple(map(_content, answer.contents))


def _check_number(parts: Sequence[object]) -> None:
    if len(parts) > _MOST_LISTED:
        raise ValueError(f"its answer has {len(parts):,} parts, and Chorus takes {_MOST_LISTED:,}")


def _part(block: Any, speaker: str = "") -> Part:  # noqa: ANN401 - one of several types of the library
    match block.type:
        case "text":
            return Part(join_surrogates(block.text), speaker=speaker)
        case "resource_link":
            return Part(f"[{block.name}: {block.uri}]", speaker=speaker)
        case "resource":
            return _content(block.resource)._replace(speaker=speaker)
        case _:
            return Part("", _bytes_of(block.data), block.mime_type, speaker=speaker)


def _content(found: Any) -> Part:  # noqa: ANN401 - one of several types of the library
    name = str(found.uri)[:_LONGEST_URI]
    if (text := getattr(found, "text", None)) is not None:
        return Part(join_surrogates(text), name=name)
    return Part("", _bytes_of(found.blob), found.mime_type or "", name)


def _bytes_of(base64: str) -> bytes:
    # A damaged file must not spoil the rest of an answer.
    with suppress(ValueError):
        return b64decode(base64)
    return b""
