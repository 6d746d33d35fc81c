"""Master keys: wrap the tenants' data keys.

`LANGGRAPH_AES_KEY` is the current master key. `Options.old_aes_keys` are earlier ones: they only
unwrap, until `threadhold keys rotate` has wrapped every data key with the current one.
"""

import sys
from functools import lru_cache

from langgraph_runtime_sql import process
from langgraph_runtime_sql.encryption import envelope
from langgraph_runtime_sql.encryption.envelope import Key

Wrapped = tuple[str, bytes]
"""The fingerprint of a master key, and a data key that it encrypts."""


def current() -> bytes | None:
    """Return the current master key, or None if nothing is to be encrypted."""
    # A command that does not load the API may lack its other settings.
    config = sys.modules.get("langgraph_api.config")
    if config is None:
        return process.configuration().options.aes_key
    key: bytes | None = config.LANGGRAPH_AES_KEY
    return key


def active() -> bool:
    """Return whether new data is encrypted."""
    return current() is not None


def all_keys() -> tuple[bytes, ...]:
    """Return the current master key and the old ones, without repetitions."""
    newest = current()
    old = process.configuration().options.old_aes_keys
    earlier = [key.encode() for key in old]
    return tuple(dict.fromkeys(([] if newest is None else [newest]) + earlier))


@lru_cache(maxsize=64)
def fingerprint(master: bytes) -> str:
    """Return a name of a master key that does not reveal it."""
    return _derived(master, b"threadhold: fingerprint of a master key")[:8].hex()


def wrap(key: Key, master: bytes) -> Wrapped:
    """Encrypt a data key with a master key."""
    wrapping = key._replace(secret=_derived(master, _WRAPPING))
    return fingerprint(master), envelope.seal(wrapping, key.secret, _place(key))


def unwrap(key: Key, wrapped: Wrapped) -> Key | None:
    """Decrypt a data key; None if no configured master key has wrapped it.

    Args:
        key: Its id and tenant.
        wrapped: What `wrap` has returned.

    Raises:
        Damaged: the wrapped key belongs to another tenant, or was changed.
    """
    for master in all_keys():
        if fingerprint(master) == wrapped[0]:
            wrapping = key._replace(secret=_derived(master, _WRAPPING))
            return key._replace(secret=envelope.open_(wrapping, wrapped[1], _place(key)))
    return None


_WRAPPING = b"threadhold: wrapping of data keys"


def _place(key: Key) -> tuple[str, ...]:
    return "tenant_keys", str(key.id)


@lru_cache(maxsize=64)
def _derived(master: bytes, purpose: bytes) -> bytes:
    """Derive a key of 256 bits, because the stock serializer uses the master key itself."""
    from Crypto.Hash import SHA256
    from Crypto.Protocol.KDF import HKDF

    derived = HKDF(master, envelope.KEY_BYTES, b"", SHA256, context=purpose)
    if not isinstance(derived, bytes):
        raise TypeError("HKDF returned several keys")
    return derived
