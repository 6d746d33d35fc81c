"""The ICP finder's nodes, one at a time, on a database of their own and no server."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
import structlog
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.runtime import Runtime
from sqlalchemy import update

from my_agent import database
from my_agent.icp_finder import prompts, records, register, thread
from my_agent.icp_finder.context import Context
from my_agent.icp_finder.decisions import Decisions
from my_agent.icp_finder.diffs import basis, icp_hash
from my_agent.icp_finder.heard import NOTHING, listen
from my_agent.icp_finder.model import Candidate, Company, Icp, Score, Scored, Site
from my_agent.icp_finder.nodes import profile, search
from my_agent.icp_finder.nodes.ingest import ingest
from my_agent.icp_finder.nodes.journey import journey_guard
from my_agent.icp_finder.nodes.probe import return_user_probe
from my_agent.icp_finder.nodes.profile import profile_builder
from my_agent.icp_finder.nodes.search import (
    decide_strategy,
    normalize,
    refresh_icp,
    ssic_fallback,
)
from my_agent.icp_finder.sites import domain
from my_agent.icp_finder.state import State
from my_agent.icp_finder.tables import discoveries, profiles
from my_agent.icp_finder.website import SiteRefused, SiteUnreadable
from my_agent.user import NoTenantError

RULE = "Default ICP"
HAULIER = "A trucking company: freight trucking by road, trucks for every freight, road freight."
ICP: Icp = {"industries": ["Road freight"], "sizes": [], "regions": [], "keywords": []}


def config(tenant: str = "acme", user: str = "ann", thread_id: str = "t") -> Any:
    who = {"identity": user, "tenant_id": tenant}
    # What a client can write says something else, and nobody listens.
    return {
        "configurable": {"thread_id": thread_id, "langgraph_auth_user": who, "tenant_id": "other"},
        "metadata": {"tenant_id": "other"},
    }


def site(name: str, about: str = "") -> Site:
    return {"website": f"https://{name}", "domain": name, "name": name, "about": about}


COMPANY: Company = {"site": site("acme.com"), "customers": [site(f"c{n}.com") for n in range(5)]}


def state(text: str = "", **values: Any) -> State:
    base: dict[str, Any] = {
        "messages": [HumanMessage(text)] if text else [],
        "thread_id": "t",
        "rule_name": RULE,
        "heard": listen(text),
        "notes": [],
    }
    found = base | values
    return cast("State", found)


def confirmed(text: str = "", **values: Any) -> State:
    return state(text, **{"confirmed": True, **COMPANY, "icp": ICP, **values})


def updates(command: Any) -> dict[str, Any]:
    found: dict[str, Any] = command.update
    return found


def said(command: Any) -> str:
    return str(updates(command)["messages"][-1].text)


@pytest.fixture(autouse=True)
def product(tmp_path: Path, no_model: pytest.MonkeyPatch) -> Iterator[None]:
    database.use(f"sqlite:///{tmp_path}/app.db")
    for name in ("ICP_RULE_NAME", "RUN_NOW_LIMIT", "RUN_LATER_LIMIT", "PROFILE_STALENESS_DAYS"):
        no_model.delenv(name, raising=False)
    yield
    database.database().close()
    database.use(None)


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as lines:
        yield lines


@pytest.fixture
def metadata(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The thread's metadata, as the server would tell them."""
    found: dict[str, Any] = {}

    async def told(config: Any) -> dict[str, Any]:
        return found

    monkeypatch.setattr(thread, "metadata", told)
    return found


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Reads websites without a network; which ones is in the list."""
    read: list[str] = []

    async def read_site(website: str) -> Site:
        name = domain(website)
        read.append(name)
        if name.startswith("10."):
            raise SiteRefused(f"{name} is at a private address, which is not read.")
        if name.startswith("down"):
            raise SiteUnreadable(f"{name} could not be read.")
        return {"website": website, "domain": name, "name": name.title(), "about": HAULIER}

    monkeypatch.setattr(profile, "read_site", read_site)
    return read


async def saved(*, discovery: bool = True, tenant: str = "acme") -> None:
    await records.save_profile(tenant, COMPANY, confirmed=True)
    await records.save_rule(tenant, "acme.com", RULE, ICP, confirmed=True)
    if discovery:
        of = basis(COMPANY, ICP)
        await records.save_discovery(tenant, RULE, icp_hash(of), of, [scored("domain:a.com")])


def scored(key: str, total: float = 0.5) -> Scored:
    return Scored(Candidate(key, key, "web"), Score(total, {"industry": total}))


async def age(table: Any, column: str, days: float) -> None:
    then = datetime.now(UTC) - timedelta(days=days)
    change = update(table).values({column: then})
    await database.database().run(lambda connection: connection.execute(change), write=True)


# --- ingest ------------------------------------------------------------------


async def test_tenant_and_thread_are_the_server_s_to_say(metadata: dict[str, Any]) -> None:
    found = updates(await ingest(state("hello", tenant_id="forged"), config()))
    assert (found["tenant_id"], found["thread_id"], found["rule_name"]) == ("acme", "t", RULE)


async def test_a_user_of_no_tenant_is_refused() -> None:
    nobody: Any = {"configurable": {"langgraph_auth_user": {"identity": "studio"}}}
    with pytest.raises(NoTenantError):
        await ingest(state("hello"), nobody)


@pytest.mark.parametrize("status", ["locked", "archived"])
async def test_a_closed_thread_is_answered_and_changed_in_nothing(
    metadata: dict[str, Any], logged: list[Any], status: str
) -> None:
    metadata["status"] = status
    command = await ingest(state("our website is acme.com"), config())
    assert command.goto == "__end__"
    assert updates(command).keys() == {"messages"}
    assert "read-only" in said(command)
    assert ("read_only", status) in [(line["action"], line["status"]) for line in logged]


@pytest.mark.parametrize("status", ["open", "pending_lock", None])
async def test_an_open_thread_goes_on(metadata: dict[str, Any], status: str | None) -> None:
    metadata["status"] = status
    assert (await ingest(state("hello"), config())).goto == "return_user_probe"


async def test_everything_said_since_the_last_answer_is_heard(metadata: dict[str, Any]) -> None:
    messages = [HumanMessage("a.com"), AIMessage("?"), HumanMessage("b.com"), HumanMessage("c.com")]
    found = updates(await ingest(state(messages=messages), config()))
    assert found["heard"]["sites"] == ["https://b.com", "https://c.com"]


async def test_a_message_answers_the_question_that_waits(metadata: dict[str, Any]) -> None:
    asking = {"kind": "rerun"}
    found = updates(await ingest(state("yes please", asking=asking), config()))
    assert found["answer"] == {"kind": "rerun", "value": "rerun"}
    assert (found["asking"], found["unclear"]) == (None, False)


async def test_a_reply_that_chooses_nothing_is_unclear_unless_it_tells_something(
    metadata: dict[str, Any],
) -> None:
    asking = {"kind": "rerun"}
    found = updates(await ingest(state("why?", asking=asking), config()))
    assert (found["answer"], found["unclear"]) == (None, True)
    found = updates(await ingest(state("industries: steel", asking=asking), config()))
    assert (found["answer"], found["unclear"]) == (None, False)
    assert found["heard"]["icp"] == {"industries": ["steel"]}


async def test_a_structured_reply_is_heard(metadata: dict[str, Any]) -> None:
    asking = {"kind": "confirm_icp"}
    reply = {"choice": "change", "icp": {"regions": ["Asia"]}}
    found = updates(await ingest(state("x", asking=asking, reply=reply), config()))
    # It says already what to change.
    assert found["answer"] is None
    assert found["heard"]["icp"] == {"regions": ["Asia"]}
    assert found["reply"] is None


async def test_a_thread_is_about_what_it_was_opened_with(metadata: dict[str, Any]) -> None:
    metadata |= {
        "website": "WWW.Acme.com/",
        "rule_name": "Big ones",
        "payload": {"industries": ["steel"], "customers": ["b.com", "c.com"]},
    }
    found = updates(await ingest(state("hello"), config()))
    assert (found["website"], found["rule_name"]) == ("https://www.acme.com", "Big ones")
    assert found["heard"]["icp"] == {"industries": ["steel"]}
    assert found["heard"]["sites"] == ["https://b.com", "https://c.com"]
    assert found["seeded"]
    later = updates(await ingest(confirmed("hello"), config()))
    assert later["heard"]["icp"] == {}


@pytest.mark.parametrize("value", [5, None, "", "nonsense", ["a.com"]])
async def test_odd_metadata_says_nothing(metadata: dict[str, Any], value: Any) -> None:
    metadata |= {"website": value, "payload": value, "rule_name": None}
    found = updates(await ingest(state("hello"), config()))
    assert (found["website"], found["rule_name"]) == (None, RULE)


async def test_the_environment_names_the_rule(
    metadata: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ICP_RULE_NAME", "House rule")
    assert updates(await ingest(state("hello"), config()))["rule_name"] == "House rule"


# --- return_user_probe --------------------------------------------------------


async def test_nobody_is_known_at_first(logged: list[Any]) -> None:
    command = await return_user_probe(state("hello"), config())
    found = updates(command)
    assert command.goto == "profile_builder"
    assert not found["is_return_user"]
    assert found["decisions"]["reason"] == "nothing is known of this company yet"
    [line] = [line for line in logged if line["action"] == "return_user_probe"]
    assert line["reason"] == found["decisions"]["reason"]
    assert (line["thread_id"], line["use_cached"], line["rerun_icp"]) == ("t", False, False)


async def test_a_returning_user_is_known_and_goes_on_with_the_candidates() -> None:
    await saved()
    found = updates(await return_user_probe(state("hello"), config()))
    assert found["is_return_user"]
    assert found["confirmed"]
    assert (found["site"], found["customers"], found["icp"]) == (*COMPANY.values(), ICP)
    assert found["decisions"]["use_cached"]
    assert found["last"] == {"rule_name": RULE, "icp_hash": icp_hash(basis(COMPANY, ICP))}
    assert "Welcome back" in found["notes"][0]


async def test_another_tenant_knows_nothing_of_it() -> None:
    await saved()
    found = updates(await return_user_probe(state("hello"), config(tenant="other")))
    assert not found["is_return_user"]
    assert "site" not in found


@pytest.mark.parametrize(
    ("table", "column", "words"),
    [
        (profiles, "updated_at", "profile is out of date"),
        (discoveries, "discovered_at", "last search is out of date"),
    ],
)
async def test_what_is_stale_is_searched_for_again(table: Any, column: str, words: str) -> None:
    await saved()
    await age(table, column, 15)
    decisions = updates(await return_user_probe(state("hello"), config()))["decisions"]
    assert decisions["rerun_icp"]
    assert words in decisions["reason"]


async def test_another_rule_is_drift() -> None:
    await saved()
    found = updates(await return_user_probe(state("hello", rule_name="Other"), config()))
    assert found["decisions"]["rerun_icp"]
    assert "rule" in found["decisions"]["reason"]
    assert found["icp"] == ICP


async def test_an_icp_that_was_saved_since_the_search_is_a_difference() -> None:
    await saved()
    changed: Icp = {**ICP, "industries": ["Steel"]}
    await records.save_rule("acme", "acme.com", RULE, changed, confirmed=True)
    decisions = updates(await return_user_probe(state("hello"), config()))["decisions"]
    assert decisions["reason"] == "the industries have changed since the last search"


async def test_the_thread_s_company_is_loaded_and_not_the_last_one() -> None:
    await saved()
    other: Company = {"site": site("b.com"), "customers": []}
    await records.save_profile("acme", other, confirmed=False)
    of_thread = state("hello", website="https://acme.com")
    assert updates(await return_user_probe(of_thread, config()))["site"] == COMPANY["site"]
    by_name = state("acme.com")
    assert updates(await return_user_probe(by_name, config()))["site"] == COMPANY["site"]
    assert updates(await return_user_probe(state("hello"), config()))["site"] == other["site"]


async def test_a_change_of_a_confirmed_company_is_the_user_s_to_decide(logged: list[Any]) -> None:
    await saved()
    command = await return_user_probe(confirmed("our website is now acme.org"), config())
    found = updates(command)
    assert command.goto == "choose"
    assert found["asking"]["details"] == {
        "changed": ["website"],
        "website": "acme.org",
        "new_session": {
            "method": "POST",
            "path": "/threads/t/resume",
            "body": {"website": "https://acme.org"},
        },
    }
    assert "continue here" in said(command)
    assert [line["parts"] for line in logged if line["action"] == "context_change"] == [
        ("website",)
    ]


def answered(value: str, **values: Any) -> State:
    change = listen("our website is now acme.org")
    answer = {"kind": "context_change", "value": value}
    return confirmed("x", change=change, answer=answer, **values)


async def test_continuing_takes_the_change_and_agrees_to_search() -> None:
    await saved()
    command = await return_user_probe(answered("continue"), config())
    found = updates(command)
    assert command.goto == "profile_builder"
    assert found["heard"]["website"] == "https://acme.org"
    assert found["consent"]
    assert found["decisions"] == {
        "use_cached": False,
        "rerun_icp": True,
        "reason": "the website changed",
    }


async def test_a_new_session_changes_nothing_here() -> None:
    await saved()
    command = await return_user_probe(answered("new"), config())
    assert command.goto == "__end__"
    assert updates(command)["change"] is None
    assert "acme.org" in said(command)
    snapshot = await records.load_snapshot("acme", domain=None, rule_name=RULE)
    assert snapshot.profile is not None
    assert snapshot.profile.company == COMPANY


async def test_keeping_forgets_the_change() -> None:
    await saved()
    command = await return_user_probe(answered("keep"), config())
    assert command.goto == "profile_builder"
    assert updates(command)["heard"] == NOTHING
    assert updates(command)["decisions"]["use_cached"]


async def test_an_unclear_answer_asks_again_and_keeps_the_change() -> None:
    await saved()
    change = listen("our website is now acme.org")
    command = await return_user_probe(confirmed("hm", change=change, unclear=True), config())
    assert command.goto == "choose"
    assert updates(command)["change"] == change
    assert said(command).startswith(prompts.UNCLEAR)


async def test_a_thread_that_was_opened_for_a_change_is_not_asked_about_it() -> None:
    await saved()
    heard = listen("industries: steel")
    command = await return_user_probe(state("hi", heard=heard, seeded=True), config())
    assert command.goto == "profile_builder"
    assert updates(command)["decisions"]["reason"] == "the industries changed"
    assert not updates(command).get("consent")


# --- profile_builder -----------------------------------------------------------


async def build(of: State) -> State:
    return await profile_builder(of, config(), Runtime(context=Context()))


async def test_the_first_website_is_the_company_s(web: list[str]) -> None:
    found = await build(state("acme.com"))
    assert found["site"] is not None
    assert found["site"]["domain"] == "acme.com"
    assert found["customers"] == []
    assert web == ["acme.com"]


async def test_customers_come_one_by_one_or_at_once(web: list[str]) -> None:
    one = await build(state("b.com", site=site("acme.com")))
    more = await build(state("c.com, d.com", site=site("acme.com"), customers=one["customers"]))
    assert [each["domain"] for each in more["customers"]] == ["b.com", "c.com", "d.com"]
    all_ = await build(state("We are acme.com and sell to b.com c.com d.com e.com f.com"))
    assert all_["site"] is not None
    assert all_["site"]["domain"] == "acme.com"
    assert len(all_["customers"]) == 5


async def test_what_is_wrong_is_said_and_the_rest_is_kept(
    web: list[str], logged: list[Any]
) -> None:
    found = await build(
        state("b.com acme.com b.com http://10.0.0.1 down.com", site=site("acme.com"))
    )
    assert [each["domain"] for each in found["customers"]] == ["b.com", "down.com"]
    assert found["customers"][1]["about"] == ""
    notes = "\n".join(found["notes"])
    assert "acme.com is your own website" in notes
    assert "10.0.0.1 is at a private address" in notes
    assert "down.com could not be read" in notes
    assert {line["action"] for line in logged} == {"site_refused", "site_unreadable"}


async def test_a_customer_is_not_taken_twice_and_there_are_five(web: list[str]) -> None:
    known = [site("b.com")]
    found = await build(state("b.com", site=site("acme.com"), customers=known))
    assert found["notes"] == ["I have b.com already."]
    full = await build(state("y.com z.com", confirmed=False, **COMPANY))
    assert full["customers"] == COMPANY["customers"]
    assert "y.com, z.com" in full["notes"][0]
    assert web == []


async def test_customers_are_exchanged_and_kept_if_the_new_one_will_not_do(
    web: list[str],
) -> None:
    found = await build(state("replace c1.com with d.com", **COMPANY))
    assert found["customers"][1]["domain"] == "d.com"
    found = await build(state("replace c1.com with http://10.0.0.1", **COMPANY))
    assert found["customers"] == COMPANY["customers"]
    found = await build(state("replace x.com with d.com", **COMPANY))
    assert found["notes"] == ["x.com is none of your customers."]
    found = await build(state("replace c1.com with c2.com", **COMPANY))
    assert found["customers"] == COMPANY["customers"]


async def test_an_icp_is_proposed_from_what_the_websites_say(web: list[str]) -> None:
    found = await build(state("b.com c.com d.com e.com f.com", site=site("acme.com")))
    assert found["icp"] is not None
    assert "Land transport" in found["icp"]["industries"][0]


async def test_what_the_user_has_said_of_the_icp_is_stronger(web: list[str]) -> None:
    partly: Icp = {"industries": [], "sizes": [], "regions": ["Asia"], "keywords": []}
    found = await build(
        state("f.com", icp=partly, **{**COMPANY, "customers": COMPANY["customers"][:4]})
    )
    assert found["icp"] is not None
    assert found["icp"]["regions"] == ["Asia"]
    assert found["icp"]["industries"]
    told = await build(state("industries: steel", icp=ICP, **COMPANY))
    assert told["icp"] is not None
    assert told["icp"]["industries"] == ["steel"]


async def test_industries_that_were_asked_for_need_no_label(web: list[str]) -> None:
    found = await build(state("steel and food", asked="industries", **COMPANY))
    assert found["icp"] is not None
    assert found["icp"]["industries"] == ["steel", "food"]


async def test_what_is_not_confirmed_is_saved_as_it_comes(web: list[str]) -> None:
    await build(state("acme.com b.com"))
    snapshot = await records.load_snapshot("acme", domain="acme.com", rule_name=RULE)
    assert snapshot.profile is not None
    assert not snapshot.profile.confirmed
    assert len(snapshot.profile.company["customers"]) == 1


async def test_a_change_that_is_not_possible_leaves_everything(web: list[str]) -> None:
    of = confirmed("our website is now http://10.0.0.1", consent=True)
    found = await build(of)
    assert found["site"] == COMPANY["site"]
    assert not found["consent"]
    assert not found["decisions"]["rerun_icp"]
    assert "private address" in found["notes"][0]


async def test_a_confirmed_website_changes_once_the_user_agrees(web: list[str]) -> None:
    found = await build(confirmed("our website is now acme.org", consent=True))
    assert found["site"] is not None
    assert found["site"]["domain"] == "acme.org"
    assert found["customers"] == COMPANY["customers"]
    # It is saved with the consent to search, and not before.
    assert (await records.load_snapshot("acme", domain="acme.org", rule_name=RULE)).profile is None


# --- journey_guard -------------------------------------------------------------

NEITHER: Decisions = {"use_cached": False, "rerun_icp": False, "reason": "-"}
CACHED: Decisions = {"use_cached": True, "rerun_icp": False, "reason": "recent"}
RERUN: Decisions = {"use_cached": False, "rerun_icp": True, "reason": "it is old"}
LAST = {"rule_name": RULE, "icp_hash": "0" * 16}


@pytest.mark.parametrize(
    ("known", "asked", "words"),
    [
        ({}, "website", "company's website"),
        ({"site": site("acme.com")}, "customers", "5 best customers"),
        (
            {"site": site("acme.com"), "customers": COMPANY["customers"][:4]},
            "customers",
            "4 of 5 customers: c0.com, c1.com, c2.com, c3.com. Please send me one more website",
        ),
        ({**COMPANY, "icp": None}, "industries", "Which ones do you sell to"),
        ({**COMPANY, "icp": {**ICP, "industries": []}}, "industries", "Which ones"),
    ],
)
async def test_what_is_missing_is_asked_for_step_by_step(
    known: Any, asked: str, words: str, logged: list[Any]
) -> None:
    command = await journey_guard(state("hello", decisions=NEITHER, **known))
    assert command.goto == "__end__"
    assert updates(command)["asked"] == asked
    assert words in said(command)
    assert [line["what"] for line in logged] == [asked]


async def test_a_reply_without_a_website_is_asked_again_with_what_is_wrong() -> None:
    command = await journey_guard(state("what?", decisions=NEITHER, asked="website"))
    assert said(command).startswith(prompts.NO_WEBSITE)


async def test_company_and_icp_are_confirmed_first() -> None:
    command = await journey_guard(state(decisions=NEITHER, icp=ICP, **COMPANY))
    assert command.goto == "choose"
    assert updates(command)["asking"]["kind"] == "confirm_icp"
    assert "Road freight" in said(command)
    answer = {"kind": "confirm_icp", "value": "confirm"}
    command = await journey_guard(state(decisions=NEITHER, icp=ICP, answer=answer, **COMPANY))
    assert command.goto == "normalize"
    assert updates(command)["consent"]
    answer = {"kind": "confirm_icp", "value": "change"}
    command = await journey_guard(state(decisions=NEITHER, icp=ICP, answer=answer, **COMPANY))
    assert (command.goto, updates(command)["asked"]) == ("__end__", "icp")


async def test_cached_candidates_make_discovery_ready_without_a_question(
    logged: list[Any],
) -> None:
    command = await journey_guard(confirmed(decisions=CACHED, last=LAST))
    assert command.goto == "normalize"
    assert updates(command)["discovery_ready"]
    assert not updates(command)["consent"]
    assert updates(command)["found"] == LAST
    assert [line["action"] for line in logged] == ["use_cached"]


async def test_a_rerun_is_asked_about_and_waits(logged: list[Any]) -> None:
    command = await journey_guard(confirmed(decisions=RERUN, last=LAST))
    assert command.goto == "choose"
    assert said(command) == "Re-run discovery, because it is old?"
    assert updates(command)["asking"]["details"] == {"reason": "it is old"}
    assert [line["action"] for line in logged] == ["rerun_asked"]


async def test_a_rerun_that_is_agreed_to_is_done(logged: list[Any]) -> None:
    answer = {"kind": "rerun", "value": "rerun"}
    command = await journey_guard(confirmed(decisions=RERUN, last=LAST, answer=answer))
    assert (command.goto, updates(command)["consent"]) == ("normalize", True)
    assert [line["action"] for line in logged] == ["rerun_confirmed"]


async def test_a_rerun_that_is_declined_is_not_asked_about_again(logged: list[Any]) -> None:
    answer = {"kind": "rerun", "value": "keep"}
    command = await journey_guard(confirmed(decisions=RERUN, last=LAST, answer=answer))
    assert updates(command)["found"] == LAST
    assert updates(command)["declined"] == "it is old"
    later = await journey_guard(confirmed(decisions=RERUN, last=LAST, declined="it is old"))
    assert (later.goto, updates(later)["discovery_ready"]) == ("normalize", True)
    another = await journey_guard(confirmed(decisions=RERUN, last=LAST, declined="other"))
    assert another.goto == "choose"
    assert "rerun_declined" in [line["action"] for line in logged]
    nothing = await journey_guard(confirmed(decisions=RERUN, last=None, answer=answer))
    assert (nothing.goto, said(nothing)) == ("__end__", prompts.NOT_SEARCHED)


async def test_who_asks_for_a_rerun_is_not_asked_back() -> None:
    command = await journey_guard(confirmed("re-run discovery", decisions=CACHED, last=LAST))
    assert updates(command)["decisions"]["rerun_icp"]
    assert updates(command)["consent"]


async def test_an_unclear_answer_is_asked_again() -> None:
    command = await journey_guard(confirmed(decisions=RERUN, last=LAST, unclear=True))
    assert command.goto == "choose"
    assert said(command).startswith(prompts.UNCLEAR)


async def test_where_nothing_is_to_be_done_the_notes_are_said() -> None:
    command = await journey_guard(confirmed(decisions=NEITHER, notes=["It cannot be used."]))
    assert (command.goto, said(command)) == ("__end__", "It cannot be used.")


# --- normalize, refresh_icp, decide_strategy, ssic_fallback --------------------

WHICH = {"rule_name": RULE, "icp_hash": icp_hash(basis(COMPANY, ICP))}


async def test_without_consent_nothing_is_saved_or_searched() -> None:
    command = await normalize(confirmed(consent=False), config())
    assert command.goto == "decide_strategy"
    assert (await records.load_snapshot("acme", domain=None, rule_name=RULE)).profile is None


async def test_what_is_agreed_to_is_saved_in_its_usual_form() -> None:
    messy = {
        **ICP,
        "industries": [" Road  freight. ", "road freight"],
        "sizes": ["51-200", "11-50"],
    }
    command = await normalize(confirmed(consent=True, icp=messy), config())
    assert command.goto == "refresh_icp"
    icp = updates(command)["icp"]
    assert icp == {**ICP, "industries": ["road freight"], "sizes": ["11-50", "51-200"]}
    snapshot = await records.load_snapshot("acme", domain="acme.com", rule_name=RULE)
    assert snapshot.profile is not None
    assert snapshot.rule is not None
    assert (snapshot.profile.confirmed, snapshot.rule.confirmed, snapshot.rule.icp) == (
        True,
        True,
        icp,
    )
    assert updates(command)["found"]["icp_hash"] == icp_hash(basis(COMPANY, icp))


async def test_a_search_is_kept_with_its_scores(
    monkeypatch: pytest.MonkeyPatch, logged: list[Any]
) -> None:
    async def discover(company: Company, icp: Icp, *, limit: int) -> list[Candidate]:
        assert limit == 50
        return [Candidate("domain:a.com", "A", "web", industry="Road freight")]

    monkeypatch.setattr(search, "discover", discover)
    found = await refresh_icp(confirmed(found=WHICH), config())
    assert (found["discovery_ready"], found["last"]) == (True, WHICH)
    [best] = await records.best_candidates("acme", **WHICH, limit=10)
    assert best.candidate.name == "A"
    assert best.score.total == pytest.approx(sum(best.score.parts.values()), abs=1e-3)
    assert [line["candidates"] for line in logged if line["action"] == "icp_refreshed"] == [1]


@pytest.mark.parametrize(
    ("count", "goto"), [(0, "ssic_fallback"), (9, "ssic_fallback"), (10, "progress_report")]
)
async def test_few_candidates_ask_the_register(count: int, goto: str, logged: list[Any]) -> None:
    await records.add_candidates(
        "acme", **WHICH, found=[scored(f"domain:{n}.com") for n in range(count)]
    )
    assert (await decide_strategy(confirmed(found=WHICH), config())).goto == goto
    assert [line["candidates"] for line in logged] == [count]


async def test_candidates_of_another_question_get_no_companies_of_this_one() -> None:
    assert (await decide_strategy(confirmed(found=LAST), config())).goto == "progress_report"
    assert (await decide_strategy(confirmed(found=None), config())).goto == "progress_report"


async def test_the_register_is_asked_by_ssic_codes(
    monkeypatch: pytest.MonkeyPatch, logged: list[Any]
) -> None:
    await records.add_candidates("acme", **WHICH, found=[scored("uen:1")])
    asked: dict[str, Any] = {}

    async def find(tenant_id: str, codes: Any, icp: Icp, **options: Any) -> list[Candidate]:
        asked.update(options, tenant=tenant_id, codes=codes)
        return [Candidate("uen:2", "Two", "register", ssic=tuple(codes))]

    monkeypatch.setattr(register, "find", find)
    found = await ssic_fallback(confirmed(found=WHICH), config())
    assert (asked["tenant"], asked["limit"], asked["without"]) == ("acme", 49, ["uen:1"])
    assert asked["codes"][0].startswith("49")
    assert "the register added 1 company" in str(found["notes"])
    assert await records.count_candidates("acme", **WHICH) == 2
    assert [line["action"] for line in logged] == ["ssic_fallback"]


async def test_industries_without_a_code_are_said_so() -> None:
    icp = {**ICP, "industries": ["xyzzy"]}
    of = {"rule_name": RULE, "icp_hash": "1" * 16}
    found = await ssic_fallback(confirmed(icp=icp, found=of), config())
    assert "match no SSIC code" in str(found["notes"])
