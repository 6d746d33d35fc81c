"""The page of a research project in Chromium, offline, against a web on loopback."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.axe import serious
from tests.support.browser import Page, browser
from tests.support.research import ARTICLES, QUESTION, World, fetched, publish
from tests.support.websites import Page as Website
from tests.support.websites import websites

pytestmark = [pytest.mark.usefixtures("web_build"), pytest.mark.only("sqlite")]


# Articles wait for this event; the feed does not.
_released = threading.Event()


def hold(page: Website) -> None:
    """Make a page wait until it is released."""
    content = page.body
    assert isinstance(content, bytes)

    def body() -> bytes:
        _released.wait(30)
        return content

    page.body = body


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with websites() as web:
        env = {
            "RESEARCH_FEEDS": publish(web, "news", ARTICLES),
            "RESEARCH_PARALLEL": "1",
            "RESEARCH_HEARTBEAT_SECONDS": "0.2",
        }
        for path in [each for each in web.pages if not each.endswith("/feed")]:
            hold(web.pages[path])
        made = World(tmp_path_factory.mktemp("research-page"), web, env)
        made.start()
        yield made
        _released.set()
        made.stop()


@pytest.fixture
async def page(world: World) -> AsyncIterator[Page]:
    _released.set()
    world.web.asked.clear()
    async with browser() as opened:
        yield opened


async def visit(page: Page, world: World, query: str = "?assistant=research") -> None:
    assert world.server is not None
    await page.run(f"await page.goto({json.dumps(world.server.url + '/' + query)})")


async def begin(page: Page, world: World, *, clicks: int = 1) -> None:
    """Ask the question, and wait until the project's page is shown."""
    await visit(page, world)
    await page.run(f'await page.getByLabel("Question").fill({json.dumps(QUESTION)})')
    button = 'page.getByRole("button", {name: "Start the research"})'
    await page.run(f"await {button}.click({{clickCount: {clicks}}})")
    await page.run('await page.locator(".research").waitFor()')


async def reading(page: Page, world: World) -> None:
    """Begin a project, and wait until it waits for a page."""
    _released.clear()
    await begin(page, world)
    await page.run(
        'await page.locator(".stages li", {hasText: "Read"}).getByText("/4").waitFor();'
        'await page.locator(".item").getByText("/news/").waitFor()'
    )


async def click(page: Page, name: str) -> None:
    found = f'page.getByRole("button", {{name: {json.dumps(name)}, exact: true}}).first()'
    await page.run(f"await {found}.click()")


async def status(page: Page, word: str) -> None:
    """Wait until the project's badge says this."""
    await page.run(f'await page.locator(".badge", {{hasText: {json.dumps(word)}}}).waitFor()')


async def test_double_click_starts_one_project_whose_report_comes_by_itself(
    page: Page, world: World
) -> None:
    listed = 'return page.getByLabel("Options: What does Skarra").count()'
    await visit(page, world)
    before = await page.run(listed)
    await begin(page, world, clicks=2)
    await page.run('await page.locator(".report").waitFor()')
    await status(page, "Complete")
    assert sorted(fetched(world.web)) == sorted(ARTICLES)
    assert await page.run(listed) == before + 1
    said = await page.run('return page.locator(".report section li").allInnerTexts()')
    assert "Skarra lacks a mobile app." in " ".join(said)


async def test_pause_keeps_what_was_read_and_resume_continues(page: Page, world: World) -> None:
    await reading(page, world)
    await click(page, "Pause")
    await status(page, "Pausing")
    _released.set()
    await status(page, "Paused")
    assert len(fetched(world.web)) < len(ARTICLES)
    await click(page, "Resume")
    await page.run('await page.locator(".report").waitFor()')
    assert sorted(fetched(world.web)) == sorted(ARTICLES)


