"""The chat in a page of another origin."""

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import WEB, Page
from tests.support.openai_server import OpenAIServer
from tests.support.policy import token
from tests.support.processes import Running, free_port
from tests.support.web_app import model_environment, web_server, write_config

# The page is the same on both databases.
pytestmark = pytest.mark.only("sqlite")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Serve the files of a folder, and give its origin and the folder."""
    folder = tmp_path / "site"
    folder.mkdir()
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), handler) as host:
        thread = threading.Thread(target=host.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{host.server_port}", folder
        host.shutdown()
        thread.join()


@pytest.fixture
def open_server(
    tmp_path: Path, endpoint: OpenAIServer, site: tuple[str, Path]
) -> Iterator[Running]:
    """Serve to users with tokens, and allow the origin of the other page."""
    env = {**model_environment(endpoint), "APP_ENV": "production", "CORS_ALLOW_ORIGINS": site[0]}
    with web_server(tmp_path, write_config(tmp_path), **env) as started:
        yield started


# Of a page whose styles are in the way.
HOSTILE = """
  html { font-size: 8px; --accent: red; --s3: 90px; }
  body { font: 40px cursive; color: red; text-align: right; text-transform: uppercase; letter-spacing: 9px; }
  button, input, textarea { all: unset !important; }
"""
_STYLE = """
return page.evaluate(() => {
  const shown = document.querySelector("#help").shadowRoot.querySelector(".embedded");
  const style = getComputedStyle(shown);
  const button = getComputedStyle(shown.querySelector(".composer .primary"));
  const names = ["fontSize", "textTransform", "letterSpacing", "textAlign", "colorScheme"];
  return { ...Object.fromEntries(names.map((each) => [each, style[each]])), border: button.borderStyle };
});
"""
_HEAD = """
return page.evaluate(() => [...document.head.children].map((each) => each.tagName).sort().join(" ")
  + ` ${document.adoptedStyleSheets.length}`);
"""


@pytest.mark.parametrize("assistant", ["chat", "tutor", "icp_finder", "diagnosis", "research"])
async def test_no_style_crosses_between_the_chat_and_the_page(
    page: Page, open_server: Running, site: tuple[str, Path], assistant: str
) -> None:
    """Also not those of a product, which are loaded when they are needed."""
    origin, folder = site
    example = (WEB / "example" / "host.html").read_text()
    example = example.replace("http://127.0.0.1:8123", open_server.url)
    example = example.replace("TOKEN", token("acme", "ada")).replace(
        "</style>", HOSTILE + "</style>"
    )
    example = example.replace(
        'data-assistant="chat"', f'data-assistant="{assistant}" data-theme="dark"'
    )
    (folder / "index.html").write_text(example)
    await page.run(f'await page.goto("{origin}/")')
    await page.settled()
    head = "META STYLE TITLE 0"
    assert await page.run(_HEAD) == head
    await page.say("hello from outside")
    if assistant != "research":  # Its graph has no messages.
        await page.run('await page.locator(".message.human").waitFor()')
    await page.idle()
    await page.settled()
    assert await page.run(_HEAD) == head
    assert await page.run(_STYLE) == {
        "fontSize": "15px",
        "textTransform": "none",
        "letterSpacing": "normal",
        "textAlign": "start",
        "colorScheme": "dark",
        "border": "solid",
    }
    own = {
        "chat": ".chat-source",
        "tutor": ".tutor-tools",
        "icp_finder": ".icp-row",
        "diagnosis": ".cause",
    }
    if assistant in own:
        sheets = (
            "return page.evaluate((name) => document.querySelector('#help').shadowRoot.adoptedStyleSheets"
            f".some((each) => [...each.cssRules].some((rule) => rule.selectorText?.includes(name))), '{own[assistant]}')"
        )
        assert await page.run(sheets)


async def test_a_script_tag_puts_the_chat_into_another_page(
    page: Page, open_server: Running, site: tuple[str, Path]
) -> None:
    origin, folder = site
    example = (WEB / "example" / "host.html").read_text()
    example = example.replace("http://127.0.0.1:8123", open_server.url)
    (folder / "index.html").write_text(example.replace("TOKEN", token("acme", "ada")))
    await page.run(f'await page.goto("{origin}/")')
    await page.say("hello from outside")
    await page.until("Hello from the model.")
    await page.idle()
    assert await page.texts() == ["hello from outside", "Hello from the model."]
    assert await page.run("return page.url()") == f"{origin}/"
    # The styles of the chat stay in it.
    family = "getComputedStyle(document.querySelector('h1')).fontFamily"
    assert "system-ui" not in await page.run(f"return page.evaluate(() => {family})")
    await page.run("await page.reload()")
    await page.until("Hello from the model.")
    assert await page.texts() == ["hello from outside", "Hello from the model."]
