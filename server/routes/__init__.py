"""Product routes: Starlette routes beside those of the platform, in its authentication and limits."""

from collections.abc import Mapping, Sequence
from typing import Any

from server.project import is_our_graph
from server.routes import (
    ask,
    branches,
    candidates,
    closed,
    diagnosis,
    documents,
    evidence,
    learner,
    research,
    revocations,
    runs,
    sessions,
    threads,
    tutor,
)
from server.routes.endpoint import Endpoint

POLICY: Sequence[Endpoint] = (*threads.ROUTES, *runs.ROUTES, *closed.ROUTES)
"""The routes of the thread policy."""

PRODUCTS: dict[str, Sequence[Endpoint]] = {
    ask.GRAPH: (*ask.ROUTES, *documents.ROUTES),
    sessions.GRAPH: (*diagnosis.ROUTES, *evidence.ROUTES, *branches.ROUTES),
    candidates.GRAPH: candidates.ROUTES,
    research.GRAPH: research.ROUTES,
    tutor.GRAPH: (*tutor.ROUTES, *learner.ROUTES),
}
"""The routes of each graph of ours, by graph id. A project has them if it serves that graph."""

IDENTITY: Sequence[Endpoint] = revocations.ROUTES
"""The routes of a project with our authentication, whose tokens can be revoked."""


def offered(graphs: Mapping[str, Any]) -> list[Endpoint]:
    """Return the product routes of a project.

    Args:
        graphs: The section `graphs` of the project's configuration.
    """
    return [
        route
        for graph, routes in PRODUCTS.items()
        if is_our_graph(graph, graphs.get(graph))
        for route in routes
    ]
