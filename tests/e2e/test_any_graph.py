"""Graphs that are not of the project, as people write them from the documentation, in the page."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.openai_server import OpenAIServer
from tests.support.processes import GRAPHS, Running
from tests.support.served import client, served
from tests.support.web_app import model_environment

pytestmark = pytest.mark.only("sqlite")

GRAPHS_SERVED = ("approval", "asking", "cards", "desk", "essay", "report", "scratch")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory, endpoint: OpenAIServer) -> Iterator[Running]:
    """Serve graphs that the page does not know."""
    folder = tmp_path_factory.mktemp("foreign")
    config = folder / "langgraph.json"
    graphs = {each: f"{GRAPHS}/{each}.py:graph" for each in GRAPHS_SERVED}
    config.write_text(json.dumps({"graphs": graphs}))
    with served(folder, config, **model_environment(endpoint)) as started:
        yield started


async def fill(page: Page, label: str, text: str) -> None:
    await page.run(f"await page.getByLabel({json.dumps(label)}).first().fill({json.dumps(text)})")


async def sees(page: Page, selector: str) -> None:
    """Wait until nothing hides the first element that is selected."""
    await page.run(
        """await page.waitForFunction((selector) => {
          const found = document.querySelector(selector);
          const { left, right, top, bottom } = found?.getBoundingClientRect() ?? {};
          const isSeen = (y) => found?.contains(document.elementFromPoint((left + right) / 2, y));
          return isSeen(top + 2) && isSeen(bottom - 2);
        }, """
        + json.dumps(selector)
        + ")"
    )


async def test_calls_of_tools_are_approved_edited_refused_and_answered_at_once(
    page: Page, foreign: Running
) -> None:
    await page.run("await page.setViewportSize({width: 1280, height: 500})")
    await page.visit(foreign, "?assistant=approval")
    await page.say("send_email delete_file ask_person")
    await page.until("Send all decisions")
    # A person sees where it begins, and goes on there with the keyboard.
    await sees(page, ".question h2")
    await page.run('await page.keyboard.press("Tab")')
    inside = "return page.evaluate(() => document.activeElement.closest('.question') !== null)"
    assert await page.run(inside)
    # A decision for each is needed.
    await page.click("Send all decisions")
    await page.until("Choose a decision for each action.")
    await page.click("Edit, then run")
    await page.run('await page.getByLabel("Decision: delete_file").getByText("Reject").click()')
    await fill(page, "Copies", "2.5")
    await page.click("Send all decisions")
    await page.until("Write a whole number.")
    await page.until("Write the answer.")
    unsaid = 'return page.getByText("Choose a decision").count()'
    assert await page.run(unsaid) == 0
    await fill(page, "Copies", "3")
    await fill(page, "Subject", "")
    await page.until("This was filled in before, and is empty now.")
    await page.run(
        'await page.getByLabel("Reason").fill("Keep it");'
        'await page.getByLabel("Your answer").fill("The first")'
    )
    # What is filled in survives a reload.
    await page.run("await page.reload()")
    await page.until("Send all decisions")
    await page.click("Send all decisions")
    await page.until("with reason: Keep it; The first;")
    await page.until("sent 3 of '' to ['ana@example.com'], urgent: False")


async def test_one_call_is_approved_with_a_click(page: Page, foreign: Running) -> None:
    await page.visit(foreign, "?assistant=approval")
    await page.say("send_email")
    await page.until("A person has to look at it")
    await page.click("Approve")
    await page.until("Done: sent 2 of 'Hello'")
    # The decision stands where it was made, not below what came after it.
    await page.until("send_email: approved")
    decided, done = await page.run(
        """return page.evaluate(() => [".answers", ".messages > .message"].map((each) => {
          const found = [...document.querySelectorAll(each)].at(-1);
          return found?.getBoundingClientRect().top;
        }))"""
    )
    assert decided < done


async def test_each_answer_stands_with_its_question_above_what_came_after(
    page: Page, foreign: Running
) -> None:
    await page.visit(foreign, "?assistant=asking")
    await page.say("twice")
    for answer, then in (("many", "many is no number."), ("3", "twice: str '3'")):
        await page.until("A question for you")
        await fill(page, "Your answer", answer)
        await page.click("Answer")
        await page.until(then)
    await page.until("“3” answered")
    # The words of the first question are gone: the graph has asked another one in the same step.
    assert await page.run('return page.locator(".answers li").allInnerTexts()') == [
        "“many” answered this minute",
        "many is no number. Once more? “3” answered this minute",
    ]
    last = 'document.querySelector(".messages > .message:nth-last-child(2)")'
    place = f"document.querySelector('.answers').compareDocumentPosition({last})"
    assert await page.run(f"return page.evaluate(() => {place} & Node.DOCUMENT_POSITION_FOLLOWING)")


async def test_an_edit_is_not_dropped_by_another_decision(page: Page, foreign: Running) -> None:
    await page.visit(foreign, "?assistant=approval")
    await page.say("send_email")
    await page.click("Edit, then run")
    await fill(page, "Copies", "3")
    await page.click("Approve")
    # It shows with what it would be called, and waits.
    await page.run('await page.locator(".action dd", {hasText: "2"}).waitFor()')
    await page.click("Edit, then run")
    await page.click("Send")
    await page.until("sent 3 of 'Hello'")


async def test_a_question_that_may_be_left_is_answered_with_enter(
    page: Page, foreign: Running
) -> None:
    await page.visit(foreign, "?assistant=asking")
    await page.say("letter")
    await page.until("Which tone?")
    await fill(page, "Your answer", "friendly")
    await page.run('await page.keyboard.press("Enter")')
    await page.until("letter: list [{'type': 'response', 'args': 'friendly'}]")


@pytest.mark.parametrize(
    ("asked", "buttons", "answer"),
    [
        ("confirm", ["Yes"], "confirm: bool True"),
        ("confirm", ["No"], "confirm: bool False"),
        ("words", ["No"], "words: str 'no'"),
        ("options", ["2"], "options: int 2"),
        ("options", ["Many"], "options: dict {'n': 9}"),
        ("agree", ["No"], "agree: bool False"),
        ("inbox", ["Approve"], "inbox: list [{'type': 'accept', 'args': None}]"),
        ("inbox", ["Ignore"], "inbox: list [{'type': 'ignore', 'args': None}]"),
        ("letter", ["Ignore"], "letter: list [{'type': 'ignore', 'args': None}]"),
        ("pause", ["Continue"], "pause: bool True"),
    ],
)
async def test_a_button_answers_with_a_value_of_its_type(
    page: Page, foreign: Running, asked: str, buttons: list[str], answer: str
) -> None:
    await page.visit(foreign, "?assistant=asking")
    await page.say(asked)
    for each in buttons:
        await page.click(each)
    await page.until(answer)


@pytest.mark.parametrize(
    ("asked", "kind", "typed", "answer"),
    [
        ("string", "text", "Ana", "string: str 'Ana'"),
        ("string", "number", "2.5", "string: float 2.5"),
        ("object", "json", '{"ok": true}', "object: dict {'ok': True}"),
    ],
)
async def test_an_answer_of_ones_own_has_its_type(
    page: Page, foreign: Running, asked: str, kind: str, typed: str, answer: str
) -> None:
    await page.visit(foreign, "?assistant=asking")
    await page.say(asked)
    await page.run(f"await page.getByLabel('Kind of answer').selectOption('{kind}')")
    label = "Your answer (JSON)" if kind == "json" else "Your answer"
    await fill(page, label, "{" if kind == "json" else typed)
    if kind == "json":
        await page.click("Answer")
        await page.until("This is no valid JSON.")
        await fill(page, label, typed)
    await page.click("Answer")
    await page.until(answer)


async def test_a_text_is_never_taken_for_a_yes(page: Page, foreign: Running) -> None:
    await page.visit(foreign, "?assistant=asking")
    await page.say("confirm")
    await page.run('await page.locator("summary", {hasText: "Your own answer"}).click()')
    field = 'page.getByRole("textbox", {name: "Your own answer"})'
    await page.run(f'await {field}.fill("not yet"); await page.keyboard.press("Enter")')
    await page.until("Choose one of the answers above.")
    # There is no other place to write in.
    assert await page.run('return page.getByRole("textbox").count()') == 1
    await page.run(f'await {field}.fill("Não."); await page.keyboard.press("Enter")')
    await page.until("confirm: bool False")


async def test_a_schema_is_a_form_with_errors_at_its_fields(page: Page, foreign: Running) -> None:
    await page.visit(foreign, "?assistant=asking")
    await page.say("form")
    await fill(page, "Days", "40")
    await page.run("await page.setViewportSize({width: 375, height: 360})")
    await page.click("Answer")
    await page.until("Fill this in.")
    await page.until("The most is 10.")
    focused = "return page.evaluate(() => document.activeElement.getAttribute('aria-invalid'))"
    await page.run(
        "await page.waitForFunction(() => document.activeElement.ariaInvalid === 'true')"
    )
    assert await page.run(focused) == "true"
    # Its label is not scrolled out of view.
    await sees(page, ".schema-form label")
    await page.run("await page.setViewportSize({width: 1280, height: 720})")
    await fill(page, "City", "Porto")
    await fill(page, "Days", "4")
    await fill(page, "Budget", "99,5")
    await page.run(
        'await page.getByLabel("Class").selectOption({label: "second"});'
        'await page.getByRole("button", {name: "Add Stops"}).click();'
        'await page.getByLabel("Item 1").fill("Braga");'
        'await page.getByRole("button", {name: "Add Hotel"}).click();'
        'await page.getByLabel("Name").fill("Sol");'
        'await page.getByLabel("Stars").fill("3")'
    )
    await page.click("Answer")
    hotel = "{'name': 'Sol', 'stars': 3}"
    found = await page.run(
        'return page.locator(".message.ai .prose").filter({hasText: "form:"}).first().innerText()'
    )
    for part in (
        "'city': 'Porto'",
        "'days': 4",
        "'budget': 99.5",
        "'class': 'second'",
        "'window': True",
        "'stops': ['Braga']",
        f"'hotel': {hotel}",
    ):
        assert part in found


async def test_questions_asked_at_once_are_answered_together(page: Page, foreign: Running) -> None:
    await page.visit(foreign, "?assistant=asking")
    await page.say("string confirm")
    await page.until("Answer all questions.")
    await page.click("Yes")
    await page.until("Answered; sent with the others.")
    # The focus stays where the answered question was.
    active = "return page.evaluate(() => document.activeElement.innerText)"
    assert await page.run(active) == "Change"
    await fill(page, "Your answer", "Ana")
    await page.click("Answer")
    await page.until("string: str 'Ana'")
    await page.until("confirm: bool True")


async def test_the_inbox_has_the_same_cards(page: Page, foreign: Running) -> None:
    await page.visit(foreign, "?assistant=approval")
    await page.say("send_email")
    await page.until("ana@example.com")
    thread = await page.thread()
    await page.visit(foreign, "?view=inbox")
    await page.click("Approve")
    await page.until("approved this minute")
    await page.visit(foreign, f"?assistant=approval&thread={thread}")
    await page.until("Done: sent 2 of 'Hello'")


async def test_an_answer_that_makes_the_run_fail_can_be_corrected(
    page: Page, foreign: Running
) -> None:
    await page.visit(foreign, "?assistant=asking")
    await page.say("strict")
    await fill(page, "Your answer", "about 12")
    await page.click("Answer")
    await page.until("The run failed.")
    # The cause is one click away, for those who know the graph.
    cause = "return page.getByText(\"'about 12' is no number\").isVisible()"
    assert not await page.run(cause)
    await page.run('await page.locator("summary", {hasText: "What the graph said"}).click()')
    await page.until("ValueError")
    assert await page.run(cause)
    await page.click("Try again")
    box = 'page.getByLabel("Your answer")'
    assert await page.run(f"await {box}.waitFor(); return {box}.inputValue()") == "about 12"
    await fill(page, "Your answer", "12")
    await page.click("Answer")
    await page.until("strict: str '12'")


async def test_a_graph_that_is_no_chat_has_a_form_and_shows_its_result(
    page: Page, foreign: Running
) -> None:
    await page.visit(foreign, "?assistant=report")
    await page.until("What to write about")
    await fill(page, "Topic", "AI")
    await fill(page, "Pages", "40")
    await page.click("Run")
    await page.until("The most is 9.")
    await page.until("The least number of characters is 3.")
    await fill(page, "Topic", "Bees")
    await fill(page, "Pages", "4")
    await page.run(
        'await page.getByLabel("Style", {exact: true}).selectOption({label: "formal"});'
        'await page.getByLabel("Draft", {exact: true}).check();'
        'await page.getByRole("button", {name: "Add Authors"}).click();'
        'await page.getByLabel("Name", {exact: true}).fill("Ana");'
        'await page.getByLabel("Age", {exact: true}).fill("4");'
        'await page.getByLabel("Limit", {exact: true}).fill("1.5");'
        'await page.getByText("Settings").first().click();'
        'await page.getByLabel("Tone", {exact: true}).selectOption({label: "warm"})'
    )
    # What differs from the assistant's is marked.
    await page.run(
        'await page.locator("summary", {hasText: "Settings"}).getByText("changed").waitFor()'
    )
    await page.click("Run")
    await page.until("The least is 18.")
    await page.run('await page.getByLabel("Age", {exact: true}).fill("40")')
    # What is filled in survives a reload.
    await page.run("await page.reload()")
    await page.until("What to write about")
    await page.run(
        'await page.getByText("Settings").first().click();'
        'await page.getByLabel("Tone", {exact: true}).selectOption({label: "warm"})'
    )
    await page.click("Run")
    thread = await page.thread()
    await page.until("A report in 4 pages.")
    await page.until("Run again")
    async with client(foreign) as api:
        state = await api.get(f"/threads/{thread}/state")
    facts = state["values"]["facts"]
    assert facts["input"] == {
        "topic": "Bees",
        "pages": 4,
        "style": "formal",
        "draft": True,
        "tags": [],
        "authors": [{"name": "Ana", "age": 40}],
        "limit": 1.5,
    }
    assert (facts["tone"], facts["words"]) == ("warm", 100)


async def test_a_graph_that_is_no_chat_runs_again_from_any_of_its_results(
    page: Page, foreign: Running
) -> None:
    await page.visit(foreign, "?assistant=report")
    await fill(page, "Topic", "Bees")
    await fill(page, "Pages", "4")
    await page.click("Run")
    thread = await page.thread()
    await page.until("A report in 4 pages.")
    again = 'await page.getByText("Run again").click()'

    def heading(text: str) -> str:
        """Wait for the heading of a report."""
        return f'await page.locator(".result h1", {{hasText: "{text}"}}).waitFor()'

    # The form has the last inputs.
    await page.run(f"{again}; await page.getByLabel('Topic').fill('Wasps')")
    await page.click("Run")
    await page.run(heading("Wasps"))
    await page.until("A report in 4 pages.")
    await page.until("2/2")
    await page.run('await page.getByLabel("Previous version").click()')
    await page.run(heading("Bees"))
    await page.run(f"{again}; await page.getByLabel('Topic').fill('Ants')")
    await page.click("Run")
    await page.run(heading("Ants"))
    await page.until("3/3")
    async with client(foreign) as api:
        history = await api.get(f"/threads/{thread}/history?limit=50")
    ends = [each for each in history if each["next"] == []]
    assert [each["values"]["topic"] for each in ends] == ["Ants", "Wasps", "Bees"]
    parents = {each["checkpoint_id"]: each["parent_checkpoint"] for each in history}
    at = ends[0]["checkpoint_id"]
    passed = set[str]()
    while parents.get(at) is not None:
        passed.add(at := parents[at]["checkpoint_id"])
    # It began at the first result, beside the second one.
    assert ends[2]["checkpoint_id"] in passed
    assert ends[1]["checkpoint_id"] not in passed


async def test_a_conversation_goes_on_with_another_assistant(page: Page, foreign: Running) -> None:
    async with client(foreign) as api:
        warm = {"graph_id": "report", "name": "Warm one", "context": {"tone": "warm", "words": 9}}
        await api.post("/assistants", warm)
        await page.visit(foreign, "?assistant=report")
        await fill(page, "Topic", "Bees")
        await page.click("Run")
        thread = await page.thread()
        await page.until("A report in 2 pages.")
        await page.click("Report")
        dialog = 'page.getByRole("dialog", {name: "Settings"})'
        await page.run(
            f'await {dialog}.getByRole("combobox", {{name: "Assistant"}}).selectOption({{label: "Warm one"}});'
            f'await {dialog}.getByText("Settings", {{exact: true}}).last().click();'
            f'await {dialog}.getByLabel("Words", {{exact: true}}).fill("12");'
            f'await {dialog}.getByRole("button", {{name: "Use"}}).click()'
        )
        await page.run('await page.getByRole("button", {name: "Warm one"}).waitFor()')
        await page.run('await page.getByText("Run again").click()')
        await page.click("Run")
        await page.until("2/2")
        state = await api.get(f"/threads/{thread}/state")
    facts = state["values"]["facts"]
    assert (facts["tone"], facts["words"]) == ("warm", 12)


async def test_calls_of_tools_can_be_hidden(page: Page, foreign: Running) -> None:
    await page.visit(foreign, "?assistant=approval")
    await page.say("send_email")
    await page.click("Approve")
    await page.until("Done: sent 2 of 'Hello'")
    card = 'page.locator(".message .fold", {hasText: "send_email"})'
    await page.run(f"await {card}.waitFor()")
    await page.click("Approval")
    await page.run('await page.getByLabel("Show the calls of tools").uncheck()')
    await page.run('await page.getByRole("button", {name: "Close"}).click()')
    hidden = f'await {card}.waitFor({{state: "detached"}})'
    await page.run(hidden)
    await page.run("await page.reload()")
    await page.until("Done: sent 2 of 'Hello'")
    await page.run(hidden)
    await page.click("Approval")
    await page.run('await page.getByLabel("Show the calls of tools").check()')
    await page.run(f"await {card}.waitFor()")


async def test_json_that_is_broken_keeps_the_person_and_names_its_line(
    page: Page, foreign: Running
) -> None:
    await page.visit(foreign, "?assistant=report")
    await page.click("JSON")
    broken = '{"topic": "Bees",\n "pages": 5,,}'
    await fill(page, "Inputs (JSON)", broken)
    await page.click("Form")
    await page.until("This is no valid JSON. See line 2.")
    box = 'return page.getByLabel("Inputs (JSON)").inputValue()'
    assert await page.run(box) == broken
    await fill(page, "Inputs (JSON)", broken.replace(",,", ""))
    await page.click("Form")
    topic = 'return page.getByLabel("Topic").inputValue()'
    assert await page.run(topic) == "Bees"


async def test_an_assistant_is_made_chosen_and_changed(page: Page, foreign: Running) -> None:
    await page.visit(foreign, "?assistant=report")
    await page.run(
        'await page.getByText("Settings").first().click();'
        'await page.getByLabel("Words", {exact: true}).fill("7");'
        'await page.getByLabel("Name of the assistant").fill("Short")'
    )
    await page.click("Save as a new assistant")
    await page.run('await page.getByRole("combobox", {name: "Assistant"}).waitFor()')
    await page.run('await page.getByLabel("Words", {exact: true}).fill("8")')
    await page.click("Save as a new version")
    await page.until("Saved.")
    await fill(page, "Topic", "Bees")
    await page.click("Run")
    thread = await page.thread()
    await page.until("A report in 2 pages.")
    await page.until("Run again")
    async with client(foreign) as api:
        state = await api.get(f"/threads/{thread}/state")
        found = await api.post("/assistants/search", {"graph_id": "report", "name": "Short"})
    assert state["values"]["facts"]["words"] == 8
    assert [each["version"] for each in found] == [2]


async def test_files_are_sent_as_standard_blocks(page: Page, foreign: Running) -> None:
    await page.visit(foreign, "?assistant=cards")
    files = """[
        {name: "dot.png", mimeType: "image/png", buffer: Buffer.from("abc")},
        {name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("remember")},
        {name: "gone.pdf", mimeType: "application/pdf", buffer: Buffer.from("pdf")},
    ]"""
    choose = 'await page.locator("input[type=file]").setInputFiles'
    await fill(page, "Message", "look")
    await page.run(f"{choose}({files})")
    await page.until("gone.pdf")
    await page.run("await page.reload()")
    await page.until("Choose these files again: dot.png, notes.txt, gone.pdf")
    await page.run(f'{choose}({files}); await page.getByLabel("Remove: gone.pdf").click()')
    await page.run(f"{choose}({files}.slice(0, 1))")
    await page.until("The file is attached already: dot.png")
    await page.run(
        f'{choose}([{{name: "big.png", mimeType: "image/png", buffer: Buffer.alloc(2e6, 1)}}])'
    )
    await page.until("Not attached: big.png")
    await page.click("Send")
    await page.until("Here is your card.")
    thread = await page.thread()
    await page.idle()
    await page.click("Edit")
    await page.run('await page.locator("form.edit textarea").fill("look again")')
    await page.run('await page.locator("form.edit .primary").click()')
    await page.until("2/2")
    async with client(foreign) as api:
        runs = await api.get(f"/threads/{thread}/runs")
    for run, text in zip(runs, ("look again", "look"), strict=True):
        (message,) = run["kwargs"]["input"]["messages"]
        assert message["content"] == [
            {"type": "text", "text": text},
            {
                "type": "image",
                "base64": "YWJj",
                "mime_type": "image/png",
                "extras": {"filename": "dot.png"},
            },
            {"type": "text", "text": "notes.txt:\n\nremember"},
        ]
    await page.settled()


async def test_a_graph_of_the_functional_api_takes_a_text(page: Page, foreign: Running) -> None:
    await page.visit(foreign, "?assistant=essay")
    await page.run('await page.getByRole("textbox", {name: "Inputs"}).fill("cats")')
    await page.click("Run")
    await page.until("Do you approve this essay?")
    await page.click("Yes")
    await page.until("bool True")
    await page.until("About cats.")


async def test_a_chat_with_another_key_and_a_breakpoint(page: Page, foreign: Running) -> None:
    await page.visit(foreign, "?assistant=desk")
    await fill(page, "Customer", "7")
    await page.run('await page.getByLabel("Plan").selectOption({label: "paid"})')
    await page.say("hi")
    await page.until("Customer 7, 'paid': hi")
    await page.until("Paused before: close")
    await page.click("Continue")
    await page.until("Closed after 2 messages.")
    await page.say("again")
    await page.until("Customer 7, 'paid': again")
    await page.run("await page.reload()")
    await page.until("Customer 7, 'paid': again")
    await page.until("Paused before: close")


async def test_what_an_input_lacks_is_said_at_its_field(page: Page, foreign: Running) -> None:
    await page.visit(foreign, "?assistant=report")
    await page.until("What to write about")
    await page.click("Run")
    await page.until("Fill this in.")
    assert await page.run("return page.url()") == f"{foreign.url}/?assistant=report"


# Drag a file over an element and drop it. Return whether the page has kept the browser from opening it, and what is shown.
DROP = """
return page.evaluate(async (place) => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File(["pdf"], "a.pdf", {type: "application/pdf"}));
  const fire = (name) => !document.querySelector(place).dispatchEvent(
    new DragEvent(name, {bubbles: true, cancelable: true, dataTransfer}));
  const frame = () => new Promise((resolve) => setTimeout(resolve, 100));
  const shown = (found) => [...document.querySelectorAll(found)].map((each) => each.innerText.split("\\n")[0]);
  const kept = [fire("dragover")];
  await frame();
  const hint = shown(".drop-hint");
  kept.push(fire("drop"));
  await frame();
  return [kept, hint, shown(".attached li")];
}, %s)
"""


async def test_a_file_is_dropped_anywhere_on_the_conversation(page: Page, foreign: Running) -> None:
    await page.visit(foreign, "?assistant=cards")
    await page.say("hello")
    await page.until("Here is your card.")
    hint = ["Drop the files here"]
    assert await page.run(DROP % "'.sidebar'") == [[True, True], hint, []]
    assert await page.run(DROP % "'.messages'") == [[True, True], hint, ["a.pdf"]]


async def test_components_grow_below_their_message(
    page: Page, foreign: Running, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    await page.visit(foreign, "?assistant=cards")
    await page.say(str(gate))
    await page.until("Writing 1/2")
    await page.until("This component cannot be shown here.")
    await page.run('await page.getByText("Its contents").click()')
    await page.until("Ode")
    gate.write_text("1")
    await page.until("to the sea")
    # What has come with the run before is still there after a reload.
    await page.run("await page.reload()")
    await page.until("Writing 1/2")
    await page.run('await page.getByText("Its contents").click()')
    await page.until("to the sea")
    gate.write_text("2")
    await page.until("Here is your card.")
    await page.idle()
    # It has not been drawn anew when its message came.
    await page.until("to the sea")
    assert await page.run('return page.getByText("Writing 1/2").count()') == 0
    await page.say("another")
    await page.run('await page.getByText("Here is your card.").nth(1).waitFor()')
    await page.idle()
    texts = await page.run('return page.locator(".messages > li[data-key]").allInnerTexts()')
    assert ["This component cannot be shown here." in each for each in texts] == [False, True] * 2


async def test_what_no_state_has_goes_when_the_run_has_ended(page: Page, foreign: Running) -> None:
    await page.visit(foreign, "?assistant=scratch")
    await page.say("think")
    await page.until("The answer.")
    await page.run(
        'await page.locator(".message", {hasText: "A thought that nobody keeps."}).waitFor({state: "detached"})'
    )
    await page.idle()
    assert await page.texts() == ["think", "The answer."]


async def test_an_assistant_that_is_not_there_is_named(page: Page, foreign: Running) -> None:
    await page.visit(foreign, "?assistant=nope")
    await page.until("This server has no assistant of this name: nope")
