"""Node `return_user_probe`: stored data of a returning user, and changes to it."""

from typing import Any

import pytest
from langgraph.runtime import Runtime

from my_agent.icp_finder import prompts
from my_agent.icp_finder.model import Company, Icp
from my_agent.icp_finder.nodes.probe import return_user_probe
from my_agent.icp_finder.nodes.profile import profile_builder
from my_agent.icp_finder.reading.heard import nothing, order
from my_agent.icp_finder.records import store
from my_agent.icp_finder.records.diffs import basis, icp_hash
from my_agent.icp_finder.records.tables import discoveries, profiles
from my_agent.icp_finder.state import State
from tests.support.icp_state import (
    COMPANY,
    ICP,
    RULE,
    age,
    config,
    confirmed,
    heard,
    said,
    saved,
    scored,
    site,
    state,
    updates,
)


async def test_new_user_is_not_a_return_user(logged: list[Any]) -> None:
    command = await return_user_probe(state("hello"), config())
    found = updates(command)
    assert command.goto == "profile_builder"
    assert not found["is_return_user"]
    assert found["decisions"]["reason"] == "nothing is known of this company yet"
    [line] = [line for line in logged if line["action"] == "return_user_probe"]
    assert line["reason"] == found["decisions"]["reason"]
    assert (line["thread_id"], line["use_cached"], line["rerun_icp"]) == ("t", False, False)


async def test_return_user_continues_with_stored_candidates() -> None:
    await saved()
    found = updates(await return_user_probe(state("hello"), config()))
    assert found["is_return_user"]
    assert found["confirmed"]
    assert (found["site"], found["customers"], found["icp"]) == (*COMPANY.values(), ICP)
    assert found["decisions"]["use_cached"]
    assert found["last"] == {"rule_name": RULE, "icp_hash": icp_hash(basis(COMPANY, ICP))}
    assert "Welcome back" in found["notes"][0]


async def test_other_tenant_does_not_see_the_company() -> None:
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
async def test_stale_profile_or_discovery_triggers_rerun(
    table: Any, column: str, words: str
) -> None:
    await saved()
    await age(table, column, 15)
    decisions = updates(await return_user_probe(state("hello"), config()))["decisions"]
    assert decisions["rerun_icp"]
    assert words in decisions["reason"]


async def test_other_rule_counts_as_drift() -> None:
    await saved()
    found = updates(await return_user_probe(state("hello", rule_name="Other"), config()))
    assert found["decisions"]["rerun_icp"]
    assert "rule" in found["decisions"]["reason"]
    assert found["icp"] == ICP


async def test_icp_saved_after_search_counts_as_change() -> None:
    await saved()
    changed: Icp = {**ICP, "industries": ["Steel"]}
    await store.save_rule("acme", "acme.com", RULE, changed, confirmed=True)
    decisions = updates(await return_user_probe(state("hello"), config()))["decisions"]
    assert decisions["reason"] == "the industries have changed since the last search"


async def test_change_by_a_colleague_is_told_with_its_reason() -> None:
    await saved()
    mine = confirmed("hello", last={"rule_name": RULE, "icp_hash": icp_hash(basis(COMPANY, ICP))})
    changed: Icp = {**ICP, "industries": ["Steel"]}
    await store.save_rule("acme", "acme.com", RULE, changed, confirmed=True)
    of = basis(COMPANY, changed)
    await store.save_discovery("acme", RULE, icp_hash(of), of, [scored("domain:s.com")])
    found = updates(await return_user_probe(mine, config()))
    assert found["decisions"] == {
        "use_cached": True,
        "rerun_icp": False,
        "reason": "another session has changed the industries and searched",
    }
    [note] = found["notes"]
    assert "industries of this company were changed in another session" in note
    assert "Steel" in note
    # In the next message nothing has changed.
    after: Any = {**mine, **found, "notes": []}
    again = updates(await return_user_probe(after, config()))
    assert again["decisions"]["reason"].endswith("nothing has changed since")
    assert again["notes"] == []


async def test_company_of_thread_or_message_wins_over_last_saved() -> None:
    await saved()
    other: Company = {"site": site("b.com"), "customers": []}
    await store.save_profile("acme", other, confirmed=False)
    of_thread = state("hello", website="https://acme.com")
    assert updates(await return_user_probe(of_thread, config()))["site"] == COMPANY["site"]
    by_name = state("acme.com", heard=heard(website="https://acme.com"))
    assert updates(await return_user_probe(by_name, config()))["site"] == COMPANY["site"]
    assert updates(await return_user_probe(state("hello"), config()))["site"] == other["site"]


MOVED = heard(website="https://acme.org")


async def test_change_of_confirmed_company_waits_for_the_user(logged: list[Any]) -> None:
    await saved()
    command = await return_user_probe(confirmed(heard=MOVED), config())
    found = updates(command)
    assert command.goto == "profile_builder"
    assert found["change"] == MOVED
    assert found["heard"] == nothing()
    assert [line["parts"] for line in logged if line["action"] == "context_change"] == [
        ("website",)
    ]


