"""The sources of the web app: types, style, unit tests, and types of the server's description."""

import subprocess

import pytest

from tests.support.browser import WEB
from tests.support.processes import Running
from tests.support.served import client
from tools import api_types

# The page is the same on both databases.
pytestmark = [pytest.mark.only("sqlite"), pytest.mark.usefixtures("web_build")]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("script", ["lint", "test"])
def test_the_script_of_the_package_succeeds(script: str) -> None:
    done = subprocess.run(
        ["npm", "run", "--silent", script],
        cwd=WEB,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


async def test_the_types_of_requests_are_current(server: Running) -> None:
    async with client(server) as api:
        description = await api.get("/openapi.json")
    current = api_types.generate(description)
    assert api_types.TARGET.read_text() == current, "run `python -m tools.api_types`"
