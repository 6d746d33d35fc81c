"""Checkpoints: our own saver, which stores a state as the difference to an earlier one.

Graphs get a `Checkpointer`. The other functions take a connection, for operations that change
checkpoints within a larger transaction.
"""

from langgraph_runtime_sql.checkpoint.history import (
    copy_thread,
    delete,
    delete_for_runs,
    delete_thread,
    exists,
    latest_id,
    latest_version,
    places,
    thread_ids,
)
from langgraph_runtime_sql.checkpoint.pruning import prune_thread
from langgraph_runtime_sql.checkpoint.repeated import Repeated
from langgraph_runtime_sql.checkpoint.resealing import VALUES
from langgraph_runtime_sql.checkpoint.saver import Checkpointer
from langgraph_runtime_sql.checkpoint.serialization import UnpackHook
from langgraph_runtime_sql.checkpoint.shown import shown_values
from langgraph_runtime_sql.checkpoint.storage import thread_storage

__all__ = [
    "VALUES",
    "Checkpointer",
    "Repeated",
    "UnpackHook",
    "copy_thread",
    "delete",
    "delete_for_runs",
    "delete_thread",
    "exists",
    "latest_id",
    "latest_version",
    "places",
    "prune_thread",
    "shown_values",
    "thread_ids",
    "thread_storage",
]
