"""The web app in a headless browser, driven from a test."""

import asyncio
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pytest

from tests.support.processes import ROOT, Running
from tools.web import build

WEB = ROOT / "web"
# More than any wait in the page.
PATIENCE = 150.0


class Page:
    """A page of the browser.

    Args:
        process: The driver `web/driver.mjs`.
        errors: What it writes to stderr.
    """

    def __init__(self, process: asyncio.subprocess.Process, errors: IO[bytes]) -> None:
        self._process = process
        self._errors = errors
        self._commands = 0

    async def answer(self) -> Any:
        """Return the driver's next answer."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            line = await self._process.stdout.readline()
        assert line, f"the browser has ended: {self._written()}"
        return json.loads(line)

    def _written(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

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

    async def settled(self) -> None:
        """Wait until nothing more is loaded. The stream of changes stays open, so the network is never idle."""
        await self.run(_SETTLED)

    async def idle(self) -> None:
        """Wait until no run is shown, and the state after it is."""
        stop = 'page.getByRole("button", {name: "Stop"})'
        await self.run(f'await {stop}.waitFor({{state: "hidden"}}); await page.waitForTimeout(50);')


# Two looks a third of a second apart that find the same requests, and nothing that says that it loads.
_SETTLED = """
await page.waitForFunction(() => {
  const count = performance.getEntriesByType("resource").length;
  const roots = [document, ...[...document.querySelectorAll("*")].flatMap((each) => each.shadowRoot ?? [])];
  const isLoading = roots.some((root) =>
    [...root.querySelectorAll("[role=status]")].some((each) => /^(Loading|A carregar)/.test(each.textContent)));
  const isSame = window.countOfRequests === count;
  window.countOfRequests = count;
  return isSame && !isLoading;
}, null, {polling: 350});
"""


@asynccontextmanager
async def browser() -> AsyncIterator[Page]:
    """Open a page, and check at the end that it reported no error."""
    path = await asyncio.to_thread(chromium)
    with tempfile.TemporaryFile() as errors:
        async with _driver(path, errors) as page:
            yield page


@asynccontextmanager
async def _driver(path: Path, errors: IO[bytes]) -> AsyncIterator[Page]:
    process = await asyncio.create_subprocess_exec(
        *("node", "driver.mjs", str(path)),
        cwd=WEB,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        limit=2**24,
    )
    try:
        page = Page(process, errors)
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


def chromium() -> Path:
    """Return the path of the browser, which its package contains compressed.

    The package's own look whether it is extracted takes a file for whole that another process is
    just writing.
    """
    folder = WEB / "node_modules" / ".cache" / "chromium"
    whole = folder / "whole"
    with _lock():
        if not whole.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            script = 'import chromium from "@sparticuz/chromium"; await chromium.executablePath()'
            command = ("node", "--input-type=module", "--eval", script)
            subprocess.run(command, cwd=WEB, env={**os.environ, "TMPDIR": str(folder)}, check=True)
            whole.touch()
    return folder / "chromium"


@pytest.fixture(scope="session")
def web_build() -> None:
    """Build the web app, unless it is built."""
    assert shutil.which("npm") is not None, "tests of the web app need Node 20 or later with npm"
    with _lock():
        build()


@contextmanager
def _lock() -> Iterator[None]:
    """Exclude other test processes, which do the same."""
    with (WEB / "package-lock.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
