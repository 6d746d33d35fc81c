"""Decisions of the thread policy: each is a log line with an `action` and a count in `/metrics`."""

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

_COUNTED = Counter(
    "threadhold_thread_decisions", "Decisions of the thread policy", ["action", "agent"]
)


def decided(action: Action, agent: str, thread_id: Any, **particulars: Any) -> None:
    """Log and count a decision. Never waits."""
    _COUNTED.labels(action, agent).inc()
    logger.info(
        "Thread policy", action=action, agent=agent, thread_id=str(thread_id), **particulars
    )
