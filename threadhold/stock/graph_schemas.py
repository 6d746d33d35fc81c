"""Graph schemas: cache the JSON schemas of graphs.

`langgraph_api` builds the schemas of a graph for each request, on the event loop, in about
50 ms. MCP's `tools/list` asks for those of 100 assistants at once, which blocks the server for
seconds.

A static graph has the same schemas for every assistant, so they are cached for good. The graph
of a factory may depend on the factory's arguments (config, headers, user) and on outside
state, so its schemas are cached by these arguments for `FACTORY_SECONDS`.
"""

import asyncio
import contextvars
import copy
import functools
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

import orjson
from starlette.types import ASGIApp, Receive, Scope, Send

from langgraph_runtime_sql.gate.caller import user_fields
from langgraph_runtime_sql.tenancy import scope
from langgraph_runtime_sql.thread_pool import ThreadPool

Schemas = dict[str, Any]
Make = Callable[[Any], Schemas]

FACTORY_SECONDS = 10.0
MAX_FACTORY_SCHEMAS = 256
MCP_CONCURRENCY = 2
"""Schemas that one `tools/list` requests at a time, so that other requests run in between."""


class CachedGraph:
    """Stands in for a graph whose schemas are cached."""

    def __init__(self, schemas: Schemas) -> None:
        self.schemas = schemas


class SchemasOnly:
    """Mark requests that need only the schemas of a graph."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = _schemas_only.set(True)
        try:
            await self._app(scope, receive, send)
        finally:
            _schemas_only.reset(token)


_schemas_only: ContextVar[bool] = ContextVar("schemas_only", default=False)


class Cache:
    """Cache of schemas by graph.

    Args:
        make: Builds the schemas of a graph; called in a thread.
    """

    def __init__(self, make: Make) -> None:
        self.make = make
        # By graph object, because a project may be loaded again, and by id, which titles contain.
        self._static: WeakKeyDictionary[Any, dict[str, Schemas]] = WeakKeyDictionary()
        self._expiring: OrderedDict[Hashable, tuple[float, Schemas]] = OrderedDict()
        self._pending: dict[Hashable, asyncio.Future[None]] = {}

    def wrap(self, stock: Any) -> Callable[..., AbstractAsyncContextManager[Any]]:
        """Wrap the API's `get_graph` to yield a `CachedGraph` if only schemas are needed."""

        @asynccontextmanager
        async def get_graph(graph_id: str, config: Any, **options: Any) -> AsyncIterator[Any]:
            if not _schemas_only.get():
                async with stock(graph_id, config, **options) as graph:
                    yield graph
                return
            key = _key(graph_id, config)
            found = await self._wait_for(graph_id, key)
            if found is not None:
                yield CachedGraph(found)
                return
            making = self._pending[key] = asyncio.get_running_loop().create_future()
            try:
                async with stock(graph_id, config, **options) as graph:
                    if _is_remote(graph):
                        yield graph
                        return
                    schemas = await _in_thread(functools.partial(self.make, graph))
                self._put(graph_id, key, schemas)
            finally:
                self._pending.pop(key, None)
                making.set_result(None)
            yield CachedGraph(schemas)

        return get_graph

    def schemas(self, graph: Any) -> Schemas:
        """Return the schemas of a graph that `get_graph` has yielded, or of a subgraph."""
        if isinstance(graph, CachedGraph):
            return graph.schemas
        cached = self._static.setdefault(graph, {})
        if "" not in cached:
            cached[""] = self.make(graph)
        return cached[""]

    async def _wait_for(self, graph_id: str, key: Hashable) -> Schemas | None:
        """Return the cached schemas, after any other request that is building them."""
        while (found := self._find(graph_id, key)) is None and key in self._pending:
            await asyncio.shield(self._pending[key])
        return found

    def _find(self, graph_id: str, key: Hashable) -> Schemas | None:
        if (graph := _static_graph(graph_id)) is not None:
            return self._static.get(graph, {}).get(graph_id)
        until, schemas = self._expiring.get(key, (0.0, None))
        return schemas if time.monotonic() < until else None

    def _put(self, graph_id: str, key: Hashable, schemas: Schemas) -> None:
        if (graph := _static_graph(graph_id)) is not None:
            self._static.setdefault(graph, {})[graph_id] = schemas
            return
        self._expiring[key] = time.monotonic() + FACTORY_SECONDS, schemas
        self._expiring.move_to_end(key)
        while len(self._expiring) > MAX_FACTORY_SCHEMAS:
            self._expiring.popitem(last=False)


def _not_installed(graph: Any) -> Schemas:
    raise RuntimeError("the schemas of graphs are not replaced yet")


_cache = Cache(_not_installed)


def get_graph(stock: Any) -> Any:
    """Return `get_graph`, which yields a `CachedGraph` to requests of schemas."""
    return _cache.wrap(stock)


def graph_schemas(stock: Make) -> Make:
    """Return `_graph_schemas`, which builds the schemas of a graph by `stock` once."""
    _cache.make = stock
    return _cache.schemas


def route(stock: Any) -> ASGIApp:
    """Return the app of the schemas' route, which marks its requests."""
    return SchemasOnly(stock.app)


def throttled(client: Any) -> Any:
    """Return a copy of the API's client for itself that requests few schemas at a time."""
    semaphore, stock = asyncio.Semaphore(MCP_CONCURRENCY), client.assistants.get_schemas
    client = copy.copy(client)
    client.assistants = copy.copy(client.assistants)

    async def get_schemas(*args: Any, **options: Any) -> Any:
        async with semaphore:
            return await stock(*args, **options)

    client.assistants.get_schemas = get_schemas
    return client


def _static_graph(graph_id: str) -> Any:
    """Return the project's graph object, or None if a factory makes it."""
    from langgraph.pregel import Pregel
    from langgraph_api.graph import GRAPHS

    graph = GRAPHS.get(graph_id)
    return graph if isinstance(graph, Pregel) else None


def _is_remote(graph: Any) -> bool:
    from langgraph_api.js.base import BaseRemotePregel

    return isinstance(graph, BaseRemotePregel)


def _key(graph_id: str, config: Any) -> Hashable:
    """Return the cache key: the graph and, for a factory, the factory's arguments."""
    from langgraph_api.graph import GRAPHS
    from langgraph_api.utils import get_auth_ctx

    if _static_graph(graph_id) is not None:
        return graph_id
    context = get_auth_ctx()
    caller = None if context is None else [user_fields(context.user), list(context.permissions)]
    try:
        arguments = orjson.dumps([config, caller], option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # A user that cannot be serialized has no stable key, so nothing is cached.
        return object()
    factory = GRAPHS.get(graph_id)
    return (graph_id, factory, arguments) if isinstance(factory, Hashable) else object()


async def _in_thread(work: Callable[[], Schemas]) -> Schemas:
    """Call `work` in the schema thread, with the caller's context variables."""
    work = functools.partial(contextvars.copy_context().run, work)
    return await asyncio.wrap_future(_pool.submit(work, tenant=scope.turn()))


# One thread: building schemas holds the interpreter's lock most of the time.
_pool = ThreadPool(1, "graph-schemas")
