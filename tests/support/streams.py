"""Keys of streams in tests without tenants."""

from typing import Any

from langgraph_runtime_sql.events.stream_key import StreamKey


def of_run(run: Any, thread: Any = "t") -> StreamKey:
    """Return the key of a run's stream."""
    return StreamKey(None, str(thread), str(run))


def of_thread(thread: Any) -> StreamKey:
    """Return the key of a thread's own stream."""
    return StreamKey(None, str(thread))
