"""A searcher: one query in all sources."""

import time
from typing import Any

from langchain_core.runnables import RunnableConfig

from my_agent.research import sources
from my_agent.research.model import SearchOutcome, as_dict
from my_agent.research.nodes.agent import attempt
from my_agent.research.state import SearchTask, State
from my_agent.research.work import Work

# Each source has its own time; the search as a whole has a little more, and keeps what came.
_MARGIN = 1.0


async def searcher(state: SearchTask, config: RunnableConfig) -> State:
    """Search for one query. A source that fails does not fail the others."""
    work = Work.of(config, {}, "searching")
    task = state
    query, timeouts = task["task_query"], list[dict[str, Any]]()

    async def once() -> State:
        outcome = SearchOutcome()
        await work.began(query)
        seconds = min(work.settings.research_search_seconds + _MARGIN, task["seconds"])
        for _ in range(min(1 + work.settings.research_fetch_retries, task["fetches"])):
            await work.check()
            work.budget.spend("searching", fetches=1)
            began = time.monotonic()
            try:
                outcome = await work.guarded(lambda: sources.search(query, work.settings), seconds)
            except TimeoutError:
                timeouts.append({"stage": "searching", "what": query, "seconds": seconds})
                continue
            if time.monotonic() - began >= work.settings.research_search_seconds:
                # The time limit of a single source has ended it.
                timeouts.append({"stage": "searching", "what": query, "seconds": seconds})
            if outcome.results or not outcome.failures:
                break
        await work.ended(query)
        said = {
            "results": len(outcome.results),
            "failures": [as_dict(each) for each in outcome.failures],
        }
        return {"searched": {query: said}, "found": [as_dict(each) for each in outcome.results]}

    return await attempt(work, work.settings.research_fetch_retries, once, timeouts)
