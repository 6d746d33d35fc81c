"""An extractor: one page, its text and what it is about."""

import asyncio
import time
from typing import Any

from langchain_core.runnables import RunnableConfig

from my_agent.research import compression, crawling, pages
from my_agent.research.model import CrawledPage, CrawlFailure
from my_agent.research.nodes.agent import attempt
from my_agent.research.pages import Reading
from my_agent.research.state import CrawlTask, State
from my_agent.research.supervisor import failure_row, page_row
from my_agent.research.work import Work

_MARGIN = 1.0


async def extractor(state: CrawlTask, config: RunnableConfig) -> State:
    """Read one page and store it at once. A page that was read before is not fetched again."""
    work = Work.of(config, {}, "extracting")
    task = state
    url, timeouts = task["task_url"], list[dict[str, Any]]()

    async def once() -> State:
        known = await pages.find(work.key, url)
        if known is None:
            await work.began(url)
            known = await _read(work, task, timeouts)
            await pages.save(work.key, known)
            await work.ended(url)
        return {"read": {url: _row(known)}}

    return await attempt(work, work.settings.research_fetch_retries, once, timeouts)


async def _read(work: Work, task: CrawlTask, timeouts: list[dict[str, Any]]) -> Reading:
    url, settings = task["task_url"], work.settings
    seconds = min(settings.research_crawl_seconds + _MARGIN, task["seconds"])
    allowed, bytes_left = min(1 + settings.research_fetch_retries, task["fetches"]), task["bytes"]
    failure = CrawlFailure(url, "The budget did not allow to read the page.")
    for number in range(1, allowed + 1):
        await work.check()
        work.budget.spend("extracting", fetches=1)
        began = time.monotonic()
        try:
            found = await work.guarded(
                lambda left=bytes_left: crawling.crawl(url, settings, bytes_left=left),  # type: ignore[misc]
                seconds,
            )
        except TimeoutError:
            timeouts.append({"stage": "extracting", "what": url, "seconds": seconds})
            failure = CrawlFailure(url, f"No answer within {seconds:g} seconds.", retryable=True)
            continue
        if isinstance(found, CrawledPage):
            work.budget.spend("extracting", bytes=found.bytes)
            short = await asyncio.to_thread(compression.compress_page, found)
            return Reading(url, short, None, number)
        failure = found
        if time.monotonic() - began >= settings.research_crawl_seconds:
            # The crawler's own time limit has ended it.
            timeouts.append({"stage": "extracting", "what": url, "seconds": seconds})
        if not found.retryable:
            break
    return Reading(url, None, failure, allowed)


def _row(reading: Reading) -> dict[str, Any]:
    if reading.page is not None:
        return page_row(reading.page)
    failure = reading.failure or CrawlFailure(reading.requested, "The page could not be read.")
    return failure_row(failure)
