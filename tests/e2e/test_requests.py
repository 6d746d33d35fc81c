"""What the page asks of the server: little for a message, nothing while nothing happens."""

import pytest

from tests.support.browser import Page
from tests.support.openai_replies import say
from tests.support.openai_server import OpenAIServer
from tests.support.processes import Running
from tests.support.served import client

pytestmark = pytest.mark.only("sqlite")

COUNT = """
globalThis.asked = [];
page.on("request", (request) => asked.push(request.method() + " " + new URL(request.url()).pathname));
"""
ASKED = "return asked.splice(0)"


async def test_a_message_takes_few_requests_and_an_idle_page_none(
    page: Page, server: Running, endpoint: OpenAIServer
) -> None:
    endpoint.fallback = say("First.")
    await page.run("await page.clock.install()")
    await page.visit(server, "?assistant=chat")
    await page.say("one")
    await page.until("First.")
    await page.idle()
    await page.settled()
    await page.run(COUNT)
    for number in range(2):
        endpoint.fallback = say(f"Answer {number}.")
        await page.say(f"question {number}")
        await page.until(f"Answer {number}.")
        await page.idle()
        await page.settled()
        asked = await page.run(ASKED)
        assert len(asked) <= 6, asked
    await page.run("await page.clock.fastForward(60_000)")
    await page.settled()
    assert await page.run(ASKED) == []


async def test_a_message_is_shown_before_the_server_has_it(
    page: Page, server: Running, endpoint: OpenAIServer
) -> None:
    endpoint.fallback = say("First.")
    await page.visit(server, "?assistant=chat")
    await page.say("one")
    await page.until("First.")
    await page.idle()
    await page.run("""
      globalThis.held = [];
      await page.route("**/runs", (route) => { held.push(route); });
    """)
    await page.say("a message on its way")
    await page.until("a message on its way")
    assert await page.run("return held.length") == 1
    endpoint.fallback = say("Arrived.")
    await page.run('await held[0].continue(); await page.unroute("**/runs");')
    await page.until("Arrived.")


async def test_other_tabs_hear_of_a_conversation(page: Page, server: Running) -> None:
    await page.visit(server)
    await page.run(
        f'globalThis.other = await context.newPage(); await other.goto("{server.url}/");'
        'await other.getByText("What do you want to do?").waitFor();'
    )
    async with client(server) as api:
        thread = await api.thread(graph_id="chat", title="Made elsewhere")
        row = 'getByRole("navigation").getByText("Made elsewhere").waitFor();'
        await page.run(f"await page.{row} await other.{row}")
        await api.http.delete(f"/threads/{thread}")
    gone = 'getByRole("navigation").getByText("Made elsewhere").waitFor({state: "detached"});'
    await page.run(f"await page.{gone} await other.{gone} await other.close();")
