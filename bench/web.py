"""Measure the web app as a person waits for it: `python -m bench.web`.

Each row has its limit beside it. Where it says so, Chromium runs at a quarter of its speed, and the network is that
of a phone. Milliseconds are of the wall, except those of tasks, which are processor time of the page's main thread.
"""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from tests.support.browser import Page, browser
from tests.support.openai_replies import Answer
from tests.support.openai_server import OpenAIServer
from tests.support.web_app import (
    model_environment,
    store_conversation,
    web_server,
    write_config,
)
from tools.web import build

SLOWER = 4
BYTES = 100_000
# Characters of a token, and seconds between two of them.
TOKEN, PACE = 25, 0.004
MESSAGES = 300
# Bits a second.
PHONE, EDGE = 1_600_000, 400_000
LATENCY_MS = 150
_PARAGRAPH = (
    "## A part\n\nA run begins at the newest **checkpoint** of its thread, and `writes` one after each step. "
    "If the server dies, the next attempt goes on from there.\n\n- one item\n- another item\n\n"
    "| Part | Keeps |\n|---|---|\n| Log | what was streamed |\n\n```python\nclient.runs.create(thread)\n```\n\n"
)
_AT_END = """
await page.waitForFunction(() => {
  const frame = document.querySelector(".scroller")?.getBoundingClientRect();
  const last = [...document.querySelectorAll(".message")].at(-1)?.getBoundingClientRect();
  return last?.bottom > frame?.top && last.bottom <= frame.bottom + 1;
}, null, {polling: "raf"});
return page.evaluate(() => performance.now());
"""


def answer() -> Answer:
    """Return an answer of `BYTES` characters."""
    text = (_PARAGRAPH * (BYTES // len(_PARAGRAPH) + 1))[:BYTES]
    return Answer(tokens=[text[at : at + TOKEN] for at in range(0, BYTES, TOKEN)], delay=PACE)


async def slow(page: Page, *, bits: int | None, processor: bool) -> None:
    """Open a new page that has a slow processor, and a network of so many bits a second."""
    await page.fresh()
    code = "globalThis.cdp = await context.newCDPSession(page);"
    if processor:
        code += f'await cdp.send("Emulation.setCPUThrottlingRate", {{rate: {SLOWER}}});'
    if bits is not None:
        network = {
            "offline": False,
            "latency": LATENCY_MS,
            "downloadThroughput": bits / 8,
            "uploadThroughput": bits / 8,
        }
        code += (
            'await cdp.send("Network.enable");'
            f'await cdp.send("Network.emulateNetworkConditions", {json.dumps(network)});'
        )
    await page.run(code)


async def first_look(page: Page, url: str) -> tuple[float, float, float]:
    """Return when something is painted, when the composer is there (ms), and the kilobytes of scripts."""
    await slow(page, bits=PHONE, processor=True)
    await page.run(f'await page.goto("{url}/?assistant=chat", {{waitUntil: "commit"}})')
    await page.run('await page.getByLabel("Message", {exact: true}).fill("a")')
    found: Any = await page.run("""
      const shown = await page.evaluate(() => performance.now());
      const painted = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
      return [painted, shown];
    """)
    await page.fresh()
    await page.run(f'await page.goto("{url}/")')
    await page.settled()
    scripts: float = await page.run(
        'return page.evaluate(() => performance.getEntriesByType("resource")'
        '.filter((each) => each.name.endsWith(".js")).reduce((sum, each) => sum + each.transferSize, 0))'
    )
    return found[0], found[1], scripts / 1000


async def own_message(page: Page, url: str) -> float:
    """Return the milliseconds from Enter to the message, in a new conversation on a slow network."""
    await page.fresh()
    await page.run(f'await page.goto("{url}/?assistant=chat")')
    await page.settled()
    await page.run(
        "globalThis.cdp = await context.newCDPSession(page); await cdp.send('Network.enable');"
        "await cdp.send('Network.emulateNetworkConditions', {offline: false, latency: 150,"
        f" downloadThroughput: {EDGE / 8}, uploadThroughput: {EDGE / 8}}});"
    )
    await page.run("""await page.evaluate(() => {
      addEventListener("keydown", (event) => { if (event.key === "Enter") window.pressed = performance.now(); }, true);
      const look = () => {
        if (document.querySelector(".message .bubble")) window.seen = performance.now();
        else requestAnimationFrame(look);
      };
      look();
    })""")
    await page.say("measure")
    await page.run("await page.waitForFunction(() => window.seen)")
    found: float = await page.run("return page.evaluate(() => seen - pressed)")
    return found


async def opened(page: Page, url: str, thread: str) -> float:
    """Return the milliseconds until a long conversation is shown at its end."""
    await slow(page, bits=None, processor=True)
    await page.run(
        f'await page.goto("{url}/?assistant=chat&thread={thread}", {{waitUntil: "commit"}})'
    )
    found: float = await page.run(_AT_END)
    return found


async def streamed(page: Page, url: str, trace: Path) -> list[float]:
    """Return the milliseconds of each task of the main thread while the answer arrives, and after it."""
    await slow(page, bits=None, processor=True)
    await page.run(f'await page.goto("{url}/?assistant=chat")')
    await page.say("measure")
    await page.run('await page.locator(".message").waitFor()')
    await page.run(
        f"await context.browser().startTracing(page, {{path: {json.dumps(str(trace))},"
        ' categories: ["toplevel", "disabled-by-default-devtools.timeline"]})'
    )
    await page.run(
        'await page.getByRole("button", {name: "Stop"}).waitFor({state: "hidden", timeout: 200000});'
        "await page.waitForTimeout(2000)"
    )
    await page.run("await context.browser().stopTracing()")
    return tasks(json.loads(trace.read_text())["traceEvents"])


def tasks(events: list[dict[str, object]]) -> list[float]:
    """Return the milliseconds of processor time of each task of the main thread in a trace, shortest first."""
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
    rows: list[tuple[str, float, str]] = []
    with tempfile.TemporaryDirectory() as place, OpenAIServer() as model:
        folder = Path(place)
        model.fallback = answer()
        with web_server(folder, write_config(folder), **model_environment(model)) as server:
            thread = await store_conversation(
                server, [f"{_PARAGRAPH} {i}" for i in range(MESSAGES)]
            )
            async with browser() as page:
                painted, composer, scripts = await first_look(page, server.url)
                rows += [
                    ("first paint, 1.6 Mbit/s, 4x", painted, "1500 ms"),
                    ("composer takes keys, the same", composer, "2500 ms"),
                    ("scripts of the start page", scripts, "180 KB"),
                    ("own message, 400 kbit/s", await own_message(page, server.url), "100 ms"),
                    (
                        f"open {MESSAGES} messages, 4x",
                        await opened(page, server.url, thread),
                        "1500 ms",
                    ),
                ]
                found = await streamed(page, server.url, folder / "trace.json")
    rows.append((f"longest task of {BYTES // 1000} KB, 4x", found[-1], "200 ms"))
    rows.append(("second longest", found[-2], "200 ms"))
    for name, value, limit in rows:
        print(f"{name:32} {value:8.0f}   of {limit}")


if __name__ == "__main__":
    asyncio.run(main())
