"""Opening: decrypt a tenant's rows, so that an export is the one of a plain database."""

from collections.abc import Callable
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer, _msgpack_ext_hook_to_json

from langgraph_runtime_sql import json_codec
from langgraph_runtime_sql.checkpoint import VALUES, reading
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import (
    AnyId,
    Sealed,
    metadata,
    thread_checkpoints,
    unpacked_id,
)
from langgraph_runtime_sql.encryption import documents, envelope, keys
from langgraph_runtime_sql.encryption.documents import Place
from langgraph_runtime_sql.encryption.keys import KeyErased, TenantKeys
from langgraph_runtime_sql.events import dictionaries

Row = dict[str, Any]
# To JSON, so that no class of a graph is imported.
_SERDE = JsonPlusSerializer(__unpack_ext_hook__=_msgpack_ext_hook_to_json)


class Opening:
    """Decrypts the rows of one tenant.

    Args:
        conn: A transaction on the database.
        tenant: The tenant; keys of others open nothing.
    """

    def __init__(self, conn: Connection, tenant: str) -> None:
        self._conn = conn
        self._tenant = tenant
        self._keys = TenantKeys()
        self._values = {each.name for each in VALUES}
        self._reader: reading.Reader | None = None

    def check(self) -> None:
        """Check that the configured master keys open the database.

        Raises:
            CannotDecrypt: one is missing.
        """
        keys.check(self._conn)

    def open(self, table: str, row: Row) -> None:
        """Decrypt a row in place. What was erased reads as empty.

        Raises:
            CannotDecrypt: the row is not authentic, or plain although all rows were encrypted.
        """
        if table in metadata.tables:
            self._documents(table, row)
        if table == "store":
            self._document(row, "value", (table, row["prefix"], row["key"]))
        if table == "event_segments" and row["events"] is not None:
            row["events"] = self._events(row)
            row["size"] = len(row["events"])
        if table in self._values:
            self._value(table, row)

    def _documents(self, table: str, row: Row) -> None:
        for column in metadata.tables[table].columns:
            if isinstance(column.type, Sealed):
                place = table, str(row[column.type.key]), column.name
                self._document(row, column.name, place)

    def _document(self, row: Row, name: str, place: Place) -> None:
        def opened(document: Any) -> Any:
            kept: Any = {"tenant": self._tenant, "cache": self._keys}
            try:
                return documents.open_document(self._conn, document, place, **kept)
            except KeyErased:
                return {}

        row[name] = _converted(row[name], opened)

    def _events(self, row: Row) -> bytes:
        body, place = bytes(row["events"]), dictionaries.place(row)
        if body[:1] == envelope.PLAIN:
            documents.refuse_plain(self._conn, place, self._keys)
            return body
        try:
            kept: Any = {"tenant": self._tenant, "cache": self._keys}
            return envelope.PLAIN + documents.open_(self._conn, body, place, **kept)
        except KeyErased:
            return envelope.PLAIN

    def _value(self, table: str, row: Row) -> None:
        """Replace a value of a checkpoint, which may be a patch against another one, by its JSON."""
        ids = [c.name for c in metadata.tables[table].columns if isinstance(c.type, AnyId)]
        row.update({name: row[name] and unpacked_id(bytes(row[name])) for name in ids})
        if row["type"] is None or row["value"] is None:
            return
        if self._reader is None or self._reader.thread_id != row["thread_id"]:
            self._reader = reading.Reader(self._conn, row["thread_id"], self._keys)
        try:
            if table == thread_checkpoints.name:
                version = self._reader.version(row["checkpoint_ns"], row)
                about, checkpoint = reading.loaded(version, _SERDE)
                row["value"] = {"metadata": about, "checkpoint": checkpoint}
                row["base_id"] = None
            else:
                stored = row["type"], bytes(row["value"])
                row["value"] = _SERDE.loads_typed(self._reader.opener.plain(*stored))
        except KeyErased:
            row["value"] = None
        row["type"] = "json"


def _converted(stored: Any, convert: Callable[[Any], Any]) -> Any:
    """Convert a document that SQLite has as text or bytes, and Postgres's driver has read."""
    if not isinstance(stored, str | bytes):
        return convert(stored)
    document = json_codec.loads(stored)
    converted = convert(document)
    if converted == document:
        return stored
    text = json_codec.dumps(converted)
    return text.encode() if isinstance(stored, bytes) else text
