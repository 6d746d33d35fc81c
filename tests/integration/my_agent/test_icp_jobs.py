"""Enrichment: while the user waits, and in the background of a server that is killed meanwhile."""

import asyncio
import json
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select

from my_agent.enrichment.graph import graph
from my_agent.icp_finder.enrichment import background, jobs
from my_agent.icp_finder.model import Candidate, Company, DiscoveryKey, Icp, Score, Scored
from my_agent.icp_finder.records import store
from my_agent.icp_finder.records.diffs import basis, icp_hash
from my_agent.icp_finder.records.tables import jobs as table
from my_agent.tables import run
from tests.support import databases
from tests.support.policy import SECRET, Member, member
from tests.support.processes import ROOT, Running, environment, free_port, running, threadhold
from tests.support.products import using
from tests.support.served import PATIENCE
from tests.support.websites import Page, Websites, company_page, websites

pytestmark = pytest.mark.usefixtures("each_database")

RULE = "Default ICP"
TEXT = (
    "We are a team of 35 people who make widgets. Write to sales@widgets.example, +65 6123 4567. "
)
ICP: Icp = {"industries": [], "sizes": ["11-50"], "regions": [], "keywords": ["widgets"]}


@dataclass
class World:
    """A server that runs enrichments, and the websites that it reads.

    Attributes:
        folder: the folder of its files.
        web: the websites.
    """

    folder: Path
    web: Websites
    port: int = field(default_factory=free_port)
    _up: ExitStack = field(default_factory=ExitStack)
    server: Running | None = None

    def start(self) -> None:
        """Start the server on the existing database."""
        command = threadhold("serve", "--config", self.folder / "langgraph.json")
        command += ["--port", str(self.port), "--database-url", self.url]
        env = environment(
            JWT_SECRET=SECRET,
            ICP_PRIVATE_NETWORKS="127.0.0.1/32",
            ICP_WEB_SEARCH="false",
            ICP_SITE_SECONDS="60",
            SHUTDOWN_GRACE_SECONDS="0.5",
            RUN_NOW_LIMIT="2",
            OPENAI_API_KEY="",
            OPENAI_BASE_URL="",
        )
        self.server = self._up.enter_context(running(command, self.port, self.folder, env))

    def kill(self) -> None:
        """Kill the server with SIGKILL."""
        assert self.server is not None
        self.server.process.send_signal(signal.SIGKILL)
        self.server.process.wait(PATIENCE)

    def stop(self) -> None:
        self._up.close()

    @property
    def url(self) -> str:
        return databases.url(self.folder / "data.db")


