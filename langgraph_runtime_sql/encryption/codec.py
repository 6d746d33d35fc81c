"""Codec: encrypt bytes that lie outside of the runtime's own rows, without a connection.

The event log and the tables of graphs use it. `prepare` loads a tenant's key, or creates it, in a
transaction of its own. Afterwards `seal` works without the database, so it may be called inside a
transaction on another connection.
"""

from langgraph_runtime_sql import process, request_context
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.encryption import documents, envelope, keys, master
from langgraph_runtime_sql.encryption.keys import NO_TENANT, CannotDecrypt


async def prepare(tenant: str | None) -> None:
    """Load the tenant's key, which `seal` and `open_` then use for a minute.

    Does nothing without a master key.

    Raises:
        CannotDecrypt: no configured master key unwraps it.
    """
    database: Database = process.current().database
    if master.active() and keys.of(database).cached(tenant or NO_TENANT) is None:
        with request_context.own_write("keys"):
            await database.write(lambda conn: _load(conn, tenant))


def prepare_sync(tenant: str | None) -> None:
    """Load the tenant's key as `prepare` does, blocking a thread without an event loop."""
    database: Database = process.current().database
    if master.active() and keys.of(database).cached(tenant or NO_TENANT) is None:
        with request_context.own_write("keys"):
            database.write_sync(lambda conn: _load(conn, tenant))


def _load(conn: Connection, tenant: str | None) -> None:
    keys.current().for_writing(conn, tenant)


def seal(
    tenant: str | None, data: bytes, place: tuple[str, ...], conn: Connection | None = None
) -> bytes:
    """Encrypt `data` for its place if a master key is configured.

    Args:
        tenant: The tenant that owns the data.
        data: The plain bytes.
        place: The names of the table and row, which `open_` must be given again. Data that is
            copied to another place cannot be opened there.
        conn: The runtime's transaction that writes, which loads a missing key. Without it, call
            `prepare` before.

    Returns:
        An envelope. Without a master key: the data behind a zero byte.

    Raises:
        CannotDecrypt: the key is not loaded.
    """
    if not master.active():
        return envelope.PLAIN + data
    if conn is not None:
        return documents.seal(conn, tenant, data, place)
    key = keys.current().cached(tenant or NO_TENANT)
    if key is None:
        raise CannotDecrypt(f"The key of the tenant {tenant!r} is not loaded: call `prepare`")
    return envelope.seal(key, data, place)


def open_(
    tenant: str | None, sealed: bytes, place: tuple[str, ...], conn: Connection | None = None
) -> bytes:
    """Return the data that `seal` was given for this tenant and place.

    Args:
        tenant: The tenant that owns the data. Data without tenant opens for every tenant.
        sealed: What `seal` has returned.
        place: The place where it was found.
        conn: The runtime's transaction; without it the call blocks for a missing key, so it needs
            a thread without an event loop.

    Raises:
        KeyErased: the key was erased.
        CannotDecrypt: the key is missing or another tenant's, or the envelope is not authentic.
    """
    if sealed[:1] == envelope.PLAIN:
        return bytes(sealed[1:])
    try:
        key_id = envelope.key_id(sealed)
        key = keys.current().cached_by_id(key_id)
        if key is None:
            if conn is not None:
                key = keys.current().find(conn, key_id)
            else:
                database: Database = process.current().database
                key = database.read_sync(lambda here: keys.current().find(here, key_id))
        if key is None or key.tenant not in (tenant or NO_TENANT, NO_TENANT):
            raise CannotDecrypt(f"No key of the tenant {tenant!r} opens {'/'.join(place)}")
        return envelope.open_(key, bytes(sealed), place)
    except envelope.Damaged as error:
        raise CannotDecrypt(str(error)) from error
