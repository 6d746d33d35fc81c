"""Each page of the shell: keyboard, safe rendering, the pictures of the documentation."""

import os
import shutil
from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.openai_replies import say
from tests.support.openai_server import OpenAIServer
from tests.support.processes import ROOT, Running
from tests.support.served import client
from tests.support.web_app import REPLY

# The page is the same on both databases.
pytestmark = pytest.mark.only("sqlite")

ASSETS = ROOT / "docs" / "assets"
MOST_BYTES = 150_000
SHAPES = {"wide": {"width": 1280, "height": 800}, "narrow": {"width": 390, "height": 780}}


async def fill(server: Running) -> dict[str, str]:
    """Make threads of several kinds, and return their ids by name."""
    found: dict[str, str] = {}
    async with client(server) as api:
        for title in ("Offer for Ines", "Plan of the week", "Notes on the pricing page"):
            found[title] = await api.thread(graph_id="chat", title=title)
        message = {"type": "human", "content": "What does a runtime keep?", "id": "m1"}
        thread = await api.thread(graph_id="chat", title="What does a runtime keep?")
        run = await api.run(thread, "chat", {"messages": [message]})
        await api.ended(thread, run)
        found["conversation"] = thread
        asking = await api.thread(graph_id="interrupt", title="Send the offer?")
        run = await api.run(asking, "interrupt", {"questions": ["Shall I send the offer to Ines?"]})
        await api.ended(asking, run)
        found["question"] = asking
    return found


@pytest.fixture
async def filled(page: Page, server: Running, endpoint: OpenAIServer) -> dict[str, str]:
    endpoint.fallback = say(REPLY)
    return await fill(server)


def queries(filled: dict[str, str]) -> dict[str, str]:
    """Return the address of each page of the shell."""
    return {
        "conversation": f"?assistant=chat&thread={filled['conversation']}",
        "inbox": "?view=inbox",
    }


async def settled(page: Page) -> None:
    """Wait until the page shows its content."""
    await page.run(
        'await page.locator("main :is(h1, .empty)").first().waitFor({state: "attached"})'
    )
    await page.settled()


async def test_the_screenshots_of_the_documentation(
    page: Page, server: Running, filled: dict[str, str], tmp_path: Path
) -> None:
    """Draw them, and write them into `docs/assets` if `SCREENSHOTS` asks for it."""
    for drawn in ("conversation-wide-light", "inbox-wide-dark", "conversation-narrow-light"):
        name, shape, scheme = drawn.split("-")
        await page.fresh(viewport=SHAPES[shape], colorScheme=scheme, reducedMotion="reduce")
        await page.visit(server, queries(filled)[name])
        await settled(page)
        path = tmp_path / f"web-{drawn}.png"
        await page.run(f'await page.screenshot({{path: "{path}"}})')
        if os.environ.get("SCREENSHOTS"):
            shutil.copy(path, ASSETS)
        assert 5_000 < (ASSETS / path.name).stat().st_size < MOST_BYTES


async def test_the_keyboard_reaches_everything(
    page: Page, server: Running, filled: dict[str, str]
) -> None:
    await page.visit(server, queries(filled)["conversation"])
    await settled(page)
    # Where the page begins: the box to write in has the focus.
    await page.run("await page.evaluate(() => document.activeElement.blur())")
    await page.run('await page.keyboard.press("Tab"); await page.keyboard.press("Shift+Tab")')
    seen = []
    for _ in range(14):
        await page.run('await page.keyboard.press("Tab")')
        seen.append(
            await page.run(
                "return page.evaluate(() => {const at = document.activeElement;"
                " const style = getComputedStyle(at);"
                " const name = at.getAttribute('aria-label') || at.innerText || at.id;"
                " return [name.trim().split('\\n')[0], style.outlineStyle]})"
            )
        )
    # The first press goes to the body of the page.
    seen = seen[1:]
    names = [name for name, _ in seen]
    assert names[0] == "Skip to the conversation"
    for wanted in (
        "New conversation",
        "Inbox",
        "Search conversations",
        "What does a runtime keep?",
    ):
        assert any(name.startswith(wanted) for name in names), names
    assert all(outline != "none" for _, outline in seen), seen


async def test_models_cannot_inject_html_images_or_links(
    page: Page, server: Running, endpoint: OpenAIServer
) -> None:
    bad = (
        "<img src=x onerror=alert(1)> ![spy](https://evil.example/a.png) "
        "![data](data:image/svg+xml;base64,AAAA) [js](javascript:alert(1)) "
        "[data](data:text/html,x) [plain](http://evil.example/) <script>alert(2)</script> "
        "<iframe src='//evil.example'></iframe> [fine](https://good.example/) end."
    )
    endpoint.fallback = say(bad)
    await page.run(
        'globalThis.foreign = []; page.on("request", (request) =>'
        ' request.url().includes("example") && foreign.push(request.url()))'
    )
    await page.visit(server, "?assistant=chat")
    await page.say("attack")
    await page.until("end.")
    await page.idle()
    assert await page.run('return page.locator(".prose :is(img, iframe, script)").count()') == 0
    await page.run("""await page.locator(".prose a[href='https://good.example/']").waitFor()""")
    links = 'return page.locator(".prose a").evaluateAll((all) => all.map((a) => a.href))'
    # A link to the image, and two links of the model: they open when the person follows them.
    assert set(await page.run(links)) == {
        "https://good.example/",
        "http://evil.example/",
        "https://evil.example/a.png",
    }
    assert await page.run("return foreign") == []


async def test_the_policy_of_the_page_refuses_inline_scripts(page: Page, server: Running) -> None:
    await page.visit(server)
    await page.run(
        "await page.evaluate(() => {const script = document.createElement('script');"
        " script.textContent = 'window.inline = true'; document.body.append(script)})"
    )
    assert await page.run("return page.evaluate(() => window.inline ?? null)") is None
    # The refusal is what the browser reported.
    assert len(await page.run("return problems.splice(0)")) == 1
    policy = await page.run(
        "const answer = await page.reload(); return answer.headers()['content-security-policy']"
    )
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy.split("style-src")[0]


async def test_pasted_html_stays_text(page: Page, server: Running) -> None:
    await page.visit(server, "?assistant=chat")
    await page.say("<b>bold</b> & <script>x</script>")
    await page.until("Hello from the model.")
    await page.idle()
    assert (await page.texts())[0] == "<b>bold</b> & <script>x</script>"


async def test_the_page_of_the_api_works_without_any_other_host(
    page: Page, server: Running
) -> None:
    """Also with the token and the requests that a developer tries on it."""
    found = await page.run(
        f"""
        const others = [];
        page.on("request", (each) => {{
          if (!each.url().startsWith("{server.url}/")) others.push(each.url());
        }});
        await page.goto("{server.url}/docs");
        await page.getByText("/threads/search").first().waitFor();
        const operations = await page.locator("summary").count();
        return {{ others, operations }};
        """
    )
    assert found["others"] == []
    assert found["operations"] > 50
