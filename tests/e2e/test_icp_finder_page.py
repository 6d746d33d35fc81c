"""The page of the ICP finder in Chromium, against a server with made-up sites and a register."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from my_agent.companies import register
from tests.support.browser import WEB, Page, browser
from tests.support.icp import Person, Sites, icp_server, url
from tests.support.policy import Member, headers, member
from tests.support.processes import ROOT, Running
from tests.support.products import using

pytestmark = [pytest.mark.usefixtures("web_build"), pytest.mark.only("sqlite")]

REGISTER = ROOT / "my_agent" / "companies" / "reference" / "made_up_register.csv"
NAMES = 'return page.locator(".icp-candidates > ol h3").allInnerTexts()'


@pytest.fixture(scope="module")
def sites() -> Iterator[Sites]:
    with Sites() as started:
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("icp-page")
    with using(url(folder)):
        register.ingest(REGISTER, report=lambda _: None)
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


@pytest.fixture
async def web(server: Running, ann: Person) -> AsyncIterator[Member]:
    async with member(server, ann.name, ann.tenant) as client:
        yield client


@pytest.fixture
async def page(server: Running, ann: Person) -> AsyncIterator[Page]:
    """A page on which the person has signed in."""
    token = headers(ann.tenant, ann.name)["authorization"].removeprefix("Bearer ")
    async with browser() as opened:
        keep = f'sessionStorage.setItem("threadhold-token", "{token}")'
        await opened.run(f"await context.addInitScript({json.dumps(keep)})")
        yield opened


async def visit(page: Page, server: Running, thread: str | None = None) -> None:
    place = "?assistant=icp_finder" + (f"&thread={thread}" if thread else "")
    await page.run(f"await page.goto({json.dumps(server.url + '/' + place)})")


async def press(page: Page, name: str) -> None:
    await page.run(
        f'await page.getByRole("button", {{name: {json.dumps(name)}, exact: true}}).first().click()'
    )


async def thread_of(page: Page) -> str:
    return str(await page.run('return new URL(page.url()).searchParams.get("thread")'))


async def settled(ann: Person) -> list[Any]:
    """Search with the person's profile, decline the enrichment, and return the thread's state."""
    await ann.open(website=ann.website)
    await ann.settle()
    await ann.answer("later")
    shown: list[Any] = ann.values["candidates"]
    return shown


async def test_a_start_resumes_offers_a_choice_or_begins(
    page: Page, server: Running, ann: Person
) -> None:
    await visit(page, server)
    await page.run(
        f'await page.getByLabel("Your company\'s website").fill("http://one-{ann.tenant}.example")'
    )
    # Two clicks begin one session.
    await page.run(
        'await page.getByRole("button", {name: "Continue or begin"}).evaluate((b) => {b.click(); b.click();})'
    )
    await page.until("5 best customers")
    first = await thread_of(page)
    await ann.open(website=f"http://two-{ann.tenant}.example")
    await visit(page, server)
    await press(page, "Continue or begin")
    await page.until("Several sessions are open.")
    await page.run(f'await page.getByRole("button", {{name: /one-{ann.tenant}/}}).last().click()')
    await page.until("5 best customers")
    assert await thread_of(page) == first
    assert len(await ann.sdk.threads.search(limit=10)) == 2


async def test_a_fresh_session_is_asked_for_and_closes_the_earlier_one(
    page: Page, server: Running, ann: Person
) -> None:
    old = await ann.open(website=ann.website)
    await visit(page, server)
    await page.run(f'await page.getByLabel("Your company\'s website").fill("{ann.website}")')
    await press(page, "Start fresh")
    await page.until("makes your earlier sessions for this website read-only")
    assert (await ann.metadata(old))["status"] == "open"
    await page.run(
        'await page.getByRole("alertdialog").getByRole("button", {name: "Start fresh"}).click()'
    )
    await page.until("5 best customers")
    new = await thread_of(page)
    assert new != old
    assert (await ann.metadata(old))["status"] == "locked"
    # Whoever comes back to the earlier one is led to the fresh one, not to a third.
    await visit(page, server, old)
    await press(page, "Resume in new thread")
    await page.run('await page.getByText("Read-only").waitFor({state: "detached"})')
    assert await thread_of(page) == new
    assert (await ann.metadata(new))["status"] == "open"


async def test_questions_are_cards_that_start_the_search_and_the_enrichment(
    page: Page, server: Running, ann: Person
) -> None:
    await ann.open(website=ann.website)
    await ann.say(ann.website)
    await ann.say(ann.customers)
    await visit(page, server, ann.thread)
    await page.until("Search with this profile?")
    await press(page, "Search with it")
    await page.until("Read their websites?")
    await press(page, "Read them")
    await page.until("Not enriched")
    await page.run('await page.locator(".icp-progress").waitFor()')
    await page.until("“Read them” answered")
    await page.until("No website known")


async def test_a_profile_is_edited_reviewed_and_changed_here(
    page: Page, server: Running, ann: Person
) -> None:
    await settled(ann)
    await visit(page, server, ann.thread)
    await press(page, "Edit profile")
    await page.run('await page.getByLabel("Regions").fill("Singapore\\nTrinidad and Tobago")')
    await press(page, "Show changes")
    assert await page.run('return page.locator(".icp-review ins").allInnerTexts()') == [
        "Singapore",
        "Trinidad and Tobago",
    ]
    state = await ann.sdk.threads.get_state(ann.thread or "")
    assert state["values"]["icp"]["regions"] == []  # type: ignore[call-overload]
    await press(page, "Send the change")
    await page.until("Change the profile?")
    await press(page, "Change it here and search again")
    await page.run('await page.locator(".icp-profile").getByText("Trinidad and Tobago").waitFor()')
    await page.idle()
    state = await ann.sdk.threads.get_state(ann.thread or "")
    assert state["values"]["icp"]["regions"] == [  # type: ignore[call-overload]
        "Singapore",
        "Trinidad and Tobago",
    ]


async def test_candidates_show_evidence_and_obey_decisions(
    page: Page, server: Running, ann: Person, web: Member
) -> None:
    await settled(ann)
    await visit(page, server, ann.thread)
    await page.run('await page.getByRole("button", {name: /^Show all/}).click()')
    names = await page.run(NAMES)
    await page.run('await page.locator(".icp-score summary").first().click()')
    evidence = await page.run('return page.locator(".icp-score dl").first().innerText()')
    assert "Industry +" in evidence
    assert "found in the company register" in evidence
    # A double click rejects one company, not also the next.
    await page.run(f'await page.getByLabel("Reject: {names[0]}").dblclick()')
    await page.until("Rejected companies (1)")
    assert await page.run(NAMES) == names[1:]
    await page.run(f'await page.getByLabel("Accept: {names[2]}").click()')
    await page.until("Accepted")
    assert (await page.run(NAMES))[0] == names[2]
    await page.run(f'await page.getByLabel("More like this: {names[1]}").click()')
    await page.until("Wanted: more like this")
    await page.run('await page.getByText("Rejected companies").click()')
    await page.run(f'await page.getByLabel("Undo: {names[0]}").click()')
    await page.run('await page.getByText("Rejected companies").waitFor({state: "detached"})')
    found = await web.get(f"/icp_finder/threads/{ann.thread}/candidates")
    verdicts = {each["name"]: each["verdict"] for each in found["candidates"] if each["verdict"]}
    assert verdicts == {names[2]: "kept", names[1]: "liked"}


async def test_a_thread_that_closes_meanwhile_keeps_the_text(
    page: Page, server: Running, ann: Person
) -> None:
    await settled(ann)
    old = ann.thread
    await visit(page, server, old)
    await page.run('await page.locator(".icp-row").first().waitFor()')
    await page.run('await page.getByLabel("Message", {exact: true}).fill("why is 1 first?")')
    await ann.open(website=ann.website)
    await page.run('await page.keyboard.press("Enter")')
    await page.until("This conversation is closed.")
    # The text may still be on its way to the server, which refuses it: then it comes back.
    await page.run(
        "await page.waitForFunction((text) => document.querySelector('textarea').value === text, "
        '"why is 1 first?")'
    )
    assert await page.run('return page.getByRole("button", {name: /^Reject: /}).count()') == 0
    assert await page.run('return page.getByRole("button", {name: "Edit profile"}).count()') == 0
    await press(page, "Resume in new thread")
    await page.run('await page.getByText("Read-only").waitFor({state: "detached"})')
    assert await thread_of(page) != old


async def test_an_unreachable_server_is_said_and_tried_again(
    page: Page, server: Running, ann: Person
) -> None:
    await settled(ann)
    await visit(page, server, ann.thread)
    await page.run('await page.locator(".icp-row").first().waitFor()')
    names = await page.run(NAMES)
    await page.run('await page.route("**/feedback", (route) => route.abort())')
    await page.run(f'await page.getByLabel("Reject: {names[0]}").click()')
    await page.until("The server does not answer.")
    assert await page.run(NAMES) == names
    await page.run('await page.unroute("**/feedback")')
    await page.run(f'await page.getByLabel("Reject: {names[0]}").click()')
    await page.until("Rejected companies (1)")


async def test_the_page_is_accessible_also_narrow_and_in_portuguese(
    page: Page, server: Running, ann: Person
) -> None:
    await ann.open(website=ann.website)
    await ann.settle()
    axe = (WEB / "node_modules" / "axe-core" / "axe.min.js").read_text()
    for scheme, width, language in (("light", 1280, "en"), ("dark", 380, "pt")):
        await page.run(
            f'await page.emulateMedia({{colorScheme: "{scheme}"}});'
            f"await page.setViewportSize({{width: {width}, height: 800}});"
            f'await context.addInitScript("localStorage.setItem(\\"threadhold-language\\", \\"{language}\\")")'
        )
        await visit(page, server, ann.thread)
        await page.run('await page.locator(".icp-row").first().waitFor()')
        await page.run('await page.locator(".icp-question").waitFor()')
        await page.run('await page.locator(".icp-score summary").first().click()')
        await page.run(f"await page.evaluate({json.dumps(axe)})")
        found = await page.run(
            "const {violations} = await page.evaluate(() => axe.run());"
            'return violations.filter((each) => ["serious", "critical"].includes(each.impact))'
            ".map((each) => [each.id, each.nodes.map((node) => node.html).slice(0, 3)])"
        )
        assert found == []
        wide = await page.run(
            "return page.evaluate(() => document.documentElement.scrollWidth - innerWidth)"
        )
        assert wide <= 0
    await page.until("Ler os sites delas?")
