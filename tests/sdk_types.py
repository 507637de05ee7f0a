"""The request types of the official SDKs, held against the JSON of a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from anthropic.types.message_create_params import MessageCreateParamsStreaming
from google.genai import types as gemini
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import BaseModel, ValidationError
from typing_extensions import get_type_hints, is_typeddict

_LISTS = (list, Iterable, Sequence)
_MARKS = (Required, NotRequired)
_GEMINI: Mapping[str, type[BaseModel]] = {
    "contents": gemini.Content,
    "systemInstruction": gemini.Content,
    "tools": gemini.Tool,
    "toolConfig": gemini.ToolConfig,
    "generationConfig": gemini.GenerationConfig,
}


def misfit_of_chat(body: Mapping[str, Any]) -> str:
    """Return why a body is no chat completion of OpenAI's SDK; empty if it is one."""
    return _misfit(body, CompletionCreateParamsStreaming, "body")


def misfit_of_responses(body: Mapping[str, Any]) -> str:
    return _misfit(body, ResponseCreateParamsStreaming, "body")


def misfit_of_anthropic(body: Mapping[str, Any]) -> str:
    """Return why a body is no message of Anthropic's SDK; empty if it is one.

    The SDK no longer knows the temperature, which its newest models refuse; older ones take it.
    """
    known = {name: value for name, value in body.items() if name != "temperature"}
    return _misfit(known, MessageCreateParamsStreaming, "body")


def misfit_of_gemini(body: Mapping[str, Any]) -> str:
    for name, value in body.items():
        kind = _GEMINI.get(name)
        if kind is None:
            return f"body.{name} is unknown"
        for each in value if isinstance(value, list) else [value]:
            try:
                kind.model_validate(each)
            except ValidationError as error:
                return f"body.{name}: {error}"
    return ""


def _misfit(value: object, kind: Any, place: str) -> str:
    """Return why a value is not of a kind, at the place that fits least; empty if it is."""
    origin: Any = get_origin(kind)
    inner = get_args(kind)
    if kind in {Any, object}:
        return ""
    if origin is Annotated or origin in _MARKS:
        return _misfit(value, inner[0], place)
    if origin in {Union, UnionType}:
        found = [_misfit(value, each, place) for each in inner]
        return "" if "" in found else max(found, key=len)
    if origin is Literal:
        return "" if value in inner else f"{place} is {value!r}, none of {inner}"
    if is_typeddict(kind):
        return _misfit_of_object(value, kind, place)
    if origin in _LISTS or getattr(origin, "__name__", "") == "SequenceNotStr":
        items = enumerate(value) if isinstance(value, list) else []
        found = [_misfit(each, inner[0], f"{place}[{number}]") for number, each in items]
        return next(filter(None, found), "") if isinstance(value, list) else f"{place} is no list"
    if origin in {dict, Mapping}:
        return "" if isinstance(value, dict) else f"{place} is no object"
    if origin is not None:
        # A file, which no JSON is.
        return f"{place} is not {kind}"
    expected: Any = {None: NoneType, float: (int, float)}.get(kind, kind)
    return "" if isinstance(value, expected) else f"{place} is {value!r}, not {kind}"


def _misfit_of_object(value: object, kind: Any, place: str) -> str:
    if not isinstance(value, dict):
        return f"{place} is no object"
    fields = get_type_hints(kind, include_extras=True)
    # The SDKs postpone their annotations, so the class itself does not know which of its keys are required.
    required = {name for name, each in fields.items() if _is_required(each)}
    missing = required - value.keys()
    unknown = value.keys() - fields.keys()
    if missing or unknown:
        return f"{place} lacks {sorted(missing)} and has the unknown {sorted(unknown)}"
    return next(filter(None, (_misfit(each, fields[name], f"{place}.{name}") for name, each in value.items())), "")


def _is_required(field: Any) -> bool:
    origin: Any = get_origin(field)
    return origin is Required
