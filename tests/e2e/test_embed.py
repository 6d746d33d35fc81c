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
