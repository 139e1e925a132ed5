"""An OpenID Connect provider that says what a test tells it to: a good token, or one that must not be believed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from signing import CLIENT_ID, CLIENT_SECRET

Claims = dict[str, Any]
RIGHT_KEY, WRONG_KEY = (RSAKey.generate_key(2048, {"kid": "one", "alg": "RS256", "use": "sig"}) for _ in range(2))


class Provider(ThreadingHTTPServer):
    """A provider on this machine; `tokens` has, by the code it was asked with, what makes the answer of claims."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.issuer = f"http://127.0.0.1:{self.server_port}"
        self.tokens: dict[str, Callable[[], Claims]] = {}
        self.asked: list[str] = []

    def claims(self, nonce: str, /, *, subject: str = "dpo", **others: Any) -> Claims:
        """Return the claims of a good token; None takes one out."""
        now = int(time.time())
        usual = {
            "iss": self.issuer,
            "sub": subject,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 3600,
            "nonce": nonce,
            "email": f"{subject}@example.test",
            "email_verified": True,
        }
        return {name: value for name, value in (usual | others).items() if value is not None}


class _Answers(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        issuer = self.server.issuer
        if self.path == "/jwks":
            self._say({"keys": [RIGHT_KEY.as_dict(private=False)]})
        else:
            self._say(
                {
                    "issuer": issuer,
                    "authorization_endpoint": f"{issuer}/auth",
                    "token_endpoint": f"{issuer}/token",
                    "jwks_uri": f"{issuer}/jwks",
                    "id_token_signing_alg_values_supported": ["RS256"],
                }
            )

    def do_POST(self) -> None:
        asked = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        (code,) = asked["code"]
        self.server.asked.append(code)
        self._say(
            {"access_token": "of-no-use", "token_type": "Bearer", "expires_in": 3600} | self.server.tokens[code]()
        )

    def _say(self, answer: Claims) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def provider() -> Iterator[Provider]:
    """Run a provider for as long as it is used."""
    server = Provider()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def token(claims: Claims, *, key: RSAKey = RIGHT_KEY) -> Claims:
    """Return an answer with a token of these claims."""
    return {"id_token": jwt.encode({"alg": "RS256", "kid": "one"}, claims, key)}


def without_signature(claims: Claims) -> Claims:
    """Return an answer with a token that says it needs no signature."""
    head, body, _ = str(token(claims)["id_token"]).split(".")
    plain = jwt.encode({"alg": "HS256", "kid": "one"}, claims, OctKey.import_key("x" * 32)).split(".")
    none = "eyJhbGciOiJub25lIiwia2lkIjoib25lIn0"  # {"alg":"none","kid":"one"}
    assert head
    assert plain[1] == body
    return {"id_token": f"{none}.{body}."}


def with_our_secret(claims: Claims) -> Claims:
    """Return an answer with a token signed by what only proves who asks."""
    return {"id_token": jwt.encode({"alg": "HS256", "kid": "one"}, claims, OctKey.import_key(CLIENT_SECRET))}


def tampered(claims: Claims) -> Claims:
    """Return an answer with a token whose claims were changed after it was signed."""
    head, _, signature = str(token(claims | {"sub": "nobody"})["id_token"]).split(".")
    body = str(token(claims)["id_token"]).split(".")[1]
    return {"id_token": f"{head}.{body}.{signature}"}
