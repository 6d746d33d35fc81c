"""Sealing: the encryption of checkpoints, inside a transaction.

Each value of a checkpoint is bound to its thread and tenant. The type of an encrypted value ends in
`+sealed`. Values with the ending `+aes` are older: langgraph's serializer has encrypted them with
the master key itself. Both kinds and plain values can be read side by side, until `keys encrypt` has
ended: then only sealed ones are read.
"""

from base64 import b64encode
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, cast
from uuid import UUID

from langgraph.checkpoint.base import CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from sqlalchemy import bindparam, select

from langgraph_runtime_sql import json_codec, process
from langgraph_runtime_sql.checkpoint import compression
from langgraph_runtime_sql.checkpoint.parts import (
    KIND_SUFFIX,
    PartsReader,
    PartsWriter,
)
from langgraph_runtime_sql.checkpoint.serialization import SERIALIZED
from langgraph_runtime_sql.database import formats
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import threads
from langgraph_runtime_sql.database.statements import Prepared
from langgraph_runtime_sql.encryption import documents, envelope, keys, master
from langgraph_runtime_sql.encryption.documents import SEALED
from langgraph_runtime_sql.encryption.keys import CannotDecrypt, TenantKeys
from langgraph_runtime_sql.errors import DamagedCheckpoint

SUFFIX = "+sealed"
_OLD_SUFFIX = "+aes"
# What a task has written up to this size, in bytes, stays as langgraph's own savers read it.
PLAIN = 256
# Metadata that statements and searches read. langgraph and the server write it, not people.
PLAIN_METADATA = frozenset(
    {
        *("source", "step", "parents", "counters_since_delta_snapshot"),
        *("run_id", "thread_id", "graph_id", "assistant_id", "run_attempt"),
    }
)
_TENANT = Prepared(select(threads.c.tenant).where(threads.c.thread_id == bindparam("id")))


def tenant_of(conn: Connection, thread_id: str) -> str | None:
    """Return the tenant of a thread, or None without one."""
    if conn.tenant is not None or process.configuration().options.tenant_key is None:
        return conn.tenant
    try:
        found: str | None = conn.scalar(_TENANT, {"id": UUID(thread_id)})
    except ValueError:
        # Graphs may choose other ids.
        return None
    return found


def _place(thread_id: str) -> tuple[str, ...]:
    return "checkpoints", thread_id


def seal(conn: Connection, tenant: str | None, thread_id: str, data: bytes) -> bytes:
    """Encrypt bytes of a thread's checkpoints."""
    return documents.seal(conn, tenant, data, _place(thread_id))


class Sealer:
    """A serializer of serialized values that encrypts them; the counterpart of `SERIALIZED`.

    Args:
        conn: A transaction that writes.
        thread_id: The thread of the checkpoint.
    """

    def __init__(self, conn: Connection, thread_id: str) -> None:
        self._conn = conn
        self._thread_id = thread_id
        self._tenant = tenant_of(conn, thread_id)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = SERIALIZED.dumps_typed(obj)
        return kind + SUFFIX, seal(self._conn, self._tenant, self._thread_id, data)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        raise TypeError("Sealed values are written, never read")


class Squeezer:
    """A serializer of serialized values that compresses long ones, if all processes can read that.

    Args:
        conn: A transaction that writes.
        inner: Finishes what is stored: `SERIALIZED`, or one that encrypts.
    """

    def __init__(self, conn: Connection, inner: SerializerProtocol) -> None:
        self._conn = conn
        self._inner = inner

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = SERIALIZED.dumps_typed(obj)
        is_long = kind == "msgpack" and len(data) > PLAIN
        smaller = compression.squeezed(data) if is_long and formats.allowed(self._conn) else None
        if smaller is not None:
            kind, data = kind + compression.SUFFIX, smaller
        return self._inner.dumps_typed({"typed": (kind, data)})

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        raise TypeError("Compressed values are written, never read")