@pytest.fixture(scope="module")
def world(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("jobs")
    graphs = {
        "enrichment": f"{ROOT}/my_agent/enrichment/graph.py:graph",
        "asker": f"{ROOT}/tests/support/enrichment_asker.py:graph",
        "icp_finder": f"{ROOT}/my_agent/icp_finder/graph.py:graph",
    }
    config = {"graphs": graphs, "auth": {"path": "hooks.auth:auth"}}
    (folder / "langgraph.json").write_text(json.dumps(config))
    with websites() as web, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ICP_PRIVATE_NETWORKS", "127.0.0.1/32")
        patch.setenv("ICP_WEB_SEARCH", "false")
        patch.setenv("ICP_SITE_SECONDS", "60")
        made = World(folder, web)
        made.start()
        with using(made.url):
            yield made
            made.stop()


@pytest.fixture
async def ada(world: World) -> AsyncIterator[Member]:
    assert world.server is not None
    # A tenant of this test alone.
    async with member(world.server, "ada", f"tenant-{uuid4().hex[:8]}") as client:
        yield client


def tenant_of(client: Member) -> str:
    import jwt

    token = client.headers["authorization"].partition(" ")[2]
    return str(jwt.decode(token, SECRET, algorithms=["HS256"])["tenant_id"])


async def found(world: World, tenant: str, count: int, of: str = "h1", icp: Icp = ICP) -> list[str]:
    """Save candidates of a tenant, each with a website. Return their keys."""
    those = []
    for number in range(count):
        path = f"/{tenant}/{number}"
        world.web.pages[path] = company_page(f"Widgets {number}", TEXT * 3)
        key = f"domain:{number}.example"
        website = f"{world.web.url}{path}"
        who = Candidate(key=key, name=f"C{number:03}", source="web", website=website)
        those.append(Scored(who, Score(0.5, {"industry": 0.5})))
    asked: Any = {"website": "acme.com", "customers": [], "icp": icp}
    await store.save_discovery(tenant, RULE, of, asked, those)
    site: Any = {"website": "https://acme.com", "domain": "acme.com", "name": "A", "about": ""}
    company: Company = {"site": site, "customers": []}
    await store.save_profile(tenant, company, confirmed=True)
    return [each.candidate.key for each in those]


def reads(world: World, tenant: str) -> list[int]:
    """Return the candidates whose websites were requested, in order."""
    asked = [path for path in world.web.asked if path.startswith(f"/{tenant}/")]
    return [int(path.rpartition("/")[2]) for path in asked]


async def row(tenant: str, of: str = "h1") -> Any:
    mine = (table.c.tenant_id == tenant, table.c.icp_hash == of)
    return await run(lambda c: c.execute(select(table).where(*mine)).one(), tenant)


async def until(tenant: str, status: str) -> Any:
    """Wait until the job has this status. Return its row."""
    async with asyncio.timeout(PATIENCE):
        while (job := await row(tenant)).status != status:
            await asyncio.sleep(0.02)
    return job


async def reading(world: World, tenant: str, count: int) -> None:
    """Wait until this many websites were requested."""
    async with asyncio.timeout(PATIENCE):
        while len(reads(world, tenant)) < count:
            await asyncio.sleep(0.02)


async def ask(client: Member, keys: list[str], of: str = "h1") -> Any:
    """Request the enrichment through the API. Return the job."""
    body = {"rule_name": RULE, "icp_hash": of, "keys": keys}
    answer = await client.post("/runs/wait", {"assistant_id": "asker", "input": body})
    return answer["job"]


async def runs(client: Member) -> list[str]:
    """Return the status of each enrichment run of a user."""
    threads = await client.found(metadata={"graph_id": "enrichment"})
    return [
        each["status"]
        for thread in threads
        for each in await client.get(f"/threads/{thread['thread_id']}/runs")
    ]


# --- while the user waits ---------------------------------------------------


async def test_enrichment_stores_details_and_new_score(world: World) -> None:
    tenant = uuid4().hex
    [key] = await found(world, tenant, 1)
    [done] = await jobs.enrich_now(tenant, RULE, "h1", [key])
    assert done.details["status"] == "read"
    assert done.details["emails"] == ["sales@widgets.example"]
    assert done.details["phones"] == ["+65 6123 4567"]
    assert done.details["size"] == "11-50"
    [best] = await store.best_candidates(tenant, RULE, "h1", limit=1)
    assert best.candidate == done
    # The size and the keywords of the website match.
    parts = best.score.parts
    assert parts == {
        "keywords": pytest.approx(0.2 / 0.35, abs=1e-3),
        "size": pytest.approx(0.1 / 0.35, abs=1e-3),
        "website": pytest.approx(0.05 / 0.35, abs=1e-3),
    }
    assert {each["part"] for each in best.score.evidence} == parts.keys()


async def test_enriching_again_reads_nothing(world: World) -> None:
    tenant = uuid4().hex
    keys = await found(world, tenant, 7)
    first = await jobs.enrich_now(tenant, RULE, "h1", [keys[3]])
    every = await jobs.enrich_now(tenant, RULE, "h1", [*keys, keys[0], "domain:gone.com"])
    assert [each.key for each in every] == keys
    assert every[3] == first[0]
    assert sorted(reads(world, tenant)) == list(range(7))


async def test_candidate_found_again_is_not_enriched_again(world: World) -> None:
    """Not by the same search, and not by that of another profile."""
    tenant = uuid4().hex
    [key] = await found(world, tenant, 1)
    [first] = await jobs.enrich_now(tenant, RULE, "h1", [key])
    await found(world, tenant, 1)
    other: Any = {"website": "acme.com", "customers": [], "icp": ICP}
    again = Scored(first, Score(0.5, {"industry": 0.5}))
    await store.save_discovery(tenant, RULE, "h2", other, [again])
    for search in ("h1", "h2"):
        [known] = await jobs.enrich_now(tenant, RULE, search, [key])
        assert known.details == first.details
    assert reads(world, tenant) == [0]


async def test_unreadable_website_is_recorded(world: World) -> None:
    tenant = uuid4().hex
    keys = await found(world, tenant, 3)
    world.web.pages[f"/{tenant}/1"] = Page(b"gone", 410)
    plain = Candidate(key="uen:1", name="NO SITE PTE. LTD.", source="register")
    await store.add_candidates(tenant, RULE, "h1", [Scored(plain, Score(0.1, {}))])
    done = await jobs.enrich_now(tenant, RULE, "h1", [*keys, "uen:1"])
    assert [each.details["status"] for each in done] == ["read", "unreadable", "read", "no_website"]
    assert done[1].details["note"] == "127.0.0.1 answered with an error (410)."
    # What could not be read is not enriched: the next request tries it again, and only that.
    world.web.pages[f"/{tenant}/1"] = company_page("Back", TEXT)
    before = len(reads(world, tenant))
    again = await jobs.enrich_now(tenant, RULE, "h1", keys)
    assert [each.details["status"] for each in again] == ["read"] * 3
    assert reads(world, tenant)[before:] == [1]


async def test_failed_enrichment_keeps_what_was_known(world: World) -> None:
    tenant = uuid4().hex
    [key] = await found(world, tenant, 1)
    known = {"status": "read", "size": "11-50"}
    which = DiscoveryKey(tenant, RULE, "h1")
    # As an earlier commit stored what a search had found again.
    await run(
        lambda c: store.save_details(c, which, key, known, enriched=False), tenant, write=True
    )
    world.web.pages[f"/{tenant}/0"] = Page(b"gone", 410)
    [again] = await jobs.enrich_now(tenant, RULE, "h1", [key])
    assert (again.details["status"], again.details["size"]) == ("unreadable", "11-50")


async def test_feedback_in_the_score_survives_enrichment(world: World) -> None:
    tenant = uuid4().hex
    [key] = await found(world, tenant, 1)
    [known] = await store.best_candidates(tenant, RULE, "h1", limit=1)
    disliked = replace(known, score=Score(0.2, {"industry": 0.5, "feedback": -0.3}))
    await store.add_candidates(tenant, RULE, "h1", [disliked])
    await jobs.enrich_now(tenant, RULE, "h1", [key])
    [best] = await store.best_candidates(tenant, RULE, "h1", limit=1)
    assert best.score.parts["feedback"] == pytest.approx(-0.3)
    assert best.score.total == pytest.approx(0.7, abs=1e-3)


# --- in the background ------------------------------------------------------


async def test_job_enriches_all_candidates_and_ends_done(world: World, ada: Member) -> None:
    tenant = tenant_of(ada)
    keys = await found(world, tenant, 5)
    job = await ask(ada, keys)
    assert (job["status"], job["created"], job["total"]) == ("queued", True, 5)
    done = await until(tenant, "done")
    assert (done.done, done.job_id) == (5, job["id"])
    assert reads(world, tenant) == [0, 1, 2, 3, 4]
    assert await ada.ended(done.thread_id, done.run_id) == "success"
    state = await ada.get(f"/threads/{done.thread_id}/state")
    assert (state["values"]["done"], state["values"]["total"]) == (5, 5)
    seen = await jobs.find(tenant, RULE, "h1")
    assert seen is not None
    assert (seen.id, seen.status, seen.done, seen.created) == (job["id"], "done", 5, False)
    # A repeated request returns the finished job.
    again = await ask(ada, [*keys, "domain:unknown.com"])
    assert (again["status"], again["created"], again["total"]) == ("done", False, 5)
    assert len(await runs(ada)) == 1


async def test_fifty_concurrent_requests_create_one_job(world: World, ada: Member) -> None:
    tenant = tenant_of(ada)
    keys = await found(world, tenant, 3)
    asked = await asyncio.gather(*(ask(ada, keys) for _ in range(50)))
    assert sum(job["created"] for job in asked) == 1
    assert len({job["id"] for job in asked}) == 1
    done = await until(tenant, "done")
    assert await ada.ended(done.thread_id, done.run_id) == "success"
    assert await runs(ada) == ["success"]
    assert reads(world, tenant) == [0, 1, 2]


async def test_other_icp_gets_its_own_job(world: World, ada: Member) -> None:
    tenant = tenant_of(ada)
    keys = await found(world, tenant, 1, "h1")
    await found(world, tenant, 1, "h2")
    first, second = await ask(ada, keys, "h1"), await ask(ada, keys, "h2")
    assert first["id"] != second["id"]
    assert second["created"]


async def test_new_candidates_are_added_to_the_job(world: World, ada: Member) -> None:
    tenant = tenant_of(ada)
    keys = await found(world, tenant, 4)
    world.web.gate.clear()
    try:
        first = await ask(ada, keys[:2])
        await reading(world, tenant, 1)
        second = await ask(ada, keys[1:3])
    finally:
        world.web.gate.set()
    assert (second["id"], second["created"], second["total"]) == (first["id"], False, 3)
    assert (await until(tenant, "done")).done == 3
    # A finished job restarts only if a candidate is not enriched.
    assert not (await ask(ada, keys[:3]))["created"]
    third = await ask(ada, keys)
    assert (third["id"], third["created"], third["total"]) == (first["id"], True, 4)
    assert (await until(tenant, "done")).done == 4
    assert reads(world, tenant) == [0, 1, 2, 3]


async def test_cancelled_job_continues_when_requested_again(world: World, ada: Member) -> None:
    tenant = tenant_of(ada)
    keys = await found(world, tenant, 4)
    world.web.gate.clear()
    try:
        first = await ask(ada, keys)
        await reading(world, tenant, 1)
        await until(tenant, "running")
        # The user finds the job's thread by its id.
        [thread] = await ada.found(metadata={"job_id": first["id"]})
        [work] = await ada.get(f"/threads/{thread['thread_id']}/runs")
        cancel = f"/threads/{thread['thread_id']}/runs/{work['run_id']}/cancel?wait=true"
        assert (await ada.http.post(cancel)).is_success
        job = await until(tenant, "cancelled")
    finally:
        world.web.gate.set()
    assert (job.done, await ada.status(job.thread_id, job.run_id)) == (0, "interrupted")
    again = await ask(ada, keys)
    assert (again["id"], again["created"]) == (first["id"], True)
    done = await until(tenant, "done")
    assert done.done == 4
    assert done.thread_id != job.thread_id


async def test_progress_counts_a_failure_before_the_next_step_has(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancel may come between them."""

    async def start(job_id: str, thread_id: str) -> str:
        return "run"

    monkeypatch.setattr(background, "start", start)
    tenant = uuid4().hex
    keys = await found(world, tenant, 2)
    del world.web.pages[f"/{tenant}/0"]
    user = {"identity": "ada", "tenant_id": tenant}
    config: Any = {"configurable": {"langgraph_auth_user": user}}
    job = await jobs.enqueue(config, rule_name=RULE, icp_hash="h1", keys=keys)
    step = await jobs.next_step(tenant, job.id, (await row(tenant)).thread_id, "run")
    await jobs.enrich_step(step)
    known = await jobs.find(tenant, RULE, "h1")
    assert known is not None
    assert (known.done, len(known.failures)) == (1, 1)


async def test_job_without_run_is_restarted(world: World, ada: Member) -> None:
    """The run may be missing because it was cancelled before it started, or its thread was deleted."""
    tenant = tenant_of(ada)
    keys = await found(world, tenant, 2)
    world.web.gate.clear()
    try:
        await ask(ada, keys)
        await reading(world, tenant, 1)
        job = await until(tenant, "running")
        assert not (await ask(ada, keys))["created"]
        assert (await ada.http.delete(f"/threads/{job.thread_id}")).is_success
    finally:
        world.web.gate.set()
    lost = {"status": "running", "updated_at": job.updated_at}
    await run(
        lambda c: c.execute(table.update().where(table.c.job_id == job.job_id).values(lost)),
        tenant,
        write=True,
    )
    again = await asyncio.gather(*(ask(ada, keys) for _ in range(5)))
    assert sum(each["created"] for each in again) == 1
    assert (await until(tenant, "done")).done == 2


async def test_job_is_shared_within_its_tenant_only(world: World, ada: Member) -> None:
    tenant = tenant_of(ada)
    keys = await found(world, tenant, 2)
    first = await ask(ada, keys)
    assert world.server is not None
    async with (
        member(world.server, "bob", tenant) as bob,
        member(world.server, "ada", f"{tenant}-2") as eve,
    ):
        shared = await ask(bob, keys)
        assert (shared["id"], shared["created"]) == (first["id"], False)
        await found(world, f"{tenant}-2", 1)
        own = await ask(eve, keys)
        assert own["created"]
        await until(tenant, "done")
        # The id of a job gives no access to other tenants or threads.
        body = {"assistant_id": "enrichment", "input": {"job_id": first["id"]}}
        for client in (bob, eve):
            answer = await client.http.post("/runs/wait", json=body)
            assert "The job does not exist" in answer.text
    assert (await row(tenant)).status == "done"


async def test_job_continues_after_its_process_is_killed(world: World, ada: Member) -> None:
    tenant = tenant_of(ada)
    keys = await found(world, tenant, 6)
    seen: list[int] = []

    def stuck() -> bytes:
        seen.append(1)
        if len(seen) == 1:
            world.web.gate.clear()
            world.web.gate.wait(PATIENCE)
        body = company_page("Widgets 3", TEXT).body
        assert isinstance(body, bytes)
        return body

    world.web.pages[f"/{tenant}/3"] = Page(stuck)
    first = await ask(ada, keys)
    await reading(world, tenant, 4)
    world.kill()
    world.web.gate.set()
    assert (await row(tenant)).done == 3
    world.start()
    done = await until(tenant, "done")
    assert (done.job_id, done.done) == (first["id"], 6)
    assert await ada.ended(done.thread_id, done.run_id) == "success"
    # Only the candidate that was being read is read again.
    assert reads(world, tenant) == [0, 1, 2, 3, 3, 4, 5]
    assert len(await runs(ada)) == 1


# --- runs that fail to start or end early -----------------------------------


async def enqueue(tenant: str, keys: list[str], user: str = "ada") -> Any:
    """Request the enrichment without a server."""
    known = {"identity": user, "tenant_id": tenant}
    config: Any = {"configurable": {"langgraph_auth_user": known}}
    return await jobs.enqueue(config, rule_name=RULE, icp_hash="h1", keys=keys)


def starting(patch: pytest.MonkeyPatch, outcome: str | Exception) -> list[str]:
    """Replace the start of runs by this result. Return the threads of the started runs."""
    threads: list[str] = []

    async def start(_: str, thread_id: str) -> str:
        threads.append(thread_id)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    patch.setattr(background, "start", start)
    return threads


async def aged(tenant: str, **by: float) -> None:
    """Move the last update of the job into the past."""
    when = {"updated_at": store.now() - timedelta(**by)}
    change = table.update().where(table.c.tenant_id == tenant).values(when)
    await run(lambda c: c.execute(change), tenant, write=True)


async def test_job_continues_after_shutdown(world: World, ada: Member) -> None:
    tenant = tenant_of(ada)
    keys = await found(world, tenant, 4)
    world.web.gate.clear()
    first = await ask(ada, keys)
    await reading(world, tenant, 1)
    # In a thread, because the websites run on this event loop and must close their connections.
    await asyncio.to_thread(world.stop)
    world.web.gate.set()
    await asyncio.to_thread(world.start)
    done = await until(tenant, "done")
    assert (done.job_id, done.done) == (first["id"], 4)
    assert len(await runs(ada)) == 1


async def test_failed_start_is_recorded_and_can_be_retried(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = uuid4().hex
    keys = await found(world, tenant, 1)
    starting(monkeypatch, jobs.JobError("Not here."))
    with pytest.raises(jobs.JobError, match="Not here"):
        await enqueue(tenant, keys)
    failed = await row(tenant)
    assert (failed.status, failed.reason) == ("failed", "Not here.")
    starting(monkeypatch, "run-1")
    job = await enqueue(tenant, keys)
    assert (job.id, job.created) == (failed.job_id, True)


async def test_enqueue_without_server_raises(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant = uuid4().hex
    keys = await found(world, tenant, 1)
    monkeypatch.delitem(sys.modules, "langgraph_api.server", raising=False)
    with pytest.raises(jobs.JobError, match="no server"):
        await enqueue(tenant, keys)


async def test_job_without_run_id_is_restarted_after_timeout(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = uuid4().hex
    keys = await found(world, tenant, 1)
    starting(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await enqueue(tenant, keys)
    starting(monkeypatch, "run-1")
    # An immediate second request cannot know that the process died.
    assert not (await enqueue(tenant, keys)).created
    await aged(tenant, seconds=jobs.START_TIMEOUT.total_seconds() + 1)
    assert (await enqueue(tenant, keys)).created
    assert not (await enqueue(tenant, keys)).created


async def test_silent_run_of_colleague_is_replaced_after_timeout(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = uuid4().hex
    keys = await found(world, tenant, 1)
    threads = starting(monkeypatch, "run-1")
    assert (await enqueue(tenant, keys, "ada")).created
    assert not (await enqueue(tenant, keys, "bob")).created
    await aged(tenant, seconds=jobs.SILENCE_TIMEOUT.total_seconds() + 1)
    assert (await enqueue(tenant, keys, "bob")).created
    job = await row(tenant)
    assert (job.user_id, job.thread_id) == ("bob", threads[1])
    # The run that was considered dead must not continue.
    with pytest.raises(jobs.JobError, match="another thread has restarted it"):
        await jobs.next_step(tenant, job.job_id, threads[0], None)
    with pytest.raises(asyncio.CancelledError):
        async with jobs.recording_the_end(tenant, job.job_id, threads[0]):
            raise asyncio.CancelledError
    assert (await row(tenant)).status == "queued"


async def test_enrichment_graph_runs_without_server(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = uuid4().hex
    starting(monkeypatch, "run-1")
    job = await enqueue(tenant, await found(world, tenant, 3))
    known = {"identity": "ada", "tenant_id": tenant}
    thread = {"thread_id": (await row(tenant)).thread_id, "langgraph_auth_user": known}
    states = graph.astream({"job_id": job.id}, {"configurable": thread}, stream_mode="values")
    progress = [(state.get("done"), state.get("total")) async for state in states]
    assert progress == [(None, None), (1, 3), (2, 3), (3, 3), (3, 3)]
    assert (await row(tenant)).status == "done"


async def test_job_reports_what_it_could_not_enrich(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = uuid4().hex
    starting(monkeypatch, "run-1")
    keys = await found(world, tenant, 3)
    world.web.pages[f"/{tenant}/1"] = Page(b"gone", 410)
    job = await enqueue(tenant, keys)
    known = {"identity": "ada", "tenant_id": tenant}
    thread = {"thread_id": (await row(tenant)).thread_id, "langgraph_auth_user": known}
    modes: Any = ["custom", "values"]
    sent: list[Any] = [
        part
        async for part in graph.astream(
            {"job_id": job.id}, {"configurable": thread}, stream_mode=modes
        )
    ]
    events = [part for mode, part in sent if mode == "custom"]
    assert [(each["name"], each["status"], each["done"]) for each in events] == [
        ("C000", "read", 1),
        ("C001", "unreadable", 2),
        ("C002", "read", 3),
    ]
    assert events[0]["found"] == ["about", "emails", "phones", "size"]
    why = "127.0.0.1 answered with an error (410)."
    failure = {"key": keys[1], "name": "C001", "why": why}
    assert sent[-1][1]["failures"] == [failure]
    seen = await jobs.find(tenant, RULE, "h1")
    assert seen is not None
    assert (seen.status, seen.done, [asdict(each) for each in seen.failures]) == (
        "done",
        3,
        [failure],
    )
    # Requested again, it tries only that one.
    world.web.pages[f"/{tenant}/1"] = company_page("Back", TEXT)
    assert (await enqueue(tenant, keys)).created
    thread["thread_id"] = (await row(tenant)).thread_id
    await graph.ainvoke({"job_id": job.id}, {"configurable": thread})
    assert reads(world, tenant) == [0, 1, 2, 1]
    seen = await jobs.find(tenant, RULE, "h1")
    assert seen is not None
    assert seen.failures == []


async def test_failure_is_recorded_with_its_reason(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = uuid4().hex
    starting(monkeypatch, "run-1")
    await enqueue(tenant, await found(world, tenant, 1))
    job = await row(tenant)
    with pytest.raises(ValueError, match="broken"):
        async with jobs.recording_the_end(tenant, job.job_id, job.thread_id):
            raise ValueError("it is broken")
    failed = await row(tenant)
    assert (failed.status, failed.reason) == ("failed", "it is broken")
    # A retried run continues the job.
    step = await jobs.next_step(tenant, job.job_id, job.thread_id, "run-2")
    assert (step.done, step.total) == (0, 1)
    going_on = await row(tenant)
    assert (going_on.status, going_on.reason, going_on.run_id) == ("running", None, "run-2")


# --- stopped by the user ------------------------------------------------------


async def test_stop_ends_the_job_and_the_next_enrichment_goes_on(world: World, ada: Member) -> None:
    tenant, released = tenant_of(ada), threading.Event()
    asked: Icp = {**ICP, "industries": ["widgets"]}
    site: Any = {"website": "https://acme.com", "domain": "acme.com", "name": "A", "about": ""}
    of = icp_hash(basis({"site": site, "customers": []}, asked))
    await found(world, tenant, 6, of, icp=asked)
    await store.save_rule(tenant, "acme.com", RULE, asked, confirmed=True)
    held = world.web.pages[f"/{tenant}/3"].body

    def page() -> bytes:
        released.wait(PATIENCE)
        return held if isinstance(held, bytes) else held()

    world.web.pages[f"/{tenant}/3"].body = page
    thread = (await ada.post("/threads", {}))["thread_id"]

    async def say(text: str) -> str:
        message = {"messages": [{"role": "user", "content": text}]}
        body = {"assistant_id": "icp_finder", "input": message}
        values = await ada.post(f"/threads/{thread}/runs/wait", body)
        return str(values["messages"][-1]["content"])

    try:
        assert "Shall I enrich the best 2 now, and the next 4 in the background?" in await say("hi")
        assert "4 more are being enriched in the background" in await say("enrich")
        await reading(world, tenant, 4)
        job = await row(tenant, of)
        assert "2 of 6" not in await say("progress")
        assert "I have stopped the enrichment" in await say("stop")
        assert await ada.ended(job.thread_id, job.run_id) == "interrupted"
        stopped = await row(tenant, of)
        assert (stopped.status, stopped.job_id) == ("cancelled", job.job_id)
        assert "No enrichment is running" in await say("stop")
        assert reads(world, tenant)[-1] == 3
    finally:
        released.set()
    assert "3 more are being enriched" in await say("enrich")
    async with asyncio.timeout(PATIENCE):
        while (again := await row(tenant, of)).status != "done":
            await asyncio.sleep(0.02)
    assert (again.job_id, again.done) == (job.job_id, 4)
    # What was enriched before the stop is not read again; what was under way is.
    assert sorted(reads(world, tenant)) == [0, 1, 2, 3, 3, 4, 5]
