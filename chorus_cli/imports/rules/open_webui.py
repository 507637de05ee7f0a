"""Conversations of Open WebUI: a tree of messages, with thoughts and calls in their text or in a list beside it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from chorus_cli.core.json import values
from chorus_cli.imports.rules.assembly import Kind, Said, assembled, words_of
from chorus_cli.imports.rules.conversation import ForeignConversation, ForeignFile, Reason
from chorus_cli.log.rules.messages import Status

SOURCE = "open-webui"

_REASONS = {"system": Reason.SYSTEM_PROMPT, "user": Reason.EMPTY_REPLY, "assistant": Reason.EMPTY_REPLY}
_DETAILS = re.compile(r'<details\b[^<>]{0,200}?\btype="(reasoning|tool_calls|code_interpreter)"[^<>]*+>')
_DETAILS_END = "</details>"
_ATTRIBUTE = re.compile(r'\b([a-z]+)="([^"]*)"')
_SUMMARY = re.compile(r"\A\s*<summary>[^<]*</summary>\s*")
_QUOTED = re.compile(r"^> ?", re.MULTILINE)
_CODE = "code_interpreter"


def is_conversation(value: object) -> bool:
    """Return whether a value has the form of a conversation of Open WebUI."""
    chat = _chat(values.record(value))
    has_tree = isinstance(values.record(chat.get("history")).get("messages"), dict)
    return has_tree or ("chat" in values.record(value) and isinstance(chat.get("messages"), list))


def conversation_of(value: object) -> ForeignConversation:
    """Read a conversation."""
    found = values.record(value)
    chat = _chat(found)
    history = values.record(chat.get("history"))
    facts = ForeignConversation(
        SOURCE,
        values.identifier(found.get("id")) or values.identifier(chat.get("id")),
        values.line(found.get("title")) or values.line(chat.get("title")),
        created_at=values.moment(found.get("created_at")) or values.moment(chat.get("timestamp")),
    )
    return assembled(facts, _said(_messages(history, chat)), values.identifier(history.get("currentId")) or None)


def _chat(found: values.Record) -> values.Record:
    """Return the chat in an exported row, or the value itself if it is a chat, else an empty record."""
    return values.record(found.get("chat")) or (found if "history" in found else values.record(None))


def _messages(history: values.Record, chat: values.Record) -> dict[str, values.Record]:
    """Return the messages by their ids: those of the history, or those of the live branch if there is no history."""
    found = values.record(history.get("messages"))
    if found:
        return {values.identifier(key): values.record(message) for key, message in found.items()}
    messages: dict[str, values.Record] = {}
    before = None
    keys = values.ContentKeys()
    for message in values.records(chat.get("messages")):
        own = (values.line(message.get("role")), values.text(message.get("content")))
        key = values.identifier(message.get("id")) or keys.of(*own)
        messages[key] = {"parentId": before, **message}
        before = key
    return messages


def _said(messages: Mapping[str, values.Record]) -> Iterator[Said]:
    """Yield the pieces of messages; a message that names no parent follows the message that names it as a child."""
    parents = {
        values.identifier(child): key
        for key, message in messages.items()
        for child in values.items(message.get("childrenIds"))
    }
    for key, message in messages.items():
        role = values.line(message.get("role"))
        parent = values.identifier(message.get("parentId")) or parents.get(key)
        skipped = _REASONS.get(role, Reason.BROKEN_MESSAGE)
        said = Said(key, timestamp=values.moment(message.get("timestamp")), parent=parent, skipped=skipped)
        yield said
        text, files = words_of(message.get("content")), tuple(_files(message))
        if role == "user":
            yield replace(said, kind=Kind.USER, text=text, files=files)
        elif role == "assistant":
            said = replace(said, kind=Kind.REPLY, model=values.line(message.get("model")) or None)
            status = Status.INTERRUPTED if message.get("done") is False else None
            for piece in _pieces(said, text, values.records(message.get("output"))):
                yield piece if piece.kind is Kind.CALL else replace(piece, status=status)
            yield replace(said, kind=Kind.END, files=files)


def _pieces(said: Said, text: str, output: Sequence[values.Record]) -> Sequence[Said]:
    """Return the pieces of a reply from the list beside its text, or from the text if the words of both differ."""
    listed, in_text = [*_pieces_of_output(said, output)], [*_pieces_of_text(said, text)]
    return listed if listed and _words(in_text) in ("", _words(listed)) else in_text


def _words(pieces: Sequence[Said]) -> str:
    """Return the text of pieces without blanks, because the list and the text differ in their blanks."""
    return "".join("".join(piece.text.split()) for piece in pieces if piece.kind is Kind.REPLY)


def _call(said: Said, name: str, arguments: object, result: str | None) -> Said:
    return replace(said, kind=Kind.CALL, tool=name, arguments=arguments, result=result)


def _pieces_of_output(said: Said, output: Sequence[values.Record]) -> Iterator[Said]:
    """Yield the pieces in a list, which has the form of OpenAI's Responses API."""
    for item in output:
        call = f"{said.node}/{values.identifier(item.get('call_id'))}"
        match item.get("type"):
            case "message":
                yield replace(said, text=words_of(item.get("content")).strip())
            case "reasoning":
                thoughts = words_of(item.get("content")) or words_of(item.get("summary"))
                yield replace(said, thoughts=thoughts.strip())
            case "function_call":
                tool, arguments = values.line(item.get("name")), item.get("arguments")
                yield replace(said, kind=Kind.CALL, call=call, tool=tool, arguments=arguments)
            case "function_call_output":
                yield replace(said, kind=Kind.RESULT, text=words_of(item.get("output")), call=call)
            case "open_webui:code_interpreter":
                result = values.json_text(item["output"]) if item.get("output") else None
                yield _call(said, _CODE, {"code": values.text(item.get("code"))}, result)


