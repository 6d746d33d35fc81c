"""Commands of the ICP finder through the HTTP API: enrich some, undo, start over, sessions, exclusions.

Without a model, but for the offers at the end.
"""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select, update

from my_agent.companies import register
from my_agent.icp_finder.records.tables import feedback, jobs, profiles
from tests.support.icp import AGENT, Person, Sites, act, icp_server, reading, url
from tests.support.openai_replies import Failure
from tests.support.openai_server import OpenAIServer
from tests.support.processes import ROOT, Running
from tests.support.products import using

pytestmark = pytest.mark.usefixtures("each_database")

REGISTER = ROOT / "my_agent" / "companies" / "reference" / "made_up_register.csv"


def ingested(folder: Path) -> Path:
    """Ingest the made-up register into the database of a server that starts later."""
    with using(url(folder)):
        register.ingest(REGISTER, report=lambda _: None)
    return folder


@pytest.fixture(scope="module")
def sites() -> Iterator[Sites]:
    with Sites() as started:
        yield started


@pytest.fixture(scope="module")
def folder(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ingested(tmp_path_factory.mktemp("icp-commands"))


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    with icp_server(folder) as started:
        yield started


@pytest.fixture
async def ann(server: Running, sites: Sites, folder: Path) -> AsyncIterator[Person]:
    person = Person(sites, folder)
    async with person.at(server):
        yield person


@pytest.fixture
async def settled(ann: Person) -> Person:
    """Return a user with candidates, and no question that waits."""
    await ann.settle()
    await ann.answer({"choice": "later"})
    assert ann.asked is None
    return ann


def keys(person: Person) -> list[str]:
    return [each["key"] for each in person.values["candidates"]]


# --- enrichment of some --------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "places"), [("enrich 1,3", (0, 2)), ("enrich 2-4", (1, 2, 3))], ids=["list", "range"]
)
async def test_exactly_the_numbered_candidates_are_enriched(
    ann: Person, text: str, places: tuple[int, ...]
) -> None:
    await ann.settle()
    every = keys(ann)
    assert f"none of {len(places)} companies" in await ann.answer(text)
    done = ann.values["enrichment"]
    assert done["failed"] == [every[at] for at in places]
    assert (done["now"], done["job"]) == ([], None)
    assert await _jobs(ann) == []


async def test_all_but_a_named_candidate_are_enriched(ann: Person) -> None:
    await ann.settle()
    every, out = keys(ann), ann.values["candidates"][2]
    await ann.answer(f"enrich all except {out['name']}")
    rest = [key for key in every if key != out["key"]]
    done = ann.values["enrichment"]
    assert done["failed"] == rest[:10]
    assert done["queued"] == len(rest[10:])
    [queued] = await _jobs(ann)
    assert queued == rest[10:]


async def test_names_that_are_not_there_enrich_nothing(settled: Person) -> None:
    for text in ("enrich all except Nobody Ltd", "enrich 99", "enrich Nobody Ltd"):
        await settled.say(text)
        assert settled.values.get("enrichment") is None, text


# --- undo ----------------------------------------------------------------------


async def test_feedback_is_undone(settled: Person) -> None:
    first, second = settled.values["candidates"][:2]
    await settled.say("reject 1 because it is too small")
    await settled.say(f"reject {second['name']}")
    shown = await settled.say("show")
    assert first["name"] not in shown
    assert second["name"] not in shown
    assert "taken back your last feedback" in await settled.say("undo")
    shown = await settled.say("show")
    assert first["name"] not in shown
    assert second["name"] in shown
    assert "it is too small" in await settled.say("which ones did I reject?")
    await settled.say("undo")
    assert first["name"] in await settled.say("show")
    count = select(feedback.c.key).where(feedback.c.tenant_id == settled.tenant)
    assert await settled.work(lambda c: c.scalars(count).all()) == []