async def test_customer_that_is_called_the_company_itself_waits_for_the_user(
    web: list[str],
) -> None:
    await saved()
    known = confirmed(heard=heard(website="https://c2.com"))
    found = updates(await return_user_probe(known, config()))
    assert found["change"]["website"] == "https://c2.com"
    built = await profile_builder({**known, **found}, config(), Runtime())
    assert (built["site"], built["customers"]) == (COMPANY["site"], COMPANY["customers"])
    assert web == []


async def test_other_orders_of_a_message_do_not_wait_for_its_change() -> None:
    await saved()
    said = heard(website="https://acme.org", orders=[order("reject", ["domain:a.com"])])
    command = await return_user_probe(confirmed(heard=said), config())
    found = updates(command)
    assert command.goto == "converse"
    assert found["change"]["website"] == "https://acme.org"
    assert found["heard"] == heard(orders=said["orders"])


def answered(value: str, **values: Any) -> State:
    change = heard(website="https://acme.org")
    answer = {"kind": "context_change", "value": value}
    return confirmed("x", change=change, answer=answer, **values)


async def test_continue_applies_change_and_consents_to_search() -> None:
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


async def test_new_session_leaves_this_thread_unchanged() -> None:
    await saved()
    command = await return_user_probe(answered("new"), config())
    assert command.goto == "__end__"
    assert updates(command)["change"] is None
    assert "acme.org" in said(command)
    snapshot = await store.load_snapshot("acme", domain=None, rule_name=RULE)
    assert snapshot.profile is not None
    assert snapshot.profile.company == COMPANY


async def test_keep_discards_the_change() -> None:
    await saved()
    command = await return_user_probe(answered("keep"), config())
    assert command.goto == "profile_builder"
    assert updates(command)["heard"] == nothing()
    assert updates(command)["decisions"]["use_cached"]


async def test_unclear_answer_keeps_pending_change() -> None:
    await saved()
    said = heard(unheard=["hm"])
    command = await return_user_probe(confirmed("hm", change=MOVED, heard=said), config())
    assert updates(command)["change"]["website"] == "https://acme.org"
    assert updates(command)["heard"] == said


async def test_second_change_is_combined_with_pending_change() -> None:
    await saved()
    steel = heard(icp={"industries": ["steel"]})
    command = await return_user_probe(confirmed(change=MOVED, heard=steel), config())
    assert updates(command)["change"] == heard(
        website="https://acme.org", icp={"industries": ["steel"]}
    )


async def test_change_that_an_earlier_release_left_waiting_is_kept() -> None:
    await saved()
    before: Any = {
        "website": "https://moved.com",
        "sites": [],
        "customers": False,
        "swaps": [],
        "icp": {"regions": ["Johor"]},
        "wish": None,
        "text": "our website is moved.com",
    }
    command = await return_user_probe(confirmed("hm", change=before), config())
    change = updates(command)["change"]
    assert (change["website"], change["icp"]) == ("https://moved.com", {"regions": ["Johor"]})


async def test_thread_created_for_a_change_applies_it_unasked() -> None:
    await saved()
    said = heard(icp={"industries": ["steel"]})
    command = await return_user_probe(state("hi", heard=said, seeded=True), config())
    assert command.goto == "profile_builder"
    assert updates(command)["decisions"]["reason"] == "the industries changed"
    assert not updates(command).get("consent")


async def test_continue_with_stored_company_loads_it() -> None:
    await saved()
    known: Company = {**COMPANY, "site": site("acme.org"), "customers": COMPANY["customers"][:5]}
    steel: Icp = {**ICP, "industries": ["Steel"]}
    await store.save_profile("acme", known, confirmed=True)
    await store.save_rule("acme", "acme.org", RULE, steel, confirmed=True)
    of_thread = answered("continue", website="https://acme.com")
    found = updates(await return_user_probe(of_thread, config()))
    assert (found["site"], found["icp"]) == (known["site"], steel)
    assert found["decisions"]["reason"] == "there are no candidates yet"
    # There was no search for this company yet, so the guard still asks.
    assert not found.get("consent")
    assert found["heard"]["website"] is None


async def test_confirmed_profile_keeps_its_last_industry() -> None:
    await saved()
    command = await return_user_probe(confirmed(heard=heard(icp={"industries": []})), config())
    assert updates(command)["heard"]["icp"] == {}
    assert updates(command)["notes"] == [prompts.LAST_INDUSTRY]


async def test_social_network_is_no_company() -> None:
    said = heard(
        website="https://facebook.com/acme", customers=["https://linkedin.com/x", "https://b.com"]
    )
    found = updates(await return_user_probe(state(heard=said), config()))
    assert (found["heard"]["website"], found["heard"]["customers"]) == (None, ["https://b.com"])
    assert [note.partition(" ")[0] for note in found["notes"]] == ["facebook.com", "linkedin.com"]


@pytest.mark.parametrize("known", ["acme.com", "c3.com"])
async def test_known_website_is_no_stray_one(known: str) -> None:
    await saved()
    found = updates(
        await return_user_probe(confirmed(heard=heard(stray=f"https://{known}/x")), config())
    )
    assert (found["heard"]["stray"], found["notes"]) == (None, [])
