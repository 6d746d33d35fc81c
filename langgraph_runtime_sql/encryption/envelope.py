"""Envelopes: bytes encrypted with AES-256-GCM, with the id of their key.

An envelope is a version byte, the key's id (16 bytes), a nonce (12), the ciphertext and its tag
(16). The place of the data is authenticated but not stored: an envelope that is copied to another
row, table or tenant cannot be opened there.
"""

import os
from typing import NamedTuple
from uuid import UUID, uuid4

import orjson

VERSION = b"\x01"
PLAIN = b"\x00"
"""The version byte of data without encryption."""
KEY_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16
_HEADER = len(VERSION) + 16
OVERHEAD = _HEADER + NONCE_BYTES + TAG_BYTES


class Damaged(ValueError):
    """The bytes are no envelope, or not one of this key and place."""


class Key(NamedTuple):
    """A data key.

    Attributes:
        id: Names the key in envelopes.
        tenant: The tenant whose data it encrypts; empty without tenants.
        secret: The 32 bytes of the key.
    """

    id: UUID
    tenant: str
    secret: bytes

    @classmethod
    def new(cls, tenant: str) -> "Key":
        """Return a random key for a tenant."""
        return cls(uuid4(), tenant, os.urandom(KEY_BYTES))

    def __repr__(self) -> str:
        """Return the key without its secret, for logs and tracebacks."""
        return f"Key({self.id}, tenant={self.tenant!r})"


def seal(key: Key, data: bytes, place: tuple[str, ...]) -> bytes:
    """Encrypt `data` for its place.

    Args:
        key: The tenant's key. Random nonces allow 2**32 envelopes for each key.
        data: The plain bytes.
        place: The table, the row and so on where the envelope is stored.
    """
    nonce = os.urandom(NONCE_BYTES)
    header = VERSION + key.id.bytes
    cipher = _cipher(key.secret, nonce, header, (key.tenant, *place))
    encrypted, tag = cipher.encrypt_and_digest(data)
    return b"".join((header, nonce, encrypted, tag))


def key_id(envelope: bytes) -> UUID:
    """Return the id of an envelope's key.

    Raises:
        Damaged: the bytes are no envelope.
    """
    if len(envelope) < OVERHEAD or not envelope.startswith(VERSION):
        raise Damaged("The bytes are no envelope of this version")
    return UUID(bytes=bytes(envelope[len(VERSION) : _HEADER]))


def open_(key: Key, envelope: bytes, place: tuple[str, ...]) -> bytes:
    """Decrypt an envelope that was sealed with `key` for `place`.

    Raises:
        Damaged: it was not, or it was changed.
    """
    header, nonce = envelope[:_HEADER], envelope[_HEADER : _HEADER + NONCE_BYTES]
    cipher = _cipher(key.secret, nonce, header, (key.tenant, *place))
    body = envelope[_HEADER + NONCE_BYTES :]
    try:
        data: bytes = cipher.decrypt_and_verify(body[:-TAG_BYTES], body[-TAG_BYTES:])
    except ValueError as error:
        raise Damaged(f"An envelope at {'/'.join(place)} is not authentic") from error
    return data


def _cipher(secret: bytes, nonce: bytes, header: bytes, place: tuple[str, ...]):  # type: ignore[no-untyped-def]  # a private type of the library
    # Imported late: a server without a key does not need the library.
    from Crypto.Cipher import AES

    cipher = AES.new(secret, AES.MODE_GCM, nonce=nonce, mac_len=TAG_BYTES)
    cipher.update(header)
    # JSON separates the parts, so that no two places have the same bytes.
    cipher.update(orjson.dumps(place))
    return cipher
