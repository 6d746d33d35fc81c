"""An issuer of tokens: keys of every kind, valid and forged signatures, and a published JWKS."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

from tests.support.http_server import QuietHandler, answering

SECRET = "a secret of the tests, long enough"
PRIVATE = {
    "RS256": lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
}


@cache
def private_key(algorithm: str, kid: str = "one") -> Any:
    """Return the private key for an algorithm and key id; create it at the first call."""
    return PRIVATE[algorithm]()


def public_jwk(algorithm: str, kid: str = "one", **changes: Any) -> dict[str, Any]:
    """Return the public key as the JWK that the issuer publishes."""
    public = private_key(algorithm, kid).public_key()
    made: Any = get_default_algorithms()[algorithm].to_jwk(public)
    shown = {**json.loads(made), "kid": kid, "use": "sig", "alg": algorithm, **changes}
    return {name: value for name, value in shown.items() if value is not None}


def public_pem(algorithm: str, kid: str = "one") -> str:
    """Return the public key as PEM."""
    public = private_key(algorithm, kid).public_key()
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    pem: bytes = public.public_bytes(serialization.Encoding.PEM, form)
    return pem.decode()


def claims(**changes: Any) -> dict[str, Any]:
    """Return the claims of a valid token with changes; None removes a claim."""
    moment = int(time.time())
    good = {"sub": "ada", "tenant_id": "acme", "iat": moment, "exp": moment + 3600}
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def token(algorithm: str = "HS256", kid: str | None = None, **changes: Any) -> str:
    """A token signed with our key for `algorithm`."""
    key = SECRET if algorithm == "HS256" else private_key(algorithm, kid or "one")
    headers = {} if kid is None else {"kid": kid}
    return jwt.encode(claims(**changes), key, algorithm=algorithm, headers=headers)


def forged(header: dict[str, Any], payload: Any, secret: bytes | None = None) -> str:
    """Return a token with any header and payload, signed with HMAC, or unsigned."""
    parts = [_base64(json.dumps(part).encode()) for part in (header, payload)]
    signature = b""
    if secret is not None:
        signature = hmac.new(secret, ".".join(parts).encode(), hashlib.sha256).digest()
    return ".".join([*parts, _base64(signature)])


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def bearer(value: str) -> dict[str, str]:
    """Return the request header for a token."""
    return {"authorization": f"Bearer {value}"}


class Published:
    """A JWKS on its own web server.

    Attributes:
        url: The address of the JWKS.
        keys: The published keys; tests may change them.
        status: The HTTP status of the answers.
        asked: The number of requests.
        headers: Extra headers of the answers.
        padding: The number of spaces after the JSON.
    """

    def __init__(self, *keys: dict[str, Any]) -> None:
        self.keys = list(keys)
        self.status = 200
        self.asked = 0
        self.headers: dict[str, str] = {}
        self.padding = 0
        self.url = ""


@contextmanager
def published(*keys: dict[str, Any]) -> Iterator[Published]:
    """Publish `keys` until the end of the block."""
    jwks = Published(*keys)

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            jwks.asked += 1
            body = json.dumps({"keys": jwks.keys}).encode() + b" " * jwks.padding
            self.send_response(jwks.status)
            for name, value in jwks.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    with answering(Handler) as url:
        jwks.url = f"{url}/jwks.json"
        yield jwks