async def test_replaced_feedback_comes_back_with_its_reason(settled: Person) -> None:
    await settled.say("reject 1 because it is too small")
    await settled.say(f"keep {settled.values['candidates'][0]['name']}")
    await settled.say("undo")
    assert "it is too small" in await settled.say("which ones did I reject?")


async def test_change_of_a_profile_is_undone_before_it_is_confirmed(ann: Person) -> None:
    await ann.open()
    await ann.say(f"Our website is {ann.website}")
    await ann.say(ann.customers)
    before = ann.values["icp"]
    await ann.answer("regions: Johor")
    assert ann.values["icp"]["regions"] == ["Johor"]
    assert "taken back the last change" in await ann.answer("undo")
    assert ann.asked == "confirm_icp"
    assert ann.values["icp"] == ann.question["details"]["icp"] == before
    await ann.answer("yes")
    assert ann.values["icp"]["regions"] == []


async def test_change_of_a_profile_is_undone_after_its_search(settled: Person) -> None:
    before = {name: settled.values[name] for name in ("site", "customers", "icp", "last")}
    await settled.say("regions: Johor")
    assert settled.question["kind"] == "context_change"
    # What waits for an answer is taken back by changing nothing.
    await settled.answer("undo")
    assert settled.asked is None
    assert {name: settled.values[name] for name in before} == before
    await settled.say("industries: software development")
    await settled.answer({"choice": "continue"})
    assert settled.values["icp"]["industries"] == ["software development"]
    assert settled.values["last"] != before["last"]
    said = await settled.say("undo")
    assert "taken back the last change" in said
    assert settled.values["icp"] == before["icp"]
    # The candidates are those of the change, so a new search is proposed, and not made.
    assert settled.question["kind"] == "rerun"
    assert "industries" in settled.question["details"]["reason"]
    await settled.answer("yes")
    assert settled.values["last"] == before["last"]


async def test_change_before_the_first_search_is_undone_after_it(ann: Person) -> None:
    await ann.open()
    await ann.say(f"Our website is {ann.website}")
    await ann.say(ann.customers)
    before = ann.values["icp"]
    await ann.answer("industries: software development")
    await ann.answer({"choice": "confirm"})
    assert ann.asked == "enrich"
    assert "taken back the last change" in await ann.answer("undo")
    assert ann.values["icp"] == before
    # The company stays confirmed; the search is proposed, and not made.
    assert (ann.asked, ann.values["confirmed"]) == ("rerun", True)
    assert "nothing that I could take back" in await ann.answer("undo")


async def test_change_of_the_website_is_undone(ann: Person) -> None:
    await ann.open()
    await ann.say(f"Our website is {ann.website}")
    await ann.say(ann.customers)
    before = {name: ann.values[name] for name in ("site", "customers", "icp")}
    new = f"other-{ann.tenant}.example"
    await ann.answer(f"our website is http://{new}")
    assert ann.values["site"]["domain"] == new
    await ann.answer("undo")
    assert {name: ann.values[name] for name in before} == before
    assert (ann.asked, (await ann.metadata())["website"]) == ("confirm_icp", ann.website)


# --- start over ----------------------------------------------------------------


async def test_start_over_asks_forgets_and_is_undone(settled: Person) -> None:
    before = {name: settled.values[name] for name in ("site", "customers", "icp", "confirmed")}
    assert f"forget {settled.tenant}.example" in await settled.say("start over")
    assert settled.asked == "start_over"
    assert "changed nothing" in await settled.answer("no")
    assert await _companies(settled) == [f"{settled.tenant}.example"]
    await settled.say("start over")
    said = await settled.answer({"choice": "start_over"})
    assert "I have forgotten this company" in said
    assert "company's website" in said
    assert settled.values["site"] is None
    assert await _companies(settled) == []
    # A greeting brings nothing back.
    assert "company's website" in await settled.say("Hello")
    assert settled.values["site"] is None
    await settled.say("undo")
    assert {name: settled.values[name] for name in before} == before
    assert await _companies(settled) == [f"{settled.tenant}.example"]
    assert "1. " in await settled.say("show")