def _pieces_of_text(said: Said, text: str) -> Iterator[Said]:
    """Yield the pieces of a text, in their order: words, and its ``<details>`` as thoughts or calls."""
    position = 0
    while found := _DETAILS.search(text, position):
        end = text.find(_DETAILS_END, found.end())
        if end < 0:
            break
        yield replace(said, text=text[position : found.start()].strip())
        body = _SUMMARY.sub("", text[found.end() : end])
        attributes = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(found[0])}
        yield _detail(said, attributes, body)
        position = end + len(_DETAILS_END)
    yield replace(said, text=text[position:].strip())


def _detail(said: Said, attributes: Mapping[str, str], body: str) -> Said:
    if attributes["type"] == "reasoning":
        return replace(said, thoughts=_QUOTED.sub("", html.unescape(body)).strip())
    if attributes["type"] == _CODE:
        return _call(said, _CODE, {"code": body.strip()}, _unquoted(attributes, "output") or None)
    result = _unquoted(attributes, "result") or body.strip() or None
    return _call(said, values.line(attributes.get("name")), _unquoted(attributes, "arguments"), result)


def _unquoted(attributes: Mapping[str, str], name: str) -> str:
    """Return the value of an attribute, which was encoded as JSON once or twice."""
    written = attributes.get(name, "")
    found = values.parsed(written)
    if found is None:
        return values.text(written)
    return values.text(found) if isinstance(found, str) else values.json_text(found)


def _files(message: values.Record) -> Iterator[ForeignFile]:
    for number, listed in enumerate(values.records(message.get("files")), start=1):
        file = values.record(listed.get("file"))
        name = values.line(listed.get("name")) or values.line(file.get("filename"))
        media_type = values.line(values.record(file.get("meta")).get("content_type"))
        inline = values.from_data_url(listed.get("url"))
        if inline is not None:
            yield ForeignFile(name or f"image {number}", inline[0], data=inline[1])
            continue
        yield ForeignFile(name or values.line(listed.get("url"), 60) or "file", media_type)
        text = values.text(values.record(file.get("data")).get("content"))
        if text:
            yield ForeignFile(f"{name or 'file'}.txt", "text/plain", data=text.encode())
