"""A server with a scripted model and a browser, for the tests of a file."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.browser import Page, browser
from tests.support.openai_replies import say
from tests.support.openai_server import OpenAIServer
from tests.support.processes import Running
from tests.support.served import served
from tests.support.web_app import model_environment, write_config


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run a failed test of the page once more: a browser on a busy machine may miss a frame.

    The summary lists what was run again. No other test is: there, a rare failure is a race in what
    is tested.
    """
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, endpoint: OpenAIServer) -> Iterator[Running]:
    """Serve the project to one user, as on a developer's machine."""
    folder = tmp_path_factory.mktemp("web")
    with served(folder, write_config(folder), **model_environment(endpoint)) as started:
        yield started


@pytest.fixture(scope="module")
async def chromium(web_build: None) -> AsyncIterator[Page]:
    """Start a browser for all tests of a file."""
    async with browser() as opened:
        yield opened


@pytest.fixture
async def page(chromium: Page, endpoint: OpenAIServer) -> AsyncIterator[Page]:
    """Open a page in a context of its own, and check at the end that no script failed."""
    endpoint.fallback = say("Hello from the model.")
    await chromium.fresh()
    yield chromium
    await chromium.check()
