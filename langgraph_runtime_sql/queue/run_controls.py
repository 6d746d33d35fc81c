"""Run controls: how a server that stops asks its runs to stop at the end of a step, and go on elsewhere.

`langgraph_api` knows this since 0.17, if `FF_RESUME_DRAINED_RUNS` is set. The worker of an earlier version
takes no control, so runs get the grace period of the stop, and begin their last step anew.
"""

from typing import Any


def new() -> Any | None:
    """Return the control of a new attempt at a run, or None if runs are not asked."""
    from langgraph_api import worker_runtime

    policy = getattr(worker_runtime, "DRAIN_POLICY", None)
    return None if policy is None else policy.new_control()


def arguments(control: Any | None) -> dict[str, Any]:
    """Return the arguments of the API's worker for a control."""
    return {} if control is None else {"control": control}