def writing(conn: Connection, thread_id: str) -> SerializerProtocol:
    """Return the serializer for serialized values of a thread's checkpoints."""
    return Sealer(conn, thread_id) if master.active() else SERIALIZED


def writing_tasks(conn: Connection, thread_id: str) -> SerializerProtocol:
    """Return the serializer for what tasks have written, compressed."""
    return Squeezer(conn, writing(conn, thread_id))


def storing(conn: Connection, thread_id: str, ns: str, checkpoint_id: str) -> SerializerProtocol:
    """Return the serializer for the serialized values of one checkpoint, long ones in parts."""
    inner, secret = writing(conn, thread_id), b""
    if master.active():
        # Ids of parts that anybody could compute would tell what an encrypted thread says.
        key = keys.current().for_writing(conn, tenant_of(conn, thread_id))
        secret = blake2b(thread_id.encode(), key=key.secret, person=b"parts").digest()
    return PartsWriter(conn, thread_id, (ns, checkpoint_id), inner, secret)


class Recorded:
    """A serializer of serialized values that encrypts them like a value that was read.

    Args:
        kind: The type of that value.
        sealed: Its bytes.
        thread_id: The thread.
        conn: A transaction, which loads the key.
        cache: The keys of the database.

    Raises:
        KeyErased, CannotDecrypt: as in `Opener`.
    """

    def __init__(
        self, kind: str, sealed: bytes, thread_id: str, conn: Connection, cache: TenantKeys
    ) -> None:
        self._place = _place(thread_id)
        self._old = kind.endswith(_OLD_SUFFIX)
        self._key = None if self._old else cache.find(conn, envelope.key_id(sealed))

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = SERIALIZED.dumps_typed(obj)
        if self._key is not None:
            return kind + SUFFIX, envelope.seal(self._key, data, self._place)
        serde = EncryptedSerializer.from_pycryptodome_aes(SERIALIZED, key=master.all_keys()[0])
        return serde.dumps_typed({"typed": (kind, data)})

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        raise TypeError("Sealed values are written, never read")


def is_encrypted(kind: str) -> bool:
    """Return whether a value of this type is encrypted."""
    return kind.endswith((SUFFIX, _OLD_SUFFIX))


class Opener:
    """A serializer that decrypts the values of a thread before another one reads them.

    Args:
        inner: Reads plain values.
        conn: The transaction, which loads the keys.
        thread_id: The thread of the checkpoints.
        cache: The keys of the database. Default: those of the running platform.

    Attributes:
        read_bytes: The bytes of all values so far, before `inner` read them.
    """

    def __init__(
        self,
        inner: SerializerProtocol,
        conn: Connection,
        thread_id: str,
        cache: TenantKeys | None = None,
    ) -> None:
        self._inner = inner
        self._conn = conn
        self._thread_id = thread_id
        self._cache = cache
        self._parts = PartsReader(conn, thread_id, self.plain)
        self.read_bytes = 0

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return self._inner.dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, plain = self.plain(*data)
        if kind.endswith(KIND_SUFFIX):
            kind, plain = kind.removesuffix(KIND_SUFFIX), self._parts.whole(plain)
        elif kind.endswith(compression.SUFFIX):
            kind, plain = kind.removesuffix(compression.SUFFIX), self._expanded(plain)
        self.read_bytes += len(plain)
        return self._inner.loads_typed((kind, plain))

    def _expanded(self, data: bytes) -> bytes:
        try:
            return compression.expanded(data)
        except ValueError as error:
            raise DamagedCheckpoint(
                f"What a task of thread {self._thread_id} has written is damaged: it {error}"
            ) from error

    def parts_of(self, kind: str, data: bytes) -> set[bytes]:
        """Return the ids of the parts of a stored value."""
        return self._parts.reachable(self.plain(kind, data)[1])

    def missing_parts_of(self, kind: str, data: bytes) -> set[bytes]:
        """Return the ids of the parts of a stored value that are not stored."""
        return self._parts.missing(self.plain(kind, data)[1])

    def plain(self, kind: str, data: bytes) -> tuple[str, bytes]:
        """Return the type and bytes of a stored value without encryption.

        Raises:
            KeyErased: its key was erased.
            CannotDecrypt: its key is missing or another tenant's, or it is not authentic, or it is
                plain after `keys encrypt`.
        """
        if kind.endswith(SUFFIX):
            place = _place(self._thread_id)
            opened = documents.open_(self._conn, data, place, cache=self._cache)
            return kind.removesuffix(SUFFIX), opened
        self.refuse_plain()
        if kind.endswith(_OLD_SUFFIX):
            return kind.removesuffix(_OLD_SUFFIX), _open_old(data)
        return kind, data

    def refuse_plain(self) -> None:
        """Refuse a value without encryption, if `keys encrypt` has ended.

        Raises:
            CannotDecrypt: it has.
        """
        documents.refuse_plain(self._conn, _place(self._thread_id), self._cache)


