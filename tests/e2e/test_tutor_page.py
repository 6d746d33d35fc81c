"""The page of the tutor in Chromium, against a server with a scripted model."""

import json
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.browser import WEB, Page, browser
from tests.support.openai_replies import say
from tests.support.openai_server import OpenAIServer
from tests.support.policy import Member, headers, member, new_user_name
from tests.support.processes import Running
from tests.support.tutor import found, of_endpoint, teach, tutoring

pytestmark = [pytest.mark.usefixtures("web_build"), pytest.mark.only("sqlite")]

ISSUES = 'return page.locator(".tutor-issues li").allInnerTexts()'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, endpoint: OpenAIServer) -> Iterator[Running]:
    with tutoring(tmp_path_factory.mktemp("tutor-page"), **of_endpoint(endpoint)) as started:
        yield started


@pytest.fixture
async def ada(server: Running) -> AsyncIterator[Member]:
    async with member(server, new_user_name(), "t1") as client:
        yield client


@pytest.fixture
async def page(server: Running, ada: Member) -> AsyncIterator[Page]:
    """A page on which the learner has signed in."""
    token = headers("t1", ada.name)["authorization"].removeprefix("Bearer ")
    async with browser() as opened:
        keep = f'sessionStorage.setItem("threadhold-token", "{token}")'
        await opened.run(f"await context.addInitScript({json.dumps(keep)})")
        await opened.run(f"await page.goto({json.dumps(server.url + '/?assistant=tutor')})")
        yield opened


async def press(page: Page, name: str) -> None:
    await page.run(
        f'await page.getByRole("button", {{name: {json.dumps(name)}, exact: true}}).first().click()'
    )


async def thread_of(page: Page) -> str:
    return str(await page.run('return new URL(page.url()).searchParams.get("thread")'))


async def wrong(page: Page, endpoint: OpenAIServer) -> None:
    """Send a message with two mistakes, and wait for its correction."""
    issues = ("agreement", "has", "have"), ("article", "a apple", "an apple")
    teach(endpoint, reply=say("An apple a day!"), review=found(*issues, explanation="Two things."))
    await page.say("I has a apple.")
    await page.run('await page.locator(".correction").waitFor()')
    await page.idle()


async def test_a_correction_shows_difference_explanation_and_checkers(
    page: Page, endpoint: OpenAIServer
) -> None:
    await wrong(page, endpoint)
    assert await page.run('return page.locator(".correction del").allInnerTexts()') == [
        "has",
        "a apple",
    ]
    assert [each.split()[0] for each in await page.run(ISSUES)] == ["Agreement", "Article"]
    await page.until("Two things.")
    await page.until("Checked by ")
    assert await page.run('return page.locator(".tutor-limits").count()') == 0


async def test_an_incomplete_check_never_says_that_all_is_right(
    page: Page, endpoint: OpenAIServer
) -> None:
    teach(endpoint, reply=say("Good."), review=found())
    await page.say("I have an apple.")
    await page.until("No mistakes found.")
    teach(endpoint, reply=say("Nice."), review=say("no review"))
    await page.say("She has a pear.")
    await page.until("there may be more mistakes")
    assert await page.run('return page.getByText("No mistakes found.").count()') == 1


async def test_the_summary_counts_the_mistakes(page: Page, endpoint: OpenAIServer) -> None:
    await wrong(page, endpoint)
    await press(page, "Summary")
    await page.until("In this conversation: 2 mistakes")
    await page.until("Make the verb agree with its subject")


async def test_an_exercise_is_answered_once(
    page: Page, endpoint: OpenAIServer, ada: Member
) -> None:
    await wrong(page, endpoint)
    await press(page, "Practice")
    await page.until("2 exercises are due")
    await page.run('await page.getByLabel("Your answer").fill("I have a pear")')
    await page.run(
        'await page.getByRole("button", {name: "Check"}).evaluate((b) => {b.click(); b.click();})'
    )
    await page.run('await page.locator(".tutor-result").waitFor()')
    await page.until("It comes again")
    await press(page, "Next exercise")
    await page.until("1 exercise is due")
    await press(page, "I don't know")
    await page.until("Not yet.")
    await press(page, "Next exercise")
    await page.until("No exercise is due.")
    reviews = [each["reviews"] for each in (await ada.get("/tutor/profile"))["mistakes"]]
    assert reviews == [1, 1]


