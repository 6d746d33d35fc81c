"""An issuer's keys: accepted keys, the times of reading, and failures of the issuer."""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.issuer import public_jwk, published
from threadhold.auth import IdentitySettings
from threadhold.auth.jwt_keys import MAX_AGE_SECONDS, MAX_JWKS_BYTES, KeySet, fetch, parse
from threadhold.auth.jwt_keys import open_keys as opened


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clear the variables of the environment in which the tests run."""
    for name in IdentitySettings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


ALL = frozenset(("RS256", "ES256", "EdDSA"))
EVERY = 30.0


class Clock:
    """A clock that advances only when a test sets it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def document(*keys: Any) -> bytes:
    return json.dumps({"keys": keys}).encode()


class Source:
    """A JWKS that counts how often it is read."""

    def __init__(self, *keys: Any) -> None:
        self.keys = list(keys)
        self.error: Exception | None = None
        self.reads = 0

    def __call__(self) -> bytes:
        self.reads += 1
        if self.error is not None:
            raise self.error
        return document(*self.keys)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def key_set(source: Source, clock: Clock) -> KeySet:
    return KeySet(source, sorted(ALL), EVERY, clock)


async def test_keys_are_read_once_at_first_use(clock: Clock) -> None:
    source = Source(public_jwk("RS256", "a"), public_jwk("ES256", "b"))
    keys = key_set(source, clock)
    assert source.reads == 0
    for kid, algorithm in (("a", "RS256"), ("b", "ES256"), ("a", "RS256")):
        found = await keys.find(kid)
        assert found is not None
        assert found.algorithm == algorithm
    assert source.reads == 1


async def test_unknown_ids_cause_one_reading_per_interval(clock: Clock) -> None:
    """CVE-2026-48524: each unknown `kid` made a request to the issuer."""
    source = Source(public_jwk("RS256", "a"))
    keys = key_set(source, clock)
    for _ in range(3):
        found = await asyncio.gather(*(keys.find(f"unknown {n}") for n in range(200)))
        assert set(found) == {None}
        assert await keys.find("a") is not None
    assert source.reads == 1
    clock.now += EVERY
    await asyncio.gather(*(keys.find(f"unknown {n}") for n in range(200)))
    assert source.reads == 2


async def test_new_key_of_issuer_is_found(clock: Clock) -> None:
    source = Source(public_jwk("RS256", "old"))
    keys = key_set(source, clock)
    assert await keys.find("old") is not None
    source.keys = [public_jwk("ES256", "new")]
    clock.now += EVERY
    assert await keys.find("old") is not None, "the removal is not known yet"
    assert await keys.find("new") is not None
    assert await keys.find("old") is None


async def test_removed_key_is_forgotten_after_max_age(clock: Clock) -> None:
    source = Source(public_jwk("RS256", "a"), public_jwk("RS256", "b"))
    keys = key_set(source, clock)
    assert await keys.find("a") is not None
    source.keys = source.keys[1:]
    clock.now += MAX_AGE_SECONDS + 1
    assert await keys.find("a") is None
    assert await keys.find("b") is not None


async def test_known_keys_expire_while_issuer_is_down(clock: Clock) -> None:
    source = Source(public_jwk("RS256", "a"))
    keys = KeySet(source, sorted(ALL), EVERY, clock, max_age=3600)
    assert await keys.find("a") is not None
    source.error = OSError("unreachable")
    clock.now += 3500
    assert await keys.find("a") is not None
    clock.now += 101
    assert await keys.find("a") is None
    source.error = None
    clock.now += EVERY
    assert await keys.find("a") is not None


async def test_known_keys_stay_valid_while_issuer_is_down(clock: Clock) -> None:
    source = Source(public_jwk("RS256", "a"))
    keys = key_set(source, clock)
    assert await keys.find("a") is not None
    source.error = OSError("down")
    for _ in range(5):
        clock.now += MAX_AGE_SECONDS + 1
        assert await keys.find("a") is not None
        assert await keys.find("b") is None
    assert source.reads == 6, "failures must not shorten the interval"


async def test_known_key_is_found_without_waiting_for_failing_issuer(clock: Clock) -> None:
    source = Source(public_jwk("RS256", "a"))
    answers = threading.Event()
    answers.set()

    def read() -> bytes:
        assert answers.wait(60)
        return source()

    keys = KeySet(read, sorted(ALL), EVERY, clock)
    assert await keys.find("a") is not None
    source.error = OSError("down")
    clock.now += MAX_AGE_SECONDS + 1
    assert await keys.find("a") is not None
    answers.clear()
    clock.now += EVERY
    async with asyncio.timeout(30):
        assert await keys.find("a") is not None
    answers.set()
    assert await keys.find("b") is None, "an unknown key waits for the reading"
    assert source.reads == 3