async def test_start_over_offers_no_other_stored_company(ann: Person) -> None:
    other = f"http://other-{ann.tenant}.example"
    await ann.open(website=other)
    await ann.say(ann.customers)
    await ann.answer("yes")
    await ann.open()
    await ann.say(f"Our website is {ann.website}")
    if ann.asked == "context_change":
        await ann.answer({"choice": "continue"})
    assert ann.values["site"]["domain"] == f"{ann.tenant}.example"
    await ann.say("start over")
    await ann.answer({"choice": "start_over"})
    for text in ("Hello", "show", "I do not know"):
        said = await ann.say(text)
        assert "other-" not in said
        assert ann.values["site"] is None
    # The company that was stored before is untouched.
    assert f"other-{ann.tenant}.example" in await _companies(ann)


# --- searches and sessions -----------------------------------------------------


async def test_news_are_those_of_the_last_search(settled: Person) -> None:
    assert "only one search so far" in await settled.say("what's new?")
    await settled.say("search again")
    assert "Since the search before, nothing has changed" in await settled.say("what's new?")


async def test_new_session_is_asked_about_and_opened_by_its_request(settled: Person) -> None:
    old = settled.thread or ""
    await settled.say("new session")
    assert settled.asked == "new_session"
    request = settled.question["details"]["new_session"]
    assert (await settled.metadata())["status"] == "open"
    assert "read-only" in await settled.answer({"choice": "new"})
    opened = await settled.sdk.http.post(request["path"], json=request["body"])
    settled.thread = opened["thread_id"]
    assert (await settled.metadata(old))["status"] == "locked"
    assert "Welcome back" in await settled.say("Hello")
    with pytest.raises(httpx.HTTPStatusError) as refused:
        await settled.sdk.runs.wait(old, AGENT, input=_message("Hello"))
    assert refused.value.response.status_code == 409


async def test_stale_profile_is_searched_again_after_a_yes(settled: Person) -> None:
    then = datetime.now(UTC) - timedelta(days=15)
    old = update(profiles).where(profiles.c.tenant_id == settled.tenant).values(updated_at=then)
    await settled.work(lambda c: c.execute(old))
    await settled.open(website=settled.website)
    said = await settled.say("Hello")
    assert "Re-run discovery, because the company's profile is out of date?" in said
    await settled.answer("yes")
    assert settled.asked == "enrich"
    assert len(keys(settled)) > 10


# --- customers -----------------------------------------------------------------


async def test_three_customers_are_enough_if_there_are_no_more(ann: Person) -> None:
    await ann.open(website=ann.website)
    await ann.say("Hello")
    assert "3 of 5" in await ann.say(", ".join(ann.sites.urls[:3]))
    await ann.say("no more")
    assert ann.asked == "confirm_icp"
    await ann.answer("yes")
    assert ann.asked == "enrich"
    await ann.open(website=ann.website)
    await ann.say("Hello")
    assert (ann.asked, len(ann.values["customers"])) == ("enrich", 3)


async def test_ten_customers_are_taken(ann: Person) -> None:
    await ann.open(website=f"http://no-limits-{ann.tenant}.example")
    await ann.say("Hello")
    names = [f"no-{number}-{ann.tenant}.example" for number in range(11)]
    await ann.say(", ".join(f"http://{each}" for each in names[:4]))
    said = await ann.say(", ".join(f"http://{each}" for each in names[4:]))
    assert f"10 are enough: I left out {names[10]}." in said
    assert [each["domain"] for each in ann.values["customers"]] == names[:10]
    assert ann.values["site"]["domain"] == f"no-limits-{ann.tenant}.example"


