"""Sealed documents: JSON columns whose content is an envelope.

A sealed document is `{"$sealed": "..."}`, with the envelope in base64, so the columns keep their
types. A row's sealed columns open when an operation reads the row (`open_rows`).

A client's document may have the same form. Without a key it is stored escaped, as an envelope
without encryption, so that no document of a client is ever taken for an envelope.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Table

from langgraph_runtime_sql import json_codec
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import Sealed, threads
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.encryption import envelope, keys, master
from langgraph_runtime_sql.encryption.keys import NO_TENANT, CannotDecrypt, KeyErased, TenantKeys

SEALED = "$sealed"
Place = tuple[str, ...]


def is_empty(document: Any) -> bool:
    """Return whether a document says nothing, so that it stays plain."""
    return document is None or document == {} or document == []


def is_sealed(document: Any) -> bool:
    """Return whether a document has the form of a sealed or escaped one."""
    return type(document) is dict and len(document) == 1 and isinstance(document.get(SEALED), str)


def seal(conn: Connection, tenant: str | None, data: bytes, place: Place) -> bytes:
    """Encrypt `data` for its place with the tenant's key, inside a transaction that writes."""
    return envelope.seal(keys.current().for_writing(conn, tenant), data, place)


def open_(
    conn: Connection,
    sealed: bytes,
    place: Place,
    *,
    tenant: str | None = None,
    cache: TenantKeys | None = None,
) -> bytes:
    """Decrypt what `seal` has encrypted for the same place.

    Args:
        conn: The transaction. One of a tenant opens only its own data, and data without tenant.
        sealed: The envelope.
        place: The place where it was found.
        tenant: The tenant of the row, which then is the only one whose data opens.
        cache: The keys of the database. Default: those of the running platform.

    Raises:
        KeyErased: the key was erased.
        CannotDecrypt: the key is unknown or another tenant's, or the envelope is not authentic.
    """
    try:
        key = (cache or keys.current()).find(conn, envelope.key_id(sealed))
        if key is None:
            raise CannotDecrypt(f"The key of encrypted data at {'/'.join(place)} is missing")
        owner = conn.tenant if tenant is None else tenant
        if owner is not None and key.tenant not in (owner, NO_TENANT):
            raise CannotDecrypt(f"Encrypted data at {'/'.join(place)} is another tenant's")
        return envelope.open_(key, sealed, place)
    except envelope.Damaged as error:
        raise CannotDecrypt(str(error)) from error


def seal_document(conn: Connection, tenant: str | None, document: Any, place: Place) -> Any:
    """Return `document` sealed if a master key is configured; None and empty ones stay plain.

    Without a key, a document that has the form of a sealed one is escaped.

    Raises:
        Unstorable: it cannot be written as JSON.
    """
    if master.active():
        if is_empty(document):
            return document
        return _packed(seal(conn, tenant, json_codec.dumps(document).encode(), place))
    return escaped(document) if is_sealed(document) else document


def escaped(document: Any) -> dict[str, str]:
    """Return a plain document in the form of a sealed one."""
    return _packed(envelope.PLAIN + json_codec.dumps(document).encode())


def _packed(data: bytes) -> dict[str, str]:
    return {SEALED: b64encode(data).decode()}


def open_document(
    conn: Connection,
    document: Any,
    place: Place,
    *,
    tenant: str | None = None,
    cache: TenantKeys | None = None,
) -> Any:
    """Return a stored document; a plain one as it is, until `keys encrypt` has ended.

    Arguments as in `open_`.

    Raises:
        KeyErased: as in `open_`.
        CannotDecrypt: as in `open_`, or it is plain although all rows were encrypted.
    """
    found = envelope_of(document) if is_sealed(document) else None
    if found is not None and _is_ours(conn, found, cache):
        return json_codec.loads(open_(conn, found, place, tenant=tenant, cache=cache))
    if not is_empty(document):
        refuse_plain(conn, place, cache)
    return unescaped(document) if is_sealed(document) else document


