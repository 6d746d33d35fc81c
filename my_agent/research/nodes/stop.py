"""Node `stop`: end a run as completed, paused, cancelled or failed, with the results so far."""

import asyncio
import logging
from typing import Literal

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from my_agent.research import assembling, extraction, files, pages, progress, projects
from my_agent.research.assembling import Findings
from my_agent.research.ledger import Ledger
from my_agent.research.model import Analysis, CrawledPage, as_dict, from_dict
from my_agent.research.nodes.reporter import written
from my_agent.research.projects import Status
from my_agent.research.snapshots import snapshot
from my_agent.research.state import State
from my_agent.research.work import Work

logger = logging.getLogger(__name__)


class ResearchFailed(RuntimeError):
    """A worker has used all its attempts. The message is the cause.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """


async def stop(state: State, config: RunnableConfig) -> Command[Literal["supervisor", "__end__"]]:
    """End the run. A cancelled project gets a report of what was read, without a model.

    Raises:
        ResearchFailed: a worker has used all its attempts.
    """
    work = Work.of(config, state)
    flag = await work.flag(fresh=True)
    status: Status = "completed"
    if flag == "cancel":
        status = "cancelled"
    elif state.get("error"):
        status = "failed"
    elif state.get("stage") != "completed":
        status = "paused"
    update: State = {"status": status}
    read = await pages.by_address(work.key)
    if status == "cancelled" and not state.get("report"):
        update = {**update, **await asyncio.to_thread(_partial, state, work, read)}
    whole: State = {**state, **update}
    row = await projects.find(work.key)
    if row is None:
        work.leave()
        raise ResearchFailed("The project was deleted.")
    percentage = progress.view(row)["percentage"]
    await files.save(work.settings, work.key, snapshot(whole, work.key, read, percentage))
    error = state.get("error") if status == "failed" else None
    last = progress.failed if status == "failed" else None
    if not await projects.end(work.key, status, error, last):
        return Command(goto="supervisor", update={"status": "running"})
    await work.publish(lambda found: found)
    work.leave()
    if status == "failed":
        logger.error("Research project %s has failed: %s", work.key.project_id, error)
        raise ResearchFailed(error)
    return Command(goto="__end__", update=update)


def _partial(state: State, work: Work, read: dict[str, CrawledPage]) -> State:
    """Return the report of what was read before the cancellation."""
    update: State = {}
    if state.get("findings"):
        found = [from_dict(assembling.Finding, each) for each in state["findings"]]
    else:
        about = extraction.relevant(state["asked"], list(read.values()))
        ledger = Ledger()
        made: Findings = assembling.by_statements(
            extraction.statements(state["asked"], about), read, ledger
        )
        found = list(made.findings)
        analysis: Analysis = assembling.analysis(found)
        update = {
            "ledger": [as_dict(each) for each in ledger.entries],
            "disagreements": [as_dict(each) for each in made.disagreements],
            "findings": [as_dict(each) for each in found],
            "analysis": as_dict(analysis),
        }
    whole: State = {**state, **update, "offline": [*(state.get("offline") or []), "reporter"]}
    report = written(whole, work, read, found, status="cancelled")
    return {**update, "report": as_dict(report), "offline": ["reporter"]}
