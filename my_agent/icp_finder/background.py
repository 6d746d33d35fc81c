"""The background: starting the graph `enrichment` on the server that this runs in, as its user."""

import sys
from typing import TYPE_CHECKING, Literal

import httpx

if TYPE_CHECKING:
    from langgraph_sdk.client import LangGraphClient

GRAPH = "enrichment"
# One step a candidate, and candidates may be added while it works.
MOST_STEPS = 10_000
UNDER_WAY = ("pending", "running")


class JobError(RuntimeError):
    """A job cannot be run; the message is a sentence for the user.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """


async def start(job_id: str, thread_id: str) -> str:
    """Start a job's run on a thread of its own; its id.

    Args:
        job_id: what the run works on.
        thread_id: of the thread, which is made.

    Raises:
        JobError: there is no server, or it does not run this graph.
    """
    try:
        run = await _client().runs.create(
            thread_id,
            GRAPH,
            input={"job_id": job_id},
            # By which its user finds the thread, to follow it or to cancel.
            metadata={"job_id": job_id},
            config={"recursion_limit": MOST_STEPS},
            if_not_exists="create",
            # Nothing that has been done is done again after a crash.
            durability="sync",
        )
    except httpx.HTTPError as error:
        raise JobError("This server cannot run enrichments in the background.") from error
    return run["run_id"]


async def state(thread_id: str, run_id: str) -> Literal["under way", "over", "unknown"]:
    """Whether a run is still to be done; unknown where nobody says so.

    Args:
        thread_id: of its thread.
        run_id: the run.
    """
    try:
        run = await _client().runs.get(thread_id, run_id)
    except httpx.HTTPStatusError as error:
        return "over" if error.response.status_code == 404 else "unknown"
    except (httpx.HTTPError, JobError):
        return "unknown"
    return "under way" if run["status"] in UNDER_WAY else "over"


def _client() -> "LangGraphClient":
    # Without a URL the SDK calls the server in this process, and would start to load one.
    if "langgraph_api.server" not in sys.modules:
        raise JobError("There is no server that could run it in the background.")
    from langgraph_sdk import get_client

    return get_client()
