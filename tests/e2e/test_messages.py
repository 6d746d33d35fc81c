"""What messages of any graph look like: calls of tools, content blocks and Markdown."""

import json
from collections.abc import Iterator

import pytest

from tests.support.axe import serious
from tests.support.browser import Page
from tests.support.processes import GRAPHS, Running
from tests.support.served import served

pytestmark = pytest.mark.only("sqlite")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("messages")
    config = folder / "langgraph.json"
    config.write_text(json.dumps({"graphs": {"messages": f"{GRAPHS}/messages.py:graph"}}))
    with served(folder, config) as started:
        yield started


async def _ask(page: Page, server: Running, text: str, until: str) -> None:
    await page.visit(server, "?assistant=messages")
    await page.say(text)
    await page.until(until)
    await page.idle()


async def test_a_call_of_a_tool_is_a_line_that_opens_by_key(page: Page, server: Running) -> None:
    await _ask(page, server, "tools", "Done.")
    summaries = 'page.locator(".message summary")'
    assert await page.run(f"return {summaries}.allInnerTexts()") == [
        "Used search_web\nquery: lisbon, near: …",
        "Used book\nFailed",
    ]
    await page.run(f'await {summaries}.first().focus(); await page.keyboard.press("Enter");')
    await page.run('await page.getByText("cities", {exact: true}).waitFor()')
    assert await page.run('return page.getByText("hidden words").count()') == 0
    # The stream leaves the name out, and the state has it.
    await page.run('await page.locator(".agent").getByText("scout").first().waitFor()')
    assert await serious(page) == []


async def test_what_a_person_opens_stays_under_the_pointer_and_is_readable_on_a_phone(
    page: Page, server: Running
) -> None:
    await page.fresh(viewport={"width": 375, "height": 420})
    await _ask(page, server, "tools", "Done.")
    gap = (
        "page.evaluate(() => { const box = document.querySelector('.scroller');"
        " return box.scrollHeight - box.clientHeight - box.scrollTop; })"
    )
    line = 'page.locator(".message summary").first()'
    # The view is at the end, which it follows.
    before, after, left, width = await page.run(
        f"await {line}.scrollIntoViewIfNeeded(); const start = await {gap};"
        f"const before = await {line}.boundingBox(); await {line}.click();"
        ' await page.getByText("cities", {exact: true}).waitFor();'
        " await page.evaluate(() => new Promise((done) =>"
        "  requestAnimationFrame(() => requestAnimationFrame(done))));"
        f"const after = await {line}.boundingBox();"
        ' const value = await page.getByText("5", {exact: true}).boundingBox();'
        "return [before.y, after.y, start, value.width + value.x]"
    )
    assert left < 80
    assert abs(after - before) < 2
    assert width < 375
    assert await page.run(f"return await {gap}") > left


async def test_words_of_a_wide_table_are_whole_on_a_phone(page: Page, server: Running) -> None:
    await page.fresh(viewport={"width": 375, "height": 700})
    await _ask(page, server, "markdown", "The note.")
    lines = """return page.evaluate(() => [...document.querySelectorAll("td, th")].map((each) => {
      const words = document.createRange();
      words.selectNodeContents(each);
      return [each.innerText, words.getClientRects().length];
    }))"""
    broken = [text for text, count in await page.run(lines) if count > len(text.split())]
    assert broken == []


async def test_the_parts_of_a_message_are_shown_and_load_nothing_of_others(
    page: Page, server: Running
) -> None:
    await page.run(
        'context.asked = []; page.on("request", (each) => context.asked.push(each.url()))'
    )
    await _ask(page, server, "blocks", "A picture:")
    await page.run('await page.locator("img.thumbnail").evaluate((image) => image.decode())')
    await page.run('await page.locator(".reasoning summary").click()')
    await page.until("I think first.")
    await page.until("hologram")
    saved = await page.run(
        'const [file] = await Promise.all([page.waitForEvent("download"),'
        ' page.getByRole("button", {name: "Download"}).click()]); return file.suggestedFilename()'
    )
    assert saved == "a.txt"
    await page.run('await page.getByRole("link", {name: "spy.example"}).waitFor()')
    assert not [each for each in await page.run("return context.asked") if "spy" in each]
    assert await serious(page) == []


async def test_markdown_has_its_parts_and_runs_nothing(page: Page, server: Running) -> None:
    await _ask(page, server, "markdown", "The note.")
    for part in (".tok-keyword", ".formula .katex-html", ".diagram svg", "details summary"):
        await page.run(f"await page.locator({json.dumps('.prose ' + part)}).first().waitFor()")
    await page.run(
        'await page.locator("summary").click(); await page.getByText("inside").waitFor()'
    )
    await page.until("for $5 or $10")
    await page.run('await page.getByRole("link", {name: "Up"}).click()')
    assert (
        await page.run("return page.evaluate(() => document.activeElement.textContent)") == "Title"
    )
    assert "#" not in await page.run("return page.url()")
    assert await page.run("return page.evaluate(() => window.hacked ?? null)") is None
    assert await page.run('return page.locator(".prose img, .prose script").count()') == 0
    assert await serious(page) == []
