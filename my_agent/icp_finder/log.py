"""Structured log lines of the ICP finder."""

from typing import Any

import structlog

logger = structlog.stdlib.get_logger(__name__)


def log_action(action: str, thread_id: str | None, **fields: Any) -> None:
    """Log an action in a thread."""
    logger.info("ICP finder", action=action, thread_id=thread_id, **fields)
