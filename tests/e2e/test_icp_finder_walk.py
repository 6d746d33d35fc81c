"""A person's whole way through the ICP finder in Chromium: from the first visit to the next session.

Neither a model nor a network is there. The web search finds made-up companies with sites on loopback.
"""

import csv
import io
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from my_agent.icp_finder.records.tables import discoveries
from tests.integration.my_agent.test_icp_flows import _aged, _discovered
from tests.support.browser import Page, browser
from tests.support.icp import Person, Sites, icp_server
from tests.support.made_up_web import RESULTS
from tests.support.policy import headers
from tests.support.processes import ROOT, Running
from tests.support.websites import Websites, company_page, websites

# The page is the same on both databases.
pytestmark = [pytest.mark.usefixtures("web_build"), pytest.mark.only("sqlite")]

FIRMS = "Amber Foods", "Basil Trading", "Cedar Supplies", "Dune Wholesale", "Ember Imports", "Fjord"
CLOSED = "This conversation is closed. You can read it."
NAMES = 'return page.locator(".icp-candidates > ol h3").allInnerTexts()'
# Whether the person sees an element with a text: the whole of it, and nothing in front of it.
_SEEN = """
([css, text]) => [...document.querySelectorAll(css)].some((each) => {
  if (!each.innerText?.includes(text)) return false;
  if ([...each.children].some((child) => child.innerText?.includes(text))) return false;
  const {left, right, top, bottom} = each.getBoundingClientRect();
  const [x, y] = [(left + right) / 2, (top + bottom) / 2];
  const edges = [[x, top + 1], [x, bottom - 1], [left + 1, y], [right - 1, y]];
  return edges.every((at) => each.contains(document.elementFromPoint(...at)));
})
"""


class Tab(Page):
    """Another tab of a page's browser."""

    def __init__(self, page: Page) -> None:
        self._page = page

    async def run(self, code: str, **command: Any) -> Any:
        return await self._page.run(f"{{ const page = globalThis.tab; {code} }}", **command)


class Walk:
    """A person before the page.

    Attributes:
        page: the page.
        ann: the person.
        sites: sites of the person's company, which is the first one, and of customers.
        web: the site of each company that the web search finds.
    """

    def __init__(self, page: Page, ann: Person, sites: Sites, web: dict[str, Websites]) -> None:
        self.page, self.ann, self.sites, self.web = page, ann, sites, web

    async def sees(self, *texts: str, at: str = "main *") -> None:
        """Wait until each text is in the viewport."""
        for text in texts:
            seen = f"await page.waitForFunction({_SEEN}, {json.dumps([at, text])})"
            try:
                await self.page.run(seen)
            except AssertionError as error:
                shown = await self.page.run('return page.locator("main").innerText()')
                raise AssertionError(f"{text!r} is not in view; the page is\n{shown}") from error

    async def says(self, text: str, *answers: str) -> None:
        """Write a message, and see the answers."""
        await self.page.say(text)
        await self.sees(*answers, at=".message.ai *")
        await self.page.idle()

    async def presses(self, name: str, *answers: str) -> None:
        """Press a button that is in the viewport, and see the answers."""
        await self.sees(name, at="button")
        await self.page.click(name)
        await self.sees(*answers)
        await self.page.idle()

    async def resizes(self, width: int, height: int) -> None:
        """Look at the page through a window of another size."""
        await self.page.run(f"await page.setViewportSize({{width: {width}, height: {height}}})")

    async def count(self, css: str) -> int:
        """Return how many elements there are."""
        return int(await self.page.run(f"return page.locator({json.dumps(css)}).count()"))

    async def numbers(self) -> list[str]:
        """Return the numbers of the listed companies."""
        numbers = ".icp-candidates > ol .icp-name > .number"
        found: list[str] = await self.page.run(
            f'return page.locator("{numbers}").evaluateAll((all) => all.map((each) => each.lastChild.data))'
        )
        return found

    async def names(self) -> list[str]:
        """Return the names of the listed companies."""
        found: list[str] = await self.page.run(NAMES)
        return found


def text_of(name: str) -> str:
    """Return what a company says about itself."""
    return (
        f"{name} is a wholesaler in Singapore. Wholesale trade is our business: wholesale of food, "
        f"a wholesale distributor, importer and exporter. We are a team of 35 people. "
        f"Write to {mail_of(name)}, +65 6123 4567. "
    )


def mail_of(name: str) -> str:
    return f"sales@{name.partition(' ')[0].lower()}.example"


@pytest.fixture(scope="module")
def sites() -> Iterator[Sites]:
    with Sites(6) as started:
        yield started


@pytest.fixture(scope="module")
def web() -> Iterator[dict[str, Websites]]:
    with ExitStack() as up:
        found = {name: up.enter_context(websites()) for name in FIRMS}
        for name, site in found.items():
            site.pages["/"] = company_page(name, text_of(name) * 2)
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("icp-walk")


