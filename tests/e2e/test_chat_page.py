"""Documents and citations of the chat in Chromium, with a scripted model."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.axe import serious
from tests.support.browser import Page, browser
from tests.support.openai_replies import Answer, say
from tests.support.openai_server import OpenAIServer
from tests.support.policy import SECRET
from tests.support.processes import ROOT, Running
from tests.support.served import served
from tests.support.tutor import NO_MODEL, of_endpoint

pytestmark = [pytest.mark.usefixtures("web_build"), pytest.mark.only("sqlite")]

LIGHTHOUSE = (
    "# Farol Velho\n\n## History\n\nThe lighthouse was built in 1871.\n\n"
    "## Levels\n\nThe lighthouse has seven levels and a lantern of bronze.\n\n"
    "## Visits\n\nVisits begin at nine.\n"
)
LEAVE = "# Leave\n\nEmployees have 25 days of leave each year.\n"
Files = dict[str, str]


@pytest.fixture
def server(tmp_path: Path, endpoint: OpenAIServer) -> Iterator[Running]:
    config = {
        "graphs": {"chat": f"{ROOT}/my_agent/chat/graph.py:graph"},
        "auth": {"path": "hooks.auth:auth"},
        "sql": {"tenant_key": "tenant_id"},
    }
    path = tmp_path / "langgraph.json"
    path.write_text(json.dumps(config))
    env = {**NO_MODEL, **of_endpoint(endpoint), "JWT_SECRET": SECRET}
    with served(tmp_path, path, **env, CHAT_DOCUMENT_MAX_BYTES="300000") as started:
        yield started


@pytest.fixture
async def page(server: Running, endpoint: OpenAIServer) -> AsyncIterator[Page]:
    endpoint.fallback = say("Hello from the model.")
    async with browser() as opened:
        await opened.run(f"await page.goto({json.dumps(server.url + '/?assistant=chat')})")
        yield opened


async def pick(page: Page, files: Files) -> None:
    """Choose files in the picker."""
    chosen = ",".join(
        f"{{name: {json.dumps(name)}, mimeType: 'text/plain', buffer: Buffer.from({json.dumps(text)})}}"
        for name, text in files.items()
    )
    await page.run(f"await page.locator('input[type=file]').setInputFiles([{chosen}])")


async def drop(page: Page, files: Files) -> None:
    """Drag files onto the documents."""
    await page.run(
        f"const data = await page.evaluateHandle((files) => {{ const data = new DataTransfer();"
        "for (const [name, text] of Object.entries(files)) data.items.add(new File([text], name));"
        f"return data; }}, {json.dumps(files)});"
        'await page.locator(".drop").dispatchEvent("drop", {dataTransfer: data})'
    )


async def stored(page: Page, names: Sequence[str]) -> None:
    """Wait until the list of documents has exactly these."""
    await page.run(
        "await page.waitForFunction((names) => JSON.stringify([...document.querySelectorAll("
        f"'.stored .clip')].map((each) => each.textContent)) === names, {json.dumps(json.dumps(list(names), separators=(',', ':')))})"
    )


async def click(page: Page, name: str) -> None:
    await page.run(
        f"await page.getByRole('button', {{name: {json.dumps(name)}, exact: true}}).click()"
    )


async def test_documents_are_picked_dropped_listed_and_deleted(page: Page) -> None:
    await page.until("No documents yet.")
    await pick(page, {"farol.md": LIGHTHOUSE, "leave.md": LEAVE})
    await drop(page, {"third.txt": "A third document about the harbour town."})
    await stored(page, ["farol.md", "leave.md", "third.txt"])
    await page.run("await page.reload()")
    await stored(page, ["farol.md", "leave.md", "third.txt"])
    await click(page, "Delete: leave.md")
    await click(page, "Keep")
    await click(page, "Delete: third.txt")
    await page.run('await page.locator(".ask .danger").dblclick()')
    await stored(page, ["farol.md", "leave.md"])


async def test_errors_of_uploads_say_what_to_do(page: Page) -> None:
    await pick(page, {"huge.txt": "x" * 300_001, "program.exe": "MZ", "empty.md": ""})
    await page.until("The file is larger than the server allows.")
    await page.until("This kind of file cannot be read. Save it as one of:")
    await page.until("it is empty")
    await pick(page, {"leave.md": LEAVE})
    await stored(page, ["leave.md"])
    await pick(page, {"copy.md": LEAVE})
    await page.until("It has the same content as leave.md.")


async def test_a_document_is_replaced_only_if_the_person_says_so(page: Page) -> None:
    await pick(page, {"leave.md": LEAVE})
    await stored(page, ["leave.md"])
    await pick(page, {"leave.md": "# Changed\n\nNobody has any leave, and that is that."})
    await page.until("There is a document with this name. Replace it?")
    read = "return page.evaluate(async () => (await (await fetch('/api/documents')).json()).documents[0].title)"
    assert await page.run(read) == "Leave"
    await click(page, "Replace")
    await page.until("Added")
    assert await page.run(read) == "Changed"


async def test_progress_of_an_upload_survives_a_reload(page: Page) -> None:
    text = "\n\n".join(f"# Part {i}\n\nPart {i} is about number {i * 37}. " * 3 for i in range(300))
    await pick(page, {"long.md": text})
    await page.run('await page.locator(".upload").getByText(/ [1-9][0-9]* %/).waitFor()')
    await page.run("await page.reload()")
    await page.run('await page.locator(".upload", {hasText: "long.md"}).waitFor()')
    assert await page.run('return page.locator(".stored li").count()') == 0
    await page.run('await page.locator(".stored li").waitFor({timeout: 100000})')
    await stored(page, ["long.md"])
    await page.run('await page.locator(".stored").getByText("Added").waitFor()')


async def test_citations_open_their_passages(page: Page, endpoint: OpenAIServer) -> None:
    await pick(page, {"farol.md": LIGHTHOUSE})
    await stored(page, ["farol.md"])
    told = "The lighthouse has seven levels and a lantern [1]. Giants painted it in a single night."
    endpoint.fallback = Answer(tokens=say(told).tokens, finish="length")
    await page.say("How many levels does the lighthouse have?")
    await page.run('await page.locator(".cite").waitFor()')
    marked = await page.run('return page.locator("mark.unsupported").allInnerTexts()')
    assert marked == ["Giants painted it in a single night."]
    await page.until("The underlined sentence has no source.")
    await page.until("this answer is incomplete")
    await page.run('await page.locator(".cite").press("Enter")')
    drawer = 'page.getByRole("dialog")'
    await page.run(f'await {drawer}.getByText("built in 1871").waitFor()')
    shown = await page.run(f'return {drawer}.locator("mark").innerText()')
    assert shown == "The lighthouse has seven levels and a lantern of bronze."
    assert await page.run(f'return {drawer}.locator("dd").allInnerTexts()') == [
        "farol.md",
        "Levels",
    ]
    assert await serious(page) == []
    await page.run('await page.keyboard.press("Escape")')
    assert await serious(page) == []
    # The marks of an earlier answer stay, also after a reload and when its document is gone.
    endpoint.fallback = say("You are welcome.")
    await page.say("thanks")
    await page.until("You are welcome.")
    await page.idle()
    await click(page, "Documents")
    await click(page, "Delete: farol.md")
    await page.run('await page.locator(".ask .danger").click()')
    await page.until("No documents yet.")
    await page.run("await page.reload()")
    await page.run('await page.locator(".cite").click()')
    await page.until("The document has been deleted or changed since.")
    shown = await page.run(f'return {drawer}.locator("mark").innerText()')
    assert shown == "The lighthouse has seven levels and a lantern of bronze."


async def test_a_new_tab_is_a_new_thread(page: Page, server: Running) -> None:
    await page.say("first tab")
    await page.until("Hello from the model.")
    await page.run(
        "const other = await context.newPage();"
        f"await other.goto({json.dumps(server.url + '/?assistant=chat')});"
        'await other.getByLabel("Message", {exact: true}).fill("second tab");'
        'await other.keyboard.press("Enter");'
        'await other.locator(".message.ai").waitFor(); await other.close()'
    )
    count = "return page.evaluate(async () => (await (await fetch('/threads/search', {method: 'POST', headers: {'content-type': 'application/json'}, body: '{}'})).json()).length)"
    assert await page.run(count) == 2
    assert await page.texts() == ["first tab", "Hello from the model."]


async def test_pages_are_accessible_and_in_portuguese(page: Page) -> None:
    await pick(page, {"farol.md": LIGHTHOUSE, "program.exe": "MZ"})
    await stored(page, ["farol.md"])
    assert await serious(page) == []
    await page.run('await page.getByLabel("Language").selectOption("pt")')
    await page.until("Juntar documentos")
    await page.until("Não é possível ler este tipo de ficheiro.")
