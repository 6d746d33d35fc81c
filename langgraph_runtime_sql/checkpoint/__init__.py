"""Checkpoints: langgraph's own savers, run through the runtime's database.

Graphs get a `Checkpointer`. The other functions take a connection, for operations that change
checkpoints within a larger transaction.
"""

from langgraph_runtime_sql.checkpoint.history import (
    copy_thread,
    delete_for_runs,
    delete_thread,
    examine_parts,
    free_parts,
    latest_id,
    latest_version,
    missing_parts,
    thread_ids,
)
from langgraph_runtime_sql.checkpoint.order import unordered_threads
from langgraph_runtime_sql.checkpoint.pruning import prune_thread
from langgraph_runtime_sql.checkpoint.repeated import Repeated
from langgraph_runtime_sql.checkpoint.resealing import VALUES
from langgraph_runtime_sql.checkpoint.saver import Checkpointer
from langgraph_runtime_sql.checkpoint.sealing import PLAIN_METADATA
from langgraph_runtime_sql.checkpoint.serialization import UnpackHook
from langgraph_runtime_sql.checkpoint.shown import exists, shown_values
from langgraph_runtime_sql.checkpoint.sql import run
from langgraph_runtime_sql.checkpoint.stock import ensure_schema
from langgraph_runtime_sql.checkpoint.storage import thread_storage

__all__ = [
    "PLAIN_METADATA",
    "VALUES",
    "Checkpointer",
    "Repeated",
    "UnpackHook",
    "copy_thread",
    "delete_for_runs",
    "delete_thread",
    "ensure_schema",
    "examine_parts",
    "exists",
    "free_parts",
    "latest_id",
    "latest_version",
    "missing_parts",
    "prune_thread",
    "run",
    "shown_values",
    "thread_ids",
    "thread_storage",
    "unordered_threads",
]