@pytest.fixture(scope="module")
def server(folder: Path, web: dict[str, Websites]) -> Iterator[Running]:
    results = [
        {"href": f"{site.url}/", "title": f"{name} | Home", "body": text_of(name)}
        for name, site in web.items()
    ]
    (folder / "web.json").write_text(json.dumps(results))
    config = json.loads((ROOT / "langgraph.json").read_text())
    graphs = {name: str((ROOT / each["path"]).resolve()) for name, each in config["graphs"].items()}
    graphs["web"] = f"{ROOT}/tests/support/made_up_web.py:graph"
    config |= {"graphs": graphs, "dependencies": [str(ROOT)]}
    config.pop("env")
    path = folder / "langgraph.json"
    path.write_text(json.dumps(config))
    env = {"ICP_WEB_SEARCH": "true", RESULTS: str(folder / "web.json"), "RUN_NOW_LIMIT": "2"}
    with icp_server(folder, path, **env) as started:
        yield started


@pytest.fixture
async def ann(server: Running, sites: Sites, folder: Path) -> AsyncIterator[Person]:
    person = Person(sites, folder)
    async with person.at(server):
        yield person


@pytest.fixture
async def walk(ann: Person, sites: Sites, web: dict[str, Websites]) -> AsyncIterator[Walk]:
    """A page on which the person has signed in."""
    token = headers(ann.tenant, ann.name)["authorization"].removeprefix("Bearer ")
    async with browser() as page:
        # A new tab has no storage before it has an address.
        keep = f'if (origin !== "null") sessionStorage.setItem("threadhold-token", "{token}")'
        await page.run(f"await context.addInitScript({json.dumps(keep)})")
        yield Walk(page, ann, sites, web)
        for site in web.values():
            site.gate.set()


@pytest.mark.timeout(600)
async def test_a_person_finds_companies_and_comes_back(walk: Walk, server: Running) -> None:
    await begins(walk, server)
    await gives_customers(walk)
    await corrects(walk)
    await searches(walk)
    rejected, kept = await judges(walk)
    await enriches(walk, kept)
    await takes_back(walk)
    await exports(walk, rejected, kept[-1])
    tab = await renews(walk, server)
    await finds_the_old_one_closed(walk)
    await searches_again(tab, rejected)
    await comes_back(tab, server)


async def begins(walk: Walk, server: Running) -> None:
    """Come for the first time, and name the own website."""
    await walk.page.visit(server)
    await walk.sees("No conversations yet.", at=".sidebar *")
    await walk.page.run('await page.getByRole("button", {name: /^ICP finder/}).click()')
    await walk.sees("The finder looks for companies like your best customers.", "Start fresh")
    field = 'page.getByLabel("Your company\'s website")'
    await walk.page.run(f'await {field}.fill("{walk.sites.urls[0]}")')
    await walk.presses("Continue or begin", "Which are your 5 best customers?")
    walk.ann.thread = await walk.page.thread()
    # Others of the company are told apart from it by its time.
    own = walk.sites.urls[0].removeprefix("http://")
    await walk.sees(own, at=".threads *")
    title = await walk.page.run('return page.locator("h1").innerText()')
    assert re.fullmatch(rf"{own} · \d+ \w+,? \d\d:\d\d", title), title
    await walk.sees(f"ICP finder{title.removeprefix(own)}", at=".threads *")
    assert await walk.count(".sidebar .hint") == 0


async def gives_customers(walk: Walk) -> None:
    """Give four customers in messages, and a fifth one by a button."""
    customers = walk.sites.urls[1:]
    await walk.says(customers[0], "I have 1 of 5 customers")
    await walk.says(" and ".join(customers[1:4]), "I have 4 of 5 customers")
    await walk.says("no more")
    await walk.sees("Search with this profile?", "Search with it", "Ideal customer profile")
    await walk.says(f"and {customers[4]}", "Whose website is")
    await walk.sees("Whose website is this?")
    assert await walk.count(".icp-question button") == 4
    assert await walk.count(".icp-question .primary") == 0
    await walk.presses("A customer of ours", "Search with this profile?")
    said = await walk.page.texts()
    assert "A customer of ours" in said
    assert "customer" not in said
    await walk.sees(customers[4].removeprefix("http://"), "Wholesale trade", at=".icp-profile li")


async def corrects(walk: Walk) -> None:
    """Correct the profile, and see it."""
    await walk.says("no, I meant Singapore")
    await walk.sees("I have changed:", "regions: any → Singapore", at=".message.ai *")
    # The profile is in its card, and not once more in the answer.
    assert "Wholesale trade" not in (await walk.page.texts())[-1]
    await walk.sees("Singapore", "Wholesale trade", at=".icp-profile li")
    await walk.sees("Search with this profile?", "proposed")


