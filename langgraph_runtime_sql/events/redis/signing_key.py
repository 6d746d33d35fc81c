"""The key with which the processes of a database sign their messages."""

import secrets

from sqlalchemy import Text, bindparam, select

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import database_settings
from langgraph_runtime_sql.database.statements import InsertNew, Prepared

_NAME = "wire_key"
_FIND = Prepared(select(database_settings.c.value).where(database_settings.c.name == _NAME))
_NEW = Prepared(
    InsertNew(database_settings).values(name=_NAME, value=bindparam("secret", type_=Text))
)


def signing_key(conn: Connection) -> bytes:
    """Return the key of the database. The first call makes it."""
    conn.execute(_NEW, {"secret": secrets.token_hex(32)})
    return bytes.fromhex(conn.scalar(_FIND))
