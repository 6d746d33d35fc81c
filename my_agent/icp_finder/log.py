"""Structured log lines of the ICP finder."""

from typing import Any, Literal

import structlog

logger = structlog.stdlib.get_logger(__name__)

Action = Literal[
    "read_only",
    "turn",
    "feedback",
    "domain_asked",
    "answer_ignored",
    "return_user_probe",
    "context_change",
    "site_refused",
    "site_unreadable",
    "model_fallback",
    "journey_asked",
    "use_cached",
    "rerun_asked",
    "rerun_confirmed",
    "rerun_declined",
    "icp_confirmed",
    "icp_refreshed",
    "profile_reread",
    "strategy",
    "ssic_fallback",
    "enriched",
    "job_queued",
    "job_merged",
    "job_refused",
    "started_over",
    "finished",
]


def log_action(action: Action, thread_id: str | None, **fields: Any) -> None:
    """Log an action in a thread."""
    logger.info("ICP finder", action=action, thread_id=thread_id, **fields)
