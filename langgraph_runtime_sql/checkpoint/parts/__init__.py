"""Parts: long values of checkpoints, stored as a tree of parts that checkpoints share.

The tree is over the bytes that langgraph's serializer has made, so reading gives the same bytes.
"""

from langgraph_runtime_sql.checkpoint.parts.lists import encode
from langgraph_runtime_sql.checkpoint.parts.root import KIND_SUFFIX
from langgraph_runtime_sql.checkpoint.parts.rows import (
    COPY,
    TABLE,
    collect,
    delete_all,
    lock_for_writing,
    missing,
    unused,
)
from langgraph_runtime_sql.checkpoint.parts.values import LONG, PartsReader, PartsWriter

__all__ = [
    "COPY",
    "KIND_SUFFIX",
    "LONG",
    "TABLE",
    "PartsReader",
    "PartsWriter",
    "collect",
    "delete_all",
    "encode",
    "lock_for_writing",
    "missing",
    "unused",
]
