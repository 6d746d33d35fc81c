"""Connections of the web app that break: each token once, in order, and no question twice."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.openai_replies import Gate, say
from tests.support.openai_server import OpenAIServer
from tests.support.processes import Running, free_port
from tests.support.proxy import Proxy, proxied
from tests.support.web_app import ANSWER, SLOWLY, model_environment, web_server, write_config

# The page is the same on both databases.
pytestmark = pytest.mark.only("sqlite")

WHOLE = ["count", ANSWER]
# Milliseconds. The client's own attempts may take 22 s.
LONG = 50_000


@pytest.fixture(scope="module")
def proxy(server: Running) -> Iterator[Proxy]:
    with proxied(int(server.url.rpartition(":")[2])) as opened:
        yield opened


@pytest.fixture
def gate(endpoint: OpenAIServer) -> Gate:
    """Hold the answer in the middle, however busy the machine is."""
    made = endpoint.gate()
    made.open(10)
    return made


@pytest.fixture
async def counting(
    page: Page, proxy: Proxy, endpoint: OpenAIServer, gate: Gate
) -> AsyncIterator[Page]:
    """Open a conversation through the proxy, in the middle of an answer."""
    endpoint.fallback = say(ANSWER, delay=SLOWLY, gate=gate)
    await page.run(f'await page.goto("http://127.0.0.1:{proxy.port}/?assistant=chat")')
    await page.say("count")
    await page.until("w5")
    yield page


async def whole(page: Page) -> None:
    """Wait for the end of the answer, and check that nothing is lost or repeated."""
    await page.run(f'await page.getByText("w59").first().waitFor({{timeout: {LONG}}})')
    await page.idle()
    assert await page.texts() == WHOLE


async def test_a_reload_in_mid_token(counting: Page, gate: Gate) -> None:
    await counting.run("await page.reload()")
    gate.open(50)
    await whole(counting)


async def test_a_cut_by_a_proxy(counting: Page, proxy: Proxy, gate: Gate) -> None:
    proxy.cut()
    gate.open(50)
    await whole(counting)


async def test_a_half_open_socket(counting: Page, proxy: Proxy, gate: Gate) -> None:
    proxy.silent = True
    gate.open(50)
    try:
        # The answer ends while nothing arrives.
        await asyncio.sleep(4)
        assert "w59" not in " ".join(await counting.texts())
    finally:
        proxy.silent = False
    # What was dropped would leave the connections without an end.
    await counting.run("await page.evaluate(() => dispatchEvent(new Event('online')))")
    await whole(counting)


async def test_a_long_sleep(counting: Page, proxy: Proxy, gate: Gate) -> None:
    """The machine sleeps: no timer runs, no event arrives, and its connections are gone."""
    await counting.run("globalThis.cdp = await context.newCDPSession(page);")
    await counting.run('await cdp.send("Page.setWebLifecycleState", {state: "frozen"})')
    proxy.cut()
    gate.open(50)
    await asyncio.sleep(4)
    await counting.run('await cdp.send("Page.setWebLifecycleState", {state: "active"})')
    await whole(counting)


async def test_four_tabs_of_one_browser(counting: Page, gate: Gate) -> None:
    """A server of HTTP/1.1 gets six connections of a browser."""
    await counting.run(
        "globalThis.tabs = [page];"
        "for (let i = 0; i < 3; i++) {"
        "  const tab = await context.newPage(); await tab.goto(page.url()); tabs.push(tab);"
        "}"
    )
    gate.open(50)
    await counting.run(
        f'await Promise.all(tabs.map((tab) => tab.getByText("w59").waitFor({{timeout: {LONG}}})));'
    )
    shown = await counting.run(
        "return Promise.all(tabs.map(async (tab) => {"
        '  await tab.getByRole("button", {name: "Stop"}).waitFor({state: "hidden"});'
        '  return tab.locator(".message :is(.bubble, .prose)").allInnerTexts();'
        "}))"
    )
    assert [[text.strip() for text in each] for each in shown] == [WHOLE] * 4


async def test_a_killed_server(page: Page, tmp_path: Path, endpoint: OpenAIServer) -> None:
    port, config = free_port(), write_config(tmp_path)
    env = model_environment(endpoint)
    endpoint.fallback = say(ANSWER, delay=SLOWLY)
    with web_server(tmp_path, config, port, **env) as first:
        await page.visit(first, "?assistant=chat")
        await page.say("count")
        await page.until("w5")
        first.process.kill()
        first.process.wait()
        with web_server(tmp_path, config, port, **env):
            await whole(page)


async def test_what_is_sent_meanwhile_is_sent_when_the_server_is_back(
    page: Page, tmp_path: Path, endpoint: OpenAIServer
) -> None:
    port, config = free_port(), write_config(tmp_path)
    env = model_environment(endpoint)
    endpoint.fallback = say("An answer.")
    with web_server(tmp_path, config, port, **env) as first:
        await page.visit(first, "?assistant=chat")
        await page.say("before")
        await page.until("An answer.")
        await page.idle()
    await page.say("given up")
    await page.until("The server does not answer.")
    # It is shown, and a person who does not want to wait gets it back.
    assert (await page.texts())[-1] == "given up"
    await page.click("Stop")
    box = 'page.getByLabel("Message", {exact: true})'
    await page.run(
        f'await page.waitForFunction((box) => box.value === "given up", await {box}.elementHandle())'
    )
    await page.run(f'await {box}.fill("")')
    await page.say("meanwhile")
    await page.until("The server does not answer.")
    with web_server(tmp_path, config, port, **env) as second:
        await page.run('await page.locator(".message").nth(3).waitFor()')
        await page.idle()
        assert await page.texts() == ["before", "An answer.", "meanwhile", "An answer."]
        assert second.process.poll() is None


async def test_a_conversation_begins_when_the_server_is_back(
    page: Page, tmp_path: Path, endpoint: OpenAIServer
) -> None:
    port, config = free_port(), write_config(tmp_path)
    env = model_environment(endpoint)
    endpoint.fallback = say("An answer.")
    with web_server(tmp_path, config, port, **env) as first:
        await page.visit(first, "?assistant=chat")
        await page.settled()
    await page.say("the first one")
    await page.until("The server does not answer.")
    await page.run('await page.locator(".message .bubble", {hasText: "the first one"}).waitFor()')
    with web_server(tmp_path, config, port, **env):
        await page.until("An answer.")
        await page.idle()
        assert await page.texts() == ["the first one", "An answer."]
        await page.visit(first, "?assistant=asking")
        await page.settled()
    await page.say("string")
    await page.until("The server does not answer.")
    await page.click("Stop")
    box = 'page.getByLabel("Message", {exact: true})'
    assert await page.run(f"await {box}.waitFor(); return {box}.inputValue()") == "string"
    await page.run('await page.keyboard.press("Enter")')
    with web_server(tmp_path, config, port, **env):
        await page.until("What is your name?")


async def test_a_deploy_while_a_question_waits(
    page: Page, tmp_path: Path, endpoint: OpenAIServer
) -> None:
    port, config = free_port(), write_config(tmp_path)
    env = model_environment(endpoint)
    with web_server(tmp_path, config, port, **env) as first:
        await page.visit(first, "?assistant=asking")
        await page.say("string")
        await page.until("A question for you")
    await page.run('await page.getByLabel("Your answer").fill("before the deploy")')
    with web_server(tmp_path, config, port, **env) as second:
        await page.run('await page.getByRole("button", {name: "Answer", exact: true}).click()')
        await page.until("“before the deploy” answered this minute by developer")
        asked = 'return page.getByRole("region", {name: "A question for you"}).count()'
        assert await page.run(asked) == 0
        await page.run("await page.reload()")
        await page.until("“before the deploy” answered this minute by developer")
        assert await page.run(asked) == 0
        assert second.process.poll() is None
