"""Tenants: the tenant of each row, from the metadata entry that the host has configured.

`sql.tenant_key` of `langgraph.json` names the key. Tables hold the tenant in a column, because
policies and claims cannot search every document. NULL is the system's.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import structlog
from sqlalchemy import ColumnElement, Table, Text, bindparam, case, func, select, text

from langgraph_runtime_sql import json_codec, process
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import (
    assistant_versions,
    assistants,
    crons,
    database_settings,
    event_segments,
    runs,
    thread_labels,
    threads,
)
from langgraph_runtime_sql.database.statements import Prepared

if TYPE_CHECKING:
    from langgraph_runtime_sql.database.database import Database

logger = structlog.stdlib.get_logger(__name__)

# The number of rows filled in one transaction, not counting their dependent rows.
PAGE = 500
# Each table with the tables whose rows depend on its rows, by the same key.
_FILLED = {
    threads: (thread_labels, runs, event_segments),
    crons: (),
    assistants: (assistant_versions,),
}
_SETTING = "tenant_key"
_KNOWN = Prepared(select(database_settings.c.value).where(database_settings.c.name == _SETTING))
_STORE = Prepared(
    database_settings.insert().values(name=_SETTING, value=bindparam("setting", type_=Text))
)
_FORGET = Prepared(database_settings.delete().where(database_settings.c.name == _SETTING))


def of(document: Any) -> str | None:
    """Return the tenant that metadata or a user's fields name, or None.

    Only a text that is not empty is a name.
    """
    key = process.current().options.tenant_key
    if key is None or not isinstance(document, Mapping):
        return None
    return _name(document.get(key))


def of_user(user: Any, tenant_key: str | None) -> str | None:
    """Return the tenant of an authenticated user, an object or a mapping, or None.

    Args:
        user: The user; None without authentication.
        tenant_key: As in `Options`. Without it there are no tenants.
    """
    if user is None or tenant_key is None:
        return None
    try:
        return _name(user[tenant_key])
    except (KeyError, TypeError, AttributeError):
        return _name(getattr(user, tenant_key, None))


def _name(value: Any) -> str | None:
    return json_codec.as_stored(value) if isinstance(value, str) and value else None


def are_known(conn: Connection) -> bool:
    """Return whether the rows of this database have tenants."""
    return conn.scalar(_KNOWN) is not None


def bypassing_role(conn: Connection) -> str | None:
    """Return the connection's role if no policy binds it, or None."""
    if conn.dialect_name == "sqlite":
        return None
    found = conn.raw.execute(
        "SELECT rolname FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolbypassrls)"
    ).fetchone()
    return None if found is None else str(found[0])


async def adopt(here: "Database", key: str | None) -> None:
    """Write the tenant of every row, unless the database records that this key has filled them.

    The record limits a start to one look-up.

    Args:
        here: The database.
        key: The tenant key of `Options`.
    """
    known, role = await here.read(lambda conn: (conn.scalar(_KNOWN), bypassing_role(conn)))
    if key is not None and role is not None:
        logger.warning(
            "This role bypasses row-level security: use an ordinary role that owns the database",
            action="row_security_bypassed",
            role=role,
        )
    if known == key:
        return
    if key is not None:
        logger.info(
            "Started to write the tenant of every row", action="tenants_adopted", tenant_key=key
        )
        # From here on this key has filled some rows: the next start, with any key, fills all again.
        await here.write(lambda conn: conn.execute(_FORGET))
        for owner, others in _FILLED.items():
            await _fill_all(here, owner, others, key)
    await here.write(lambda conn: _store_key(conn, key))


def _store_key(conn: Connection, key: str | None) -> None:
    # Without a key nothing reads the column; a later key fills it again.
    conn.execute(_FORGET)
    conn.execute(_STORE, {"setting": key})


async def _fill_all(here: "Database", owner: Table, others: tuple[Table, ...], key: str) -> None:
    """Fill a table and its dependent tables by pages, because other processes may be serving."""
    column = next(iter(owner.primary_key))
    after: Any = None

    def fill(conn: Connection) -> Any:
        if conn.locks:
            # A process that starts at the same time fills the same rows.
            conn.raw.execute("SET LOCAL lock_timeout = '10min'")
        query = select(column.label("key")).order_by(column).limit(PAGE)
        page = conn.fetchall(query if after is None else query.where(column > after))
        keys = [row["key"] for row in page]
        for table in (owner, *others) if keys else ():
            _fill(conn, table, table.c[column.name].in_(keys), key)
        return keys[-1] if keys else None

    while (last := await here.write(fill)) is not None:
        after = last


def _fill(conn: Connection, table: Table, page: ColumnElement[bool], key: str) -> None:
    if table in (thread_labels, runs, event_segments):
        of_thread = select(threads.c.tenant).where(threads.c.thread_id == table.c.thread_id)
        tenant: ColumnElement[Any] = of_thread.scalar_subquery()
    else:
        tenant = _named(conn, table.c.metadata, key)
    changed = table.c.tenant.is_distinct_from(tenant)
    conn.execute(table.update().where(page, changed).values(tenant=tenant))


def _named(conn: Connection, document: ColumnElement[Any], key: str) -> ColumnElement[Any]:
    """Return the SQL of `of` for a document."""
    if conn.dialect_name == "sqlite":
        path = f'$."{key}"'
        kind, name = func.json_type(document, path), func.json_extract(document, path)
    else:
        kind = func.jsonb_typeof(func.jsonb_extract_path(document, key))
        name = func.jsonb_extract_path_text(document, key)
    is_text = kind == text("'text'" if conn.dialect_name == "sqlite" else "'string'")
    return case((is_text, func.nullif(name, "")))
