"""The web app in Chromium, against a server with a scripted model."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from server.settings import Settings
from server.token import sign
from tests.support.browser import WEB, Page, browser
from tests.support.openai_replies import say
from tests.support.openai_server import OpenAIServer
from tests.support.policy import SECRET
from tests.support.processes import GRAPHS, ROOT, Running, environment, free_port, threadhold
from tests.support.processes import running as run
from tests.support.served import client, served
from tests.support.tutor import NO_MODEL, of_endpoint

pytestmark = [pytest.mark.usefixtures("web_build"), pytest.mark.only("sqlite")]

ANSWER = " ".join(f"w{i}" for i in range(60))
SLOWLY = 0.08


def write_config(folder: Path) -> Path:
    graphs = {
        each: f"{ROOT}/my_agent/{each}/graph.py:graph" for each in ("chat", "tutor", "icp_finder")
    }
    graphs["interrupt"] = f"{GRAPHS}/interrupt.py:graph"
    config = {
        "graphs": graphs,
        "auth": {"path": "hooks.auth:auth"},
        "sql": {"hooks": "hooks.threads:policy", "tenant_key": "tenant_id"},
    }
    path = folder / "langgraph.json"
    path.write_text(json.dumps(config))
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, endpoint: OpenAIServer) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("web")
    env = {**NO_MODEL, **of_endpoint(endpoint), "JWT_SECRET": SECRET}
    with served(folder, write_config(folder), **env) as started:
        yield started


@pytest.fixture
async def page(server: Running, endpoint: OpenAIServer) -> AsyncIterator[Page]:
    endpoint.fallback = say("Hello from the model.")
    async with browser() as opened:
        yield opened


async def visit(page: Page, server: Running, query: str = "") -> None:
    await page.run(f"await page.goto({json.dumps(server.url + '/' + query)})")


async def test_a_conversation_can_be_edited_repeated_and_switched(
    page: Page, server: Running, endpoint: OpenAIServer
) -> None:
    await visit(page, server, "?assistant=chat")
    await page.say("first question")
    await page.until("Hello from the model.")
    await page.idle()
    await page.run('await page.getByRole("button", {name: "Edit"}).click()')
    await page.run('await page.locator(".edit textarea").fill("better question")')
    endpoint.fallback = say("Another answer.")
    await page.run('await page.locator(".edit .primary").click()')
    await page.until("Another answer.")
    await page.idle()
    await page.run('await page.getByLabel("Previous version").first().click()')
    assert await page.texts() == ["first question", "Hello from the model."]
    await page.run('await page.getByLabel("Next version").first().click()')
    assert await page.texts() == ["better question", "Another answer."]
    endpoint.fallback = say("A third answer.")
    await page.run('await page.getByRole("button", {name: "Answer again"}).click()')
    await page.until("A third answer.")
    await page.idle()
    assert await page.texts() == ["better question", "A third answer."]


async def test_a_reload_in_mid_token_shows_each_token_once(
    page: Page, server: Running, endpoint: OpenAIServer
) -> None:
    endpoint.fallback = say(ANSWER, delay=SLOWLY)
    await visit(page, server, "?assistant=chat")
    await page.say("count")
    await page.until("w5")
    await page.run("await page.reload()")
    await page.until("w59")
    await page.idle()
    assert await page.texts() == ["count", ANSWER]


async def test_messages_sent_meanwhile_wait_on_the_server(
    page: Page, server: Running, endpoint: OpenAIServer
) -> None:
    endpoint.fallback = say(ANSWER, delay=SLOWLY)
    await visit(page, server, "?assistant=chat")
    await page.say("one")
    await page.until("w5")
    await page.say("two")
    await page.say("three")
    await page.run('await page.locator(".pending li").nth(1).waitFor()')
    await page.run("await page.reload()")
    await page.run('await page.locator(".pending li").nth(1).waitFor()')
    shown = await page.run('return page.locator(".pending li .clip").allInnerTexts()')
    assert shown == ["two", "three"]
    await page.run('await page.locator(".pending li button").nth(1).click()')
    await page.run('await page.locator(".pending li").nth(1).waitFor({state: "detached"})')
    endpoint.fallback = say("The second answer.")
    await page.until("The second answer.")
    await page.idle()
    assert await page.texts() == ["one", ANSWER, "two", "The second answer."]


async def test_stop_ends_the_run_on_the_server_after_a_reload(
    page: Page, server: Running, endpoint: OpenAIServer
) -> None:
    endpoint.fallback = say(ANSWER * 20, delay=SLOWLY)
    await visit(page, server, "?assistant=chat")
    await page.say("long")
    await page.until("w5")
    await page.run("await page.reload()")
    await page.until("w7")
    await page.run('await page.getByRole("button", {name: "Stop"}).click()')
    await page.idle()
    thread = await page.run('return new URL(page.url()).searchParams.get("thread")')
    async with client(server) as api:
        runs = await api.get(f"/threads/{thread}/runs")
    assert [each["status"] for each in runs] == ["interrupted"]


async def test_a_killed_server_loses_and_repeats_nothing(
    tmp_path: Path, endpoint: OpenAIServer
) -> None:
    port = free_port()
    command = threadhold("serve", "--config", write_config(tmp_path), "--port", str(port))
    command += ["--database-url", f"sqlite:///{tmp_path / 'data.db'}"]
    env = environment(**{**NO_MODEL, **of_endpoint(endpoint), "JWT_SECRET": SECRET})
    endpoint.fallback = say(ANSWER, delay=SLOWLY)
    async with browser() as page:
        with run(command, port, tmp_path, env) as first:
            await visit(page, first, "?assistant=chat")
            await page.say("count")
            await page.until("w5")
            first.process.kill()
            first.process.wait()
            with run(command, port, tmp_path, env):
                began = time.monotonic()
                await page.run('await page.getByText("w59").waitFor({timeout: 50000})')
                await page.idle()
                assert await page.texts() == ["count", ANSWER]
                assert time.monotonic() - began < 45


async def test_questions_are_answered_in_the_inbox(page: Page, server: Running) -> None:
    await visit(page, server, "?assistant=interrupt")
    await page.say("please ask")
    await page.until("A question for you")
    thread = await page.run('return new URL(page.url()).searchParams.get("thread")')
    await page.run('await page.getByRole("button", {name: "Inbox"}).click()')
    await page.run('await page.getByLabel("Your own answer").fill("certainly")')
    await page.run('await page.getByRole("button", {name: "Answer", exact: true}).click()')
    await page.until("Nothing waits for you.")
    await visit(page, server, f"?assistant=interrupt&thread={thread}")
    await page.until("“certainly” answered this minute by developer")
    asked = 'return page.getByRole("region", {name: "A question for you"}).count()'
    assert await page.run(asked) == 0


async def test_a_thread_is_renamed_archived_and_deleted(page: Page, server: Running) -> None:
    await visit(page, server, "?assistant=chat")
    await page.say("name me")
    await page.until("Hello from the model.")
    await page.run('await page.getByLabel("Options: name me").click()')
    await page.run('await page.getByRole("button", {name: "Rename"}).click()')
    await page.run('await page.getByLabel("Rename").fill("A better name")')
    await page.run('await page.keyboard.press("Enter")')
    await page.run('await page.getByLabel("Options: A better name").click()')
    await page.run('await page.getByRole("button", {name: "Archive"}).click()')
    await page.run('await page.getByLabel("Options: A better name").waitFor({state: "detached"})')
    await page.run('await page.getByLabel("Show archived").check()')
    await page.run('await page.getByLabel("Options: A better name").click()')
    await page.run('await page.getByRole("button", {name: "Delete"}).click()')
    await page.run('await page.getByRole("alertdialog").getByText("Delete", {exact: true}).click()')
    await page.run('await page.getByLabel("Options: A better name").waitFor({state: "detached"})')
    assert "thread=" not in await page.run("return page.url()")


async def test_the_tutor_shows_its_correction(
    page: Page, server: Running, endpoint: OpenAIServer
) -> None:
    endpoint.fallback = say("Well said.")
    await visit(page, server, "?assistant=tutor")
    await page.say("I has a apple.")
    await page.run('await page.locator(".correction ins").first().waitFor()')
    assert await page.run('return page.locator(".correction del").allInnerTexts()') == ["has", "a"]


async def test_models_cannot_inject_html_images_or_links(
    page: Page, server: Running, endpoint: OpenAIServer
) -> None:
    bad = (
        "<img src=x onerror=alert(1)> ![spy](https://evil.example/a.png) [js](javascript:alert(1)) "
        "[fine](https://good.example/) end."
    )
    endpoint.fallback = say(bad)
    await visit(page, server, "?assistant=chat")
    await page.say("attack")
    await page.until("end.")
    await page.idle()
    assert await page.run('return page.locator(".prose img").count()') == 0
    links = 'return page.locator(".prose a").evaluateAll((all) => all.map((a) => a.href))'
    assert await page.run(links) == ["https://good.example/"]


async def test_a_deployment_asks_for_a_token(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    with served(tmp_path, config, **NO_MODEL, JWT_SECRET=SECRET, APP_ENV="production") as server:
        async with browser() as page:
            await visit(page, server)
            await page.run('await page.getByLabel("Token").fill("wrong")')
            await page.run('await page.keyboard.press("Enter")')
            await page.until("The server refuses this token.")
            token = sign(Settings(_env_file=None, jwt_secret=SECRET), "acme", "ada", (), 600)
            await page.run(f'await page.getByLabel("Token").fill("{token}")')
            await page.run('await page.keyboard.press("Enter")')
            await page.until("What do you want to do?")
            assert token not in await page.run("return page.url()")


@pytest.mark.parametrize("query", ["", "?assistant=chat", "?view=inbox", "?assistant=icp_finder"])
async def test_pages_have_no_serious_accessibility_problem(
    page: Page, server: Running, query: str
) -> None:
    axe = (WEB / "node_modules" / "axe-core" / "axe.min.js").read_text()
    for scheme in ("light", "dark"):
        await page.run(f'await page.emulateMedia({{colorScheme: "{scheme}"}})')
        await visit(page, server, query)
        await page.run('await page.locator("main :is(h1, .empty)").first().waitFor()')
        await page.run(f"await page.evaluate({json.dumps(axe)})")
        found = await page.run(
            "const {violations} = await page.evaluate(() => axe.run());"
            'return violations.filter((each) => ["serious", "critical"].includes(each.impact))'
            ".map((each) => [each.id, each.nodes.map((node) => node.html).slice(0, 3)])"
        )
        assert found == []
