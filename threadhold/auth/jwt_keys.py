"""Keys that verify tokens: a shared secret, or the public keys of an issuer (JWKS)."""

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

from threadhold.auth.settings import IdentitySettings

logger = logging.getLogger(__name__)

FETCH_SECONDS = 5.0
MAX_JWKS_BYTES = 2**20
# The JWKS is read again after this many seconds, so that a key that the issuer removed stops working.
MAX_AGE_SECONDS = 600.0
MIN_RSA_BITS = 2048


class Key(NamedTuple):
    """A key and the only algorithm it may be used with. The token does not choose the algorithm."""

    algorithm: str
    material: Any


class Keys(Protocol):
    """A source of keys."""

    async def candidates(self, kid: str | None) -> Sequence[Key]:
        """Return the keys that may have signed a token with the key id `kid`."""


class SharedSecrets:
    """The keys of HS256.

    Args:
        secrets: Secrets by key id. A single secret has the id None, and is used for every id.
    """

    def __init__(self, secrets: Mapping[str | None, str]) -> None:
        self._keys = {kid: Key("HS256", secret) for kid, secret in secrets.items()}

    async def candidates(self, kid: str | None) -> Sequence[Key]:
        """Return the secret with the id `kid`; without an id, all secrets."""
        if kid is None or None in self._keys:
            return list(self._keys.values())
        return [self._keys[kid]] if kid in self._keys else []


class KeySet:
    """The keys of a JWKS.

    A background thread reads the document when a token names an unknown key, and when the keys
    are older than `MAX_AGE_SECONDS`.

    Args:
        read: Function that reads the document.
        algorithms: Accepted algorithms. Keys for other algorithms are ignored.
        interval: Minimum time between two readings, in seconds. Unknown keys do not shorten it.
        clock: Monotonic clock, in seconds.
        max_age: Time for which known keys are used while the document cannot be read, in seconds.
    """

    def __init__(
        self,
        read: Callable[[], bytes],
        algorithms: Sequence[str],
        interval: float,
        clock: Callable[[], float] = time.monotonic,
        max_age: float = float("inf"),
    ) -> None:
        self._max_age = max_age
        self._read = read
        self._algorithms = frozenset(algorithms)
        self._interval = interval
        self._clock = clock
        self._keys: dict[str | None, Key] = {}
        self._started_at = self._loaded_at = float("-inf")
        self._is_failing = False
        self._reading: Future[None] | None = None
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="jwks")

    async def candidates(self, kid: str | None) -> Sequence[Key]:
        """Return the key that `find` returns, if any."""
        found = await self.find(kid)
        return [] if found is None else [found]

    async def find(self, kid: str | None) -> Key | None:
        """Return the key with the id `kid`, or None. Read the JWKS first if necessary.

        Without an id, return the key if there is exactly one.
        """
        found = self._known(kid)
        if found is not None and not self._is_old():
            return found
        reading = self._begin()
        if reading is None or (found is not None and self._is_failing):
            # While the issuer is down, a known key is used without waiting for the issuer.
            return found
        # Several requests wait for the same reading. A timeout here does not cancel the reading.
        done, _ = await asyncio.wait([asyncio.wrap_future(reading)], timeout=2 * FETCH_SECONDS)
        for each in done:
            each.result()
        return self._known(kid)

    def load(self) -> None:
        """Read the keys now, in the calling thread.

        Raises:
            OSError, ValueError, httpx.HTTPError: the JWKS cannot be read or has no usable key.
        """
        self._started_at = self._clock()
        self._keys = parse(self._read(), self._algorithms)
        self._loaded_at = self._clock()

    def _known(self, kid: str | None) -> Key | None:
        if self._clock() - self._loaded_at > self._max_age:
            # The issuer may have withdrawn the key since.
            return None
        if kid is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(kid)

    def _is_old(self) -> bool:
        return self._clock() - self._loaded_at > min(MAX_AGE_SECONDS, self._max_age)

    def _begin(self) -> Future[None] | None:
        """Return the reading in progress, or start one. Return None before the interval is over."""
        with self._lock:
            if self._reading is not None and not self._reading.done():
                return self._reading
            if self._clock() - self._started_at < self._interval:
                return None
            self._started_at = self._clock()
            self._reading = self._thread.submit(self._reload)
            return self._reading

    def _reload(self) -> None:
        try:
            self.load()
            self._is_failing = False
        except (OSError, ValueError, httpx.HTTPError) as error:
            # The known keys stay valid for `max_age`, or until a later reading succeeds.
            self._is_failing = True
            logger.warning(
                "JWKS reading failed; the known keys stay in use for up to %g s (last read %g s ago): %s",
                self._max_age,
                self._clock() - self._loaded_at,
                error,
            )


