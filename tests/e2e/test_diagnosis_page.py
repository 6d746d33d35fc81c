"""The investigation beside a conversation, in Chromium, without a model."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.axe import serious
from tests.support.browser import Page, browser
from tests.support.diagnosis import LOG
from tests.support.policy import SECRET
from tests.support.processes import ROOT, Running
from tests.support.proxy import proxied
from tests.support.served import client, served
from tests.support.tutor import NO_MODEL

pytestmark = [pytest.mark.usefixtures("web_build"), pytest.mark.only("sqlite")]

ASKED = f"Checkout answers 503, why?\n{LOG}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("diagnosis-page")
    config = {
        "graphs": {"diagnosis": f"{ROOT}/my_agent/diagnosis/graph.py:graph"},
        "auth": {"path": "hooks.auth:auth"},
        "sql": {"tenant_key": "tenant_id"},
    }
    path: Path = folder / "langgraph.json"
    path.write_text(json.dumps(config))
    with served(folder, path, **NO_MODEL, JWT_SECRET=SECRET) as started:
        yield started


@pytest.fixture
async def page(server: Running) -> AsyncIterator[Page]:
    async with browser() as opened:
        await opened.run(f"await page.goto({json.dumps(server.url + '/?assistant=diagnosis')})")
        yield opened


async def investigated(page: Page) -> str:
    """Paste the logs, and wait for the cause. Return the thread."""
    await page.say(ASKED)
    await page.run('await page.locator(".conclusion.found").waitFor()')
    await page.idle()
    thread: str = await page.run('return new URL(page.url()).searchParams.get("thread")')
    return thread


LINES, FULL = 40_000, 30_000
FAILURE = "2026-03-02 10:20:00,000 ERROR [payments] write failed: No space left on device"
CALLER = "".join(
    [f"2026-03-02 0{h}:{m:02}:00,000 INFO [checkout] request handled in 40 ms\n" for h in (8, 9) for m in range(60)]
    + [f"2026-03-02 10:2{m}:30,000 ERROR [checkout] call to payments failed: 503\n" for m in range(5)]
)  # fmt: skip


def long_log() -> str:
    """Return a log of three million characters in which a disk is full near the end."""
    lines = [
        f"2026-03-02 {2 + i // 3600:02}:{i // 60 % 60:02}:{i % 60:02},000 INFO [payments] request {i} handled in 12 ms"
        for i in range(LINES)
    ]
    lines[FULL : FULL + 5] = [FAILURE] * 5
    return "\n".join(lines) + "\n"


async def choose(page: Page, *files: tuple[str, str]) -> None:
    """Choose files with the button of the composer."""
    given = [
        f'{{name: {json.dumps(name)}, mimeType: "text/plain", buffer: Buffer.from({json.dumps(text)}, "latin1")}}'
        for name, text in files
    ]
    box = 'page.locator(".composer input[type=file]")'
    await page.run(f"await {box}.setInputFiles([{', '.join(given)}])")


async def seen(page: Page, locator: str) -> bool:
    """Return whether the middle of an element is in the viewport, with nothing in front of it."""
    found: bool = await page.run(
        f"return {locator}.first().evaluate((e) => {{"
        "  const {left, top, width, height} = e.getClientRects()[0];"
        "  const there = document.elementFromPoint(left + width / 2, top + height / 2);"
        "  return there !== null && (e.contains(there) || there.contains(e)); })"
    )
    return found


async def tab(page: Page, name: str) -> None:
    await page.run(f'await page.getByRole("tab", {{name: "{name}"}}).click()')


async def add_note(server: Running, thread: str, text: str) -> None:
    """Add a note as another person would."""
    async with client(server) as api:
        seq = (await api.get(f"/diagnosis/{thread}/state"))["seq"]
        answer = await api.http.post(
            f"/diagnosis/{thread}/events",
            json={"events": [{"text": text}]},
            headers={"if-match": str(seq)},
        )
        assert answer.status_code == 201, answer.text


async def test_evidence_opens_in_its_source(page: Page) -> None:
    await investigated(page)
    cause = 'page.locator(".cause").first()'
    told = await page.run(f"return {cause}.innerText()")
    assert "supported" in told and "Independent second line" in told
    assert await page.run(f'return {cause}.locator(".tests .passed").count()') >= 2
    await page.run(f'await {cause}.locator(".evidence.for").first().click()')
    drawer = 'page.getByRole("dialog")'
    await page.run(f'await {drawer}.getByText("request handled in 12 ms").waitFor()')
    marked = await page.run(f'return {drawer}.locator("mark").innerText()')
    assert (
        marked == "2026-03-02 09:40:00,000 ERROR [payments] write failed: No space left on device"
    )


async def test_files_begin_a_conversation_and_are_read(page: Page) -> None:
    await choose(page, ("payments.log", long_log()), ("checkout.log", CALLER))
    await page.until("They are added. The next message reads them.")
    added = await page.run('return page.locator(".given li").allInnerTexts()')
    assert [each.split()[0] for each in sorted(added)] == ["checkout.log", "payments.log"]
    assert f"{LINES:,} lines" in " ".join(added)
    assert await seen(page, 'page.getByRole("button", {name: "Look at them"})')
    await tab(page, "Sources")
    assert (
        await page.run('return page.locator(".sources .badge").allInnerTexts()')
        == ["not read yet"] * 2
    )
    await page.run('await page.getByRole("button", {name: "Look at them"}).first().dblclick()')
    await page.run('await page.locator(".conclusion.found").waitFor()')
    await page.idle()
    # One message, however often the button was pressed; and what was added is read.
    assert await page.run('return page.locator(".message.human").count()') == 1
    assert await page.run('return page.locator(".given, .sources .badge").count()') == 0


async def test_evidence_in_a_long_source_is_read_in_parts(page: Page) -> None:
    await choose(page, ("payments.log", long_log()), ("checkout.log", CALLER))
    await page.run(
        "globalThis.read = [];"
        'page.on("response", async (answer) => /sources\\/\\w+\\?/.test(answer.url())'
        " && read.push((await answer.text()).length))"
    )
    await page.run('await page.getByRole("button", {name: "Look at them"}).first().click()')
    await page.run('await page.locator(".conclusion.found").waitFor()')
    found = 'page.locator(".evidence.for", {hasText: "No space left"}).first()'
    await page.run(f"await {found}.click()")
    drawer = 'page.getByRole("dialog")'
    await page.run(f'await {drawer}.locator("mark").waitFor()')
    assert await page.run(f'return {drawer}.locator("mark").innerText()') == FAILURE
    assert await seen(page, f'{drawer}.locator("mark")')
    await page.run(f'await {drawer}.getByText("request {FULL - 1} handled").waitFor()')
    # From the quote to the end, one step back, and to the quote again.
    await page.run(f'await {drawer}.getByRole("button", {{name: "End"}}).click()')
    await page.run(f'await {drawer}.getByText("request {LINES - 1} handled").waitFor()')
    assert await page.run(f'return {drawer}.locator("mark").count()') == 0
    first = f'return (await {drawer}.locator("pre").innerText()).match(/request (\\d+) handled/)[1]'
    last_part = int(await page.run(first))
    await page.run(f'await {drawer}.getByRole("button", {{name: "Earlier"}}).click()')
    await page.run(f'await {drawer}.getByText("request {last_part - 1} handled").waitFor()')
    await page.run(f'await {drawer}.getByRole("button", {{name: "To the quote"}}).click()')
    await page.run(f'await {drawer}.locator("mark").waitFor()')
    assert await seen(page, f'{drawer}.locator("mark")')
    assert await serious(page) == []
    # No answer had more than a part of the text.
    sizes = await page.run("return read")
    assert sizes and max(sizes) < 40_000


async def test_refused_files_say_why_and_others_are_added(page: Page) -> None:
    await choose(
        page, ("empty.log", ""), ("packed.gz", "\x1f\x8b\x08\x00"), ("ok.log", f"{FAILURE}\n")
    )
    await page.until("It is added. The next message reads it.")
    refused = 'page.locator(".given .alert")'
    await page.run(f"await {refused}.nth(1).waitFor()")
    told = " ".join(await page.run(f"return {refused}.allInnerTexts()"))
    assert "The file is empty." in told
    assert "It is packed with gzip. Unpack it first" in told
    assert "Try again" not in told
    await page.run('await page.getByRole("button", {name: "Dismiss: empty.log"}).click()')
    await page.run(f'await {refused}.first().filter({{hasText: "packed.gz"}}).waitFor()')
    assert await page.run(f"return {refused}.count()") == 1
    assert await serious(page) == []


async def test_upload_that_breaks_is_tried_again_and_one_that_hangs_is_cancelled(
    page: Page,
) -> None:
    await page.run('await page.route("**/sources/**", (route) => route.abort())')
    await choose(page, ("a.log", f"{FAILURE}\n"))
    await page.until("The connection broke.")
    await page.run('await page.unroute("**/sources/**")')
    await page.run('await page.getByRole("button", {name: "Try again: a.log"}).click()')
    await page.until("It is added. The next message reads it.")
    # The request waits until it is cancelled.
    await page.run('await page.route("**/sources/**", () => undefined)')
    await choose(page, ("b.log", f"{FAILURE}\n"))
    await page.run('await page.getByRole("button", {name: "Cancel: b.log"}).click()')
    await page.run('await page.getByText("b.log").waitFor({state: "hidden"})')
    await tab(page, "Sources")
    assert await page.run('return page.locator(".sources .name").allInnerTexts()') == ["a"]


async def test_files_are_dropped_anywhere_on_the_conversation(page: Page) -> None:
    await investigated(page)
    await page.run(
        "await page.evaluate((text) => {"
        '  const data = new DataTransfer(); data.items.add(new File([text], "dropped.log"));'
        '  for (const name of ["dragover", "drop"]) document.querySelector(".side").dispatchEvent('
        "    new DragEvent(name, {dataTransfer: data, bubbles: true, cancelable: true, composed: true}));"
        f"}}, {json.dumps(CALLER)})"
    )
    await page.until("It is added. The next message reads it.")
    await tab(page, "Sources")
    await page.run('await page.locator(".sources .name", {hasText: "dropped"}).waitFor()')


async def test_paste_that_is_too_long_becomes_files(page: Page) -> None:
    pasted = f"Checkout answers 503, why?\n==> payments.log <==\n{long_log()}==> checkout.log <==\n{CALLER}"
    await page.run(
        'await page.locator(".composer").waitFor();'
        "await page.evaluate((text) => {"
        '  const data = new DataTransfer(); data.setData("text/plain", text);'
        '  document.querySelector(".composer textarea").dispatchEvent('
        '    new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));'
        f"}}, {json.dumps(pasted)})"
    )
    await page.until("The text was too long for a message, so it is added as a file.")
    await page.until("They are added. The next message reads them.")
    # The words of the person are no file; they wait to be sent.
    box = 'page.getByLabel("Message", {exact: true})'
    assert await page.run(f"return {box}.inputValue()") == "Checkout answers 503, why?"
    await page.run(f'await {box}.press("Enter")')
    await page.run('await page.locator(".conclusion.found").waitFor()')
    assert await page.texts() and "503, why?" in (await page.texts())[0]


async def test_moment_is_branched_from_and_compared(page: Page) -> None:
    thread = await investigated(page)
    await page.run('await page.getByRole("slider").fill("5")')
    await page.until("You see the investigation as it was after this event.")
    await page.click("Compare with now")
    drawer = 'page.getByRole("dialog")'
    await page.run(f'await {drawer}.locator(".changes").waitFor()')
    told = await page.run(f"return {drawer}.innerText()")
    assert "Still investigating → becomes Cause found" in " ".join(told.split())
    assert re.search(r"Confidence \d+ %", told)
    assert "Independent second line: passed" in told
    assert await seen(page, f'{drawer}.getByRole("heading", {{name: "Conclusion"}})')
    assert await serious(page) == []
    await page.run(f'await {drawer}.getByLabel("To event").fill("5")')
    await page.run(f'await {drawer}.getByText("Nothing has changed").waitFor()')
    await page.click("Close")
    await page.click("Branch from here")
    await page.until("A branch. It goes on from event 5.")
    other = await page.thread()
    assert other != thread
    assert await page.run('return page.locator(".conclusion.found").count()') == 0
    # The branch has the conversation until then, and goes on by itself.
    assert "Checkout answers 503" in (await page.texts())[0]
    await page.say("Please go on.")
    await page.run('await page.locator(".message.ai").first().waitFor()')
    await page.idle()
    await page.click("Open the origin")
    await page.run('await page.locator(".conclusion.found").waitFor()')
    assert await page.thread() == thread


async def test_question_is_answered_once_by_its_button(page: Page, server: Running) -> None:
    await page.say(f"Why?\n==> checkout.log <==\n{CALLER}")
    more = 'page.getByRole("button", {name: "That is all I have"})'
    await page.run(f"await {more}.waitFor()")
    assert await seen(page, more)
    assert await serious(page) == []
    await page.run(f"await {more}.dblclick()")
    await page.run('await page.locator(".conclusion.inconclusive").waitFor()')
    await page.idle()
    async with client(server) as api:
        runs = await api.get(f"/threads/{await page.thread()}/runs")
    assert len(runs) == 2


async def test_question_is_answered_by_words_and_by_files(page: Page) -> None:
    await page.say(f"Why?\n==> checkout.log <==\n{CALLER}")
    more = 'page.getByRole("button", {name: "That is all I have"})'
    await page.run(f"await {more}.waitFor()")
    await choose(page, ("payments.log", long_log()))
    await page.run('await page.getByRole("button", {name: "Look at it"}).first().click()')
    await page.run('await page.locator(".conclusion.found").waitFor()')
    await page.run(f'await {more}.waitFor({{state: "hidden"}})')


async def test_question_is_answered_in_the_inbox(page: Page, server: Running) -> None:
    await page.say(f"Inbox?\n==> checkout.log <==\n{CALLER}")
    await page.run('await page.getByRole("button", {name: "That is all I have"}).waitFor()')
    thread = await page.thread()
    await page.visit(server, "?view=inbox")
    card = 'page.locator("article", {hasText: "Inbox?"})'
    await page.run(f"await {card}.getByLabel('Your answer').fill('no, that is all I have')")
    await page.run(f"await {card}.getByRole('button', {{name: 'Answer'}}).click()")
    await page.run(f'await {card}.waitFor({{state: "hidden"}})')
    await page.visit(server, f"?assistant=diagnosis&thread={thread}")
    await page.run('await page.locator(".conclusion.inconclusive").waitFor()')


async def test_slider_shows_the_state_at_that_moment(page: Page) -> None:
    await investigated(page)
    slider = 'page.getByRole("slider")'
    await page.run(f'await {slider}.fill("8")')
    await page.until("You see the investigation as it was after this event.")
    await page.run('await page.locator(".cause .badge", {hasText: "in test"}).waitFor()')
    assert await page.run('return page.locator(".conclusion.found, .cause .tests li").count()') == 0
    await page.run(f'await {slider}.press("ArrowLeft"); await {slider}.press("ArrowLeft")')
    await page.until("No cause was proposed at this moment.")
    await tab(page, "Timeline")
    await page.run('await page.locator(".timeline li").nth(3).waitFor()')
    assert await page.run('return page.locator(".timeline li").count()') == 4
    await page.run('await page.getByRole("button", {name: "Back to now"}).click()')
    await page.run('await page.locator(".conclusion.found").waitFor()')


async def test_log_follows_and_is_filtered(page: Page, server: Running) -> None:
    thread = await investigated(page)
    await tab(page, "Events")
    await add_note(server, thread, "The disk was grown.")
    await page.until("The disk was grown.")
    await page.run('await page.getByLabel("Kind").selectOption("note_added")')
    assert await page.run('return page.locator(".log li").count()') == 1
    await page.run('await page.getByLabel("Kind").selectOption("")')
    await page.run('await page.getByLabel("Find in the events").fill("disk of payments")')
    found = await page.run('return page.locator(".log li").allInnerTexts()')
    assert found
    assert all("disk of payments" in each for each in found)
    await page.run('await page.getByLabel("Find in the events").fill("nonsense")')
    await page.until("No event matches.")


async def test_events_of_an_outage_come_once_after_it(page: Page, server: Running) -> None:
    thread = await investigated(page)
    with proxied(int(server.url.rpartition(":")[2])) as proxy:
        query = f"?assistant=diagnosis&thread={thread}"
        await page.run(f'await page.goto("http://127.0.0.1:{proxy.port}/{query}")')
        await tab(page, "Events")
        await page.run('await page.locator(".log li").nth(12).waitFor()')
        proxy.cut()
        await add_note(server, thread, "Written meanwhile.")
        await page.until("Written meanwhile.")
        numbers = await page.run('return page.locator(".log .seq").allTextContents()')
        assert numbers == [str(each) for each in range(1, len(numbers) + 1)]


async def test_pages_are_accessible_and_in_portuguese(page: Page) -> None:
    await investigated(page)
    for name in ("Causes", "Sources", "Timeline", "Events"):
        await tab(page, name)
        assert await serious(page) == []
    # Arrows move between the tabs, as screen readers announce.
    await page.run('await page.getByRole("tab", {name: "Events"}).press("ArrowRight")')
    chosen = 'page.getByRole("tab", {name: "Causes", selected: true})'
    assert await page.run(f"return {chosen}.evaluate((e) => e === document.activeElement)")
    await page.run('await page.getByLabel("Language").selectOption("pt")')
    await page.until("Causa encontrada")


async def test_narrow_screens_show_one_of_both(page: Page) -> None:
    await investigated(page)
    await page.run("await page.setViewportSize({width: 390, height: 800})")
    assert not await page.run('return page.locator(".scroller").isVisible()')
    await page.run('await page.getByRole("button", {name: "Investigation"}).click()')
    assert await page.run('return page.locator(".scroller").isVisible()')
    wide = "return page.evaluate(() => document.documentElement.scrollWidth)"
    assert await page.run(wide) <= 390
