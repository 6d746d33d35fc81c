"""Assistant rows: the statements and shapes that operations on assistants share."""

import uuid
from collections.abc import Collection
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, func, select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql.clock import now
from langgraph_runtime_sql.database.connection import Asked, Connection
from langgraph_runtime_sql.database.schema import assistant_versions, assistants, crons, runs
from langgraph_runtime_sql.database.statements import InsertNew, Prepared, Row
from langgraph_runtime_sql.errors import Collided
from langgraph_runtime_sql.search import filters
from langgraph_runtime_sql.tenancy import tenants

# What a version remembers, and what making it the current one restores.
VERSIONED = ("graph_id", "name", "description", "config", "context", "metadata")

_INSERT = Prepared(InsertNew(assistants).values({c.name: bindparam(c.name) for c in assistants.c}))
_INSERT_VERSION = Prepared(
    assistant_versions.insert().values({c.name: bindparam(c.name) for c in assistant_versions.c})
)
# What the API shows.
PUBLIC = [column for column in assistants.c if column.name != "tenant"]
VERSION_PUBLIC = [column for column in assistant_versions.c if column.name != "tenant"]
_BY_ID = Prepared(select(*PUBLIC).where(assistants.c.assistant_id == bindparam("assistant_id")))
_LOCK = Prepared(
    select(*PUBLIC)
    .where(assistants.c.assistant_id == bindparam("assistant_id"))
    .with_for_update(key_share=True)
)
_VERSION = Prepared(
    select(*VERSION_PUBLIC).where(
        assistant_versions.c.assistant_id == bindparam("assistant_id"),
        assistant_versions.c.version == bindparam("version"),
    )
)
_LAST_VERSION = Prepared(
    select(func.max(assistant_versions.c.version).label("version")).where(
        assistant_versions.c.assistant_id == bindparam("assistant_id")
    )
)
_MAKE_CURRENT = Prepared(
    assistants.update()
    .where(assistants.c.assistant_id == bindparam("key"))
    .values({name: bindparam(name) for name in (*VERSIONED, "version", "updated_at", "tenant")})
)
_DELETE = Prepared(assistants.delete().where(assistants.c.assistant_id == bindparam("key")))
_DELETE_CRONS = Prepared(crons.delete().where(crons.c.assistant_id == bindparam("key")))


def find(conn: Connection, assistant_id: UUID) -> Row | None:
    """An assistant, or None."""
    return ask(conn, assistant_id).one()


def ask(conn: Connection, assistant_id: UUID) -> Asked:
    """`find`, as `conn.ask` does it."""
    return conn.ask(_BY_ID, {"assistant_id": assistant_id})


def _find_to_change(conn: Connection, assistant_id: UUID) -> Row | None:
    """The same; in a write, nobody else gives it a version until the end."""
    return conn.fetchone(_LOCK if conn.locks else _BY_ID, {"assistant_id": assistant_id})


def require(
    conn: Connection, assistant_id: UUID, permitted: Any, *, called: str = "Assistant"
) -> Row:
    """An assistant that the filter admits.

    Args:
        called: How the error names it; the API's words differ between routes.

    Raises:
        HTTPException: (404) it is missing or hidden.
    """
    row = _find_to_change(conn, assistant_id)
    if row is None or not filters.allows(permitted, row["metadata"]):
        raise HTTPException(404, f"{called} {assistant_id} not found")
    return row


def find_version(conn: Connection, assistant_id: UUID, version: int | None) -> Row | None:
    """One version of an assistant, or None."""
    return conn.fetchone(_VERSION, {"assistant_id": assistant_id, "version": version})


def insert(conn: Connection, assistant_id: UUID, fields: Row) -> Row:
    """Create an assistant at version 1; `fields` are those of `VERSIONED`.

    Raises:
        HTTPException: (409) there is one of this id, which the caller may not see.
    """
    moment = now()
    first = {"assistant_id": assistant_id, "version": 1, "created_at": moment, **fields}
    first["tenant"] = tenants.of(first["metadata"])
    if not conn.execute(_INSERT, {**first, "updated_at": moment}):
        if find(conn, assistant_id) is not None:
            raise Collided
        raise HTTPException(409, f"Assistant {assistant_id} already exists")
    conn.execute(_INSERT_VERSION, first)
    return _stored(conn, assistant_id)


def add_version(conn: Connection, row: Row, changes: Row) -> Row:
    """Give an assistant a version with `changes`, numbered after the last, and make it current."""
    assistant_id = row["assistant_id"]
    last = conn.scalar(_LAST_VERSION, {"assistant_id": assistant_id}) or 0
    version = {name: row[name] for name in VERSIONED} | changes | {"version": last + 1}
    whose = {"assistant_id": assistant_id, "tenant": tenants.of(version["metadata"])}
    conn.execute(_INSERT_VERSION, {"created_at": now(), **whose, **version})
    return make_current(conn, assistant_id, version)


