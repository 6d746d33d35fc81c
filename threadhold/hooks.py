"""Hooks: let a host take part in the platform's transactions.

A host passes `LangGraphPlatform` one object with any of the methods of `Hooks`.
"""

from langgraph_runtime_sql.hooks import (
    Caller,
    Hooks,
    Reject,
    Transaction,
    configured,
    label,
    request_note,
)
from langgraph_runtime_sql.statuses import ThreadStatus

__all__ = [
    "Caller",
    "Hooks",
    "Reject",
    "ThreadStatus",
    "Transaction",
    "configured",
    "label",
    "request_note",
]
