"""What all workers have in common: a time limit with retries, and what they report back."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from my_agent.research.asking import WorkerFailed
from my_agent.research.state import State
from my_agent.research.work import Stopped, Work

logger = logging.getLogger(__name__)


async def attempt(
    work: Work,
    retries: int,
    once: Callable[[], Awaitable[State]],
    timeouts: list[dict[str, Any]],
) -> State:
    """Run a worker within its time, and again if the time is over.

    Args:
        work: the surroundings.
        retries: number of further attempts.
        once: one attempt; returns the update of the state.
        timeouts: those of single operations, which the worker adds.

    Returns:
        The update of the state, with the usage. `error` is the cause if the worker gives up; it is
        empty if the user has stopped it.
    """
    seconds, error = work.settings.research_agent_seconds, ""
    update: State = {}
    for _ in range(1 + retries):
        try:
            async with asyncio.timeout(seconds):
                update, error = await once(), ""
            break
        except TimeoutError:
            logger.warning("The worker of stage %s ran for %g seconds", work.stage, seconds)
            timeouts.append({"stage": work.stage, "what": "agent", "seconds": seconds})
            error = f"The worker of the stage {work.stage} did not end within {seconds:g} seconds."
        except Stopped:
            # The supervisor sees the flag and decides.
            error = ""
            break
        except WorkerFailed as failure:
            error = str(failure)
            break
    usage = {"usage": work.budget.spent, "timeouts": timeouts}
    return {**update, **usage, **({"error": error} if error else {})}  # type: ignore[typeddict-item]


def hit(state: State, *names: str) -> list[str]:
    """Return the exhausted budgets of a state with further ones."""
    return list(dict.fromkeys([*state.get("limits_hit", []), *names]))
