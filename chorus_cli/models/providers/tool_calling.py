"""Tools as providers take them by way of litellm: offered in a request, called in a stream, refused with an error."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from chorus_cli.log.rules.calls import CallPiece
from chorus_cli.models.providers.server_addresses import is_ollama
from chorus_cli.models.rules.choice import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from chorus_cli.models.providers.model_map import ModelMap
    from chorus_cli.models.rules.request import ModelRequest

_EMBEDDED = "chorus/"
# For Ollama's older protocol litellm writes the declarations into the prompt and has every reply come as JSON.
_BY_PROMPT = "ollama/"

_ABOUT_TOOLS = re.compile(r"\btools?\b|\btool[ _-](?:call|use|choice)|\bfunctions?[ _-]call", re.IGNORECASE)
_ABOUT_CHOICE = re.compile(r"\btool[ _-]choice\b", re.IGNORECASE)
DENIED = re.compile(
    r"not support|unsupported|n.t support|not enabled|not available|not permitted|not allowed|unrecognized|"
    r"requires? --|no endpoints found",
    re.IGNORECASE,
)
# OpenRouter answers with 404, llama.cpp with 500; litellm itself raises a 500 for a provider without tools.
_REFUSING_STATUSES = frozenset({400, 404, 422, 500, 501})


class _Function(Protocol):
    name: str | None
    arguments: str | None


class _Piece(Protocol):
    """A piece of a call, as litellm has it in a chunk."""

    index: int | None
    id: str | None
    function: _Function | None


def takes_tools(model: str, model_map: ModelMap, of_file: Callable[[str], bool] = lambda _model: False) -> bool:
    """Return whether tools may be offered to ``model``: its file or the map decides, if there is an entry."""
    if model.startswith(LOCAL):
        return of_file(model)
    if model.startswith((_EMBEDDED, _BY_PROMPT)):
        return False
    return model_map.calls_functions(model) is not False


def tool_arguments(request: ModelRequest) -> dict[str, object]:
    """Return litellm's arguments that offer the tools of a request; none if there are none."""
    if not request.tools or (not request.may_call and is_ollama(request.model)):
        # Ollama knows no way to forbid a call but to declare nothing.
        return {}
    offered: dict[str, object] = {
        "tools": [tool.declaration for tool in request.tools],
        # Else litellm imports its own handler of MCP tools, which wants a package that it does not require.
        "_skip_mcp_handler": True,
    }
    return offered if request.may_call else offered | {"tool_choice": "none"}


def call_pieces(delta: object) -> Iterator[CallPiece]:
    """Yield the pieces of calls in a chunk, also of the single call of OpenAI's older protocol."""
    pieces: list[_Piece] = getattr(delta, "tool_calls", None) or []
    for piece in pieces:
        yield _call_piece(getattr(piece, "index", None), getattr(piece, "id", None), piece.function)
    function: _Function | None = getattr(delta, "function_call", None)
    if function is not None and not pieces:
        yield _call_piece(0, None, function)


def refuses_tools(status: int | None, text: str) -> bool:
    """Return whether an error says that a model takes no tools."""
    return _refuses(_ABOUT_TOOLS, status, text)


def refuses_choice(status: int | None, text: str) -> bool:
    """Return whether an error says that a server takes no ``tool_choice``, by which a call is forbidden."""
    return _refuses(_ABOUT_CHOICE, status, text)


def _refuses(about: re.Pattern[str], status: int | None, text: str) -> bool:
    if status not in _REFUSING_STATUSES:
        return False
    return any(about.search(line) and DENIED.search(line) for line in text.splitlines())


def _call_piece(index: int | None, id_: str | None, function: _Function | None) -> CallPiece:
    name = getattr(function, "name", None) or ""
    return CallPiece(index, id_ or "", name, getattr(function, "arguments", None) or "")
