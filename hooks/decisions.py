"""Decisions of the thread policy: a log line with an `action`, and a counter in `/metrics`."""

from typing import Any, Literal

import structlog
from prometheus_client import Counter

logger = structlog.stdlib.get_logger(__name__)

Action = Literal[
    "thread_created",
    "thread_resumed",
    "thread_choice",
    "thread_locked",
    "thread_pending_lock",
    "thread_archived",
    "run_gated",
]

_DECISIONS = Counter(
    "threadhold_thread_decisions", "Decisions of the thread policy", ["action", "agent"]
)


def record_decision(action: Action, agent: str, thread_id: Any, **fields: Any) -> None:
    """Log and count a decision. This function does not block.

    Args:
        action: The decision.
        agent: The agent of the thread.
        thread_id: The thread that the decision concerns.
        fields: Further fields of the log line.
    """
    _DECISIONS.labels(action, agent).inc()
    logger.info(
        "Thread policy applied", action=action, agent=agent, thread_id=str(thread_id), **fields
    )
