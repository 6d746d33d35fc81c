"""Conversations of the web app in Chromium, against a server with a scripted model."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.browser import Page
from tests.support.openai_replies import Gate, rate_limited, say
from tests.support.openai_server import OpenAIServer
from tests.support.policy import headers, token
from tests.support.processes import Running
from tests.support.served import client
from tests.support.web_app import ANSWER, SLOWLY, model_environment, web_server, write_config

# The page is the same on both databases.
pytestmark = pytest.mark.only("sqlite")


async def answering(page: Page, server: Running, endpoint: OpenAIServer, text: str) -> Gate:
    """Begin a conversation with a text, and return what holds its answer in the middle."""
    gate = endpoint.gate()
    endpoint.fallback = say(ANSWER, gate=gate)
    gate.open(10)
    await page.visit(server, "?assistant=chat")
    await page.say(text)
    await page.until("w5")
    return gate


async def test_a_conversation_can_be_edited_repeated_and_switched(
    page: Page, server: Running, endpoint: OpenAIServer
) -> None:
    await page.visit(server, "?assistant=chat")
    await page.say("first question")
    await page.until("Hello from the model.")
    await page.idle()
    await page.click("Edit")
    await page.run('await page.locator(".edit textarea").fill("better question")')
    endpoint.fallback = say("Another answer.")
    await page.run('await page.locator(".edit .primary").click()')
    await page.until("Another answer.")
    await page.idle()
    await page.run('await page.locator(".composer textarea:focus").waitFor()')
    await page.run('await page.getByLabel("Previous version").first().click()')
    assert await page.texts() == ["first question", "Hello from the model."]
    # A person at the keyboard stays where the step is.
    await page.run('await page.locator(".versions button:focus").waitFor()')
    await page.run('await page.getByLabel("Next version").first().click()')
    assert await page.texts() == ["better question", "Another answer."]
    endpoint.fallback = say("A third answer.")
    await page.click("Answer again")
    await page.until("A third answer.")
    await page.idle()
    assert await page.texts() == ["better question", "A third answer."]
    async with client(server) as api:
        row = await api.get(f"/threads/{await page.thread()}")
    assert row["status"] == "idle"


async def test_messages_sent_meanwhile_wait_on_the_server(
    page: Page, server: Running, endpoint: OpenAIServer
) -> None:
    gate = await answering(page, server, endpoint, "one")
    await page.say("two")
    await page.say("three")
    await page.run('await page.locator(".pending li").nth(1).waitFor()')
    await page.run("await page.reload()")
    await page.run('await page.locator(".pending li").nth(1).waitFor()')
    shown = await page.run('return page.locator(".pending li .clip").allInnerTexts()')
    assert shown == ["two", "three"]
    await page.run('await page.locator(".pending li button").nth(1).click()')
    await page.run('await page.locator(".pending li").nth(1).waitFor({state: "detached"})')
    # Also what was sent and withdrawn without a reload is gone.
    await page.say("four")
    await page.run('await page.locator(".pending li").nth(1).getByText("four").waitFor()')
    await page.run('await page.locator(".pending li button").nth(1).click()')
    await page.run('await page.locator(".pending li").nth(1).waitFor({state: "detached"})')
    endpoint.fallback = say("The second answer.")
    gate.open(50)
    await page.until("The second answer.")
    await page.idle()
    assert await page.texts() == ["one", ANSWER, "two", "The second answer."]
    # What was withdrawn leaves no word about it.
    await page.run('await page.locator(".below .notice").waitFor({state: "detached"})')


async def test_a_stopped_answer_stays_and_the_next_message_is_answered(
    page: Page, server: Running, endpoint: OpenAIServer
) -> None:
    endpoint.fallback = say(ANSWER * 20, delay=SLOWLY)
    await page.visit(server, "?assistant=chat")
    await page.say("long")
    await page.until("w5")
    await page.run("await page.reload()")
    await page.until("w7")
    # As the button does.
    await page.run('await page.getByLabel("Message", {exact: true}).press("Escape")')
    await page.until("Stopped. The answer is not complete.")
    await page.run("await page.reload()")
    await page.until("Stopped. The answer is not complete.")
    texts = await page.texts()
    assert texts[0] == "long"
    assert texts[1].startswith("w0 w1 w2")
    async with client(server) as api:
        runs = await api.get(f"/threads/{await page.thread()}/runs")
    assert [each["status"] for each in runs] == ["interrupted"]
    endpoint.fallback = say("I listen.")
    await page.say("something else")
    await page.until("I listen.")
    await page.idle()
    assert (await page.texts())[-2:] == ["something else", "I listen."]
    # The notice is gone, and the answer still says it.
    unfinished = (
        'page.locator(".message", {hasText: "w0 w1 w2"}).getByText("This answer is not complete.")'
    )
    await page.run(f"await {unfinished}.waitFor()")


async def test_impatient_keys_send_a_message_once(page: Page, server: Running) -> None:
    await page.visit(server, "?assistant=chat")
    await page.run(
        'await page.getByLabel("Message", {exact: true}).fill("once");'
        'await page.keyboard.press("Enter"); await page.keyboard.press("Enter");'
        'await page.getByRole("button", {name: "Send"}).click({force: true, clickCount: 2})'
        ".catch(() => {})"
    )
    await page.until("Hello from the model.")
    await page.idle()
    assert await page.texts() == ["once", "Hello from the model."]


async def test_what_is_typed_while_the_first_message_is_sent_stays(
    page: Page, server: Running
) -> None:
    await page.visit(server, "?assistant=chat")
    await page.run("""
      globalThis.held = [];
      await page.route("**/threads", (route) => { held.push(route); });
    """)
    await page.say("the first one")
    # It is shown before the server has heard of it.
    await page.run('await page.locator(".message .bubble", {hasText: "the first one"}).waitFor()')
    await page.run('await page.keyboard.type("and then")')
    await page.run('await held[0].continue(); await page.unroute("**/threads");')
    await page.until("Hello from the model.")
    box = 'return page.getByLabel("Message", {exact: true}).inputValue()'
    assert await page.run(box) == "and then"


async def test_an_answer_that_nobody_has_seen_is_marked_in_the_list(
    page: Page, server: Running, endpoint: OpenAIServer
) -> None:
    gate = await answering(page, server, endpoint, "take your time")
    await page.click("New conversation")
    row = 'page.locator(".threads .entry", {hasText: "take your time"})'
    await page.run(f'await {row}.getByLabel("Answering").waitFor()')
    gate.open(100)
    await page.run(f'await {row}.getByText("New ·").waitFor(); await {row}.click()')
    await page.until("w59")
    await page.run(f'await {row}.getByText("New ·").waitFor({{state: "detached"}})')


async def test_a_failed_run_says_so_and_is_tried_again(
    page: Page, server: Running, endpoint: OpenAIServer
) -> None:
    endpoint.fallback = rate_limited()
    await page.visit(server, "?assistant=chat")
    await page.say("try")
    await page.until("The run failed.")
    endpoint.fallback = say("Now it works.")
    await page.click("Try again")
    await page.until("Now it works.")
    await page.idle()
    assert await page.texts() == ["try", "Now it works."]


async def test_a_text_that_cannot_be_sent_survives_a_reload(page: Page, server: Running) -> None:
    await page.visit(server, "?assistant=chat")
    await page.say("hello")
    await page.until("Hello from the model.")
    await page.idle()
    await page.run("await context.setOffline(true)")
    await page.say("not lost")
    await page.until("The server does not answer.")
    # With the reload, the page that would send it is gone.
    await page.run(
        "await page.route('**/runs', (route) => route.abort());"
        "await context.setOffline(false); await page.reload()"
    )
    await page.until("Hello from the model.")
    box = 'return page.getByLabel("Message", {exact: true}).inputValue()'
    assert await page.run(box) == "not lost"
    await page.run("await page.unroute('**/runs')")
    await page.run('await page.keyboard.press("Enter")')
    await page.run('await page.locator(".message").nth(3).waitFor()')
    await page.idle()
    answer = "Hello from the model."
    assert await page.texts() == ["hello", answer, "not lost", answer]


async def test_a_conversation_is_found_by_what_was_said(page: Page, server: Running) -> None:
    await page.visit(server, "?assistant=chat")
    await page.say("Where do animals live?")
    await page.until("Hello from the model.")
    await page.say("And what does the okapi eat?")
    await page.run('await page.locator(".message").nth(3).waitFor()')
    await page.idle()
    await page.visit(server, "")
    await page.run('await page.getByLabel("Search conversations").fill("OKAPI what")')
    await page.run('await page.locator(".threads .meta", {hasText: "the okapi eat?"}).waitFor()')
    await page.run('await page.locator(".threads .entry").click()')
    await page.until("And what does the okapi eat?")
    await page.run('await page.getByLabel("Search conversations").fill("unsaid")')
    await page.until("No conversation has these words.")


async def test_questions_are_answered_in_the_inbox(page: Page, server: Running) -> None:
    await page.visit(server, "?assistant=asking")
    await page.say("string")
    await page.until("A question for you")
    thread = await page.thread()
    await page.run('await page.getByRole("button", {name: /^Inbox/}).click()')
    await page.run('await page.getByLabel("Your answer").fill("certainly")')
    await page.run('await page.getByRole("button", {name: "Answer", exact: true}).click()')
    await page.until("Nothing waits for you.")
    await page.until("“certainly” answered this minute by developer")
    await page.visit(server, f"?assistant=asking&thread={thread}")
    await page.until("What is your name? “certainly” answered this minute by developer")
    asked = 'return page.getByRole("region", {name: "A question for you"}).count()'
    assert await page.run(asked) == 0


async def test_who_writes_goes_on_with_the_answer(page: Page, server: Running) -> None:
    await page.visit(server, "?assistant=asking")
    await page.say("string")
    focused = "await page.waitForFunction((name) => document.activeElement.ariaLabel === name, {})"
    await page.run(focused.format('"Your answer"'))
    # One question has one field.
    assert await page.run('return page.getByRole("main").getByRole("textbox").count()') == 1
    await page.run('await page.keyboard.type("by keyboard"); await page.keyboard.press("Enter")')
    await page.until("“by keyboard” answered this minute by developer")
    await page.run(focused.format('"Message"'))
    async with client(server) as api:
        thread = await page.thread()
        # The answer is shown before its run has ended.
        [run, _] = await api.get(f"/threads/{thread}/runs")
        assert await api.ended(thread, run["run_id"]) == "success"
        row = await api.get(f"/threads/{thread}")
    assert row["values"]["messages"][-1]["content"] == "string: str 'by keyboard'"


async def test_a_thread_is_renamed_archived_and_deleted(page: Page, server: Running) -> None:
    await page.visit(server, "?assistant=chat")
    await page.say("name me")
    await page.until("Hello from the model.")
    await page.click("Options: name me")
    await page.click("Rename")
    await page.run('await page.getByLabel("Rename").fill("A better name")')
    await page.run('await page.keyboard.press("Enter")')
    await page.click("Options: A better name")
    await page.click("Archive")
    gone = 'await page.getByLabel("Options: A better name").waitFor({state: "detached"})'
    await page.run(gone)
    await page.run('await page.getByLabel("Show archived").check()')
    await page.click("Options: A better name")
    await page.click("Delete")
    await page.run('await page.getByRole("alertdialog").getByText("Delete", {exact: true}).click()')
    await page.run(gone)
    assert "thread=" not in await page.run("return page.url()")


async def test_the_tutor_shows_its_correction(
    page: Page, server: Running, endpoint: OpenAIServer
) -> None:
    endpoint.fallback = say("Well said.")
    await page.visit(server, "?assistant=tutor")
    await page.say("I has a apple.")
    await page.run('await page.locator(".correction ins").first().waitFor()')
    assert await page.run('return page.locator(".correction del").allInnerTexts()') == ["has", "a"]


async def test_the_page_speaks_portuguese(page: Page, server: Running) -> None:
    await page.fresh(locale="pt-PT")
    await page.visit(server)
    await page.until("O que quer fazer?")
    assert await page.run("return page.locator('html').getAttribute('lang')") == "pt"
    await page.run('await page.getByLabel("Idioma").selectOption("en")')
    await page.until("What do you want to do?")
    await page.run("await page.reload()")
    await page.until("What do you want to do?")


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory, endpoint: OpenAIServer) -> Iterator[Running]:
    """Serve with the thread policy and a prefix of the API, to users with tokens."""
    folder = tmp_path_factory.mktemp("strict")
    env = {**model_environment(endpoint), "APP_ENV": "production", "THREAD_POLICY_AGENTS": "chat"}
    with web_server(folder, write_config(folder, mount_prefix="/api/v1"), **env) as started:
        yield started


@pytest.fixture
async def signed_in(page: Page, strict: Running) -> AsyncIterator[Page]:
    await page.visit(strict)
    await page.run('await page.getByLabel("Token").fill("wrong")')
    await page.run('await page.keyboard.press("Enter")')
    await page.until("The server refuses this token.")
    await sign_in(page, "ada")
    await page.until("What do you want to do?")
    yield page


async def sign_in(page: Page, user: str) -> None:
    found = token("acme", user)
    await page.run(f'await page.getByLabel("Token").fill("{found}")')
    await page.run('await page.keyboard.press("Enter")')
    assert found not in await page.run("return page.url()")


async def test_a_deployment_under_a_prefix_asks_for_a_token(
    signed_in: Page, strict: Running
) -> None:
    await signed_in.visit(strict, "?assistant=asking")
    await signed_in.say("string")
    await signed_in.run(
        'await page.getByLabel("Your answer").fill("Ada"); await page.keyboard.press("Enter")'
    )
    await signed_in.until("“Ada” answered this minute by ada")


async def test_another_user_sees_nothing_of_a_thread(signed_in: Page, strict: Running) -> None:
    await signed_in.visit(strict, "?assistant=asking")
    await signed_in.say("my secret")
    await signed_in.until("A question for you")
    thread = await signed_in.thread()
    await signed_in.click("Sign out")
    await sign_in(signed_in, "eve")
    await signed_in.visit(strict, f"?assistant=asking&thread={thread}")
    await signed_in.until("This conversation does not exist, or it belongs to another user.")
    assert "my secret" not in await signed_in.run('return page.locator("body").innerText()')
    await signed_in.run('await page.getByRole("button", {name: "Inbox"}).click()')
    await signed_in.until("Nothing waits for you.")


async def test_a_refused_token_asks_again_and_keeps_the_text(
    signed_in: Page, strict: Running
) -> None:
    await signed_in.visit(strict, "?assistant=asking")
    await signed_in.run('await page.getByLabel("Message", {exact: true}).fill("half a thought")')
    await signed_in.run(
        'await page.evaluate(() => sessionStorage.setItem("threadhold-token", "x"))'
    )
    await signed_in.run('await page.keyboard.press("Enter")')
    await signed_in.until("The server refuses this token.")
    await sign_in(signed_in, "ada")
    box = 'return page.getByLabel("Message", {exact: true}).inputValue()'
    assert await signed_in.run(box) == "half a thought"


async def test_a_lock_in_flight_turns_the_view_read_only_and_keeps_the_text(
    signed_in: Page, strict: Running
) -> None:
    await signed_in.visit(strict, "?assistant=chat")
    await signed_in.say("hello")
    await signed_in.until("Hello from the model.")
    await signed_in.idle()
    thread = await signed_in.thread()
    box = 'page.getByLabel("Message", {exact: true})'
    await signed_in.run(f'await {box}.fill("too late")')
    async with client(strict, **headers("acme", "ada")) as api:
        # Another window goes on with another company.
        await api.post(f"/api/v1/threads/{thread}/resume", {"website": "other.example"})
    await signed_in.run('await page.keyboard.press("Enter")')
    await signed_in.until("Read-only")
    assert await signed_in.run(f"return {box}.inputValue()") == "too late"
    assert await signed_in.run(f"return {box}.getAttribute('readonly')") is not None
    await signed_in.click("Resume in new thread")
    await signed_in.run(f"await page.waitForURL((url) => !url.href.includes('{thread}'))")
    assert await signed_in.run(f"return {box}.inputValue()") == "too late"
    assert await signed_in.run(f"return {box}.getAttribute('readonly')") is None
