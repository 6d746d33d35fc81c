"""Measure the web app while an answer arrives: `python -m bench.web`.

Chromium runs at a quarter of its speed. The scripted model streams an answer of 20 KB. Each row says
how much processor time the tasks of the page's main thread took: the median, the 99th percentile and the longest.
"""

import asyncio
import json
import tempfile
from pathlib import Path

from tests.support.browser import Page, browser
from tests.support.openai_replies import Answer
from tests.support.openai_server import OpenAIServer
from tests.support.web_app import model_environment, web_server, write_config
from tools.web import build

SLOWER = 4
BYTES = 20_000
# Seconds between two tokens.
PACE = 0.01
# Milliseconds; a frame at 60 Hz.
FRAME = 16.0
_PARAGRAPH = (
    "A run begins at the newest **checkpoint** of its thread, and `writes` one after each step. "
    "If the server dies, the next attempt goes on from there.\n\n- one item\n- another item\n\n"
)


def answer() -> Answer:
    """Return an answer of `BYTES` characters, about five in a token."""
    text = (_PARAGRAPH * (BYTES // len(_PARAGRAPH) + 1))[:BYTES]
    return Answer(tokens=[text[at : at + 12] for at in range(0, BYTES, 12)], delay=PACE)


async def measure(page: Page, url: str, trace: Path) -> list[float]:
    """Return the milliseconds of each task of the main thread while the answer arrives."""
    await page.run(f'await page.goto("{url}/?assistant=chat")')
    await page.run(
        "globalThis.cdp = await context.newCDPSession(page);"
        f'await cdp.send("Emulation.setCPUThrottlingRate", {{rate: {SLOWER}}})'
    )
    await page.say("measure")
    await page.run('await page.locator(".message.ai").waitFor()')
    await page.run(
        f"await context.browser().startTracing(page, {{path: {json.dumps(str(trace))},"
        ' categories: ["toplevel", "disabled-by-default-devtools.timeline"]})'
    )
    await page.run(
        'await page.getByRole("button", {name: "Stop"}).waitFor({state: "hidden", timeout: 55000})'
    )
    await page.run("await context.browser().stopTracing()")
    return tasks(json.loads(trace.read_text())["traceEvents"])


def tasks(events: list[dict[str, object]]) -> list[float]:
    """Return the milliseconds of processor time of each task of the main thread in a trace."""
    main = {
        (each["pid"], each["tid"])
        for each in events
        if each.get("name") == "thread_name" and each["args"] == {"name": "CrRendererMain"}
    }
    return sorted(
        float(str(each["tdur"])) / 1000
        for each in events
        if each.get("name") == "RunTask" and "tdur" in each and (each["pid"], each["tid"]) in main
    )


async def main() -> None:
    """Measure, and print the table."""
    build()
    with tempfile.TemporaryDirectory() as place, OpenAIServer() as model:
        folder = Path(place)
        model.fallback = answer()
        with web_server(folder, write_config(folder), **model_environment(model)) as server:
            async with browser() as page:
                found = await measure(page, server.url, folder / "trace.json")
    over = sum(each > FRAME for each in found)
    print(f"{len(found)} tasks at 1/{SLOWER} of the speed, {BYTES} characters")
    for name, part in (("median", 0.5), ("99th percentile", 0.99), ("longest", 1.0)):
        print(f"{name:16} {found[min(len(found) - 1, int(len(found) * part))]:7.1f} ms")
    print(f"over {FRAME:.0f} ms      {over:7} ({over / len(found):.1%})")


if __name__ == "__main__":
    asyncio.run(main())
