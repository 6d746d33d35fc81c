"""The scenarios, one module per noun. Importing this package registers all of them."""

from . import (  # noqa: F401
    a2a,
    assistants,
    crons,
    deep,
    events,
    inflight,
    mcp,
    meta,
    owners,
    runs,
    state,
    stateless,
    store,
    streams,
    threads,
    webhooks,
)
