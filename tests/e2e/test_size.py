"""Long conversations and many of them: the page renders only what is near the view."""

import asyncio

import pytest

from tests.support.browser import Page
from tests.support.processes import Running
from tests.support.served import client
from tests.support.web_app import store_conversation

# The page is the same on both databases.
pytestmark = pytest.mark.only("sqlite")

# Scrolls through all messages, a view at a time, and returns the ids in the order of their
# appearance. Each step waits until messages cover the view: a busy machine renders them some
# frames later.
THROUGH = """
return page.locator(".scroller").evaluate(async (box) => {
  const frame = () => new Promise(requestAnimationFrame);
  const isAtEnd = () => box.scrollTop + box.clientHeight >= box.scrollHeight - 1;
  const covers = () => {
    const items = [...box.querySelectorAll(".message")];
    if (items.length === 0) return false;
    const view = box.getBoundingClientRect();
    // The spacer before the items has no height where they begin with the first message.
    const isFirst = items[0].previousElementSibling.getBoundingClientRect().height === 0;
    const isAbove = isFirst || items[0].getBoundingClientRect().top <= view.top;
    const isBelow = items.at(-1).getBoundingClientRect().bottom >= view.bottom || isAtEnd();
    return isAbove && isBelow;
  };
  const seen = new Set();
  box.scrollTop = 0;
  for (;;) {
    do await frame(); while (!covers());
    for (const item of box.querySelectorAll(".message")) seen.add(item.dataset.key);
    if (isAtEnd()) return [...seen];
    box.scrollTop += box.clientHeight - 100;
  }
})
"""

# Elements; a view and what is just outside of it hold far fewer.
FEW = 60


async def test_a_thousand_messages_render_only_those_in_view(page: Page, server: Running) -> None:
    thread = await store_conversation(server, [f"message {i}. " * 9 for i in range(1000)])
    await page.visit(server, f"?assistant=chat&thread={thread}")
    await page.until("message 999.")
    rendered = 'return page.locator(".message").count()'
    assert await page.run(rendered) < FEW
    await page.run('await page.locator(".scroller").evaluate((box) => {box.scrollTop = 0})')
    await page.until("message 0.")
    assert await page.run(rendered) < FEW
    await page.click("To the end")
    await page.run('await page.getByText("message 999.").first().waitFor()')
    # The way through the whole conversation shows each message once, in order.
    order = await page.run(THROUGH)
    wanted = [f"m{i}" for i in range(1000)]
    assert [key for key in order if key in set(wanted)] == wanted


async def test_all_messages_are_printed(page: Page, server: Running) -> None:
    thread = await store_conversation(server, [f"message {i}. " * 9 for i in range(200)])
    await page.visit(server, f"?assistant=chat&thread={thread}")
    await page.until("message 199.")
    count = """() => document.querySelectorAll(".message").length"""
    await page.run(
        "globalThis.printed = 0; await page.exposeFunction('print', (count) => { printed = count });"
        "await page.evaluate(() => addEventListener('beforeprint', () => {"
        "  print(document.querySelectorAll('.message').length);"
        "}));"
        "await page.pdf();"
    )
    # The run that stores them has an answer of its own.
    assert await page.run("return printed") == 201
    await page.run(f"await page.waitForFunction(() => ({count})() < {FEW})")


async def test_five_hundred_threads_render_only_those_in_view(page: Page, server: Running) -> None:
    async with client(server) as api:
        for start in range(0, 500, 50):
            titles = [f"thread {i}" for i in range(start, start + 50)]
            await asyncio.gather(*(api.thread(graph_id="chat", title=each) for each in titles))
    await page.visit(server)
    await page.run('await page.locator(".threads li").first().waitFor()')
    rows = 'return page.locator(".threads li").count()'
    assert await page.run(rows) < FEW
    await page.run('await page.locator(".threads").evaluate((box) => {box.scrollTop = 1e6})')
    await page.run('await page.getByText("Load older conversations").waitFor()')
    assert await page.run(rows) < FEW
    await page.run('await page.getByLabel("Search conversations").fill("thread 7")')
    await page.run('await page.getByText("thread 7", {exact: true}).first().waitFor()')
