"""Keys that verify tokens: a shared secret, or the public keys that an issuer publishes."""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from hooks.settings import IdentitySettings

logger = logging.getLogger(__name__)

FETCH_SECONDS = 5.0
MAX_JWKS_BYTES = 2**20
# A key that its issuer has taken back is unknown here after this many seconds.
MAX_AGE_SECONDS = 600.0
MIN_RSA_BITS = 2048


class Key(NamedTuple):
    """A key, and the one algorithm it may be used with, whatever a token says."""

    algorithm: str
    material: Any


class Keys(Protocol):
    """Where the key of a token comes from."""

    async def find(self, kid: str | None) -> Key | None:
        """The key with this id, or None."""


class SharedSecret:
    """The key of HS256. It has no id, so what a token says of one does not count."""

    def __init__(self, secret: str) -> None:
        self._key = Key("HS256", secret)

    async def find(self, kid: str | None) -> Key | None:
        """The secret."""
        return self._key


class KeySet:
    """The keys of a JWKS, read in a thread when one is not known, and now and then.

    Args:
        read: Reads the document.
        algorithms: Keys for others are left out.
        interval: Seconds between two readings at least, whatever tokens ask for.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        read: Callable[[], bytes],
        algorithms: Sequence[str],
        interval: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._algorithms = frozenset(algorithms)
        self._interval = interval
        self._clock = clock
        self._keys: dict[str | None, Key] = {}
        self._started = self._fresh = float("-inf")
        self._is_failing = False
        self._reading: Future[None] | None = None
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="jwks")

    async def find(self, kid: str | None) -> Key | None:
        """The key with this id; without an id, the only key there is."""
        found = self._known(kid)
        if found is not None and not self._is_old():
            return found
        reading = self._begin()
        if reading is None or (found is not None and self._is_failing):
            # Who has a key that was good need not wait for an issuer that is down.
            return found
        # Others wait for the same reading: one that gives up does not take it from them.
        done, _ = await asyncio.wait([asyncio.wrap_future(reading)], timeout=2 * FETCH_SECONDS)
        for each in done:
            each.result()
        return self._known(kid)

    def load(self) -> None:
        """Read the keys now, in this thread.

        Raises:
            OSError, ValueError, httpx.HTTPError: they cannot be read.
        """
        self._started = self._clock()
        self._keys = parse(self._read(), self._algorithms)
        self._fresh = self._clock()

    def _known(self, kid: str | None) -> Key | None:
        if kid is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(kid)

    def _is_old(self) -> bool:
        return self._clock() - self._fresh > MAX_AGE_SECONDS

    def _begin(self) -> Future[None] | None:
        """The reading under way, or a new one if it is time for one."""
        with self._lock:
            if self._reading is not None and not self._reading.done():
                return self._reading
            if self._clock() - self._started < self._interval:
                return None
            self._started = self._clock()
            self._reading = self._thread.submit(self._reload)
            return self._reading

    def _reload(self) -> None:
        try:
            self.load()
            self._is_failing = False
        except (OSError, ValueError, httpx.HTTPError) as error:
            # The keys that are known go on to be good; the next reading may go better.
            self._is_failing = True
            logger.warning("The JWKS cannot be read: %s", error)


def open_keys(settings: IdentitySettings) -> Keys | None:
    """The keys that the settings name; None where they name none.

    Raises:
        ValueError: the file of keys cannot be read, or holds none that may be used.
    """
    if settings.jwt_secret is not None:
        return SharedSecret(settings.jwt_secret.get_secret_value())
    interval = settings.jwt_jwks_interval_seconds
    if (url := settings.jwt_jwks_url) is not None:
        return KeySet(lambda: fetch(url), settings.jwt_algorithms, interval)
    if (file := settings.jwt_jwks_file) is not None:
        keys = KeySet(file.read_bytes, settings.jwt_algorithms, interval)
        try:
            keys.load()
        except (OSError, ValueError) as error:
            raise ValueError(f"JWT_JWKS_FILE={file}: {error}") from error
        return keys
    return None


def fetch(url: str) -> bytes:
    """The document at `url`: no redirects, bounded in size and in seconds altogether.

    Raises:
        httpx.HTTPError, ValueError: it is not to be had.
    """
    ends = time.monotonic() + FETCH_SECONDS
    content = b""
    with httpx.stream("GET", url, timeout=FETCH_SECONDS, follow_redirects=False) as answer:
        if answer.status_code != 200:
            raise ValueError(f"{url} answered {answer.status_code}")
        for piece in answer.iter_bytes():
            content += piece
            if len(content) > MAX_JWKS_BYTES or time.monotonic() > ends:
                raise ValueError(f"{url} is too large or too slow")
    return content


def parse(document: bytes, algorithms: frozenset[str]) -> dict[str | None, Key]:
    """The keys of a JWKS that may verify tokens, by id.

    Raises:
        ValueError: it is not a JWKS, or has no such key.
    """
    try:
        entries = json.loads(document)["keys"]
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise ValueError("this is not a JWKS: {'keys': [...]}") from error
    found: dict[str | None, Key] = {}
    for entry in entries if isinstance(entries, list) else ():
        key = _key(entry) if isinstance(entry, Mapping) else None
        if key is not None and key.algorithm in algorithms:
            found[entry.get("kid")] = key
    if not found:
        raise ValueError(f"the JWKS has no key for {', '.join(sorted(algorithms))}")
    return found


def _key(entry: Mapping[str, Any]) -> Key | None:
    """A public key for signatures; None for every other kind, shared secrets above all."""
    verifies = entry.get("use", "sig") == "sig" and "verify" in entry.get("key_ops", ["verify"])
    if not verifies or not isinstance(entry.get("kid"), str | None):
        return None
    try:
        material = jwt.PyJWK(dict(entry)).key
    except jwt.PyJWTError as error:
        logger.info("A key of the JWKS is left out: %s", error)
        return None
    algorithm = _algorithm(material)
    if algorithm is None or entry.get("alg", algorithm) != algorithm:
        return None
    return Key(algorithm, material)


def _algorithm(material: Any) -> str | None:
    if isinstance(material, RSAPublicKey) and material.key_size >= MIN_RSA_BITS:
        return "RS256"
    if isinstance(material, EllipticCurvePublicKey) and material.curve.name == "secp256r1":
        return "ES256"
    return "EdDSA" if isinstance(material, Ed25519PublicKey) else None
