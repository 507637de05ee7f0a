"""Small GGUF files, and a library in place of llama.cpp that serves them."""

from __future__ import annotations

import struct
from pathlib import Path

TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"
WITH_TOOLS = TEMPLATE + "{% if tools %}{{ tools }}{% endif %}"

# Its server answers every question with its own process, context and key; the model's file says what goes wrong.
LIBRARY = """
import json, os, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace


def CommonParams():
    parts = {name: SimpleNamespace() for name in ("model", "cpuparams", "cpuparams_batch")}
    return SimpleNamespace(**parts)


class Server:
    def __init__(self, parameters):
        content = open(parameters.model.path, "rb").read()
        if b"damaged" in content:
            print("0.01 E llama_model_load: error loading model: a tensor is missing", file=sys.stderr)
            print("0.02 E srv load_model: failed", file=sys.stderr, flush=True)
            raise RuntimeError("Failed to init server.")
        if b"crashing" in content:
            os._exit(3)
        if b"endless" in content:
            threading.Event().wait()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
                self.send_response(200 if bearer in parameters.api_keys else 401)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                said = json.dumps({"process": os.getpid(), "context": parameters.n_ctx, "model": asked["model"]})
                for delta, reason in (({"content": said}, None), ({}, "stop")):
                    choice = {"index": 0, "delta": delta, "finish_reason": reason}
                    self.wfile.write(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\\n\\n")
                self.wfile.write(b"data: [DONE]\\n\\n")

            def log_message(self, *_):
                pass

        served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=served.serve_forever, daemon=True).start()
        self.listening_address = "http://127.0.0.1:%d" % served.server_port
"""


def gguf(trained_tokens: int | None = 8192, template: str = TEMPLATE, weights: str = "sound") -> bytes:
    """Return a model file as llama.cpp's tools write it, but for its weights."""
    entries = [_entry("general.architecture", 8, _text("llama"))]
    if trained_tokens is not None:
        entries.append(_entry("llama.context_length", 4, struct.pack("<I", trained_tokens)))
    vocabulary = struct.pack("<IQ", 8, 2) + _text("llama.context_lengths") + _text("tokenizer")
    entries += [_entry("tokenizer.ggml.tokens", 9, vocabulary), _entry("tokenizer.chat_template", 8, _text(template))]
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + b"".join(entries) + weights.encode()


def written(folder: Path, name: str = "model.gguf", content: bytes | None = None) -> Path:
    file = folder / name
    file.write_bytes(gguf() if content is None else content)
    return file


def library_in(folder: Path) -> dict[str, str]:
    """Put the library into ``folder`` and return the variables by which a process finds it."""
    (folder / "xllamacpp.py").write_text(LIBRARY, encoding="utf-8")
    return {"PYTHONPATH": str(folder)}


def _entry(key: str, type_: int, value: bytes) -> bytes:
    return _text(key) + struct.pack("<I", type_) + value


def _text(text: str) -> bytes:
    written = text.encode()
    return struct.pack("<Q", len(written)) + written
