"""The graph `research` through its routes, offline, against a web on loopback."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from my_agent.research import projects
from tests.support import databases
from tests.support.policy import Member, member
from tests.support.research import (
    ARTICLES,
    QUESTION,
    World,
    at,
    claims,
    control,
    fetched,
    progress,
    publish,
    report,
    started,
    tenant_of,
    until,
)
from tests.support.served import PATIENCE
from tests.support.websites import Page, websites

# Cancelled projects do not wait for these.
PATIENT = {"RESEARCH_SEARCH_SECONDS": "120", "RESEARCH_CRAWL_SECONDS": "120"}

pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture(scope="module")
def world(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with websites() as web:
        feed = publish(web, "news", ARTICLES)
        made = World(
            tmp_path_factory.mktemp("research"),
            web,
            {
                "RESEARCH_FEEDS": feed,
                "RESEARCH_PARALLEL": "2",
                "RESEARCH_HEARTBEAT_SECONDS": "0.2",
                **PATIENT,
            },
        )
        made.start()
        yield made
        made.stop()


@pytest.fixture
async def ada(world: World) -> AsyncIterator[Member]:
    assert world.server is not None
    world.web.gate.set()
    world.web.asked.clear()
    async with member(world.server, "ada", f"tenant-{uuid4().hex[:8]}") as client:
        yield client


async def test_report_has_the_newest_facts_with_their_quotes(ada: Member, world: World) -> None:
    project = await started(ada)
    done = await until(ada, project, "completed")
    assert done["percentage"] == 100
    assert {each["status"] for each in done["stages"].values()} == {"completed"}
    found = await report(ada, project)
    said = claims(found)
    assert "Skarra costs 20 euros a month for each user." in said
    assert "The competitor Heron undercuts Skarra by 20 percent." in said
    assert "Skarra lacks a mobile app." in said
    assert not any("15 euros" in each or "eggs" in each for each in said)
    [old] = [each for each in found["disagreements"] if "15 euros" in str(each)]
    assert [variant[1] for variant in old["variants"]] == ["2025-05-01", "2023-04-01"]
    assert found["offline"]
    assert not found["found_nothing"]
    assert found["unsupported"] == []
    pages = {page["url"]: page for page in (await ada.get(f"/research/{project}/state"))["pages"]}
    for entry in found["ledger"]:
        page = pages[entry["url"]]
        assert page["sha256"] == entry["sha256"]
        assert page["text"][entry["start"] : entry["end"]] == entry["quote"]
    assert sorted(fetched(world.web)) == sorted(ARTICLES)


async def test_report_is_also_markdown_and_html(ada: Member) -> None:
    project = await started(ada)
    await until(ada, project, "completed")
    path = f"/research/{project}/report"
    markdown = await ada.http.get(path, headers={"accept": "text/markdown"})
    assert markdown.headers["content-type"].startswith("text/markdown")
    assert "20 euros" in markdown.text
    html = await ada.http.get(path, headers={"accept": "text/html,*/*"})
    assert html.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in html.headers["content-security-policy"]
    assert "20 euros" in html.text


async def test_client_forges_neither_report_nor_usage(ada: Member) -> None:
    project = await started(ada)
    await until(ada, project, "completed")
    path, found = f"/threads/{project}", await report(ada, project)
    before = (await ada.get(f"{path}/state"))["values"]
    forged = {
        "report": {**found, "summary": "Skarra is free."},
        "usage": {"searching": {"tokens": -1_000_000_000}},
    }
    for body in (
        {"command": {"update": forged}},
        {"command": {"update": [[key, each] for key, each in forged.items()]}},
        {"command": {"goto": {"node": "reporter", "input": forged}}},
    ):
        answer = await ada.http.post(f"{path}/runs", json={"assistant_id": "research", **body})
        assert answer.status_code in (403, 422), answer.text
    for values in ({"values": forged}, {"values": forged, "as_node": "reporter"}):
        assert (await ada.http.post(f"{path}/state", json=values)).status_code == 422
    asked = {"question": before["question"], **forged}
    await ada.post(f"{path}/runs/wait", {"assistant_id": "research", "input": asked})
    usage = (await ada.get(f"{path}/state"))["values"]["usage"]
    assert min(amount for spent in usage.values() for amount in spent.values()) >= 0
    assert await report(ada, project) == found


async def test_unknown_subject_is_reported_as_nothing_found(ada: Member) -> None:
    project = await started(ada, "What does Zorblax cost?")
    await until(ada, project, "completed")
    found = await report(ada, project)
    assert found["found_nothing"]
    assert (claims(found), found["ledger"]) == ([], [])


async def test_stream_of_the_run_continues_behind_its_last_event(ada: Member, world: World) -> None:
    project = await started(ada)
    [run] = await ada.get(f"/threads/{project}/runs")
    path = f"/threads/{project}/runs/{run['run_id']}/stream?stream_mode=custom"
    whole = [each for each in await ada.events("GET", path) if each.name == "custom"]
    assert json.loads(whole[-1].data)["status"] in ("running", "completed")
    seen = whole[1]
    rest = await ada.events("GET", path, headers={"last-event-id": str(seen.id)})
    assert [each for each in rest if each.name == "custom"] == whole[2:]


async def test_repeated_start_starts_one_project(ada: Member, world: World) -> None:
    body = {"question": QUESTION, "project_id": str(uuid4())}
    answers = await asyncio.gather(*(ada.http.post("/research", json=body) for _ in range(5)))
    assert {each.json()["project_id"] for each in answers} == {body["project_id"]}
    assert sorted(each.status_code for each in answers) == [200, 200, 200, 200, 201]
    await until(ada, body["project_id"], "completed")
    assert sorted(fetched(world.web)) == sorted(ARTICLES)
    other = await ada.http.post("/research", json={**body, "question": "What does Heron cost?"})
    assert (other.status_code, other.json()["error"]) == (409, "other_question")
    assert world.server is not None
    async with member(world.server, "bob", tenant_of(ada)) as bob:
        for question in (QUESTION, "What does Heron cost?"):
            hidden = await bob.http.post("/research", json={**body, "question": question})
            assert hidden.status_code == 404


async def test_project_whose_pages_all_failed_reads_them_after_resume(
    ada: Member, world: World
) -> None:
    whole = dict(world.web.pages)
    for name in ARTICLES:
        world.web.pages[f"/news/{name}"] = Page(b"down", 503)
    project = await started(ada)
    failed = await until(ada, project, "failed")
    assert "None of the 4 pages" in failed["error"]
    world.web.pages.update(whole)
    await control(ada, project, "resume")
    await until(ada, project, "completed")
    assert claims(await report(ada, project))


async def test_failed_search_is_repeated_after_resume(ada: Member, world: World) -> None:
    feed = world.web.pages.pop("/news/feed")
    project = await started(ada)
    failed = await until(ada, project, "failed")
    assert "No source answered" in failed["error"]
    world.web.pages["/news/feed"] = feed
    await control(ada, project, "resume")
    await until(ada, project, "completed")
    assert claims(await report(ada, project))


async def test_cancel_after_resume_counts(ada: Member, world: World) -> None:
    held = _hold(world, "/news/old-prices")
    project = await started(ada)
    await asyncio.to_thread(held.reached.wait, 60)
    for what in ("pause", "resume", "finish", "cancel"):
        await control(ada, project, what)
    held.release()
    await until(ada, project, "cancelled")


async def test_route_and_run_create_one_row_at_the_same_time(product_database: str) -> None:
    for number in range(20):
        key = projects.Key("t", f"p{number}")
        made = await asyncio.gather(*(projects.create(key, "q") for _ in range(4)))
        assert sorted(made) == [False, False, False, True]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"question": ""}, "question"),
        ({"question": "?!"}, "question"),
        ({"question": "a"}, "Name what"),
        ({"question": "x" * 2001}, "2000"),
        ({}, "question"),
        ({"question": "x", "limits": {"euros": 3}}, "euros"),
        ({"question": "x", "limits": {"tokens": -1}}, "tokens"),
        ({"question": "x", "project_id": "../../etc"}, "project_id"),
    ],
)
async def test_bad_start_is_refused_with_what_to_do(ada: Member, body: object, named: str) -> None:
    answer = await ada.http.post("/research", json=body)
    assert answer.status_code == 422
    assert named in answer.json()["detail"]


# --- budgets


async def test_exhausted_budget_gives_a_report_that_can_go_on(ada: Member, world: World) -> None:
    project = await started(ada, limits={"fetches": 7})
    done = await until(ada, project, "completed")
    assert done["limits_hit"] == ["fetches"]
    assert done["usage"]["fetches"] <= 7
    assert len(fetched(world.web)) == 1
    refused = await ada.http.post(f"/research/{project}/resume", json={})
    assert refused.status_code == 409
    assert "fetches (7)" in refused.json()["detail"]
    await control(ada, project, "resume", {"limits": {"fetches": 50}})
    done = await until(ada, project, "completed")
    assert done["limits_hit"] == []
    assert sorted(fetched(world.web)) == sorted(ARTICLES)
    assert "Skarra costs 20 euros a month for each user." in claims(await report(ada, project))
    refused = await ada.http.post(f"/research/{project}/resume", json={})
    assert refused.status_code == 409


# --- control


async def test_cancelled_project_starts_nothing_and_reports_what_it_has(
    ada: Member, world: World
) -> None:
    world.web.gate.clear()
    project = await started(ada)
    await at(ada, project, "searching")
    began = time.monotonic()
    answer = await control(ada, project, "cancel")
    assert answer["status"] in ("cancelling", "cancelled")
    await until(ada, project, "cancelled")
    # Far sooner than the searches and pages that it waits for.
    assert time.monotonic() - began < 40
    asked = list(world.web.asked)
    world.web.gate.set()
    await asyncio.sleep(0.5)
    assert world.web.asked == asked
    found = await report(ada, project)
    assert found["status"] == "cancelled"
    again = await control(ada, project, "cancel")
    assert again["status"] == "cancelled"


async def test_paused_project_goes_on_without_a_repeated_fetch(ada: Member, world: World) -> None:
    held = _hold(world, "/news/old-prices")
    project = await started(ada)
    await asyncio.to_thread(held.reached.wait, 60)
    assert (await control(ada, project, "pause"))["status"] == "pausing"
    held.release()
    await until(ada, project, "paused")
    before = fetched(world.web)
    assert len(before) == 2
    await asyncio.sleep(0.5)
    assert fetched(world.web) == before
    assert (await ada.http.post(f"/research/{project}/pause")).status_code == 202
    # The project must not be complete before the last of the requests.
    held = _hold(world, f"/news/{min(set(ARTICLES) - set(before))}")
    answers = await asyncio.gather(
        *(ada.http.post(f"/research/{project}/resume", json={}) for _ in range(3))
    )
    assert {each.status_code for each in answers} == {202}, [each.text for each in answers]
    held.release()
    await until(ada, project, "completed")
    assert sorted(fetched(world.web)) == sorted(ARTICLES)


async def test_finished_project_reads_no_more_and_reports(ada: Member, world: World) -> None:
    held = _hold(world, "/news/old-prices")
    project = await started(ada)
    await asyncio.to_thread(held.reached.wait, 60)
    await control(ada, project, "finish")
    held.release()
    await until(ada, project, "completed")
    assert len(fetched(world.web)) == 2
    found = await report(ada, project)
    assert found["status"] == "completed"
    assert not found["found_nothing"]


class _Held:
    """A page whose answer waits."""

    def __init__(self, world: World, path: str) -> None:
        import threading

        self.reached, self._open = threading.Event(), threading.Event()
        self._world, self._path, self._page = world, path, world.web.pages[path]
        body = self._page.body

        def answer() -> bytes:
            self.reached.set()
            self._open.wait(60)
            assert isinstance(body, bytes)
            return body

        world.web.pages[path] = Page(answer, self._page.status, self._page.headers)

    def release(self) -> None:
        self._open.set()
        self._world.web.pages[self._path] = self._page


def _hold(world: World, path: str) -> _Held:
    return _Held(world, path)


# --- tenants


async def test_other_users_see_no_project(ada: Member, world: World) -> None:
    project = await started(ada)
    await until(ada, project, "completed")
    assert world.server is not None
    tenant = tenant_of(ada)
    for who, where in (("bob", tenant), ("ada", "elsewhere")):
        async with member(world.server, who, where) as other:
            for method, what in (
                *(("GET", each) for each in ("progress", "report", "state")),
                *(("POST", each) for each in ("cancel", "finish", "pause", "resume")),
            ):
                answer = await other.http.request(method, f"/research/{project}/{what}", json={})
                assert answer.status_code == 404, (who, what, answer.text)
            answer = await other.http.post(
                "/research", json={"question": QUESTION, "project_id": project}
            )
            assert answer.status_code in (404, 409)
    assert (await progress(ada, project))["status"] == "completed"


async def test_deleted_project_leaves_no_row_and_no_file(ada: Member, world: World) -> None:
    kept, gone = await started(ada), await started(ada)
    await until(ada, kept, "completed")
    await until(ada, gone, "completed")
    folder = world.folder / "task-data" / tenant_of(ada)
    assert world.server is not None
    async with member(world.server, "bob", tenant_of(ada)) as other:
        assert (await other.http.delete(f"/threads/{gone}")).status_code == 404
    assert gone in remains(world, folder)
    answer = await ada.http.delete(f"/threads/{gone}")
    assert answer.status_code == 204, answer.text
    assert (await ada.http.get(f"/research/{gone}/progress")).status_code == 404
    left = remains(world, folder)
    assert gone not in left
    assert kept in left
    assert (await report(ada, kept))["status"] == "completed"


async def test_project_that_is_deleted_while_it_works_leaves_nothing(
    ada: Member, world: World
) -> None:
    world.web.gate.clear()
    project = await started(ada)
    await at(ada, project, "searching")
    answer = await ada.http.delete(f"/threads/{project}")
    assert answer.status_code == 204, answer.text
    world.web.gate.set()
    folder = world.folder / "task-data" / tenant_of(ada)
    # The run that was cancelled may write a file, look for its project and remove the file.
    await asyncio.sleep(1.5)
    async with asyncio.timeout(PATIENCE):
        while project in remains(world, folder):
            await asyncio.sleep(0.05)


def remains(world: World, folder: Path) -> str:
    """Return all rows of the research tables and the names of all files below a folder."""
    rows = databases.contents(world.folder / "data.db")
    found = [str(row) for name in ("research_projects", "research_pages") for row in rows[name]]
    return "\n".join([*found, *map(str, folder.rglob("*"))])


# --- progress and force


async def test_stream_has_every_stage_and_heartbeats(ada: Member, world: World) -> None:
    held = _hold(world, "/news/old-prices")
    thread = await ada.thread()
    body = {
        "assistant_id": "research",
        "input": {"question": QUESTION},
        "stream_mode": ["custom"],
    }
    stages, beats = list[str](), 0
    async with (
        asyncio.timeout(60),
        ada.stream("POST", f"/threads/{thread}/runs/stream", body) as all,
    ):
        async for event in all:
            if event.name != "custom":
                continue
            shown = json.loads(event.data)
            stages.append(shown["stage"])
            is_held = held.reached.is_set() and shown["stage"] == "extracting"
            beats += is_held
            # Two items begin in this stage; whatever else comes is a heartbeat.
            if beats > 4:
                held.release()
    assert list(dict.fromkeys(stages)) == [
        *("planning", "searching", "extracting", "analyzing", "reporting", "completed")
    ]


async def test_project_that_does_not_stop_in_time_is_failed(
    each_database: str, tmp_path: Path
) -> None:
    """A running operation has a second after a cancellation; here the whole stop has less."""
    with websites() as web:
        env = {"RESEARCH_FEEDS": publish(web, "news", ARTICLES), "RESEARCH_STOP_SECONDS": "0.3"}
        made = World(tmp_path, web, env)
        server = made.start()
        try:
            async with member(server, "ada", f"tenant-{uuid4().hex[:8]}") as client:
                held = _hold(made, "/news/old-prices")
                project = await started(client)
                assert await asyncio.to_thread(held.reached.wait, 60)
                await control(client, project, "cancel")
                done = await until(client, project, "failed")
                asked = len(web.asked)
                held.release()
                assert done["error"] == "The project did not stop within 0.3 seconds"
                [run] = await client.get(f"/threads/{project}/runs")
                await client.ended(project, run["run_id"])
                assert len(web.asked) == asked
                assert (await progress(client, project))["status"] == "failed"
        finally:
            made.stop()
