"""Drained runs: runs that a stopping server asks to stop at the end of a step go on where they were."""


def resumed(stock: bool) -> bool:
    """Return whether such runs are resumed: as the project says, on any database."""
    from langgraph_api.config import FF_RESUME_DRAINED_RUNS
    from langgraph_api.feature_flags import DRAIN_RESUME_SUPPORT

    return bool(FF_RESUME_DRAINED_RUNS and DRAIN_RESUME_SUPPORT)