def refuse_plain(conn: Connection, place: Place, cache: TenantKeys | None = None) -> None:
    """Refuse data that is stored without encryption, if `keys encrypt` has ended.

    Raises:
        CannotDecrypt: it has.
    """
    if (cache or keys.current()).only_sealed(conn):
        raise CannotDecrypt(
            f"The data at {'/'.join(place)} is plain, in a database whose rows were all encrypted: "
            "something else than the server wrote it. `threadhold doctor` names the tables"
        )


def unescaped(document: Mapping[str, Any]) -> Any:
    """Return the document that `escaped` was given; any other one as it is.

    Older versions did not escape: a client may have stored a document of this form.
    """
    data = _data(document)
    if data is None or data[:1] != envelope.PLAIN:
        return document
    try:
        found = json_codec.loads(data[1:])
    except ValueError:
        return document
    return found if is_sealed(found) else document


def envelope_of(document: Mapping[str, Any]) -> bytes | None:
    """Return the envelope of a sealed document, or None if it holds none."""
    data = _data(document)
    try:
        if data is not None:
            envelope.key_id(data)
    except envelope.Damaged:
        return None
    return data


def _data(document: Mapping[str, Any]) -> bytes | None:
    try:
        return b64decode(document[SEALED], validate=True)
    except ValueError:
        return None


def is_current(document: Any, newest: UUID) -> bool:
    """Return whether a stored document needs no encryption, or has the key with this id."""
    if is_empty(document):
        return True
    found = envelope_of(document) if is_sealed(document) else None
    return found is not None and envelope.key_id(found) == newest


def _is_ours(conn: Connection, sealed: bytes, cache: TenantKeys | None) -> bool:
    """Return whether an envelope is to be opened.

    Without encryption, an older version may have stored a client's document of this form.
    """
    if master.active():
        return True
    return (cache or keys.current()).find(conn, envelope.key_id(sealed)) is not None


# --- rows of our tables ---


def sealed_columns(table: Table) -> tuple[str, ...]:
    """Return the names of a table's sealed columns."""
    return tuple(column.name for column in table.columns if isinstance(column.type, Sealed))


_COLUMNS: dict[str, tuple[str, ...]] = {}


def seal_row(
    conn: Connection, table: Table, row_id: UUID, tenant: str | None, values: Mapping[str, Any]
) -> Row:
    """Return the values of a row for storage, with its sealed columns encrypted.

    Args:
        conn: A transaction that writes.
        table: The table.
        row_id: The row's id.
        tenant: The row's tenant.
        values: Any columns of the row.
    """
    row = dict(values)
    columns = _COLUMNS.get(table.name)
    if columns is None:
        columns = _COLUMNS[table.name] = sealed_columns(table)
    for name in columns:
        if name in row:
            row[name] = seal_document(conn, tenant, row[name], (table.name, str(row_id), name))
    return row


def moved_to_tenant(conn: Connection, thread: Row, columns: Row) -> Row:
    """Return the columns of a thread that changes its tenant, encrypted with the new one's key.

    Args:
        thread: The thread as it was read.
        columns: The changed columns, with `tenant`.
    """
    if not master.active():
        return columns
    documents = {name: thread[name] for name in sealed_columns(threads)}
    return seal_row(conn, threads, thread["thread_id"], columns["tenant"], {**documents, **columns})


def open_rows(conn: Connection, sealed: Sequence[tuple[str, str, str]], found: list[Row]) -> None:
    """Decrypt the sealed columns of rows in place. Erased documents read as empty ones.

    Args:
        conn: The transaction that has read them.
        sealed: Each sealed column, its table, and the column with the row's id.
        found: The rows.

    Raises:
        CannotDecrypt: as in `open_document`.
    """
    only_sealed = bool(found) and keys.current().only_sealed(conn)
    for row in found:
        for name, table, key in sealed:
            if only_sealed or is_sealed(row[name]):
                try:
                    place, tenant = (table, str(row[key]), name), row.get("tenant")
                    row[name] = open_document(conn, row[name], place, tenant=tenant)
                except KeyErased:
                    # One erased row must not fail a list, or the claim of other tenants' runs.
                    row[name] = {}