async def searches(walk: Walk) -> None:
    """Say yes, and see what is found."""
    await walk.says("yes", f"I have found {len(FIRMS)} companies like your customers; the best 2:")
    await walk.sees("Read their websites?", "Candidates", f"{len(FIRMS)} companies", "confirmed")
    names = await walk.names()
    assert len(names) == 5
    assert await walk.numbers() == [f"{at}." for at in range(1, 6)]
    # On a phone, the list is below the question that is about it, and one field takes the answer.
    await walk.resizes(375, 740)
    await walk.sees("Read their websites?", "Read them", "Candidates", names[0])
    assert await walk.count("main :is(input, textarea):visible") == 1
    await walk.resizes(1280, 800)
    await walk.sees("Read their websites?", "Candidates", f"{len(FIRMS)} companies", "confirmed")
    await walk.page.run('await page.getByRole("button", {name: /^Show all/}).click()')
    assert sorted(await walk.names()) == sorted(FIRMS)


async def judges(walk: Walk) -> tuple[str, list[str]]:
    """Reject the second company and keep the first one, and return the rejected and the other ones."""
    first, second, *others = await walk.names()
    gone = f"I no longer show {second} (because: it is too small)"
    await walk.says("reject 2 because it is too small", gone)
    await walk.sees(f"{len(FIRMS) - 1} companies")
    await walk.says("keep 1", f"I keep {first} and show it first.")
    await walk.page.until("Rejected companies (1)")
    assert await walk.names() == [first, *others]
    # Commands still mean the numbers of the list as it was said.
    assert await walk.numbers() == ["1.", "3.", "4.", "5.", "6."]
    # A command does not answer the question that waits, as the yes to the search did its own.
    answers = await walk.page.run('return page.locator(".answers li").allInnerTexts()')
    assert any("“yes” answered" in each for each in answers), answers
    assert not any("keep 1" in each or "reject 2" in each for each in answers), answers
    # The card counts those that would be read.
    facts = 'return page.locator(".icp-question dd").allInnerTexts()'
    assert await walk.page.run(facts) == [str(len(FIRMS) - 1)]
    return second, [first, *others]


async def enriches(walk: Walk, kept: list[str]) -> None:
    """Enrich by the button, stop what is read in the background, and go on with it."""
    late, broken = walk.web[kept[2]], kept[-1]
    late.gate.clear()
    del walk.web[broken].pages["/"]
    await walk.presses("Read them", "I have enriched 2 companies:", mail_of(kept[0]))
    await walk.sees("3 more are being enriched in the background.")
    await walk.page.until("“Read them” answered")
    assert "Read them" in await walk.page.texts()
    await walk.sees("Reading websites: 0 of 3", at=".icp-progress *")
    await walk.says("progress", "The enrichment in the background is running: 0 of 3 companies.")
    await walk.says("stop", "I have stopped the enrichment. What is enriched stays.")
    await walk.sees("Reading was stopped: 0 of 3", at=".icp-progress *")
    late.gate.set()
    await walk.says("enrich", "I have enriched 2 companies:")
    # What was enriched before it was asked for again is no part of what is left.
    await walk.sees("Websites read: 3 of 3", at=".icp-progress *")
    # The one that says nothing is in the list, with the reason.
    line = json.dumps(f'.icp-row:has-text("{broken}") .icp-contacts')
    said = await walk.page.run(f"return page.locator({line}).innerText()")
    assert said.startswith("Website not readable: ")
    assert "404" in said
    shown = await walk.page.run('return page.locator(".icp-contacts").allInnerTexts()')
    mails = {mail_of(name) for name in kept[:-1]}
    assert all(any(mail in line for line in shown) for mail in mails)
    # What is above is long by now. None of its answers may come back at the end.
    assert await walk.page.run('return page.locator(".column > .answers").count()') == 0


async def takes_back(walk: Walk) -> None:
    """Take back what was said last: that the first company is kept."""
    await walk.page.until("Accepted")
    await walk.says("undo", "I have taken back your last feedback.")
    await walk.page.run('await page.getByText("Accepted").waitFor({state: "detached"})')


