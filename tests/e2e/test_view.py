"""What is in the view while a person writes: their own message, and the end of the answer."""

import json
from typing import Any

import pytest

from tests.support.browser import Page
from tests.support.openai_replies import say
from tests.support.openai_server import OpenAIServer
from tests.support.processes import Running
from tests.support.web_app import store_conversation

pytestmark = pytest.mark.only("sqlite")

TURNS = 40
# Fills a phone's screen twice with each turn.
PARAGRAPHS = "\n\n".join(
    f"Paragraph {i} " + "of the answer, with some words more. " * 4 for i in range(8)
)

# Watches each frame. From the first in which a person's message is there, the view has it, or the end of the
# answer that has pushed it up.
_WATCH = """
await page.evaluate((text) => {
  const watched = window.watched = {seen: 0, lost: []};
  const look = () => {
    const box = document.querySelector(".scroller");
    const items = [...document.querySelectorAll(".message")];
    const own = items.findLast((each) => each.textContent.includes(text));
    if (own !== undefined && box !== null) {
      const frame = box.getBoundingClientRect();
      const last = items.at(-1).getBoundingClientRect();
      const mine = own.getBoundingClientRect();
      watched.seen++;
      const isMine = mine.top < frame.bottom && mine.bottom > frame.top;
      const isEnd = last.bottom > frame.top && last.bottom <= frame.bottom + 40;
      if (!isMine && !isEnd) watched.lost.push([box.scrollTop, box.scrollHeight, mine.top, last.bottom]);
    } else if (watched.seen > 0) watched.lost.push("gone");
  };
  // Sizes are observed last before a frame is painted, in the order of the observers' creation.
  const next = () => {
    if (window.watched !== watched) return;
    const last = new ResizeObserver(() => { last.disconnect(); look(); requestAnimationFrame(next); });
    last.observe(document.body);
  };
  requestAnimationFrame(next);
}, TEXT);
"""


@pytest.mark.parametrize("size", [(375, 700), (1280, 800)], ids=["phone", "desktop"])
async def test_own_message_is_in_view_after_each_send(
    page: Page, server: Running, endpoint: OpenAIServer, size: tuple[int, int]
) -> None:
    await page.fresh(viewport={"width": size[0], "height": size[1]})
    await page.visit(server, "?assistant=chat")
    for turn in range(TURNS):
        endpoint.fallback = say(f"{PARAGRAPHS}\n\nThe end of answer {turn}.")
        text = f"question number {turn}."
        await page.run(_WATCH.replace("TEXT", json.dumps(text)))
        await page.say(text)
        await page.until(f"The end of answer {turn}.")
        await page.idle()
        found: Any = await page.run("return page.evaluate(() => watched)")
        assert found["seen"] > 0
        assert found["lost"] == [], (turn, found)
    gap = 'const box = document.querySelector(".scroller"); return box.scrollHeight - box.clientHeight - box.scrollTop'
    assert await page.run(f"return page.evaluate(() => {{{gap}}})") < 80


async def test_who_scrolls_up_slowly_stays_there_while_the_answer_grows(
    page: Page, server: Running, endpoint: OpenAIServer
) -> None:
    gate = endpoint.gate()
    endpoint.fallback = say(PARAGRAPHS * 4, delay=0.01, gate=gate)
    gate.open(600)
    await page.visit(server, "?assistant=chat")
    await page.say("go on")
    box = 'document.querySelector(".scroller")'
    await page.run(f"await page.waitForFunction(() => {box}?.scrollTop > 400)")
    await page.run("await page.mouse.move(600, 300)")
    # As a finger on a trackpad does.
    await page.run(
        "for (let i = 0; i < 12; i++) { await page.mouse.wheel(0, -15); await page.waitForTimeout(16); }"
    )
    await page.run('await page.getByRole("button", {name: "To the end"}).waitFor()')
    line = f"return page.evaluate(() => {box}.scrollTop)"
    before: float = await page.run(line)
    gate.open(100_000)
    await page.idle()
    assert await page.run(line) == before
    await page.click("To the end")
    await page.run(
        f"await page.waitForFunction(() => {box}.scrollHeight - {box}.clientHeight - {box}.scrollTop < 80)"
    )


@pytest.mark.parametrize("width", [375, 1280])
async def test_a_long_conversation_opens_at_its_end(
    page: Page, server: Running, width: int
) -> None:
    thread = await store_conversation(server, [f"{PARAGRAPHS} Part {i}." for i in range(300)])
    await page.fresh(viewport={"width": width, "height": 700})
    await page.visit(server, f"?assistant=chat&thread={thread}")
    await page.until("Part 299.")
    await page.run(
        "await page.waitForFunction(() => {"
        '  const frame = document.querySelector(".scroller").getBoundingClientRect();'
        '  const last = [...document.querySelectorAll(".message")].at(-1).getBoundingClientRect();'
        "  return last.bottom > frame.top && last.bottom <= frame.bottom + 1;"
        "})"
    )


async def test_a_message_is_sent_where_the_browser_has_no_random_uuid(
    page: Page, server: Running
) -> None:
    """Browsers have it only on HTTPS and on the machine itself."""
    await page.run("await page.addInitScript(() => { delete Crypto.prototype.randomUUID; })")
    await page.visit(server, "?assistant=chat")
    await page.say("hello there")
    await page.until("Hello from the model.")
    assert await page.run("return page.evaluate(() => typeof crypto.randomUUID)") == "undefined"


async def test_only_the_conversation_is_printed(page: Page, server: Running) -> None:
    await page.visit(server, "?assistant=chat")
    await page.say("hello there")
    await page.until("Hello from the model.")
    await page.idle()
    await page.run('await page.emulateMedia({media: "print"})')
    shown = "return page.locator(SELECTOR).filter({visible: true}).count()"
    for hidden in (".sidebar", ".composer", ".tools", ".skip"):
        assert await page.run(shown.replace("SELECTOR", json.dumps(hidden))) == 0, hidden
    assert await page.run(shown.replace("SELECTOR", '".message"')) == 2