def make_current(conn: Connection, assistant_id: UUID, version: Row) -> Row:
    """Bring an assistant to the fields of one of its versions."""
    fields = {name: version[name] for name in (*VERSIONED, "version")}
    whose = {"key": assistant_id, "tenant": tenants.of(fields["metadata"])}
    conn.execute(_MAKE_CURRENT, {"updated_at": now(), **whose, **fields})
    return _stored(conn, assistant_id)


def delete(conn: Connection, assistant_id: UUID) -> None:
    """Delete an assistant with its versions and crons; its runs stay with their threads."""
    conn.execute(_DELETE_CRONS, {"key": assistant_id})
    conn.execute(_DELETE, {"key": assistant_id})


def _stored(conn: Connection, assistant_id: UUID) -> Row:
    # Read back, so that the answer is what every later one will be.
    row = find(conn, assistant_id)
    if row is None:
        raise LookupError(f"Assistant {assistant_id} was just written and is not there")
    return row


# --- config and context -----------------------------------------------------


def mirrored(config: Row | None, context: Row | None) -> tuple[Row, Row]:
    """Config and context of a new assistant: whichever was given also fills the other.

    Raises:
        HTTPException: (400) both say something.
    """
    config, context = config or {}, context or {}
    refuse_both(config, context)
    if config.get("configurable"):
        return config, config["configurable"]
    return ({**config, "configurable": context}, context) if context else (config, {})


def mirrored_changes(row: Row, config: Row | None, context: Row | None) -> Row:
    """What a patch with this config and context makes of an assistant's two.

    The one that is given fills the other; other keys of the config stay.

    Raises:
        HTTPException: (400) both say something.
    """
    refuse_both(config, context)
    changes: Row = {"config": config} if config else {}
    if config and config.get("configurable"):
        changes["context"] = config["configurable"]
    elif context is not None:
        kept = {k: v for k, v in (config or row["config"]).items() if k != "configurable"}
        changes["context"] = context
        changes["config"] = {**kept, "configurable": context} if context else kept
    return changes


def refuse_both(config: Row | None, context: Row | None) -> None:
    """Refuse a request that gives both.

    Raises:
        HTTPException: (400) it does.
    """
    if config and config.get("configurable") and context:
        raise HTTPException(
            400,
            "Cannot specify both configurable and context: give context alone, "
            "config.configurable is then filled from it.",
        )


# --- system assistants ------------------------------------------------------


def system_id(graph_id: str) -> UUID:
    """The id of the assistant that every server makes for a graph."""
    from langgraph_api.graph import NAMESPACE_GRAPH

    return uuid.uuid5(NAMESPACE_GRAPH, graph_id)


def register(conn: Connection, assistant_id: UUID, fields: Row) -> Row:
    """Bring a graph's own assistant to what the server's configuration says.

    Nothing is written when it says what it said at the last start, so that
    versions do not grow with restarts. What clients changed stays, but for the
    name and description. A row of another graph is replaced wholly: somebody
    took the id before there was such a graph.
    """
    row = _find_to_change(conn, assistant_id)
    if row is None:
        return insert(conn, assistant_id, fields)
    synced = VERSIONED if row["graph_id"] != fields["graph_id"] else ("name", "description")
    changes = {name: fields[name] for name in synced if fields[name] != row[name]}
    return add_version(conn, row, changes) if changes else row


_UNUSED = Prepared(
    select(assistants.c.assistant_id, assistants.c.graph_id).where(
        assistants.c.version == 1,
        ~select(runs.c.run_id).where(runs.c.assistant_id == assistants.c.assistant_id).exists(),
        ~select(crons.c.cron_id).where(crons.c.assistant_id == assistants.c.assistant_id).exists(),
    )
)


def retire_system_assistants(conn: Connection, live_ids: Collection[Any]) -> list[UUID]:
    """Delete the assistants of graphs that are gone, where nothing and nobody used them.

    Those that were changed, or that runs or crons refer to, stay: `search` and
    `count` do not show them while their graph is not served. For a process that
    has the database to itself; others may serve the graphs that this one does not.

    Args:
        live_ids: Ids of the system assistants of this server.

    Returns:
        The ids of those deleted.
    """
    live = {str(each) for each in live_ids}
    gone = [
        row["assistant_id"]
        for row in conn.fetchall(_UNUSED)
        # Their id is made of the graph's: metadata could be anybody's claim.
        if row["assistant_id"] == system_id(row["graph_id"])
        and str(row["assistant_id"]) not in live
    ]
    for assistant_id in gone:
        delete(conn, assistant_id)
    return gone
