"""The only node of the graph `enrichment`."""

from dataclasses import asdict
from typing import Literal

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from my_agent.enrichment.state import State
from my_agent.icp_finder.enrichment import jobs
from my_agent.user import caller


async def enrich_next(
    state: State, config: RunnableConfig
) -> Command[Literal["enrich_next", "__end__"]]:
    """Enrich the next candidate of the job, and repeat until none is left.

    The job's row, not the state, decides which candidate is next. So a resumed run repeats nothing,
    and candidates can be added while it works. The row also records if the run fails or is
    cancelled. Each candidate is a progress event in the stream (mode `custom`), and the state lists
    in the end what could not be enriched.

    Raises:
        JobError: the user's tenant has no such job, or the job belongs to another thread.
    """
    tenant_id = caller(config).tenant_id
    job_id, thread_id = state["job_id"], str(config["configurable"]["thread_id"])
    run_id = (config.get("metadata") or {}).get("run_id")
    async with jobs.recording_the_end(tenant_id, job_id, thread_id):
        step = await jobs.next_step(tenant_id, job_id, thread_id, run_id)
        await jobs.enrich_step(step)
    if step.candidate is None:
        failures = [asdict(each) for each in step.failures]
        report = {"done": step.done, "total": step.total, "failures": failures}
        return Command(goto="__end__", update=report)
    return Command(goto="enrich_next", update={"done": step.done + 1, "total": step.total})
