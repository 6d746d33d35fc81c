"""What the ICP finder does, as log lines with an `action`."""

from typing import Any, Literal

import structlog

logger = structlog.stdlib.get_logger(__name__)

Action = Literal[
    "read_only",
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
    "strategy",
    "ssic_fallback",
    "enriched",
    "job_queued",
    "job_merged",
    "job_refused",
    "finished",
]


def noted(action: Action, thread_id: str | None, **particulars: Any) -> None:
    """Log what was done in a thread."""
    logger.info("ICP finder", action=action, thread_id=thread_id, **particulars)
