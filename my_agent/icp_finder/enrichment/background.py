"""Start the graph `enrichment` on the server of this process, on behalf of the run's user."""

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from my_agent.threads.thread import is_served

GRAPH = "enrichment"
# Recursion limit: each candidate takes one step, and candidates may be added during the run.
MOST_STEPS = 10_000
UNDER_WAY = ("pending", "running")


class JobError(RuntimeError):
    """A job cannot be run. The message is a sentence for the user.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """


async def start(job_id: str, thread_id: str) -> str:
    """Start the run of a job on a new thread with this id, and return the id of the run.

    Raises:
        JobError: this process has no server, or the server does not serve the graph `enrichment`.
    """
    try:
        run = await _client().runs.create(
            thread_id,
            GRAPH,
            input={"job_id": job_id},
            # The user can search threads by this, to follow or cancel the job.
            metadata={"job_id": job_id},
            config={"recursion_limit": MOST_STEPS},
            if_not_exists="create",
            # Each step is stored before the next one starts: after a crash, no finished step repeats.
            durability="sync",
        )
    except httpx.HTTPError as error:
        raise JobError("This server cannot run enrichments in the background.") from error
    return run["run_id"]


async def is_over(thread_id: str, run_id: str) -> bool:
    """Return whether a run has ended, or is gone; False if the server does not tell."""
    try:
        run = await _client().runs.get(thread_id, run_id)
    except httpx.HTTPStatusError as error:
        return error.response.status_code == 404
    except (httpx.HTTPError, JobError):
        return False
    return run["status"] not in UNDER_WAY


async def cancel(thread_id: str, run_id: str) -> bool:
    """Cancel a run, and return whether the server took the request."""
    try:
        await _client().runs.cancel(thread_id, run_id)
    except (httpx.HTTPError, JobError):
        # The run is over, belongs to another user, or there is no server.
        return False
    return True


def _client() -> LangGraphClient:
    # Without a URL the SDK calls the server in this process.
    if not is_served():
        raise JobError("This process has no server that could run enrichments in the background.")
    return get_client()