async def test_issuer_that_is_down_at_first_is_read_again(clock: Clock) -> None:
    source = Source(public_jwk("RS256", "a"))
    source.error = OSError("down")
    keys = key_set(source, clock)
    for _ in range(5):
        assert await keys.find("a") is None
    assert source.reads == 1
    source.error = None
    clock.now += EVERY
    assert await keys.find("a") is not None


async def test_token_without_id_uses_the_only_key(clock: Clock) -> None:
    source = Source(public_jwk("RS256", "a"))
    assert await key_set(source, clock).find(None) is not None
    source.keys.append(public_jwk("ES256", "b"))
    assert await key_set(source, clock).find(None) is None


async def test_cancelled_request_does_not_cancel_the_reading(clock: Clock) -> None:
    source = Source(public_jwk("RS256", "a"))
    keys = key_set(source, clock)
    first, second = (asyncio.create_task(keys.find("a")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert await second is not None
    assert source.reads == 1


@pytest.mark.parametrize(
    "bad",
    [
        public_jwk("RS256", use="enc"),
        public_jwk("RS256", use=None, key_ops=["encrypt"]),
        public_jwk("RS256", alg="RS512"),
        public_jwk("RS256", alg="HS256"),
        public_jwk("RS256", kid=5),
        public_jwk("ES256", alg="ES384"),
        {"kty": "oct", "k": "c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0", "alg": "HS256", "kid": "one"},
        {"kty": "oct", "k": "c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0", "kid": "one"},
        {"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "one"},
        {"kty": "RSA", "kid": "one"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "one"},
        {},
        "x",
        None,
        5,
    ],
    ids=lambda bad: ",".join(bad)[:40] if isinstance(bad, dict) else str(bad),
)
def test_only_public_signature_keys_are_accepted(bad: Any) -> None:
    good = public_jwk("EdDSA", "good")
    assert set(parse(document(bad, good), ALL)) == {"good"}
    with pytest.raises(ValueError, match="no key for"):
        parse(document(bad), ALL)


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"[]", b"x", b'{"keys": {}}', b'{"keys": []}', b"[" * 10**5, b"\xff"]
)
def test_invalid_jwks_is_rejected(text: bytes) -> None:
    with pytest.raises(ValueError, match="JWKS"):
        parse(text, ALL)


def test_keys_of_other_algorithms_are_ignored() -> None:
    everything = document(*(public_jwk(name, name) for name in sorted(ALL)))
    assert set(parse(everything, frozenset(["ES256"]))) == {"ES256"}


# --- keys over HTTP and from files ------------------------------------------


def test_fetch_returns_the_document() -> None:
    with published(public_jwk("RS256")) as jwks:
        assert set(parse(fetch(jwks.url), ALL)) == {"one"}


@pytest.mark.parametrize("status", [301, 302, 307, 404, 500])
def test_other_status_is_rejected_without_redirect(status: int) -> None:
    with published(public_jwk("RS256")) as jwks:
        jwks.status, jwks.headers = status, {"location": "file:///etc/passwd"}
        with pytest.raises(ValueError, match=str(status)):
            fetch(jwks.url)
        assert jwks.asked == 1


def test_oversized_document_is_cut_off() -> None:
    with published(public_jwk("RS256")) as jwks:
        jwks.padding = MAX_JWKS_BYTES
        with pytest.raises(ValueError, match="sent more than 1048576 bytes"):
            fetch(jwks.url)


async def test_silent_issuer_times_out_without_blocking_the_loop() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        asked = IdentitySettings(app_env="production", jwt_jwks_url=f"http://127.0.0.1:{port}/")
        keys = opened(asked)
        assert keys is not None
        waiting = asyncio.create_task(keys.find("a"))
        turns = 0
        async with asyncio.timeout(60):
            while not waiting.done():
                await asyncio.sleep(0.01)
                turns += 1
        assert await waiting is None
        # A loop that is blocked has one.
        assert turns > 3


async def test_changed_jwks_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_bytes(document(public_jwk("RS256", "a")))
    asked: dict[str, Any] = {"jwt_jwks_file": path, "jwt_jwks_interval_seconds": 0.001}
    keys = opened(IdentitySettings(**asked))
    assert keys is not None
    assert await keys.find("a") is not None
    path.write_bytes(document(public_jwk("RS256", "b")))
    await asyncio.sleep(0.005)
    assert await keys.find("b") is not None


@pytest.mark.parametrize("content", [None, b"", b'{"keys": []}'])
def test_jwks_file_without_keys_is_rejected_at_start(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "jwks.json"
    if content is not None:
        path.write_bytes(content)
    asked: dict[str, Any] = {"jwt_jwks_file": path}
    with pytest.raises(ValueError, match=f"JWT_JWKS_FILE={path}"):
        opened(IdentitySettings(**asked))