def reading(
    conn: Connection, inner: SerializerProtocol, thread_id: str, cache: TenantKeys | None = None
) -> Opener:
    """Return the serializer for a thread's checkpoints, plain or encrypted. Arguments: `Opener`."""
    return Opener(inner, conn, thread_id, cache)


class _Bytes:
    """A serializer of bytes that are serialized already."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        raise TypeError("Values of the older encryption are read, never written")

    def loads_typed(self, data: tuple[str, bytes]) -> bytes:
        return data[1]


def _open_old(data: bytes) -> bytes:
    """Decrypt a value of langgraph's own serializer."""
    for key in master.all_keys():
        serde = EncryptedSerializer.from_pycryptodome_aes(_Bytes(), key=key)
        try:
            return cast(bytes, serde.loads_typed(("bytes+aes", data)))
        except ValueError:
            # Not this key.
            continue
    raise CannotDecrypt(
        "A checkpoint is encrypted with a key that is not configured: is LANGGRAPH_AES_KEY the "
        "server's?"
    )


# --- metadata ---


def seal_metadata(conn: Connection, thread_id: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a checkpoint's metadata for storage, with all that people may have typed encrypted.

    Without a key, an entry of a client that has the name of the encrypted ones is escaped.
    """
    if not master.active():
        if not isinstance(metadata.get(SEALED), str):
            return dict(metadata)
        return {**metadata, **documents.escaped({SEALED: metadata[SEALED]})}
    plain = {key: value for key, value in metadata.items() if key in PLAIN_METADATA}
    hidden = {key: value for key, value in metadata.items() if key not in PLAIN_METADATA}
    if hidden:
        data = json_codec.dumps(hidden).encode()
        sealed = seal(conn, tenant_of(conn, thread_id), thread_id, data)
        plain[SEALED] = b64encode(sealed).decode()
    return plain


def open_metadata(
    conn: Connection,
    thread_id: str,
    metadata: Mapping[str, Any],
    cache: TenantKeys | None = None,
) -> dict[str, Any]:
    """Return a checkpoint's metadata as it was before `seal_metadata`.

    Raises:
        KeyErased, CannotDecrypt: as in `Opener`.
    """
    place, plain = _place(thread_id), {**metadata}
    hidden = {SEALED: plain.pop(SEALED)} if SEALED in plain else {}
    if not plain.keys() <= PLAIN_METADATA:
        documents.refuse_plain(conn, place, cache)
    opened: dict[str, Any] = documents.open_document(conn, hidden, place, cache=cache)
    return {**plain, **opened}


def opened(conn: Connection, found: CheckpointTuple) -> CheckpointTuple:
    """Return a checkpoint with its metadata decrypted."""
    if found.metadata.keys() <= PLAIN_METADATA:
        return found
    thread_id = str(found.config["configurable"]["thread_id"])
    metadata = open_metadata(conn, thread_id, found.metadata)
    return found._replace(metadata=cast(CheckpointMetadata, metadata))
