"""The scenarios, a module a noun; importing this package registers all of them."""

from . import (  # noqa: F401
    a2a,
    assistants,
    crons,
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
