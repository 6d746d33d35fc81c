"""Research in each of its stages: killed, cancelled, paused and finished.

A model holds planning, analyzing and reporting; a page or the feed holds the other stages.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from tests.support.openai_replies import Answer, Reply
from tests.support.openai_server import OpenAIServer, Received
from tests.support.policy import Member, member
from tests.support.research import (
    ARTICLES,
    World,
    claims,
    control,
    fetched,
    progress,
    publish,
    report,
    started,
    until,
)
from tests.support.research_model import PRICE, analyzed, chosen, planned, teach, worker
from tests.support.tutor import of_endpoint
from tests.support.websites import Page, websites

pytestmark = pytest.mark.usefixtures("each_database")

STAGES = ("planning", "searching", "extracting", "analyzing", "reporting")
WORKERS = {"planning": "planner", "analyzing": "analyzer", "reporting": "reporter"}
HELD_PAGE = "market"


@pytest.fixture(scope="module")
def world(
    each_database: str, endpoint: OpenAIServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    with websites() as web:
        env = {
            "RESEARCH_FEEDS": publish(web, "news", ARTICLES),
            "RESEARCH_PARALLEL": "1",
            # Cancelled projects do not wait for these.
            "RESEARCH_SEARCH_SECONDS": "120",
            "RESEARCH_CRAWL_SECONDS": "120",
            **of_endpoint(endpoint),
        }
        made = World(tmp_path_factory.mktemp("research"), web, env)
        made.start()
        yield made
        made.stop()


@dataclass
class Hold:
    """Holds a stage: its operation begins and does not end before `release`."""

    world: World
    endpoint: OpenAIServer
    stage: str
    reached: threading.Event = field(default_factory=threading.Event)
    _open: threading.Event = field(default_factory=threading.Event)
    _kept: dict[str, Page] = field(default_factory=dict)

    def __post_init__(self) -> None:
        path = {"searching": "/news/feed", "extracting": f"/news/{HELD_PAGE}"}.get(self.stage)
        if path is not None:
            page = self.world.web.pages[path]
            self._kept[path] = page
            self.world.web.pages[path] = Page(lambda: self._wait(page), 200, page.headers)
            teach(self.endpoint)
            return
        gate = self.endpoint.gate()
        replies: dict[str, Answer] = {
            "planner": planned(),
            "reporter": chosen((1, PRICE)),
        }

        def held(request: Received) -> Reply:
            name = worker(request)
            made = analyzed()(request) if name == "analyzer" else replies[name]
            if name == WORKERS[self.stage] and not self._open.is_set():
                self.reached.set()
                return Answer(tokens=made.tokens, gate=gate)
            return made

        self.endpoint.fallback = held
        self._gate = gate

    def _wait(self, page: Page) -> bytes:
        self.reached.set()
        self._open.wait(60)
        assert isinstance(page.body, bytes)
        return page.body

    async def until_reached(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, 60)

    def release(self) -> None:
        self._open.set()
        self.world.web.pages.update(self._kept)
        if not self._kept:
            self._gate.open(100)


@pytest.fixture
async def ada(world: World, endpoint: OpenAIServer) -> AsyncIterator[Member]:
    assert world.server is not None
    endpoint.reset()
    world.web.asked.clear()
    async with member(world.server, "ada", f"tenant-{uuid4().hex[:8]}") as client:
        yield client


@pytest.mark.parametrize("stage", STAGES)
async def test_cancelled_in_a_stage(
    ada: Member, world: World, endpoint: OpenAIServer, stage: str
) -> None:
    hold = Hold(world, endpoint, stage)
    project = await started(ada)
    await hold.until_reached()
    before = time.monotonic()
    await control(ada, project, "cancel")
    asked, calls = len(world.web.asked), len(endpoint.requests)
    done = await until(ada, project, "cancelled")
    assert time.monotonic() - before < 40
    hold.release()
    await asyncio.sleep(0.3)
    assert (len(world.web.asked), len(endpoint.requests)) == (asked, calls)
    assert done["stage"] == stage
    found = await report(ada, project)
    assert found["status"] == "cancelled"
    assert (PRICE in claims(found)) == (
        stage in ("analyzing", "reporting")
    ) or stage == "extracting"


@pytest.mark.parametrize("stage", STAGES)
async def test_paused_and_resumed_in_a_stage(
    ada: Member, world: World, endpoint: OpenAIServer, stage: str
) -> None:
    hold = Hold(world, endpoint, stage)
    project = await started(ada)
    await hold.until_reached()
    await control(ada, project, "pause")
    hold.release()
    await until(ada, project, "paused")
    asked, calls = len(world.web.asked), len(endpoint.requests)
    await asyncio.sleep(0.3)
    assert (len(world.web.asked), len(endpoint.requests)) == (asked, calls)
    teach(endpoint)
    await control(ada, project, "resume")
    await _until_complete(ada, project)
    assert claims(await report(ada, project)) == [PRICE]
    assert Counter(fetched(world.web)) == Counter(list(ARTICLES))


@pytest.mark.parametrize("stage", STAGES)
async def test_finished_in_a_stage(
    ada: Member, world: World, endpoint: OpenAIServer, stage: str
) -> None:
    hold = Hold(world, endpoint, stage)
    project = await started(ada)
    await hold.until_reached()
    await control(ada, project, "finish")
    asked = len(world.web.asked)
    if stage in ("analyzing", "reporting"):
        hold.release()
    done = await until(ada, project, "completed")
    hold.release()
    assert len(world.web.asked) == asked
    found = await report(ada, project)
    assert found["status"] == "completed"
    assert found["found_nothing"] == (stage in ("planning", "searching"))
    assert done["percentage"] == 100


# On Postgres a run waits for the end of the dead server's lease, 15 seconds.
@pytest.mark.only("sqlite")
@pytest.mark.parametrize("stage", STAGES)
async def test_killed_in_a_stage(
    ada: Member, world: World, endpoint: OpenAIServer, stage: str
) -> None:
    await _killed(ada, world, endpoint, stage)


# SQLite plays every stage above.
@pytest.mark.only("postgresql")
async def test_killed_while_it_reads_a_page(
    ada: Member, world: World, endpoint: OpenAIServer
) -> None:
    await _killed(ada, world, endpoint, "extracting")


async def _killed(ada: Member, world: World, endpoint: OpenAIServer, stage: str) -> None:
    hold = Hold(world, endpoint, stage)
    project = await started(ada)
    await hold.until_reached()
    before = Counter(fetched(world.web))
    world.kill()
    hold.release()
    teach(endpoint)
    world.stop()
    world.start()
    await _until_complete(ada, project)
    assert claims(await report(ada, project)) == [PRICE]
    again = Counter(fetched(world.web)) - before
    # Only the page that was being read is read again.
    repeated = {HELD_PAGE: 1} if stage == "extracting" else {}
    assert Counter(fetched(world.web)) == Counter(list(ARTICLES)) + Counter(repeated)
    assert set(again) == set(ARTICLES) - set(before) | set(repeated)


async def _until_complete(client: Member, project: str) -> None:
    async with asyncio.timeout(90):
        while (found := await progress(client, project))["status"] != "completed":
            assert found["status"] != "failed", found
            await asyncio.sleep(0.05)