async def test_excluded_companies_are_not_listed(settled: Person) -> None:
    first = settled.values["candidates"][0]
    gone = [e["key"] for e in settled.values["candidates"] if e["industry"] == first["industry"]]
    hash_ = settled.values["last"]["icp_hash"]
    said = await settled.say(f'exclusions: "{first["industry"]}"')
    assert settled.asked == "context_change"
    assert settled.question["details"]["changed"] == ["exclusions"]
    assert "never: nothing → " in said
    await settled.answer({"choice": "continue"})
    assert settled.values["last"]["icp_hash"] != hash_
    assert keys(settled)
    assert not set(keys(settled)) & set(gone)
    assert first["industry"] not in [e["industry"] for e in settled.values["candidates"]]
    # Without exclusions, the profile is the one from before.
    await settled.answer({"choice": "later"})
    await settled.say("exclusions: none")
    await settled.answer({"choice": "continue"})
    assert settled.values["last"]["icp_hash"] == hash_
    assert set(gone) <= set(keys(settled))


# --- threads that are repeated, forked and copied -------------------------------


async def test_a_copied_thread_goes_on_without_the_question_of_the_first(ann: Person) -> None:
    await ann.settle()
    old, shown = ann.thread or "", keys(ann)
    copied: Any = await ann.sdk.http.post(f"/threads/{old}/copy", json={})
    new = copied["thread_id"]
    state: Any = await ann.sdk.threads.get_state(new)
    assert [each["key"] for each in state["values"]["candidates"]] == shown
    statuses = [(await ann.metadata(each))["status"] for each in (old, new)]
    assert "open" in statuses
    ann.thread = (old, new)[statuses.index("open")]
    assert ann.values["candidates"][0]["name"] in await ann.say("show")
    # The other one keeps its history, or goes on as well.
    other: Any = await ann.sdk.threads.get_state(new if ann.thread == old else old)
    assert [each["key"] for each in other["values"]["candidates"]] == shown


async def test_a_turn_is_regenerated_and_forked(ann: Person) -> None:
    await ann.settle()
    await ann.answer("reject 1")
    history: Any = await ann.sdk.threads.get_history(ann.thread or "", limit=100)
    asked = next(
        each
        for each in reversed(history)
        if each["next"] == ["choose"] and each["values"].get("last")
    )
    # The same question again, from before the feedback: once with the same, and once with another answer.
    for text in ("reject 1", "show"):
        values: Any = await ann.sdk.runs.wait(
            ann.thread or "", AGENT, command={"resume": text}, checkpoint=asked["checkpoint"]
        )
        assert values["__interrupt__"][0]["value"]["kind"] == "enrich"
        assert values["__interrupt__"][0]["value"]["id"] == asked["values"]["asking"]["id"]
    # A message from the beginning is a new branch, which knows what is stored.
    first = next(each for each in reversed(history) if each["next"] == ["ingest"])
    values = await ann.sdk.runs.wait(
        ann.thread or "", AGENT, input=_message("Hello"), checkpoint=first["checkpoint"]
    )
    assert values["site"]["domain"] == f"{ann.tenant}.example"
    assert len(values["customers"]) == 5


async def test_a_locked_thread_refuses_the_name_of_another_graph(ann: Person) -> None:
    await ann.settle()
    old, shown = ann.thread or "", keys(ann)
    await ann.open(website=ann.website)
    for graph, status in (("chat", 409), (AGENT, 200)):
        answer = await ann.sdk.http.client.patch(
            f"/threads/{old}", json={"metadata": {"graph_id": graph}}
        )
        assert answer.status_code == status, answer.text
        assert (await ann.metadata(old))["status"] == "locked"
        with pytest.raises(httpx.HTTPStatusError) as refused:
            await ann.sdk.runs.wait(old, graph, input=_message("Hello"))
        assert refused.value.response.status_code == 409
    state: Any = await ann.sdk.threads.get_state(old)
    assert [each["key"] for each in state["values"]["candidates"]] == shown


