"""What is known of who returns, and whether it still holds."""

from typing import Any

import pytest

from my_agent.icp_finder import prompts, records
from my_agent.icp_finder.diffs import basis, icp_hash
from my_agent.icp_finder.message_parser import NO_CONTENT, parse_text
from my_agent.icp_finder.model import Company, Icp
from my_agent.icp_finder.nodes.probe import return_user_probe
from my_agent.icp_finder.state import State
from my_agent.icp_finder.tables import discoveries, profiles
from tests.support.icp_state import (
    COMPANY,
    ICP,
    RULE,
    age,
    config,
    confirmed,
    said,
    saved,
    site,
    state,
    updates,
)


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
    change = parse_text("our website is now acme.org")
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
    assert updates(command)["heard"] == NO_CONTENT
    assert updates(command)["decisions"]["use_cached"]


async def test_an_unclear_answer_asks_again_and_keeps_the_change() -> None:
    await saved()
    change = parse_text("our website is now acme.org")
    command = await return_user_probe(confirmed("hm", change=change, unclear=True), config())
    assert command.goto == "choose"
    assert updates(command)["change"]["website"] == "https://acme.org"
    assert said(command).startswith(prompts.UNCLEAR)


async def test_another_change_is_added_to_the_one_that_waits() -> None:
    await saved()
    change = parse_text("our website is now acme.org")
    command = await return_user_probe(confirmed("industries: steel", change=change), config())
    assert updates(command)["asking"]["details"]["changed"] == ["website", "industries"]


async def test_a_thread_that_was_opened_for_a_change_is_not_asked_about_it() -> None:
    await saved()
    heard = parse_text("industries: steel")
    command = await return_user_probe(state("hi", heard=heard, seeded=True), config())
    assert command.goto == "profile_builder"
    assert updates(command)["decisions"]["reason"] == "the industries changed"
    assert not updates(command).get("consent")


async def test_continuing_with_a_company_that_is_known_takes_what_is_known_of_it() -> None:
    await saved()
    known: Company = {**COMPANY, "site": site("acme.org"), "customers": COMPANY["customers"][:5]}
    steel: Icp = {**ICP, "industries": ["Steel"]}
    await records.save_profile("acme", known, confirmed=True)
    await records.save_rule("acme", "acme.org", RULE, steel, confirmed=True)
    of_thread = answered("continue", website="https://acme.com")
    found = updates(await return_user_probe(of_thread, config()))
    assert (found["site"], found["icp"]) == (known["site"], steel)
    assert found["decisions"]["reason"] == "there are no candidates yet"
    # Nothing was searched for it yet, so the guard still asks.
    assert not found.get("consent")
    assert found["heard"]["website"] is None
