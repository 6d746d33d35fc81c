"""Sealing: the encryption of item values in one transaction."""

from typing import Any
from urllib.parse import unquote

from langgraph_runtime_sql import json_codec, process
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.encryption import master
from langgraph_runtime_sql.encryption.documents import SEALED, open_document, seal_document
from langgraph_runtime_sql.encryption.keys import KeyErased

# How the JSON text of a value begins that may have the form of a sealed one.
_LIKE_SEALED = f'{{"{SEALED}":'


class Sealing:
    """Encrypts and decrypts values of items. Namespaces, keys, dates and vectors stay plain.

    Args:
        conn: The transaction, which loads the keys.
    """

    __slots__ = ("_conn",)

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    def seal(self, prefix: str, key: str, value: str) -> str:
        """Return the JSON text of a value for storage."""
        if not master.active() and not value.startswith(_LIKE_SEALED):
            return value
        document, place = json_codec.loads(value), ("store", prefix, key)
        return json_codec.dumps(seal_document(self._conn, tenant_of(prefix), document, place))

    def open(self, prefix: str, key: str, document: Any) -> Any:
        """Return a stored value; an erased one is empty.

        Raises:
            CannotDecrypt: as in `open_document`.
        """
        try:
            return open_document(self._conn, document, ("store", prefix, key))
        except KeyErased:
            return {}


def tenant_of(prefix: str) -> str | None:
    """Return the tenant of an item: the first label of its namespace, if there are tenants."""
    if process.configuration().options.tenant_key is None:
        return None
    return unquote(prefix.partition(".")[0])
