"""Assistants: the operations that the API calls."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import ColumnElement, func, or_
from sqlalchemy import select as select_columns
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import assistant_versions, assistants
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.gate import limits, reads, writes
from langgraph_runtime_sql.gate.operations import (
    ASSISTANT_CREATE,
    ASSISTANT_DELETE,
    ASSISTANT_READ,
    ASSISTANT_SEARCH,
    ASSISTANT_UPDATE,
)
from langgraph_runtime_sql.gate.reads import Visible
from langgraph_runtime_sql.ops.answers import Rows, page_of, pick, rows
from langgraph_runtime_sql.ops.arguments import as_uuid, sort_column
from langgraph_runtime_sql.ops.assistants import rows as assistant_rows
from langgraph_runtime_sql.ops.assistants.names import refuse_reserved
from langgraph_runtime_sql.ops.assistants.rows import find as get_assistant
from langgraph_runtime_sql.ops.assistants.rows import retire_system_assistants, system_id
from langgraph_runtime_sql.ops.runs.cancel import cancel
from langgraph_runtime_sql.ops.threads.end import delete as delete_thread
from langgraph_runtime_sql.search import filters, thread_query
from langgraph_runtime_sql.tenancy import scope

__all__ = ["Assistants", "get_assistant", "is_system", "retire_system_assistants", "system_id"]

logger = structlog.stdlib.get_logger(__name__)

ADVICE = "Ask for fewer assistants, by `graph_id`, or for simpler metadata."
Document = dict[str, Any] | None
SORTABLE = ("assistant_id", "graph_id", "name", "created_at", "updated_at")


class Assistants:
    """Operations on assistants. Each has its own transaction; `conn` is a handle of the API."""

    @staticmethod
    async def search(
        conn: Any,
        *,
        graph_id: str | None,
        name: str | None,
        metadata: dict[str, Any] | None,
        limit: int,
        offset: int,
        sort_by: str | None = None,
        sort_order: str | None = None,
        select: Sequence[str] | None = None,
        ctx: Any = None,
    ) -> tuple[Rows, int | None]:
        """Return a page of matching assistants of the served graphs.

        Returns:
            The assistants, and the offset of the next page or None.

        Raises:
            HTTPException: (404) the graph is not served; (422) invalid `sort_by`.
        """
        limit, offset = int(limit), int(offset)
        metadata, visible = await _admit_search(ctx, graph_id, metadata, limit, offset)
        order = _order(sort_by, sort_order)
        graphs, tenant = _graphs(graph_id), _tenant()

        def fn(conn: Connection) -> list[Row]:
            conditions = _matching(conn, graphs, name, metadata, visible, tenant)
            statement = select_columns(*assistant_rows.PUBLIC).where(*conditions).order_by(*order)
            return conn.fetchall(statement.limit(limit + 1).offset(offset))

        found = await runtime.current().database.search(fn, ADVICE)
        page, following = page_of(found, limit, offset)
        return rows([pick(row, select) for row in page]), following

    @staticmethod
    async def count(
        conn: Any,
        *,
        graph_id: str | None = None,
        name: str | None = None,
        metadata: dict[str, Any] | None = None,
        ctx: Any = None,
    ) -> int:
        """Return the number of matching assistants.

        Raises:
            HTTPException: (404) the graph is not served.
        """
        metadata, visible = await _admit_search(ctx, graph_id, metadata, 0, 0)
        graphs, tenant = _graphs(graph_id), _tenant()

        def fn(conn: Connection) -> int:
            conditions = _matching(conn, graphs, name, metadata, visible, tenant)
            counted = (
                select_columns(func.count().label("n")).select_from(assistants).where(*conditions)
            )
            return int(conn.scalar(counted))

        return await runtime.current().database.search(fn, ADVICE)

    @staticmethod
    async def get(conn: Any, assistant_id: Any, ctx: Any = None) -> Rows:
        """Yield an assistant, if it exists and is visible."""
        identifier = as_uuid(assistant_id, "assistant ID")
        visible = await reads.admit(ctx, ASSISTANT_READ, {"assistant_id": identifier})
        row = visible.only(
            await runtime.current().database.read(lambda conn: get_assistant(conn, identifier))
        )
        return rows([] if row is None else [row])

    @staticmethod
    async def put(
        conn: Any,
        assistant_id: Any,
        *,
        graph_id: str,
        config: dict[str, Any] | None,
        context: dict[str, Any] | None,
        metadata: dict[str, Any] | None,
        if_exists: str,
        name: str,
        ctx: Any = None,
        description: str | None = None,
        system: bool = False,
    ) -> Rows:
        """Create an assistant, or yield the existing one if `if_exists` is `do_nothing`.

        Args:
            system: Whether the server registers one of its graphs, without authorization.

        Raises:
            HTTPException: (400) both configurable and context; (404) the graph is not served;
                (409) the assistant exists; (422) the name is that of a graph.
            LimitReached: (429) the tenant has as many assistants as it may.
        """
        from langgraph_api.graph import assert_graph_exists

        identifier = as_uuid(assistant_id, "assistant ID")
        value = _value(identifier, graph_id, config, context, metadata, name)
        admission = None if system else await writes.admit(ctx, ASSISTANT_CREATE, value)
        config, context = assistant_rows.mirrored(value["config"], value["context"])
        assert_graph_exists(graph_id)
        if not system:
            refuse_reserved(identifier, name)
        fields = {
            "graph_id": graph_id,
            "name": name,
            "description": description,
            "config": config,
            "context": context,
            "metadata": value["metadata"],
        }

        def fn(conn: Connection) -> Row:
            if admission is None:
                return assistant_rows.register(conn, identifier, fields)
            existing = get_assistant(conn, identifier)
            if existing is None:
                limits.assistant(conn, fields["metadata"])
                return assistant_rows.insert(conn, identifier, fields)
            hidden = not admission.visible.shows(existing["metadata"])
            if hidden or if_exists != "do_nothing":
                raise HTTPException(409, f"Assistant {identifier} already exists")
            return existing

        write = runtime.current().database.write if admission is None else admission.write
        return rows([await write(fn)])

    @staticmethod
    async def patch(
        conn: Any,
        assistant_id: Any,
        *,
        config: dict[str, Any] | None = None,
        context: dict[str, Any] | None = None,
        graph_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        name: str | None = None,
        description: str | None = None,
        ctx: Any = None,
    ) -> Rows:
        """Add a version to an assistant. None leaves a field unchanged; metadata is merged.

        Raises:
            HTTPException: (400) both configurable and context; (404) the graph is not served,
                or the assistant does not exist or may not be changed; (422) the name is that of
                a graph.
            LimitReached: (429) the assistant has as many versions as it may.
        """
        from langgraph_api.graph import assert_graph_exists

        identifier = as_uuid(assistant_id, "assistant ID")
        value = _value(identifier, graph_id, config, context, metadata, name)
        admission = await writes.admit(ctx, ASSISTANT_UPDATE, value)
        assistant_rows.refuse_both(value["config"], value["context"])
        if graph_id is not None:
            assert_graph_exists(graph_id)
        given = {"graph_id": graph_id, "name": name, "description": description}
        sent = {**given, **{key: value[key] for key in ("config", "context", "metadata")}}

        def check(conn: Connection) -> None:
            assistant_rows.require(conn, identifier, admission.visible)
            limits.assistant_version(conn, identifier, sent)

        await runtime.current().database.read(check)

        def fn(conn: Connection) -> Row:
            row = assistant_rows.require(conn, identifier, admission.visible)
            refuse_reserved(identifier, name)
            changes: Row = {key: value for key, value in given.items() if value is not None}
            changes |= assistant_rows.mirrored_changes(row, value["config"], value["context"])
            changes["metadata"] = {**row["metadata"], **value["metadata"]}
            return assistant_rows.add_version(conn, row, changes)

        return rows([await admission.write(fn)])

    @staticmethod
    async def set_latest(
        conn: Any, assistant_id: Any, version: int | None, ctx: Any = None
    ) -> Rows:
        """Make a version of an assistant the current one.

        Raises:
            HTTPException: (404) it does not exist or may not be changed; (422) the version has
                the name of a graph.
        """
        identifier = as_uuid(assistant_id, "assistant ID")
        value = {"assistant_id": identifier, "version": version}
        admission = await writes.admit(ctx, ASSISTANT_UPDATE, value)

        def fn(conn: Connection) -> Row:
            assistant_rows.require(conn, identifier, admission.visible)
            found = assistant_rows.find_version(conn, identifier, version)
            if found is None:
                raise HTTPException(404, f"Version {version} not found for assistant {identifier}")
            # A version may be older than the graph.
            refuse_reserved(identifier, found["name"])
            return assistant_rows.make_current(conn, identifier, found)

        return rows([await admission.write(fn)])

    @staticmethod
    async def get_versions(
        conn: Any,
        assistant_id: Any,
        metadata: dict[str, Any] | None,
        limit: int,
        offset: int,
        ctx: Any = None,
    ) -> Rows:
        """Yield the versions of an assistant whose own metadata match, newest first.

        Raises:
            HTTPException: (404) the assistant does not exist.
        """
        identifier = as_uuid(assistant_id, "assistant ID")
        visible = await reads.admit(ctx, ASSISTANT_READ, {"assistant_id": identifier})
        column = assistant_versions.c.metadata
        conditions = [assistant_versions.c.assistant_id == identifier, visible.condition(column)]
        if metadata:
            conditions.append(filters.has(column, filters.searchable(metadata)))

        def fn(conn: Connection) -> list[Row]:
            assistant_rows.require(conn, identifier, reads.ALL)
            return conn.fetchall(
                select_columns(*assistant_rows.VERSION_PUBLIC)
                .where(*conditions)
                .order_by(assistant_versions.c.version.desc())
                .limit(int(limit))
                .offset(int(offset))
            )

        return rows(await runtime.current().database.search(fn, ADVICE))

    @staticmethod
    async def delete(
        conn: Any, assistant_id: Any, ctx: Any = None, *, delete_threads: bool = False
    ) -> Rows:
        """Delete an assistant with its versions and crons, and interrupt its runs.

        Args:
            delete_threads: Whether to delete the threads that last used it, except those that
                the caller may not delete.

        Raises:
            HTTPException: (404) it does not exist or may not be deleted.
        """
        identifier = as_uuid(assistant_id, "assistant ID")
        admission = await writes.admit(ctx, ASSISTANT_DELETE, {"assistant_id": identifier})

        def check(conn: Connection) -> None:
            assistant_rows.require(conn, identifier, admission.visible, called="Assistant with ID")

        await runtime.current().database.read(check)
        if delete_threads:
            await _delete_threads(identifier, ctx)
        await cancel(
            None,
            assistant_id=identifier,
            action="interrupt",
            ctx=ctx,
            reason=f"assistant {identifier} was deleted",
        )

        def fn(conn: Connection) -> None:
            # It may have been deleted or changed meanwhile.
            check(conn)
            assistant_rows.delete(conn, identifier)

        await admission.write(fn)
        return rows([identifier])  # type: ignore[list-item]  # the interface yields the bare id


def is_system(assistant_id: Any) -> bool:
    """Return whether this is the system assistant of a served graph."""
    from langgraph_api.graph import SYSTEM_ASSISTANT_IDS

    return str(assistant_id) in SYSTEM_ASSISTANT_IDS


def _value(
    assistant_id: UUID,
    graph_id: str | None,
    config: Document,
    context: Document,
    metadata: Document,
    name: str | None,
) -> Row:
    """Return an assistant as the handler sees and may change it."""
    return {
        "assistant_id": assistant_id,
        "graph_id": graph_id,
        "config": config or {},
        "context": context,
        "metadata": metadata or {},
        "name": name,
    }


async def _admit_search(
    ctx: Any, graph_id: str | None, metadata: Document, limit: int, offset: int
) -> tuple[Document, Visible]:
    """Return the metadata to search for, as the handler has changed it, and what the caller may see."""
    value: Row = {
        "graph_id": graph_id,
        "metadata": metadata or {},
        "limit": limit,
        "offset": offset,
    }
    visible = await reads.admit(ctx, ASSISTANT_SEARCH, value)
    return value["metadata"], visible


def _graphs(graph_id: str | None) -> list[str]:
    """Return the graphs to search: the given one if it is served, else all served graphs."""
    from langgraph_api.graph import GRAPHS, assert_graph_exists

    if graph_id is None:
        return sorted(GRAPHS)
    assert_graph_exists(graph_id)
    return [graph_id]


def _tenant() -> str | None:
    """Return the tenant whose assistants, with the system's, the caller may see; None for all."""
    return scope.current(runtime.current().options.tenant_key).tenant


