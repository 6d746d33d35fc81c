"""Sealing: the encryption of checkpoints, inside a transaction.

Each value of a checkpoint is bound to its thread and tenant. The type of an encrypted value ends in
`+sealed`. Sealed and plain values can be read side by side, until `keys encrypt` has ended: then only
sealed ones are read.
"""

from uuid import UUID

from sqlalchemy import bindparam, select

from langgraph_runtime_sql import patches, process
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import threads
from langgraph_runtime_sql.database.statements import Prepared
from langgraph_runtime_sql.encryption import documents, master
from langgraph_runtime_sql.encryption.keys import TenantKeys
from langgraph_runtime_sql.errors import DamagedCheckpoint

SUFFIX = "+sealed"
# What a task has written up to this size, in bytes, is not compressed.
_SHORT = 256
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


def place_of(thread_id: str) -> tuple[str, ...]:
    """Return the place that a thread's values are encrypted for."""
    return "checkpoints", thread_id


def sealed(conn: Connection, thread_id: str, kind: str, data: bytes) -> tuple[str, bytes]:
    """Return the type and bytes of a value for storage: encrypted, if a master key is configured."""
    if not master.active():
        return kind, data
    tenant = tenant_of(conn, thread_id)
    return kind + SUFFIX, documents.seal(conn, tenant, data, place_of(thread_id))


def compressed(kind: str, data: bytes) -> tuple[str, bytes]:
    """Return the type and bytes of what a task has written, compressed if that is shorter."""
    smaller = patches.whole(data) if kind == "msgpack" and len(data) > _SHORT else data
    return (kind + patches.WHOLE, smaller) if len(smaller) < len(data) else (kind, data)


class Opener:
    """Decrypts and expands the values of a thread.

    Args:
        conn: The transaction, which loads the keys.
        thread_id: The thread.
        cache: The keys of the database. Default: those of the running platform.
    """

    def __init__(self, conn: Connection, thread_id: str, cache: TenantKeys | None = None) -> None:
        self._conn = conn
        self._thread_id = thread_id
        self._cache = cache

    def opened(self, kind: str, data: bytes) -> tuple[str, bytes]:
        """Return the type and bytes of a stored value without encryption.

        Raises:
            KeyErased: its key was erased.
            CannotDecrypt: its key is missing or another tenant's, or it is not authentic, or it is
                plain after `keys encrypt`.
        """
        place = place_of(self._thread_id)
        if kind.endswith(SUFFIX):
            plain = documents.open_(self._conn, data, place, cache=self._cache)
            return kind.removesuffix(SUFFIX), plain
        documents.refuse_plain(self._conn, place, self._cache)
        return kind, data

    def plain(self, kind: str, data: bytes, base: bytes | None = None) -> tuple[str, bytes]:
        """Return the type and bytes of a value as they were given.

        Args:
            kind: The stored type.
            data: The stored bytes.
            base: What they are a patch against.

        Raises:
            DamagedCheckpoint: they are not whole, or of another base.
            KeyErased, CannotDecrypt: as in `opened`.
        """
        kind, data = self.opened(kind, data)
        suffix = patches.PATCH if base is not None else patches.WHOLE
        if not kind.endswith(suffix):
            return kind, data
        try:
            return kind.removesuffix(suffix), patches.expanded(data, base)
        except ValueError as error:
            raise DamagedCheckpoint(
                f"A value of the checkpoints of thread {self._thread_id} is damaged: it {error}"
            ) from error