async def test_cancel_asks_first_and_leaves_a_partial_report(page: Page, world: World) -> None:
    await reading(page, world)
    await click(page, "Cancel")
    await click(page, "Keep going")
    await status(page, "Working")
    await click(page, "Cancel")
    await click(page, "Cancel the project")
    _released.set()
    await status(page, "Cancelled")
    await click(page, "Resume")
    await page.run('await page.locator(".report").waitFor()')
    await status(page, "Complete")


async def test_finish_reports_what_there_is(page: Page, world: World) -> None:
    await reading(page, world)
    await click(page, "Finish now")
    await status(page, "Finishing")
    _released.set()
    await page.run('await page.locator(".report").waitFor()')
    assert len(fetched(world.web)) < len(ARTICLES)


async def test_a_reload_and_a_killed_server_lose_nothing(page: Page, world: World) -> None:
    await reading(page, world)
    await page.run("await page.reload()")
    await status(page, "Working")
    world.kill()
    await page.until("The connection was lost.")
    _released.set()
    await asyncio.to_thread(world.start)
    await page.run('await page.locator(".report").waitFor({timeout: 50000})')
    await status(page, "Complete")
    lost = await page.run('return page.getByText("The connection was lost.").count()')
    assert lost == 0


async def test_each_statement_opens_its_quote_in_its_page(page: Page, world: World) -> None:
    await begin(page, world)
    await page.run('await page.locator(".report").waitFor()')
    statement = "Skarra lacks a mobile app."
    row = f'page.locator(".report section li", {{hasText: "{statement}"}})'
    await page.run(f"await {row}.getByRole('button').click()")
    drawer = 'page.getByRole("dialog")'
    await page.run(f'await {drawer}.getByText("The competitor Heron").waitFor()')
    assert await page.run(f"return {drawer}.locator('mark').innerText()") == statement
    assert await page.run(f"return {drawer}.getByText('/news/market').count()") == 1
    # The pages of the web learn nothing of the one that links to them.
    links = "return page.locator('.research a').evaluateAll((all) => all.map((each) => each.rel))"
    assert set(await page.run(links)) == {"noopener noreferrer"}
    await page.run('await page.keyboard.press("Escape")')
    assert await page.run(f"return {drawer}.count()") == 0
    focused = await page.run("return page.evaluate(() => document.activeElement.ariaLabel)")
    assert focused.startswith("Quote ")


async def test_the_report_is_drawn_downloaded_and_printed(
    page: Page, world: World, tmp_path: Path
) -> None:
    await begin(page, world)
    await page.run('await page.locator(".diagram svg").nth(1).waitFor()')
    drawn = await page.run('return page.locator(".diagram svg script, .diagram [onclick]").count()')
    assert drawn == 0
    file = tmp_path / "report.md"
    await page.run(
        'const wanted = page.waitForEvent("download");'
        'await page.getByRole("button", {name: "Download as Markdown"}).click();'
        f"await (await wanted).saveAs({json.dumps(str(file))})"
    )
    assert "Skarra lacks a mobile app. [" in file.read_text()
    await page.run('await page.emulateMedia({media: "print"})')
    await page.run('await page.evaluate(() => dispatchEvent(new Event("beforeprint")))')
    assert await page.run('return page.locator(".quotes li").first().isVisible()')
    assert not await page.run('return page.locator(".sidebar").isVisible()')
    assert not await page.run('return page.getByRole("button", {name: "Print"}).isVisible()')


async def test_pages_are_accessible_and_in_portuguese(page: Page, world: World) -> None:
    await visit(page, world)
    await page.run('await page.getByLabel("Question").waitFor()')
    assert await serious(page) == []
    await reading(page, world)
    assert await serious(page) == []
    _released.set()
    await page.run('await page.locator(".diagram svg").nth(1).waitFor()')
    assert await serious(page) == []
    await page.run('await page.getByLabel("Language").selectOption("pt")')
    await page.until("Descarregar em Markdown")
    await status(page, "Completo")
