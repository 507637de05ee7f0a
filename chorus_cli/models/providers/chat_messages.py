"""Messages in the shape of the OpenAI API, cache markers, and the attachments and tools that a model accepts.

Providers of Claude cache a prompt up to explicit markers for some minutes, and charge a tenth for cached tokens. Other
providers recognise a repeated beginning by themselves.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from chorus_cli.core.errors import AttachmentError
from chorus_cli.core.text.code_points import cleaned_input, join_surrogates
from chorus_cli.core.text.phrases import fenced
from chorus_cli.log.rules.attachments import ALL_SENT, Attachment, Kind, with_lines
from chorus_cli.models.rules.choice import EMBEDDED, LOCAL
from chorus_cli.models.rules.request import ModelRequest, PromptMessage, without_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from chorus_cli.models.providers.model_map import ModelMap

    Load = Callable[[str], bytes]
    """Returns the bytes that have the given SHA-256, or raises an ``AttachmentError``."""


class Part(NamedTuple):
    """A picture or a PDF in a message; ``data`` is the bytes in Base64."""

    attachment: Attachment
    data: str

    @property
    def is_picture(self) -> bool:
        """Whether the part is a picture and not a PDF."""
        return self.attachment.kind is Kind.PICTURE

    @property
    def address(self) -> str:
        """The bytes as a ``data:`` address."""
        return f"data:{self.attachment.media_type};base64,{self.data}"


def not_stored(_digest: str) -> bytes:
    """Raise an ``AttachmentError``; this is the ``Load`` to use where there is no store."""
    raise AttachmentError("There is no store of attachments here.")


def content_of(message: PromptMessage, load: Load) -> tuple[list[Part], str]:
    """Return the pictures and PDFs, and the text. The text includes text files, and a line for each missing file."""
    parts: list[Part] = []
    texts: list[str] = []
    missing: list[Attachment] = []
    for attachment in message.attachments:
        try:
            data = load(attachment.sha256)
        except AttachmentError:
            missing.append(attachment)
            continue
        if attachment.kind is Kind.TEXT:
            told, _ = cleaned_input(data.decode("utf-8-sig", "replace"))
            texts.append(f"{attachment.name}:\n{fenced(told.rstrip())}")
        else:
            parts.append(Part(attachment, b64encode(data).decode("ascii")))
    text = "\n\n".join(filter(None, (*texts, message.content))) if texts else message.content
    return parts, with_lines(text, missing)


def accepted_kinds(model: str, model_map: ModelMap) -> frozenset[Kind]:
    """Return the attachments for ``model``: text for ELIZA and local models, else all that the map does not deny."""
    if model.startswith((EMBEDDED, LOCAL)):
        return frozenset({Kind.TEXT})
    abilities = {Kind.PICTURE: "vision", Kind.PDF: "pdf_input"}
    return ALL_SENT - {kind for kind, name in abilities.items() if model_map.supports(model, name) is False}


# litellm passes markers on to these providers; others may refuse markers, or messages that are not plain text.
_PROVIDERS_BY_MARKER = ("anthropic", "azure_ai", "bedrock", "bedrock_converse", "vertex_ai")
_CLAUDE = "claude"
MARKER = {"type": "ephemeral"}
# This request repeats the previous one up to the question before the newest, and the next request will repeat this one
# up to the newest question. So these two questions and the system message get markers; a request may have four.
_MARKED_QUESTIONS = 2
_MISJUDGED = 1.05
"""The factor by which a token estimate is raised, because the estimate may be too small."""


def wants_markers(model: str, model_map: ModelMap) -> bool:
    """Return whether ``model`` is a Claude whose provider caches prompts up to markers."""
    prefix, slash, _ = model.partition("/")
    passes_on = not slash or prefix in _PROVIDERS_BY_MARKER
    return _CLAUDE in model and passes_on and bool(model_map.supports(model, "prompt_caching"))


def reply_limit(request: ModelRequest, model_map: ModelMap) -> int | None:
    """Return the maximum length of the reply in tokens; ``None`` if the request need not set a limit.

    By default litellm asks Claude for its longest reply, and Claude refuses a request that leaves no room for such a
    reply. If litellm's map does not list a Claude, litellm asks for a length that may be too long for it.
    """
    longest = model_map.output_tokens(request.model)
    if request.max_output_tokens is not None or request.context_tokens is None or request.prompt_tokens is None:
        return request.max_output_tokens
    # ``context_tokens`` may be a limit that the user set, smaller than the model's own.
    holds = model_map.limit_tokens(request.model) or request.context_tokens
    room = holds - int(request.prompt_tokens * _MISJUDGED)
    if longest is None or not wants_markers(request.model, model_map):
        return None
    if room >= longest:
        return longest if model_map.relative(request.model) else None
    return max(1, room)


def marked_messages(request: ModelRequest, model_map: ModelMap) -> list[PromptMessage]:
    """Return the messages of a request, with cache markers if the model's provider wants them.

    Claude refuses calls and results in a request without tools, so both are put into words.
    """
    messages = request.messages
    if not request.tools and _CLAUDE in request.model:
        messages = tuple(map(without_calls, messages))
    marked = _marked(messages) if wants_markers(request.model, model_map) else frozenset()
    return [message._replace(is_marked=place in marked) for place, message in enumerate(messages)]


def chat_message(message: PromptMessage, load: Load = not_stored) -> dict[str, object]:
    """Return a message in the shape of the OpenAI API; ``load`` returns the bytes of attachments."""
    translated: dict[str, object] = {"role": message.role, "content": _content(message, load)}
    if message.tool_calls is not None:
        translated["tool_calls"] = json.loads(message.tool_calls)
    if message.tool_call_id is not None:
        translated["tool_call_id"] = message.tool_call_id
    return translated


def _content(message: PromptMessage, load: Load) -> object:
    parts, said = content_of(message, load)
    text = join_surrogates(said)
    if not parts and not message.is_marked:
        return text
    block: dict[str, object] = {"type": "text", "text": text} if text.strip() or not parts else {}
    if block and message.is_marked:
        block["cache_control"] = MARKER
    return [*map(_part, parts), *([block] if block else [])]


def _part(part: Part) -> dict[str, object]:
    if part.is_picture:
        return {"type": "image_url", "image_url": {"url": part.address}}
    return {"type": "file", "file": {"filename": join_surrogates(part.attachment.name), "file_data": part.address}}


def _marked(messages: Sequence[PromptMessage]) -> frozenset[int]:
    """Return the indexes of the messages to mark; each has text, because Claude refuses a marker on a blank text."""
    filled = [(place, message) for place, message in enumerate(messages) if message.content.strip()]
    systems = [place for place, message in filled if message.role == "system"]
    questions = [place for place, message in filled if message.role == "user"]
    # The next request may move the note, and then it repeats this request only up to the note.
    same = [place for note, message in filled if message.note for place in questions if place < note]
    return frozenset(systems[:1] + same[-1:] + questions[-_MARKED_QUESTIONS:])


# For Ollama's older protocol, litellm writes the tools into the prompt, and every reply comes as JSON.
_BY_PROMPT = "ollama/"

DENIED = re.compile(
    r"(?i)not (?:support|enabled|available|permitted|allowed)|unsupported|n.t support|unrecognized|requires? --|"
    r"no endpoints found"
)
# OpenRouter refuses tools with 404, llama.cpp with 500; litellm raises a 500 for a provider without tools.
_REFUSING_STATUSES = frozenset({400, 404, 422, 500, 501})


def takes_tools(model: str, model_map: ModelMap, of_file: Callable[[str], bool] = lambda _model: False) -> bool:
    """Return whether to offer tools to ``model``; ``of_file`` decides for a local model, the map for a provider's."""
    if model.startswith(LOCAL):
        return of_file(model)
    if model.startswith((EMBEDDED, _BY_PROMPT)):
        return False
    return model_map.supports(model, "function_calling") is not False


def _refuses(about: re.Pattern[str], status: int | None, text: str) -> bool:
    if status not in _REFUSING_STATUSES:
        return False
    return any(about.search(line) and DENIED.search(line) for line in text.splitlines())


refuses_tools = partial(_refuses, re.compile(r"(?i)\btools?\b|\btool[ _-](?:call|use|choice)|\bfunctions?[ _-]call"))
"""Returns whether the status and the text of an error say that the model takes no tools."""
refuses_pictures = partial(_refuses, re.compile(r"(?i)\bimages?\b|\bvision\b"))
"""Returns whether the status and the text of an error say that the model takes no pictures."""
refuses_choice = partial(_refuses, re.compile(r"(?i)\btool[ _-]choice\b"))
"""Returns whether the status and the text of an error say that the server takes no ``tool_choice``."""
