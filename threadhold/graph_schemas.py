"""Schemas of graphs, made once and not for each assistant.

`langgraph_api` makes the JSON schemas of a graph anew for each request, on the event loop, in
about 50 ms. MCP's `tools/list` asks for those of 100 assistants at the same time, which holds up
everything else for seconds.

A graph that the project defines as it stands always has the same schemas, whichever assistant
asks. What a factory makes may depend on everything that the factory is given (the assistant's
config, headers, the user) and on things that only it knows. So its schemas are kept by what it
is given, and for `FACTORY_SECONDS`.
"""

import asyncio
import contextvars
import functools
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

import orjson
from starlette.types import ASGIApp, Receive, Scope, Send

from langgraph_runtime_sql.ops.authorization import user_fields

Schemas = dict[str, Any]
Make = Callable[[Any], Schemas]

FACTORY_SECONDS = 10.0
MOST_FACTORY_SCHEMAS = 256
MCP_AT_A_TIME = 2
"""Schemas that one `tools/list` asks for at a time: between them others get their turn."""

SCHEMAS_PATH = "/assistants/{assistant_id}/schemas"


class Known:
    """Stands for a graph of which only the schemas are needed."""

    def __init__(self, schemas: Schemas) -> None:
        self.schemas = schemas


def install() -> None:
    """Let the API take schemas from here. Once a process."""
    from langgraph_api.api import assistants
    from langgraph_api.api.mcp import _handlers

    routes: Any = assistants
    cache = Cache(routes._graph_schemas)
    routes.get_graph = cache.wrap(routes.get_graph)
    routes._graph_schemas = cache.schemas
    for route in routes.assistants_routes:
        if getattr(route, "path", None) == SCHEMAS_PATH:
            route.app = SchemasOnly(route.app)
    handlers: Any = _handlers
    client = handlers._client
    handlers._client = lambda: AFewAtATime(client())


class SchemasOnly:
    """Tells the cache that a request needs the schemas of a graph, and nothing else of it."""

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
    """The schemas of graphs.

    Args:
        make: Makes the schemas of a graph; called in a thread.
    """

    def __init__(self, make: Make) -> None:
        self._make = make
        # By the graph itself, because a project may be loaded again, and by its id, which is in
        # the titles.
        self._static: WeakKeyDictionary[Any, dict[str, Schemas]] = WeakKeyDictionary()
        self._made: OrderedDict[Hashable, tuple[float, Schemas]] = OrderedDict()
        self._making: dict[Hashable, asyncio.Future[None]] = {}

    def wrap(self, stock: Any) -> Callable[..., AbstractAsyncContextManager[Any]]:
        """Wrap the API's `get_graph`: where only schemas are needed, it yields a `Known`."""

        @asynccontextmanager
        async def get_graph(graph_id: str, config: Any, **options: Any) -> AsyncIterator[Any]:
            if not _schemas_only.get():
                async with stock(graph_id, config, **options) as graph:
                    yield graph
                return
            key = _key(graph_id, config)
            found = await self._awaited(graph_id, key)
            if found is not None:
                yield Known(found)
                return
            making = self._making[key] = asyncio.get_running_loop().create_future()
            try:
                async with stock(graph_id, config, **options) as graph:
                    if _is_remote(graph):
                        yield graph
                        return
                    schemas = await _in_thread(functools.partial(self._make, graph))
                self._keep(graph_id, key, schemas)
            finally:
                self._making.pop(key, None)
                making.set_result(None)
            yield Known(schemas)

        return get_graph

    def schemas(self, graph: Any) -> Schemas:
        """The schemas of what `get_graph` has yielded, or of a subgraph."""
        if isinstance(graph, Known):
            return graph.schemas
        kept = self._static.setdefault(graph, {})
        if "" not in kept:
            kept[""] = self._make(graph)
        return kept[""]

    async def _awaited(self, graph_id: str, key: Hashable) -> Schemas | None:
        """What is known, once another request that is making it has done so."""
        while (found := self._find(graph_id, key)) is None and key in self._making:
            await asyncio.shield(self._making[key])
        return found

    def _find(self, graph_id: str, key: Hashable) -> Schemas | None:
        if (graph := _static_graph(graph_id)) is not None:
            return self._static.get(graph, {}).get(graph_id)
        until, schemas = self._made.get(key, (0.0, None))
        return schemas if time.monotonic() < until else None

    def _keep(self, graph_id: str, key: Hashable, schemas: Schemas) -> None:
        if (graph := _static_graph(graph_id)) is not None:
            self._static.setdefault(graph, {})[graph_id] = schemas
            return
        self._made[key] = time.monotonic() + FACTORY_SECONDS, schemas
        self._made.move_to_end(key)
        while len(self._made) > MOST_FACTORY_SCHEMAS:
            self._made.popitem(last=False)


class AFewAtATime:
    """The API's client for itself, which asks for only a few schemas at a time.

    Args:
        client: The client.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self.assistants = _Assistants(client.assistants)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class _Assistants:
    def __init__(self, assistants: Any) -> None:
        self._assistants = assistants
        self._turns = asyncio.Semaphore(MCP_AT_A_TIME)

    async def get_schemas(self, *args: Any, **options: Any) -> Any:
        async with self._turns:
            return await self._assistants.get_schemas(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._assistants, name)


def _static_graph(graph_id: str) -> Any:
    """The graph as the project defines it, or None where a factory makes it."""
    from langgraph.pregel import Pregel
    from langgraph_api.graph import GRAPHS

    graph = GRAPHS.get(graph_id)
    return graph if isinstance(graph, Pregel) else None


def _is_remote(graph: Any) -> bool:
    from langgraph_api.js.base import BaseRemotePregel

    return isinstance(graph, BaseRemotePregel)


def _key(graph_id: str, config: Any) -> Hashable:
    """What the schemas depend on: the graph and, with a factory, what the factory is given."""
    from langgraph_api.graph import GRAPHS
    from langgraph_api.utils import get_auth_ctx

    if _static_graph(graph_id) is not None:
        return graph_id
    context = get_auth_ctx()
    caller = None if context is None else [user_fields(context.user), list(context.permissions)]
    try:
        given = orjson.dumps([config, caller], option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # A user who is not data cannot be told from others: nothing is kept.
        return object()
    factory = GRAPHS.get(graph_id)
    return (graph_id, factory, given) if isinstance(factory, Hashable) else object()


async def _in_thread(work: Callable[[], Schemas]) -> Schemas:
    """Do something in the thread for schemas, with the caller's context."""
    run = contextvars.copy_context().run
    return await asyncio.get_running_loop().run_in_executor(_pool, run, work)


# One: making schemas keeps the interpreter's lock most of the time.
_pool = ThreadPoolExecutor(1, thread_name_prefix="graph-schemas")
