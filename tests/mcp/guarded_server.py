"""A server of tools on loopback that asks for a sign-in, with the server that signs users in: both do one thing wrong.

It registers clients, checks their redirect, their code and its proof (PKCE), and renews tokens, each once.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import build_opener

from benchmarks.loopback import Quiet, listening
from tests.mcp.small_server import answer

CANARY = "canary-4711"
"""The beginning of each token, code and secret that the server gives; the id of a client is no secret."""


@dataclass
class Guarded:
    """A server and what it was asked.

    ``lifetime_seconds`` is that of tokens; ``is_revoked`` refuses all tokens given before. ``tokens`` are valid now.
    ``taken`` has the token of each request for the server of tools.
    """

    fault: str = ""
    elsewhere: str = ""
    address: str = ""
    lifetime_seconds: int | None = 3600
    clients: dict[str, dict[str, Any]] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    renewals: set[str] = field(default_factory=set)
    taken: list[str | None] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    number: int = 0

    @property
    def url(self) -> str:
        return f"{self.address}/mcp"

    def secret(self, kind: str) -> str:
        self.number += 1
        return f"{CANARY}-{kind}-{self.number}"

    def revoke(self, *, renewals_too: bool = False) -> None:
        """Refuse all tokens given so far."""
        self.tokens.clear()
        if renewals_too:
            self.renewals.clear()

    def granted(self) -> dict[str, Any]:
        token, renewal = self.secret("access"), self.secret("refresh")
        self.tokens.add(token)
        self.renewals.add(renewal)
        lasting = {} if self.lifetime_seconds is None else {"expires_in": self.lifetime_seconds}
        return {"access_token": token, "token_type": "bearer", "refresh_token": renewal, **lasting}

    def documents(self) -> dict[str, Any]:
        """Return what describes the sign-in, by its path."""
        issuer, plain = self.address, "http://login.example"
        endpoints = {name: f"{issuer}/{name.partition('_')[0]}" for name in ENDPOINTS}
        endpoints |= {name: f"{plain}/x" for name in ENDPOINTS if self.fault == f"plain {name}"}
        if self.fault == "another issuer":
            issuer = "https://login.example"
        return {
            "/.well-known/oauth-protected-resource/mcp": {
                "resource": "https://other.example/mcp" if self.fault == "another resource" else self.url,
                "authorization_servers": [plain if self.fault == "plain metadata" else self.address],
            },
            "/.well-known/oauth-authorization-server": {"issuer": issuer, **endpoints},
        }


ENDPOINTS = ("authorization_endpoint", "token_endpoint", "registration_endpoint")


class Handler(Quiet, BaseHTTPRequestHandler):
    guarded: Guarded

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        self.guarded.asked.append(path)
        if path == "/authorization":
            self.authorize({name: values[0] for name, values in parse_qs(query).items()})
        elif path == "/mcp":
            self.reply(405, {})
        elif (known := self.guarded.documents().get(path)) and self.guarded.fault != "no sign-in":
            self.reply(200, known)
        else:
            self.reply(404, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.guarded.asked.append(self.path)
        match self.path:
            case "/mcp":
                self.serve(json.loads(body))
            case "/registration" if self.guarded.fault not in {"no registration", "no sign-in"}:
                client = {**json.loads(body), "client_id": f"client-{len(self.guarded.clients)}"}
                self.guarded.clients[client["client_id"]] = client
                self.reply(201, {**client, "client_secret": self.guarded.secret("secret")})
            case "/token":
                self.token({name: values[0] for name, values in parse_qs(body.decode()).items()})
            case _:
                self.reply(404, {})

    def authorize(self, asked: dict[str, str]) -> None:
        client = self.guarded.clients[asked["client_id"]]
        assert asked["redirect_uri"] in client["redirect_uris"]
        assert (asked["code_challenge_method"], asked["resource"]) == ("S256", self.guarded.url)
        code = self.guarded.secret("code")
        self.guarded.codes[code] = asked
        brought = {"code": code, "state": asked["state"]}
        if self.guarded.fault == "declined":
            brought = {"error": "access_denied", "state": asked["state"]}
        self.reply(302, {}, Location=f"{asked['redirect_uri']}?{urlencode(brought)}")

    def token(self, asked: dict[str, str]) -> None:
        if self.guarded.fault in {"rubbish", "huge", "packed", "elsewhere", "broken"}:
            self.spoil()
        elif asked["grant_type"] == "refresh_token" and asked["refresh_token"] in self.guarded.renewals:
            self.guarded.renewals.discard(asked["refresh_token"])
            self.reply(200, self.guarded.granted())
        elif asked["grant_type"] == "authorization_code" and (code := self.guarded.codes.pop(asked["code"], None)):
            proof = urlsafe_b64encode(sha256(asked["code_verifier"].encode()).digest()).rstrip(b"=")
            assert (proof.decode(), asked["redirect_uri"]) == (code["code_challenge"], code["redirect_uri"])
            self.reply(200, self.guarded.granted())
        else:
            self.reply(400, {"error": "invalid_grant", "error_description": f"{CANARY}-description"})

    def spoil(self) -> None:
        match self.guarded.fault:
            case "rubbish":
                self.reply(200, [f"{CANARY}-rubbish", "\x1b[2J"])
            case "huge":
                self.reply(200, {"access_token": "x" * 10_000_000})
            case "packed":
                self.reply(200, {}, **{"Content-Encoding": "gzip"})
            case "broken":
                self.reply(503, {"error": f"{CANARY}-broken"})
            case _:
                self.reply(307, {}, Location=f"{self.guarded.elsewhere}/token")

    def serve(self, message: dict[str, Any]) -> None:
        given = self.headers.get("Authorization")
        self.guarded.taken.append(given)
        if self.guarded.fault == "moved":
            self.reply(307, {}, Location=f"{self.guarded.elsewhere}/mcp")
        elif self.guarded.fault != "open" and (given or "").removeprefix("Bearer ") not in self.guarded.tokens:
            challenge = f'Bearer resource_metadata="{self.guarded.address}/.well-known/oauth-protected-resource/mcp"'
            asking = {} if self.guarded.fault == "no challenge" else {"WWW-Authenticate": challenge}
            self.reply(401, {"error": f"{given} is not valid"}, **asking)
        elif "id" not in message:
            self.reply(202, {})
        else:
            told = answer("", message)
            result = {"result": told} if told is not None else {"error": {"code": -32601, "message": "no"}}
            self.reply(200, {"jsonrpc": "2.0", "id": message["id"], **result})

    def reply(self, status: int, body: object, **headers: str) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(text)),
            **headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)


@contextmanager
def guarded(fault: str = "", elsewhere: str = "") -> Iterator[Guarded]:
    server = Guarded(fault, elsewhere)
    with listening(type("OneHandler", (Handler,), {"guarded": server})) as server.address:
        yield server


def browse(page: str) -> str:
    """Sign in as a browser does: open the page, and return the text of the page to which it leads."""
    assert urlsplit(page).scheme in {"http", "https"}
    try:
        with build_opener().open(page, timeout=20) as answered:
            return str(answered.read().decode())
    except HTTPError as error:
        return error.read().decode()