def _matching(
    conn: Connection,
    graphs: list[str],
    name: str | None,
    metadata: dict[str, Any] | None,
    visible: Visible,
    tenant: str | None,
) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [assistants.c.graph_id.in_(graphs)]
    if tenant is not None:
        # By an index. The handler's filter is a function that would read every tenant's rows.
        conditions.append(or_(assistants.c.tenant == tenant, assistants.c.tenant.is_(None)))
    if name:
        # LIKE has wildcards, and limits the length of its pattern.
        position = func.instr if conn.dialect_name == "sqlite" else func.strpos
        conditions.append(position(func.lower(assistants.c.name), func.lower(name)) > 0)
    if metadata:
        conditions.append(filters.has(assistants.c.metadata, filters.searchable(metadata)))
    conditions.append(visible.condition(assistants.c.metadata))
    return conditions


def _order(sort_by: str | None, sort_order: str | None) -> list[ColumnElement[Any]]:
    """Return the sort order, by default newest first."""
    if not sort_by:
        return [assistants.c.created_at.desc(), assistants.c.assistant_id]
    column = sort_column(assistants.c, sort_by, SORTABLE)
    if sort_by.lower() in ("name", "graph_id"):
        column = func.lower(column)
    ascending = (sort_order or "").lower() == "asc"
    first = column.asc() if ascending else column.desc()
    return [first, assistants.c.created_at, assistants.c.assistant_id]


async def _delete_threads(assistant_id: UUID, ctx: Any) -> None:
    """Delete the threads that last used an assistant, if the caller may delete them."""

    def used(conn: Connection) -> list[UUID]:
        return thread_query.plan(conn, {"assistant_id": str(assistant_id)}, None).ids(conn)

    for thread_id in await runtime.current().database.read(used):
        try:
            await delete_thread(None, thread_id, ctx=ctx)
        except HTTPException as error:
            if error.status_code >= 500:
                raise
            await logger.awarning(
                "Deletion of an assistant's thread was refused",
                thread_id=str(thread_id),
                assistant_id=str(assistant_id),
                reason=error.detail,
            )
