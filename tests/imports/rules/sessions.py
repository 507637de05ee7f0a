"""Lines of sessions of programs for the terminal, written after their formats."""

from __future__ import annotations

from typing import Any


def claude_line(key: str, parent: str | None, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    """A line of Claude Code: text or blocks of a user, of a reply, or of the program."""
    message = {"id": f"msg_{key}", "model": "claude"} if kind == "assistant" else {}
    return {
        "type": kind,
        "uuid": key,
        "parentUuid": parent,
        "isSidechain": False,
        "sessionId": "s1",
        "timestamp": f"2026-01-02T03:{sum(map(ord, key)) % 60:02}:00.123Z",
        "message": {"role": kind, "content": content, **message},
        **more,
    }


def tool_use(key: str, name: str = "Read", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": name, "input": given}


def tool_result(key: str, content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": key, "content": content}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def boundary(key: str, logical: str, **metadata: Any) -> dict[str, Any]:
    more = {"subtype": "compact_boundary", "logicalParentUuid": logical, "compactMetadata": metadata}
    return {**claude_line(key, None, "system", ""), **more}


def codex_meta(**more: Any) -> dict[str, Any]:
    return codex_line("session_meta", id="s1", timestamp="2026-01-02T03:04:00Z", source="cli", **more)


def codex_line(_line: str, _second: int = 0, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-01-02T03:04:{_second:02}.000Z", "type": _line, "payload": payload}


def codex_item(role: str, words: str, second: int = 0, *more: Any) -> dict[str, Any]:
    content = [*more, {"type": "input_text" if role == "user" else "output_text", "text": words}]
    return codex_line("response_item", second, type="message", role=role, content=content)


def codex_event(kind: str, words: str, second: int = 0) -> dict[str, Any]:
    return codex_line("event_msg", second, type=kind, message=words)


def gemini_meta(**more: Any) -> dict[str, Any]:
    return {"sessionId": "s1", "projectHash": "x", "startTime": "2026-01-02T03:04:00.000Z", "kind": "main", **more}


def gemini_line(key: str, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    model = {"model": "gemini-2.5-pro"} if kind == "gemini" else {}
    return {"id": key, "timestamp": "2026-01-02T03:05:00.000Z", "type": kind, "content": content, **model, **more}


def qwen_line(key: str, parent: str | None, kind: str, *parts: Any, **more: Any) -> dict[str, Any]:
    """A line of Qwen Code: a message in parts, or without any a line of the program."""
    role = "model" if kind == "assistant" else "user"
    content = {"message": {"role": role, "parts": list(parts)}} if parts else {"systemPayload": {}}
    model = {"model": "qwen3-coder-plus"} if kind == "assistant" else {}
    return {
        "uuid": key,
        "parentUuid": parent,
        "sessionId": "s1",
        "timestamp": f"2026-01-02T03:{sum(map(ord, key)) % 60:02}:00.123Z",
        "type": kind,
        "cwd": "/home/frodo/shire",
        "version": "0.21.13",
        **content,
        **model,
        **more,
    }


def qwen_call(key: str, name: str, **given: Any) -> dict[str, Any]:
    return {"functionCall": {"id": key, "name": name, "args": given}}


def qwen_answer(key: str, name: str, **response: Any) -> dict[str, Any]:
    return {"functionResponse": {"id": key, "name": name, "response": response}}