def open_keys(settings: IdentitySettings) -> Keys | None:
    """Open the keys that the settings name. Return None if the settings name no key.

    Raises:
        ValueError: the JWKS file cannot be read or has no usable key.
    """
    if settings.jwt_secret is not None:
        return SharedSecrets({None: settings.jwt_secret.get_secret_value()})
    if settings.jwt_secrets is not None:
        return SharedSecrets(
            {kid: secret.get_secret_value() for kid, secret in settings.jwt_secrets.items()}
        )
    interval, max_age = settings.jwt_jwks_interval_seconds, settings.jwt_jwks_max_age_seconds
    algorithms = settings.jwt_algorithms
    if (url := settings.jwt_jwks_url) is not None:
        return KeySet(lambda: fetch(url), algorithms, interval, max_age=max_age)
    if (file := settings.jwt_jwks_file) is not None:
        keys = KeySet(file.read_bytes, algorithms, interval, max_age=max_age)
        try:
            keys.load()
        except (OSError, ValueError) as error:
            raise ValueError(f"JWT_JWKS_FILE={file}: {error}") from error
        return keys
    return None


def fetch(url: str) -> bytes:
    """Fetch the document at `url`, without following redirects.

    The document may have `MAX_JWKS_BYTES`, and the whole transfer may take `FETCH_SECONDS`.

    Raises:
        httpx.HTTPError: the request failed.
        ValueError: the status is not 200, or the document exceeds a limit.
    """
    deadline = time.monotonic() + FETCH_SECONDS
    content = b""
    with httpx.stream("GET", url, timeout=FETCH_SECONDS, follow_redirects=False) as response:
        if response.status_code != 200:
            raise ValueError(f"{url} answered {response.status_code}")
        for chunk in response.iter_bytes():
            content += chunk
            if len(content) > MAX_JWKS_BYTES or time.monotonic() > deadline:
                raise ValueError(
                    f"{url} sent more than {MAX_JWKS_BYTES} bytes or took longer than "
                    f"{FETCH_SECONDS:g} s"
                )
    return content


def parse(document: bytes, algorithms: frozenset[str]) -> dict[str | None, Key]:
    """Parse a JWKS and return the keys that may verify tokens, by id.

    Args:
        document: The JWKS as JSON.
        algorithms: Accepted algorithms. Keys for other algorithms are ignored.

    Raises:
        ValueError: the document is not a JWKS, or has no usable key.
    """
    try:
        entries = json.loads(document)["keys"]
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise ValueError('the document is not a JWKS, such as {"keys": [...]}') from error
    found: dict[str | None, Key] = {}
    for entry in entries if isinstance(entries, list) else ():
        key = _key(entry) if isinstance(entry, Mapping) else None
        if key is not None and key.algorithm in algorithms:
            found[entry.get("kid")] = key
    if not found:
        raise ValueError(f"the JWKS has no key for {', '.join(sorted(algorithms))}")
    return found


def _key(entry: Mapping[str, Any]) -> Key | None:
    """Read a public key for signatures. Return None for any other key, such as a shared secret."""
    verifies = entry.get("use", "sig") == "sig" and "verify" in entry.get("key_ops", ["verify"])
    if not verifies or not isinstance(entry.get("kid"), str | None):
        return None
    try:
        material = jwt.PyJWK(dict(entry)).key
    except jwt.PyJWTError as error:
        logger.info("JWKS key ignored: %s", error)
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