async def test_the_profile_is_seen_edited_and_erased_only_when_confirmed(
    page: Page, endpoint: OpenAIServer, ada: Member
) -> None:
    await wrong(page, endpoint)
    await press(page, "Profile")
    await page.run('await page.getByLabel("Level").selectOption("B1")')
    await page.run('await page.getByLabel("Native language").fill("Brazilian Portuguese")')
    await page.run(
        'const saved = page.waitForResponse((each) => each.request().method() === "PATCH");'
        'await page.getByRole("button", {name: "Save", exact: true}).click(); await saved;'
    )
    known = await ada.get("/tutor/profile")
    assert (known["level"], known["native_language"]) == ("B1", "Brazilian Portuguese")
    await page.run('await page.getByRole("button", {name: /^Erase: has/}).click()')
    assert len((await ada.get("/tutor/profile"))["mistakes"]) == 2
    await press(page, "Erase")
    await page.run('await page.locator(".tutor-mistakes li").nth(1).waitFor({state: "detached"})')
    assert len((await ada.get("/tutor/profile"))["mistakes"]) == 1
    await press(page, "Erase everything")
    await press(page, "Cancel")
    assert (await ada.get("/tutor/profile"))["level"] == "B1"
    await press(page, "Erase everything")
    await press(page, "Erase")
    await page.until("Everything about you is erased.")
    known = await ada.get("/tutor/profile")
    assert (known["level"], known["mistakes"]) == (None, [])


async def test_the_conversation_survives_refresh_and_restart_until_a_new_one(
    page: Page, server: Running, endpoint: OpenAIServer, ada: Member
) -> None:
    await wrong(page, endpoint)
    thread = await thread_of(page)
    await page.run("await page.reload()")
    await page.until("An apple a day!")
    # A restarted browser opens the product without a thread in the address.
    await page.run(f"await page.goto({json.dumps(server.url + '/?assistant=tutor')})")
    await page.until("An apple a day!")
    assert await thread_of(page) == thread
    await page.run('await page.locator(".tutor-tools .quiet").click()')
    await page.run('await page.getByText("An apple a day!").waitFor({state: "detached"})')
    await page.run("await page.reload()")
    teach(endpoint, reply=say("Welcome."), review=found())
    await page.say("Good morning.")
    await page.until("Welcome.")
    second = await thread_of(page)
    assert second != thread
    # A conversation that is gone is forgotten.
    await page.idle()
    await ada.http.delete(f"/threads/{second}")
    await page.run(f"await page.goto({json.dumps(server.url + '/?assistant=tutor')})")
    await page.until("Write the first message.")


async def test_an_unreachable_server_keeps_the_answer(page: Page, endpoint: OpenAIServer) -> None:
    await wrong(page, endpoint)
    await press(page, "Practice")
    await page.run('await page.route("**/tutor/exercises/**", (route) => route.abort())')
    await page.run('await page.getByLabel("Your answer").fill("I have an apple.")')
    await press(page, "Check")
    await page.until("The server does not answer.")
    await page.run('await page.unroute("**/tutor/exercises/**")')
    await press(page, "Check")
    await page.run('await page.locator(".tutor-result").waitFor()')


async def test_the_page_is_accessible_also_narrow_and_in_portuguese(
    page: Page, endpoint: OpenAIServer
) -> None:
    await wrong(page, endpoint)
    axe = (WEB / "node_modules" / "axe-core" / "axe.min.js").read_text()
    for scheme, width, language in (("light", 1280, "en"), ("dark", 380, "pt")):
        await page.run(
            f'await page.emulateMedia({{colorScheme: "{scheme}"}});'
            f"await page.setViewportSize({{width: {width}, height: 800}});"
            f'await page.evaluate(() => localStorage.setItem("threadhold-language", "{language}"));'
            "await page.reload()"
        )
        await page.run('await page.locator(".correction").waitFor()')
        for panel in range(3):
            await page.run(f'await page.locator(".tutor-tools button").nth({panel}).click()')
            await page.run('await page.locator(".tutor .card h2").first().waitFor()')
            await page.run(f"await page.evaluate({json.dumps(axe)})")
            problems = await page.run(
                "const {violations} = await page.evaluate(() => axe.run());"
                'return violations.filter((each) => ["serious", "critical"].includes(each.impact))'
                ".map((each) => [each.id, each.nodes.map((node) => node.html).slice(0, 3)])"
            )
            assert problems == []
            wide = await page.run(
                "return page.evaluate(() => document.documentElement.scrollWidth - innerWidth)"
            )
            assert wide <= 0
    await page.until("Os seus erros")
