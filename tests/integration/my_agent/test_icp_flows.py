"""User journeys of the ICP finder through the HTTP API, with the SDK.

Each flow yields once in its middle. It runs on a server that keeps running, and on a server that is
killed at that point.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select, update

from my_agent.companies import register
from my_agent.icp_finder.records.tables import discoveries, jobs, profiles
from tests.support.icp import AGENT, Person, Sites, icp_server, url
from tests.support.processes import ROOT, Running
from tests.support.products import using
from tests.support.served import PATIENCE

pytestmark = pytest.mark.usefixtures("each_database")

Flow = Callable[[Person], AsyncIterator[None]]
REGISTER = ROOT / "my_agent" / "companies" / "reference" / "made_up_register.csv"


def ingested(folder: Path) -> None:
    """Ingest the made-up register into the database of a server that starts later."""
    bad: list[Any] = []
    with using(url(folder)):
        register.ingest(REGISTER, report=bad.append)
    assert bad == []


@pytest.fixture(scope="module")
def sites() -> Iterator[Sites]:
    with Sites() as started:
        yield started


@pytest.fixture(scope="module")
def folder(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("icp")
    ingested(folder)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    with icp_server(folder) as started:
        yield started


@pytest.fixture
async def ann(server: Running, sites: Sites, folder: Path) -> AsyncIterator[Person]:
    person = Person(sites, folder)
    async with person.at(server):
        yield person


# --- the flows ---------------------------------------------------------------


async def new_user(ann: Person) -> AsyncIterator[None]:
    """A new user answers step by step until there are candidates."""
    await ann.open()
    assert "company's website" in await ann.say("Hello")
    assert not ann.values["is_return_user"]
    assert ann.values["tenant_id"] == ann.tenant
    said = await ann.say("We are called Acme")
    assert "did not understand “We are called Acme”" in said
    assert "company's website" in said
    assert "5 best customers" in await ann.say(ann.website)
    first, second, *others = ann.sites.urls
    said = await ann.say(f"{first} and {ann.website} and http://10.0.0.1")
    assert "is your own website" in said
    assert "private address" in said
    assert "1 of 5" in said
    yield
    assert "2 of 5" in await ann.say(second)
    said = await ann.say("\n".join(others))
    assert ann.asked == "confirm_icp"
    assert "Wholesale trade" in said
    assert "did not understand" in await ann.answer("Well...")
    assert ann.asked == "confirm_icp"
    said = await ann.answer("regions: Singapore")
    # What has changed, and not the whole profile once more.
    assert "regions: any → Singapore" in said
    assert "Wholesale trade" not in said
    # Without a model, more than a yes is no yes; and nothing is guessed from the rest.
    assert "did not understand" in await ann.answer("Yes, but only in Johor")
    assert (ann.asked, ann.values["icp"]["regions"]) == ("confirm_icp", ["Singapore"])
    assert "regions: Singapore → Johor" in await ann.answer("only Johor")
    assert ann.asked == "confirm_icp"
    await ann.answer("regions: Singapore")
    said = await ann.answer("yes")
    assert ann.asked == "enrich"
    assert ann.values["discovery_ready"]
    assert len(ann.values["candidates"]) > 10
    assert all(each["parts"] for each in ann.values["candidates"])
    assert "1. " in said
    metadata = await ann.metadata()
    assert metadata["context_key"] == f"domain:{ann.tenant}.example"


async def one_thread(ann: Person) -> AsyncIterator[None]:
    """A user who names no thread continues with the only one."""
    await ann.settle()
    await ann.answer("later")
    thread, discovered = ann.thread, await _discovered(ann)
    yield
    ann.thread = None
    values: Any = await ann.sdk.runs.wait(None, AGENT, input=_message("Hello again"))
    assert values["thread_id"] == thread
    assert values["is_return_user"]
    assert values["decisions"]["use_cached"]
    assert values["discovery_ready"]
    assert "__interrupt__" not in values
    # There was no new search.
    assert await _discovered(ann) == discovered


async def several_threads(ann: Person) -> AsyncIterator[None]:
    """A user with several threads chooses one and continues with its data."""
    await ann.settle()
    thread, asked = ann.thread, ann.question["id"]
    await ann.open(website="http://other.example")
    await ann.say("Hello")
    yield
    choice: Any = await ann.sdk.runs.wait(None, AGENT, input=_message("Hello again"))
    assert "Which one would you like to continue" in choice["messages"][-1]["content"]
    labels = {each["label"]: each["thread_id"] for each in choice["thread_choice"]["candidates"]}
    assert labels.keys() == {f"{ann.tenant}.example", "other.example"}
    ann.thread = labels[f"{ann.tenant}.example"]
    assert ann.thread == thread
    # What is not understood answers nothing: the question waits.
    assert "did not understand" in await ann.say("Let us go on")
    assert (ann.asked, ann.question["id"]) == ("enrich", asked)
    assert ann.values["decisions"]["use_cached"]
    await ann.answer("later")
    assert ann.asked is None


async def new_thread_for_the_same(ann: Person) -> AsyncIterator[None]:
    """A new thread locks the earlier one and loads its data."""
    await ann.settle()
    old = ann.thread or ""
    new = await ann.open(website=ann.website)
    assert (await ann.metadata(old))["status"] == "locked"
    yield
    await _is_locked(ann, old)
    ann.thread = new
    said = await ann.say("Hello")
    assert "Welcome back" in said
    assert ann.asked == "enrich"
    assert ann.values["decisions"]["use_cached"]
    assert len(ann.values["customers"]) == 5


async def change_and_continue(ann: Person) -> AsyncIterator[None]:
    """A user changes the website in a thread and continues there."""
    await ann.settle()
    await ann.answer("later")
    said = await ann.say("Industries: software development")
    assert ann.asked == "context_change"
    assert "industries: Wholesale trade → software development" in said
    asked = ann.question["id"]
    yield
    assert "did not understand" in await ann.answer("perhaps")
    assert ann.question["details"]["changed"] == ["industries"]
    # The same question, asked again.
    assert ann.question["id"] == asked
    said = await ann.answer({"choice": "continue"})
    assert ann.asked == "enrich"
    assert ann.values["decisions"] == {
        "use_cached": False,
        "rerun_icp": True,
        "reason": "the industries changed",
    }
    assert ann.values["icp"]["industries"] == ["software development"]
    assert (await ann.metadata())["status"] == "open"


async def change_and_new_session(ann: Person) -> AsyncIterator[None]:
    """A user changes the website in a thread and starts a new session."""
    await ann.settle()
    await ann.answer("later")
    await ann.say(f"Our website is http://new-{ann.tenant}.example")
    assert ann.question["details"]["changed"] == ["website"]
    request = ann.question["details"]["new_session"]
    yield
    assert f"new-{ann.tenant}.example" in await ann.answer("new session, please")
    assert ann.asked is None
    assert await ann.work(lambda c: c.scalar(_companies(ann))) is None
    old = ann.thread or ""
    http = ann.sdk.http
    opened = await http.post(request["path"], json=request["body"])
    assert opened["action"] == "create"
    assert (await ann.metadata(old))["status"] == "locked"
    ann.thread = opened["thread_id"]
    # Only the website of the new company is known.
    assert "5 best customers" in await ann.say("Hello")
    assert ann.values["site"]["domain"] == f"new-{ann.tenant}.example"
    await _is_locked(ann, old)


async def change_of_icp_and_new_session(ann: Person) -> AsyncIterator[None]:
    """A user changes the ICP; the new session knows it and asks only for consent to search."""
    await ann.settle()
    await ann.answer("later")
    await ann.say("Industries: software development")
    request = ann.question["details"]["new_session"]
    await ann.answer({"choice": "new"})
    old = ann.thread or ""
    ann.thread = (await ann.sdk.http.post(request["path"], json=request["body"]))["thread_id"]
    await _is_locked(ann, old)
    yield
    said = await ann.say("Hello")
    assert "Welcome back" in said
    assert "Re-run discovery, because the industries changed?" in said
    await ann.answer("yes")
    assert ann.asked == "enrich"
    assert ann.values["icp"]["industries"] == ["software development"]


async def stale_discovery(ann: Person) -> AsyncIterator[None]:
    """A stale discovery is repeated if the user agrees."""
    await ann.settle()
    await ann.answer("later")
    await ann.work(lambda c: c.execute(_aged(ann, discoveries, "discovered_at")))
    said = await ann.say("Hello again")
    assert "Re-run discovery, because the last search is out of date?" in said
    assert ann.asked == "rerun"
    discovered = await _discovered(ann)
    yield
    assert await _discovered(ann) == discovered
    # A plain message also answers the question.
    await ann.say("yes, please")
    assert ann.asked == "enrich"
    assert await _discovered(ann) > discovered
    await ann.answer("later")
    await ann.say("And now?")
    assert ann.values["decisions"]["use_cached"]


async def enrichment(ann: Person) -> AsyncIterator[None]:
    """The best candidates are enriched at once, the next ones by a job; repeating creates no second
    job.
    """
    await ann.settle()
    candidates = ann.values["candidates"]
    yield
    said = await ann.answer("yes")
    # Without a network the websites of the register's companies are not known.
    assert "I could enrich none of 10 companies" in said
    assert "no website of this company is known" in said
    done = ann.values["enrichment"]
    assert (done["now"], done["failed"]) == ([], [each["key"] for each in candidates[:10]])
    assert done["queued"] == len(candidates[10:50])
    await ann.open(website=ann.website)
    await ann.say("enrich")
    assert ann.values["enrichment"]["job"] == done["job"]
    count = select(func.count()).select_from(jobs).where(jobs.c.tenant_id == ann.tenant)
    assert await ann.work(lambda c: c.scalar(count)) == 1
    async with asyncio.timeout(2 * PATIENCE):
        while "is done" not in await ann.say("How far is it?"):
            await asyncio.sleep(0.2)


async def candidates(ann: Person) -> AsyncIterator[None]:
    """A user talks about the candidates; the waiting question stays, and nothing else happens."""
    await ann.settle()
    asked, first = ann.question["id"], ann.values["candidates"][0]
    count = len(ann.values["candidates"])
    assert first["name"] in await ann.answer("show me my candidates")
    assert f"11 to 20 of {count}" in await ann.answer("more")
    said = await ann.answer("why is 1 first?")
    assert f"1. {first['name']}: " in said
    assert "- industry: " in said
    assert "From the register of companies" in said
    assert "no longer show" in await ann.answer("reject 1 because it is too small")
    assert (ann.asked, ann.question["id"]) == ("enrich", asked)
    assert ann.question["details"] == {"candidates": count - 1}
    yield
    assert f"- {first['name']}: it is too small" in await ann.answer("which ones did I reject?")
    said = await ann.answer("show my candidates")
    assert first["name"] not in said
    assert f"of {count - 1}:" in said
    assert await ann.answer("thanks") == "You are welcome.\n\nSo: shall I enrich your candidates?"
    # A list of numbers could be that of the options, too.
    assert "did not understand" in await ann.answer("1, 2")
    assert (ann.asked, ann.question["id"]) == ("enrich", asked)
    assert ann.values.get("enrichment") is None
    said = await ann.answer("Enrich the first two, please")
    assert "I could enrich none of 2 companies" in said
    assert len(ann.values["enrichment"]["failed"]) == 2
    assert ann.values["enrichment"]["job"] is None
    # A new session knows the feedback.
    await ann.open(website=ann.website)
    assert first["name"] not in await ann.say("Hello")
    assert "forgotten what you said" in await ann.answer(f"restore {first['name']}")
    assert f"of {count}" in await ann.answer("show my candidates")


async def side_questions(ann: Person) -> AsyncIterator[None]:
    """A website in a sentence changes nothing, and side questions are answered."""
    await ann.settle()
    await ann.answer("later")
    before = {key: ann.values[key] for key in ("site", "customers", "icp", "last")}
    for text in ("Is icebox.sg a good candidate for us?", "I saw beta.com yesterday"):
        assert f"did not understand “{text}”" in await ann.say(text)
        assert ann.asked is None
    said = await ann.say("we are https://www.linkedin.com/company/acme")
    assert "linkedin.com is not a company's own website" in said
    assert "- regions: " in await ann.say("What is my profile?")
    assert "Hello" not in await ann.say("thanks")
    assert "Whose website is beta.com" in await ann.say("beta.com")
    assert ann.asked == "domain"
    yield
    asked = ann.question["id"]
    assert "press a button" not in await ann.answer("well, you know")
    assert (ann.asked, ann.question["id"]) == ("domain", asked)
    assert "changed nothing" in await ann.answer("None of these")
    assert "needs an industry" in await ann.say("drop wholesale trade")
    said = await ann.say("Our website is http://no-other.example")
    assert ann.asked == "context_change"
    assert f"website: {ann.tenant}.example → no-other.example" in said
    assert "did not understand" in await ann.answer("what would that do?")
    assert ann.asked == "context_change"
    await ann.answer("no")
    assert ann.asked is None
    assert {key: ann.values[key] for key in before} == before
    assert (await ann.metadata())["context_key"] == f"domain:{ann.tenant}.example"


FLOWS: list[Flow] = [
    new_user,
    one_thread,
    several_threads,
    new_thread_for_the_same,
    change_and_continue,
    change_and_new_session,
    change_of_icp_and_new_session,
    stale_discovery,
    enrichment,
    candidates,
    side_questions,
]


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.__name__)
async def test_flow(flow: Flow, ann: Person) -> None:
    async for _ in flow(ann):
        pass


@pytest.mark.timeout(600)
async def test_flows_continue_after_server_is_killed(tmp_path: Path, sites: Sites) -> None:
    ingested(tmp_path)
    people = [Person(sites, tmp_path) for _ in FLOWS]
    middles = [flow(person) for flow, person in zip(FLOWS, people, strict=True)]
    reader = Person(sites, tmp_path)
    async with AsyncExitStack() as stack:
        server = stack.enter_context(icp_server(tmp_path))
        for person in (*people, reader):
            await stack.enter_async_context(person.at(server))
        # The flows run concurrently: they are independent.
        assert await _steps(middles) == [None] * len(FLOWS)
        run = await _cut_off(reader, server)
    async with AsyncExitStack() as stack:
        server = stack.enter_context(icp_server(tmp_path))
        for person in (*people, reader):
            await stack.enter_async_context(person.at(server))
        # The interrupted run reads the websites after the restart.
        values: Any = await reader.sdk.runs.join(reader.thread or "", run)
        assert len(values["customers"]) == 5
        assert values["icp"]["industries"]
        assert await _steps(middles) == ["end"] * len(FLOWS)


async def _steps(flows: list[AsyncIterator[None]]) -> list[Any]:
    """Run each flow up to its middle, or to its end."""
    return await asyncio.gather(*(anext(each, "end") for each in flows))


async def _cut_off(reader: Person, server: Running) -> str:
    """Start a run that reads websites, and kill its server meanwhile. Return the id of the run."""
    await reader.open(website=reader.website)
    await reader.say("Hello")
    reader.sites.hold()
    message = _message(reader.customers)
    run = await reader.sdk.runs.create(reader.thread or "", AGENT, input=message)
    assert await asyncio.to_thread(reader.sites.asked.wait, PATIENCE)
    server.process.kill()
    server.process.wait()
    reader.sites.release()
    return run["run_id"]


# --- double clicks -------------------------------------------------------------


async def test_second_click_does_not_answer_the_next_question(ann: Person) -> None:
    await ann.open()
    await ann.say(f"Our website is {ann.website}")
    await ann.say(ann.customers)
    assert ann.asked == "confirm_icp"
    clicks = [ann.sdk.runs.wait(ann.thread or "", AGENT, command={"resume": "yes"}) for _ in "12"]
    answers: Any = await asyncio.gather(*clicks)
    assert [each["__interrupt__"][0]["value"]["kind"] for each in answers] == ["enrich", "enrich"]
    assert await _enriched(ann) is None
    # The same as messages, which a client sends to a thread without a question as well.
    sent = [ann.sdk.runs.wait(ann.thread or "", AGENT, input=_message("later")) for _ in "12"]
    await asyncio.gather(*sent)
    assert await _enriched(ann) is None


async def test_message_sent_before_the_question_does_not_answer_it(ann: Person) -> None:
    await ann.open()
    await ann.say(f"Our website is {ann.website}")
    await ann.say(ann.customers)
    sent = [ann.sdk.runs.wait(ann.thread or "", AGENT, input=_message("yes")) for _ in "12"]
    answers: Any = await asyncio.gather(*sent)
    assert [each["__interrupt__"][0]["value"]["kind"] for each in answers] == ["enrich", "enrich"]
    assert await _enriched(ann) is None


async def test_answer_that_names_another_question_is_ignored(ann: Person) -> None:
    await ann.settle()
    asked = ann.question["id"]
    await ann.answer({"choice": "enrich", "question": "0" * 32})
    assert (ann.asked, ann.question["id"]) == ("enrich", asked)
    assert await _enriched(ann) is None
    await ann.answer({"choice": "later", "question": asked})
    assert ann.asked is None
    # A click at a question that is closed does nothing.
    await ann.answer({"choice": "enrich", "question": asked})
    assert await _enriched(ann) is None


async def test_session_is_chosen_by_its_name(ann: Person) -> None:
    await ann.open(website="http://one.example")
    first = ann.thread
    await ann.open(website="http://two.example")
    values: Any = await ann.sdk.runs.wait(None, AGENT, input=_message("Hello"))
    assert "Which one would you like to continue" in values["messages"][-1]["content"]
    values = await ann.sdk.runs.wait(None, AGENT, input=_message("one.example, please"))
    assert values["thread_id"] == first


async def test_client_cannot_write_the_state_of_the_finder(ann: Person) -> None:
    await ann.open()
    await ann.say("Hello")
    state = {"values": {"site": {"website": "x"}}}
    with pytest.raises(httpx.HTTPStatusError) as refused:
        await ann.sdk.http.post(f"/threads/{ann.thread}/state", json=state)
    assert refused.value.response.status_code == 422
    assert "`site`" in refused.value.response.text
    assert "`messages`" in refused.value.response.text
    assert "5 best customers" in await ann.say(ann.website)
    steps = [{"updates": [{"values": {"icp": {}}, "as_node": "ingest"}]}]
    body = {"metadata": {"graph_id": AGENT}, "supersteps": steps}
    # The thread is created, and the answer says why its state was not written.
    assert "does not take `icp`" in str(await ann.sdk.http.post("/threads", json=body))


async def _enriched(ann: Person) -> Any:
    state: Any = await ann.sdk.threads.get_state(ann.thread or "")
    return state["values"].get("enrichment")


# --- tenants -------------------------------------------------------------------


async def test_company_is_visible_only_within_its_tenant(
    ann: Person, server: Running, sites: Sites, folder: Path
) -> None:
    await ann.settle()
    bob = Person(sites, folder, tenant=ann.tenant, name="bob")
    eve = Person(sites, folder)
    async with bob.at(server), eve.at(server):
        await bob.open()
        said = await bob.say("Hello")
        assert "Welcome back" in said
        # He is greeted once.
        assert "Hello!" not in said
        assert bob.asked == "enrich"
        # Naming another tenant's website reveals no stored data.
        await eve.open(website=ann.website)
        assert "5 best customers" in await eve.say("Hello")
        assert not eve.values["is_return_user"]
    # A session of a colleague does not lock the user's thread.
    assert (await ann.metadata())["status"] == "open"


def _message(text: str) -> Any:
    return {"messages": [{"role": "user", "content": text}]}


async def _is_locked(ann: Person, thread: str) -> None:
    with pytest.raises(httpx.HTTPStatusError) as refused:
        await ann.sdk.runs.wait(thread, AGENT, input=_message("Hello"))
    assert refused.value.response.status_code == 409
    assert refused.value.response.json()["error"] == "thread_locked"


async def _discovered(ann: Person) -> datetime:
    """Return the time of the last search."""
    latest = select(func.max(discoveries.c.discovered_at))
    found: datetime = await ann.work(
        lambda c: c.scalar(latest.where(discoveries.c.tenant_id == ann.tenant))
    )
    return found


def _aged(ann: Person, table: Any, column: str) -> Any:
    then = datetime.now(UTC) - timedelta(days=15)
    return update(table).where(table.c.tenant_id == ann.tenant).values({column: then})


def _companies(ann: Person) -> Any:
    """Select the second company of the tenant."""
    new = f"new-{ann.tenant}.example"
    return select(profiles.c.domain).where(profiles.c.domain == new)
