"""The investigation beside a conversation, in Chromium, without a model."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.axe import serious
from tests.support.browser import Page, browser
from tests.support.diagnosis import LOG
from tests.support.policy import SECRET
from tests.support.processes import ROOT, Running
from tests.support.proxy import proxied
from tests.support.served import client, served
from tests.support.tutor import NO_MODEL

pytestmark = [pytest.mark.usefixtures("web_build"), pytest.mark.only("sqlite")]

ASKED = f"Checkout answers 503, why?\n{LOG}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("diagnosis-page")
    config = {
        "graphs": {"diagnosis": f"{ROOT}/my_agent/diagnosis/graph.py:graph"},
        "auth": {"path": "hooks.auth:auth"},
        "sql": {"tenant_key": "tenant_id"},
    }
    path: Path = folder / "langgraph.json"
    path.write_text(json.dumps(config))
    with served(folder, path, **NO_MODEL, JWT_SECRET=SECRET) as started:
        yield started


@pytest.fixture
async def page(server: Running) -> AsyncIterator[Page]:
    async with browser() as opened:
        await opened.run(f"await page.goto({json.dumps(server.url + '/?assistant=diagnosis')})")
        yield opened


async def investigated(page: Page) -> str:
    """Paste the logs, and wait for the cause. Return the thread."""
    await page.say(ASKED)
    await page.run('await page.locator(".conclusion.found").waitFor()')
    await page.idle()
    thread: str = await page.run('return new URL(page.url()).searchParams.get("thread")')
    return thread


async def tab(page: Page, name: str) -> None:
    await page.run(f'await page.getByRole("tab", {{name: "{name}"}}).click()')


async def add_note(server: Running, thread: str, text: str) -> None:
    """Add a note as another person would."""
    async with client(server) as api:
        seq = (await api.get(f"/diagnosis/{thread}/state"))["seq"]
        answer = await api.http.post(
            f"/diagnosis/{thread}/events",
            json={"events": [{"text": text}]},
            headers={"if-match": str(seq)},
        )
        assert answer.status_code == 201, answer.text


async def test_evidence_opens_in_its_source(page: Page) -> None:
    await investigated(page)
    cause = 'page.locator(".cause").first()'
    assert "Confidence 95 %" in await page.run(f"return {cause}.innerText()")
    assert await page.run(f'return {cause}.locator(".tests .passed").count()') == 5
    await page.run(f'await {cause}.locator(".evidence.for").first().click()')
    drawer = 'page.getByRole("dialog")'
    await page.run(f'await {drawer}.getByText("request handled in 12 ms").waitFor()')
    marked = await page.run(f'return {drawer}.locator("mark").innerText()')
    assert (
        marked == "2026-03-02 09:40:00,000 ERROR [payments] write failed: No space left on device"
    )


async def test_slider_shows_the_state_at_that_moment(page: Page) -> None:
    await investigated(page)
    slider = 'page.getByRole("slider")'
    await page.run(f'await {slider}.fill("8")')
    await page.until("You see the investigation as it was after this event.")
    await page.run('await page.locator(".cause .badge", {hasText: "in test"}).waitFor()')
    assert await page.run('return page.locator(".conclusion.found, .cause .tests li").count()') == 0
    await page.run(f'await {slider}.press("ArrowLeft"); await {slider}.press("ArrowLeft")')
    await page.until("No cause was proposed at this moment.")
    await tab(page, "Timeline")
    await page.run('await page.locator(".timeline li").nth(3).waitFor()')
    assert await page.run('return page.locator(".timeline li").count()') == 4
    await page.run('await page.getByRole("button", {name: "Back to now"}).click()')
    await page.run('await page.locator(".conclusion.found").waitFor()')


async def test_log_follows_and_is_filtered(page: Page, server: Running) -> None:
    thread = await investigated(page)
    await tab(page, "Events")
    await add_note(server, thread, "The disk was grown.")
    await page.until("The disk was grown.")
    await page.run('await page.getByLabel("Kind").selectOption("note_added")')
    assert await page.run('return page.locator(".log li").count()') == 1
    await page.run('await page.getByLabel("Kind").selectOption("")')
    await page.run('await page.getByLabel("Find in the events").fill("full disk")')
    found = await page.run('return page.locator(".log li").allInnerTexts()')
    assert found
    assert all("full disk" in each for each in found)
    await page.run('await page.getByLabel("Find in the events").fill("nonsense")')
    await page.until("No event matches.")


async def test_events_of_an_outage_come_once_after_it(page: Page, server: Running) -> None:
    thread = await investigated(page)
    with proxied(int(server.url.rpartition(":")[2])) as proxy:
        query = f"?assistant=diagnosis&thread={thread}"
        await page.run(f'await page.goto("http://127.0.0.1:{proxy.port}/{query}")')
        await tab(page, "Events")
        await page.run('await page.locator(".log li").nth(20).waitFor()')
        proxy.cut()
        await add_note(server, thread, "Written meanwhile.")
        await page.until("Written meanwhile.")
        numbers = await page.run('return page.locator(".log .seq").allTextContents()')
        assert numbers == [str(each) for each in range(1, 23)]


async def test_pages_are_accessible_and_in_portuguese(page: Page) -> None:
    await investigated(page)
    for name in ("Causes", "Timeline", "Events"):
        await tab(page, name)
        assert await serious(page) == []
    # Arrows move between the tabs, as screen readers announce.
    await page.run('await page.getByRole("tab", {name: "Events"}).press("ArrowRight")')
    chosen = 'page.getByRole("tab", {name: "Causes", selected: true})'
    assert await page.run(f"return {chosen}.evaluate((e) => e === document.activeElement)")
    await page.run('await page.getByLabel("Language").selectOption("pt")')
    await page.until("Causa encontrada")


async def test_narrow_screens_show_one_of_both(page: Page) -> None:
    await investigated(page)
    await page.run("await page.setViewportSize({width: 390, height: 800})")
    assert not await page.run('return page.locator(".scroller").isVisible()')
    await page.run('await page.getByRole("button", {name: "Investigation"}).click()')
    assert await page.run('return page.locator(".scroller").isVisible()')
    wide = "return page.evaluate(() => document.documentElement.scrollWidth)"
    assert await page.run(wide) <= 390