async def exports(walk: Walk, rejected: str, broken: str) -> None:
    """Export the list as CSV: what was read is there, and what was rejected is last."""
    await walk.says("export", "“Export CSV” above the list")
    await walk.sees("Export CSV", at="button")
    await walk.page.run('await page.getByLabel("Sort by").selectOption("name")')
    names = await walk.names()
    assert names == sorted({*FIRMS} - {rejected}, key=str.lower)
    text = await walk.page.run(
        'const waiting = page.waitForEvent("download");'
        'await page.getByRole("button", {name: "Export CSV"}).click();'
        "const stream = await (await waiting).createReadStream();"
        "const parts = []; for await (const part of stream) parts.push(part);"
        "return Buffer.concat(parts).toString()"
    )
    rows = list(csv.DictReader(io.StringIO(text)))
    own = walk.sites.urls[0].removeprefix("http://")
    assert {row["company"] for row in rows} == {own}
    assert [row["rank"] for row in rows] == [str(at) for at in range(1, len(FIRMS) + 1)]
    assert {row["name"] for row in rows[:-1]} == set(names)
    assert (rows[-1]["name"], rows[-1]["enrichment"]) == (rejected, "")
    assert [row["verdict"] for row in rows] == [""] * len(names) + ["rejected"]
    assert [row["score_feedback"] for row in rows] == [""] * len(names) + ["-0.3"]
    for row in rows[:-1]:
        known = [row["enrichment"], row["size"], row["emails"], row["phones"], row["website"]]
        name = row["name"]
        site = walk.web[name].url
        if name == broken:
            assert known == ["unreadable", "", "", "", site]
        else:
            assert known == ["read", "11-50", mail_of(name), "'+65 6123 4567", site]


async def renews(walk: Walk, server: Running) -> Walk:
    """Begin a new session in another tab, while this one is about to reject a company."""
    page, old = walk.page, walk.ann.thread or ""
    await page.run(
        "globalThis.held = new Promise((go) => { globalThis.release = go; });"
        'await page.route("**/feedback", async (route) => { await held; await route.continue(); });'
        'await page.getByRole("button", {name: /^Reject: /}).first().click();'
        "globalThis.tab = await context.newPage();"
    )
    tab = Walk(Tab(page), walk.ann, walk.sites, walk.web)
    await tab.page.visit(server, f"?assistant=icp_finder&thread={old}")
    await tab.page.until("I have taken back your last feedback.")
    await tab.says("Regions: Singapore, Malaysia")
    await tab.sees("Change the profile?", "A new session makes this one read-only.")
    await tab.sees("Start a new session", at="button")
    await tab.page.click("Start a new session")
    await tab.page.run(f'await page.waitForURL((url) => !url.href.includes("{old}"))')
    await tab.sees("Search again?", "Welcome back! I remember")
    await tab.page.idle()
    # The person has written nothing here yet.
    assert await tab.count(".message.human") == 0
    assert (await walk.ann.metadata(old))["status"] == "locked"
    return tab


async def finds_the_old_one_closed(walk: Walk) -> None:
    """Look into the first tab: its request was refused, nothing can be changed, and it leads on."""
    old = walk.ann.thread
    await walk.page.run("release();")
    await walk.page.run(
        f'await page.locator(".icp-candidates .alert").getByText("{CLOSED}").waitFor()'
    )
    await walk.sees(CLOSED, at=".below *")
    await walk.sees("Read-only", at=".badge")
    for name in ("/^Reject: /", '"Edit profile"'):
        assert (
            await walk.page.run(f'return page.getByRole("button", {{name: {name}}}).count()') == 0
        )
    assert await walk.page.run('return page.getByText("Rejected companies (1)").count()') == 1
    await walk.presses("Resume in new thread")
    await walk.page.run('await page.getByText("Read-only").waitFor({state: "detached"})')
    await walk.sees("Search again?")
    walk.ann.thread = await walk.page.thread()
    assert walk.ann.thread != old


async def searches_again(tab: Walk, rejected: str) -> None:
    """Search in the new session: what was rejected stays so, and what was read stays known."""
    assert await tab.page.thread() == tab.ann.thread
    await tab.presses("Search again", "Read their websites?", f"{len(FIRMS) - 1} companies")
    await tab.sees("I have found 5 companies like your customers; the best 2:")
    assert rejected not in await tab.names()
    await tab.presses("Not now", "I have enriched nothing.")
    await tab.page.until("Rejected companies (1)")


async def comes_back(tab: Walk, server: Running) -> None:
    """Come back later: the open session goes on, and offers a search in place of its old one."""
    await tab.ann.work(lambda c: c.execute(_aged(tab.ann, discoveries, "discovered_at")))
    before = await _discovered(tab.ann)
    await tab.page.visit(server, "?assistant=icp_finder")
    await tab.sees("Leave it empty to continue where you were.")
    await tab.presses("Continue or begin", "5 companies")
    assert await tab.page.thread() == tab.ann.thread
    await tab.says("Hello again")
    await tab.sees("Search again?", "the last search is out of date")
    await tab.presses("Keep what there is", "5 companies")
    await tab.page.run('await page.locator(".icp-question").waitFor({state: "detached"})')
    await tab.page.idle()
    assert await _discovered(tab.ann) == before
    assert len(await tab.names()) == 5
