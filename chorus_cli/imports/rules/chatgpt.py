"""Conversations of a ChatGPT data export: a tree of nodes, each with a message or none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from chorus_cli.core.json import values
from chorus_cli.core.text.phrases import fenced
from chorus_cli.imports.rules.assembly import Kind, Said, assembled, in_words, texts_of, words_of
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, Reason
from chorus_cli.log.rules.messages import Status

_CONTEXTS = {"user_editable_context", "model_editable_context"}
_QUOTES = {"tether_quote", "tether_browsing_display", "tether_browsing_code"}
_FILE_ID = re.compile(r"file[-_][\w-]{2,100}", re.ASCII)
_POINTERS = {"image_asset_pointer": "image", "audio_asset_pointer": "audio", "video_container_asset_pointer": "video"}


class _Node(NamedTuple):
    """A node of the tree: a message or, if ``thoughts`` is a text, thoughts for the reply after the node."""

    parent: str | None
    message: values.Record
    role: str
    text: str = ""
    files: tuple[ForeignFile, ...] = ()
    thoughts: str | None = None
    is_hidden: bool = False

    @property
    def is_shown(self) -> bool:
        """Whether the node becomes a message."""
        has_words = bool(self.text.strip() or self.files) and self.thoughts is None
        return has_words and self.role in _ROLES and not self.is_hidden


def _node(node: values.Record) -> _Node:
    """Read a node; content of an unknown type is read as text and files."""
    message = values.record(node.get("message"))
    content, author = values.record(message.get("content")), values.record(message.get("author"))
    role, data = values.line(author.get("role")), values.record(message.get("metadata"))
    is_hidden = role == "system" or data.get("is_visually_hidden_from_conversation") is True
    found = _Node(values.identifier(node.get("parent")) or None, message, role, is_hidden=is_hidden)
    match content.get("content_type"):
        case "thoughts":
            return found._replace(thoughts=_thoughts(content) or "…")
        case "reasoning_recap":
            return found._replace(thoughts="")
        case str(kind) if kind in _CONTEXTS:
            # ChatGPT itself adds the profile and the memory.
            return found._replace(text=_plain(content), is_hidden=True)
        case "code" if values.line(message.get("recipient")) in {"", "all"}:
            return found._replace(text=_fenced(content), files=_attached(message))
        case str(kind) if kind in _QUOTES:
            return found._replace(text=_quoted(content))
    return found._replace(text=_plain(content), files=tuple(_with_names(_pointers(content), message)))


def _plain(content: values.Record) -> str:
    """Return the texts in a content's parts; if the parts have no text, return the first text in another field."""
    found = texts_of(content, "text", "result", "content", "user_profile", "user_instructions")
    return words_of(content.get("parts")) or next(found, "")


def _fenced(content: values.Record) -> str:
    code = values.text(content.get("text")) or _plain(content)
    language = values.line(content.get("language"))
    return fenced(code, "" if language == "unknown" else language) if code.strip() else ""


def _quoted(content: values.Record) -> str:
    heading = filter(None, (values.line(content.get(name)) for name in ("title", "url", "domain")))
    return "\n".join(dict.fromkeys([*heading, *texts_of(content, "text", "summary", "result")]))


def _thoughts(content: values.Record) -> str:
    thoughts = ("\n".join(texts_of(each, "summary", "content")) for each in values.records(content.get("thoughts")))
    return "\n\n".join(filter(None, thoughts))


def _pointers(content: values.Record) -> Iterator[ForeignFile]:
    for part in values.records(content.get("parts")):
        # A spoken message holds the pointers to its sound and its picture in one part.
        for each in (part, part.get("audio_asset_pointer"), part.get("video_container_asset_pointer")):
            pointer = values.record(each)
            if address := values.line(pointer.get("asset_pointer")):
                entry = _id(address.rpartition("://")[2].partition("#")[0].partition("?")[0])
                name = _POINTERS.get(values.line(pointer.get("content_type")), "file")
                yield ForeignFile(f"{name} {entry}".strip(), entry=entry)


def _id(written: str) -> str:
    """Return a text if it is a file's id, else ``""``, because any other text could name a file beside the export."""
    return written if _FILE_ID.fullmatch(written) else ""


def _with_names(pointers: Iterable[ForeignFile], message: values.Record) -> Iterator[ForeignFile]:
    """Yield the files of a message: first the attachments, which have names, then the pointers to other files."""
    attached = _attached(message)
    yield from attached
    known = {file.entry for file in attached if file.entry}
    yield from (file for file in pointers if file.entry not in known)


