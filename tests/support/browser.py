"""The web app in a headless browser, driven from a test."""

import asyncio
import fcntl
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from tests.support.processes import ROOT, Running
from tools.web import build

WEB = ROOT / "web"
PATIENCE = 60.0


class Page:
    """A page of the browser.

    Args:
        process: The driver `web/driver.mjs`.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._commands = 0

    async def answer(self) -> Any:
        """Return the driver's next answer."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            line = await self._process.stdout.readline()
        assert line, "the browser has ended"
        return json.loads(line)

    async def run(self, code: str, **command: Any) -> Any:
        """Run JavaScript with `page` of Playwright and return what it returns."""
        assert self._process.stdin is not None
        self._commands += 1
        line = json.dumps({"id": self._commands, "run": code, **command})
        self._process.stdin.write(line.encode() + b"\n")
        found = await self.answer()
        # A command of an earlier test that was not waited for to the end answers late.
        while found["id"] != self._commands:
            found = await self.answer()
        assert "error" not in found, found["error"]
        return found["value"]

    async def fresh(self, **options: Any) -> None:
        """Open the page in a new context, with options of Playwright's `newContext`."""
        await self.run("", open=options)

    async def check(self) -> None:
        """Check that no script of the page has failed."""
        assert await self.run("return problems.splice(0)") == []

    async def visit(self, server: Running, query: str = "") -> None:
        """Open an address of a server."""
        await self.run(f"await page.goto({json.dumps(f'{server.url}/{query}')})")

    async def click(self, name: str) -> None:
        """Click on the button with exactly this name."""
        found = f'page.getByRole("button", {{name: {json.dumps(name)}, exact: true}})'
        await self.run(f"await {found}.first().click()")

    async def thread(self) -> str:
        """Wait for a thread in the address, and return its id."""
        await self.run("await page.waitForURL(/thread=/)")
        found = await self.run('return new URL(page.url()).searchParams.get("thread")')
        return str(found)

    async def say(self, text: str) -> None:
        """Write a message and send it."""
        await self.run(
            f'await page.getByLabel("Message", {{exact: true}}).fill({json.dumps(text)});'
            'await page.keyboard.press("Enter");'
        )

    async def texts(self) -> list[str]:
        """Return the texts of the shown messages, without the buttons."""
        # The text of a message that the browser has not painted yet is empty.
        found: list[str] = await self.run(
            "await page.evaluate(() => new Promise((done) =>"
            "  requestAnimationFrame(() => requestAnimationFrame(done))));"
            'return page.locator(".message :is(.bubble, .prose)").allInnerTexts()'
        )
        return [each.strip() for each in found]

    async def until(self, text: str) -> None:
        """Wait until the page shows a text."""
        await self.run(f"await page.getByText({json.dumps(text)}).first().waitFor()")

    async def idle(self) -> None:
        """Wait until no run is shown, and the state after it is."""
        stop = 'page.getByRole("button", {name: "Stop"})'
        await self.run(f'await {stop}.waitFor({{state: "hidden"}}); await page.waitForTimeout(50);')


@asynccontextmanager
async def browser() -> AsyncIterator[Page]:
    """Open a page, and check at the end that it reported no error."""
    process = await asyncio.create_subprocess_exec(
        *("node", "driver.mjs"),
        cwd=WEB,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        limit=2**24,
    )
    try:
        page = Page(process)
        assert await page.answer() == {"ready": True}
        yield page
        await page.check()
    finally:
        # The end of its input makes the driver close the browser and end.
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.communicate(), 15)
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


@pytest.fixture(scope="session")
def web_build() -> None:
    """Build the web app, unless it is built."""
    assert shutil.which("npm") is not None, "tests of the web app need Node 20 or later with npm"
    # Another test process may be building it.
    with (WEB / "package-lock.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        build()