async def test_half_a_character_in_a_message_fails_no_later_turn(settled: Person) -> None:
    body = '{"assistant_id": "icp_finder", "input": {"messages": [{"role": "user", "content": "\\ud83d"}]}}'
    answer = await settled.sdk.http.client.post(
        f"/threads/{settled.thread}/runs/wait",
        content=body,
        headers={"content-type": "application/json"},
    )
    assert answer.status_code < 500, answer.text
    assert "1. " in await settled.say("show")


# --- offers ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def reader_folder(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ingested(tmp_path_factory.mktemp("icp-offers"))


@pytest.fixture(scope="module")
def reader_server(reader_folder: Path, endpoint: OpenAIServer) -> Iterator[Running]:
    with icp_server(
        reader_folder,
        OPENAI_MAX_RETRIES="0",
        OPENAI_BASE_URL=endpoint.base_url,
        OPENAI_API_KEY=endpoint.api_key,
    ) as started:
        yield started


async def test_what_words_do_not_give_for_sure_is_offered(
    reader_server: Running, endpoint: OpenAIServer, sites: Sites, reader_folder: Path
) -> None:
    endpoint.reset()
    # An endpoint that works, and answers nothing else.
    endpoint.fallback = Failure(status=400, message="This model reads some messages only")
    bob = Person(sites, reader_folder)
    async with bob.at(reader_server):
        await bob.settle()
        await bob.answer({"choice": "later"})
        third = bob.values["candidates"][2]
        text = "the third is nothing for us, I guess"
        hides = act("Command", text, name="reject", targets=[3])
        for choice, rejected in (("skip", []), ("do", [third["key"]])):
            endpoint.enqueue(reading(hides))
            said = await bob.say(text)
            assert f"Do you want me to no longer show {third['name']}?" in said
            assert bob.asked == "offer"
            [offered] = bob.question["details"]["orders"]
            assert (offered["name"], offered["keys"]) == ("reject", [third["key"]])
            assert await _rejected(bob) == []
            await bob.answer({"choice": choice, "question": bob.question["id"]})
            assert await _rejected(bob) == rejected
            assert bob.asked is None


async def test_an_offer_beside_a_change_is_asked_first_and_the_change_after_it(
    reader_server: Running, endpoint: OpenAIServer, sites: Sites, reader_folder: Path
) -> None:
    endpoint.reset()
    endpoint.fallback = Failure(status=400, message="This model reads some messages only")
    bob = Person(sites, reader_folder)
    async with bob.at(reader_server):
        await bob.settle()
        await bob.answer({"choice": "later"})
        first = bob.values["candidates"][0]
        likes, drops = f"more like {first['name']}", "no cafés"
        like = act("Command", likes, name="like", targets=[first["name"]])
        exclude = act("Exclude", drops, what="industries", value=["cafés"])
        endpoint.enqueue(reading(like, exclude))
        await bob.say(f"{likes}, but {drops}")
        assert bob.asked == "offer"
        await bob.answer({"choice": "do", "question": bob.question["id"]})
        own = select(feedback.c.key).where(feedback.c.tenant_id == bob.tenant)
        assert await bob.work(lambda c: list(c.scalars(own))) == [first["key"]]
        assert bob.asked == "context_change"
        await bob.answer({"choice": "continue", "question": bob.question["id"]})
        assert bob.values["icp"]["exclusions"] == ["cafés"]


async def _rejected(person: Person) -> Any:
    own = select(feedback.c.key).where(feedback.c.tenant_id == person.tenant)
    return await person.work(lambda c: list(c.scalars(own)))


async def _jobs(person: Person) -> Any:
    """Return the candidates of each job of the tenant."""
    own = select(jobs.c.candidate_keys).where(jobs.c.tenant_id == person.tenant)
    return await person.work(lambda c: list(c.scalars(own)))


async def _companies(person: Person) -> Any:
    own = select(profiles.c.domain).where(profiles.c.tenant_id == person.tenant)
    return await person.work(lambda c: list(c.scalars(own.order_by(profiles.c.domain))))


def _message(text: str) -> Any:
    return {"messages": [{"role": "user", "content": text}]}
