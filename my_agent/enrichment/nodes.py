"""The one step of the background: the next candidate."""

from typing import Literal

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from my_agent.enrichment.state import State
from my_agent.icp_finder import jobs
from my_agent.user import caller


async def enrich_next(
    state: State, config: RunnableConfig
) -> Command[Literal["enrich_next", "__end__"]]:
    """Enriches the job's next candidate, and comes back for the one after it.

    What is next is in the job's row and not in the state: so nothing is done twice after a crash,
    and candidates may be added. If the run is cancelled or fails in here the row says so.

    Raises:
        JobError: there is no such job of the user's tenant, or it is another thread's.
    """
    tenant_id = caller(config).tenant_id
    job_id, thread_id = state["job_id"], str(config["configurable"]["thread_id"])
    run_id = (config.get("metadata") or {}).get("run_id")
    async with jobs.noting_the_end(tenant_id, job_id, thread_id):
        step = await jobs.next_step(tenant_id, job_id, thread_id, run_id)
        await jobs.take(step)
    if step.candidate is None:
        return Command(goto="__end__", update={"done": step.done, "total": step.total})
    return Command(goto="enrich_next", update={"done": step.done + 1, "total": step.total})
