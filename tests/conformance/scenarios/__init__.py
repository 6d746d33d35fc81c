"""The scenarios, a module a noun; importing this package registers all of them."""

from . import assistants, inflight, runs, state, stateless, streams, threads  # noqa: F401