def _attached(message: values.Record) -> tuple[ForeignFile, ...]:
    listed = values.records(values.record(message.get("metadata")).get("attachments"))
    return tuple(
        ForeignFile(
            values.line(file.get("name")) or "file",
            values.line(file.get("mime_type") or file.get("mimeType")),
            _id(values.identifier(file.get("id"))),
        )
        for file in listed
    )


SOURCE = "chatgpt"

_FARTHEST_THOUGHT = 40
"""How many nodes before a reply are searched for its thoughts."""

_ROLES = frozenset({"user", "assistant", "tool"})
_HIDDEN = "hidden note of the program to the model"
_ENDINGS = {"interrupted": Status.INTERRUPTED, "max_tokens": Status.TRUNCATED}
_MARKED = re.compile("\ue200([^\ue200\ue201]{0,4000})\ue201|[\ue200-\ue206]")


def is_conversation(value: object) -> bool:
    """Return whether a value has the form of a conversation of ChatGPT."""
    return isinstance(values.record(value).get("mapping"), dict)


def conversation_of(value: object) -> ForeignConversation:
    """Read a conversation."""
    found = values.record(value)
    mapping = values.record(found.get("mapping"))
    nodes = {values.identifier(key): _node(values.record(node)) for key, node in mapping.items()}
    facts = ForeignConversation(
        SOURCE,
        values.identifier(found.get("conversation_id")) or values.identifier(found.get("id")),
        values.line(found.get("title")),
        created_at=values.moment(found.get("create_time")),
    )
    return assembled(facts, _said(nodes), values.identifier(found.get("current_node")))


def _said(nodes: Mapping[str, _Node]) -> Iterator[Said]:
    """Yield the pieces of the nodes; a tool's message that follows a call is the result of that call."""
    calls = {key for key, node in nodes.items() if node.is_shown and _addressee(node)}
    results = {key: node.parent for key, node in nodes.items() if node.role == "tool" and node.is_shown}
    answered = calls.intersection(filter(None, results.values()))
    for key, node in nodes.items():
        message, role, parent = node.message, node.role, node.parent
        if not node.is_shown:
            is_broken = message and role not in _ROLES
            reason = (_HIDDEN if node.text else "") if node.is_hidden else Reason.BROKEN_MESSAGE if is_broken else ""
            yield Said(key, parent=parent, skipped=reason)
            continue
        data = values.record(message.get("metadata"))
        model, time = values.line(data.get("model_slug")) or None, values.moment(message.get("create_time"))
        said, tool = Said(key, Kind.USER, node.text, time, None, parent, files=node.files), _addressee(node)
        if role == "tool" and parent in answered:
            # A result that is only a picture gets a text, because no model takes a result without text.
            text = node.text or ", ".join(file.name for file in node.files)
            yield replace(said, kind=Kind.RESULT, text=text, model=model, call=parent, is_apart=True)
        elif key in answered:
            call = replace(said, kind=Kind.CALL, model=model, call=key, tool=tool, arguments=node.text)
            yield replace(call, thoughts=_thoughts_before(parent, nodes))
        elif role == "user":
            yield said
        else:
            name = values.line(values.record(message.get("author")).get("name"))
            speaker = tool or (role == "tool" and (name or "tool"))
            # Private-use characters enclose a citation, from which only a name or an address is kept.
            text = in_words(speaker, node.text) if speaker else _MARKED.sub(_in_words, node.text)
            ending = values.identifier(values.record(data.get("finish_details")).get("type"))
            status, thoughts = _ENDINGS.get(ending), _thoughts_before(parent, nodes)
            yield replace(said, kind=Kind.REPLY, text=text, model=model, status=status, thoughts=thoughts)


def _thoughts_before(key: str | None, nodes: Mapping[str, _Node]) -> str:
    found: list[str] = []
    while (node := nodes.get(key or "")) and node.thoughts is not None and len(found) < _FARTHEST_THOUGHT:
        found.append(node.thoughts)
        key = node.parent
    return "\n\n".join(filter(None, reversed(found)))


def _addressee(node: _Node) -> str:
    """Return the tool to which the model addressed a message, empty if there is none."""
    recipient = values.line(node.message.get("recipient"))
    return recipient if recipient not in {"", "all"} and node.role == "assistant" else ""


def _in_words(mark: re.Match[str]) -> str:
    kind, *rest = (mark[1] or "").split("\ue202")
    if kind == "url" and rest:
        return rest[0]
    if kind != "entity" or not rest:
        return ""
    match values.parsed(rest[0]):
        case [_, str(name), *_]:
            return name
    return ""
