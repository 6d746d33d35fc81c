"""Nodes `journey_guard` and `choose`: the questions and their order."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from my_agent.icp_finder import prompts
from my_agent.icp_finder.nodes import journey
from my_agent.icp_finder.nodes.journey import choose, journey_guard
from my_agent.icp_finder.reading.heard import order
from my_agent.icp_finder.reading.questions import question
from my_agent.icp_finder.records import store
from my_agent.icp_finder.records.decisions import Decisions
from tests.support.icp_state import (
    COMPANY,
    ICP,
    LAST,
    RULE,
    config,
    confirmed,
    heard,
    said,
    saved,
    site,
    state,
    updates,
)

NEITHER: Decisions = {"use_cached": False, "rerun_icp": False, "reason": "-"}
CACHED: Decisions = {"use_cached": True, "rerun_icp": False, "reason": "recent"}
RERUN: Decisions = {"use_cached": False, "rerun_icp": True, "reason": "it is old"}


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
async def test_missing_items_are_asked_for_one_by_one(
    known: Any, asked: str, words: str, logged: list[Any]
) -> None:
    command = await journey_guard(state("hello", decisions=NEITHER, **known), config())
    assert command.goto == "__end__"
    assert updates(command)["asked"] == asked
    assert words in said(command)
    assert [line["what"] for line in logged] == [asked]


async def test_company_and_icp_need_confirmation() -> None:
    command = await journey_guard(state(decisions=NEITHER, icp=ICP, **COMPANY), config())
    assert command.goto == "choose"
    assert updates(command)["asking"]["kind"] == "confirm_icp"
    assert "Road freight" in said(command)
    answer = {"kind": "confirm_icp", "value": "confirm"}
    command = await journey_guard(
        state(decisions=NEITHER, icp=ICP, answer=answer, **COMPANY), config()
    )
    assert command.goto == "normalize"
    assert updates(command)["consent"]
    answer = {"kind": "confirm_icp", "value": "change"}
    command = await journey_guard(
        state(decisions=NEITHER, icp=ICP, answer=answer, **COMPANY), config()
    )
    assert (command.goto, updates(command)["asked"]) == ("__end__", "icp")


async def test_a_corrected_profile_is_shown_once() -> None:
    """The change follows what was shown; of another company, the profile is new."""
    first = await journey_guard(state(decisions=NEITHER, icp=ICP, **COMPANY), config())
    known = {"icp": ICP, "notes": [prompts.CHANGED.format("regions: any → Singapore")], **COMPANY}
    changed = state("Singapore", decisions=NEITHER, **known)
    changed["messages"] = [AIMessage(said(first)), *changed["messages"]]
    words = said(await journey_guard(changed, config()))
    assert words == f"{known['notes'][0]}\n\n{prompts.SHORT['confirm_icp']}"
    changed["site"] = site("other.com")
    assert "Road freight" in said(await journey_guard(changed, config()))


async def test_cached_candidates_skip_the_question(
    logged: list[Any],
) -> None:
    command = await journey_guard(confirmed(decisions=CACHED, last=LAST), config())
    assert command.goto == "normalize"
    assert updates(command)["discovery_ready"]
    assert not updates(command)["consent"]
    assert updates(command)["found"] == LAST
    assert [line["action"] for line in logged] == ["use_cached"]


async def test_rerun_waits_for_consent(logged: list[Any]) -> None:
    command = await journey_guard(confirmed(decisions=RERUN, last=LAST), config())
    assert command.goto == "choose"
    assert said(command) == "Re-run discovery, because it is old?"
    assert updates(command)["asking"]["details"] == {"reason": "it is old"}
    assert [line["action"] for line in logged] == ["rerun_asked"]


async def test_confirmed_rerun_searches_again(logged: list[Any]) -> None:
    answer = {"kind": "rerun", "value": "rerun"}
    command = await journey_guard(confirmed(decisions=RERUN, last=LAST, answer=answer), config())
    assert (command.goto, updates(command)["consent"]) == ("normalize", True)
    assert [line["action"] for line in logged] == ["rerun_confirmed"]


async def test_declined_rerun_is_not_asked_again_for_same_reason(logged: list[Any]) -> None:
    answer = {"kind": "rerun", "value": "keep"}
    command = await journey_guard(confirmed(decisions=RERUN, last=LAST, answer=answer), config())
    assert updates(command)["found"] == LAST
    assert updates(command)["declined"] == "it is old"
    later = await journey_guard(
        confirmed(decisions=RERUN, last=LAST, declined="it is old"), config()
    )
    assert (later.goto, updates(later)["discovery_ready"]) == ("normalize", True)
    another = await journey_guard(confirmed(decisions=RERUN, last=LAST, declined="other"), config())
    assert another.goto == "choose"
    assert "rerun_declined" in [line["action"] for line in logged]
    nothing = await journey_guard(confirmed(decisions=RERUN, last=None, answer=answer), config())
    assert (nothing.goto, said(nothing)) == ("__end__", prompts.NOT_SEARCHED)


async def test_requested_rerun_needs_no_confirmation() -> None:
    again = heard(wish=order("search"))
    command = await journey_guard(confirmed(heard=again, decisions=CACHED, last=LAST), config())
    assert command.goto == "normalize"
    assert updates(command)["decisions"]["rerun_icp"]
    assert updates(command)["consent"]


async def test_unsure_wish_to_search_asks() -> None:
    perhaps = heard(wish=order("search", sure=False))
    command = await journey_guard(confirmed(heard=perhaps, decisions=CACHED, last=LAST), config())
    assert (command.goto, updates(command)["asking"]["kind"]) == ("choose", "rerun")
    assert not updates(command).get("consent")


async def test_question_that_waits_keeps_its_id() -> None:
    waiting = question("rerun", "?", reason="it is old")
    command = await journey_guard(confirmed(decisions=RERUN, last=LAST, waiting=waiting), config())
    assert command.goto == "choose"
    assert updates(command)["asking"]["id"] == waiting["id"]


@pytest.mark.parametrize("name", ["start_over", "new_session"])
async def test_what_deletes_or_locks_is_asked_first_however_sure(name: str) -> None:
    wish = heard(wish=order(name))
    command = await journey_guard(confirmed(heard=wish, decisions=CACHED, last=LAST), config())
    assert (command.goto, updates(command)["asking"]["kind"]) == ("choose", name)


async def test_confirmed_start_over_forgets_the_company() -> None:
    await saved()
    answer: Any = {"kind": "start_over", "value": "start_over"}
    command = await journey_guard(confirmed(answer=answer, decisions=CACHED, last=LAST), config())
    found = updates(command)
    assert (found["site"], found["icp"], found["customers"], found["confirmed"]) == (
        None,
        None,
        [],
        False,
    )
    assert found["undo"][-1]["site"] == COMPANY["site"]
    assert said(command).startswith(prompts.STARTED_OVER)
    snapshot = await store.load_snapshot("acme", domain="acme.com", rule_name=RULE)
    assert snapshot.profile is None


async def test_pending_change_is_asked_about_with_its_difference() -> None:
    change = heard(website="https://acme.org", icp={"industries": ["Steel"]})
    command = await journey_guard(confirmed(change=change, decisions=CACHED, last=LAST), config())
    assert (command.goto, updates(command)["asking"]["kind"]) == ("choose", "context_change")
    assert updates(command)["asking"]["details"] == {
        "changed": ["website", "industries"],
        "website": "acme.org",
        "new_session": {
            "method": "POST",
            "path": "/threads/t/resume",
            "body": {"website": "https://acme.org", "payload": {"industries": ["Steel"]}},
        },
    }
    assert "- website: acme.com → acme.org\n- industries: Road freight → Steel" in said(command)


async def test_stray_website_is_asked_about() -> None:
    stray = heard(stray="https://who.example")
    command = await journey_guard(confirmed(heard=stray, decisions=CACHED, last=LAST), config())
    asking = updates(command)["asking"]
    assert (command.goto, asking["kind"], asking["details"]) == (
        "choose",
        "domain",
        {"website": "https://who.example", "domain": "who.example"},
    )


async def test_unsure_orders_are_offered_by_a_button() -> None:
    orders = [{**order("reject", ["domain:a.com"], sure=False), "names": ["Acorn"]}]
    command = await journey_guard(
        confirmed(offers=orders, decisions=CACHED, last=LAST),
        config(),
    )
    asking = updates(command)["asking"]
    assert (asking["kind"], asking["details"]) == ("offer", {"orders": orders})
    assert said(command) == "Do you want me to no longer show Acorn?"
    assert updates(command)["offers"] == []


@pytest.mark.parametrize("how", ["offers", "waiting"])
async def test_unsure_orders_are_offered_before_a_change(how: str) -> None:
    # A change may end in another search, or in another session.
    orders = [{**order("like", ["domain:a.com"], sure=False), "names": ["Acorn"]}]
    known: Any = {"offers": orders, "waiting": question("offer", "?", orders=orders)}[how]
    change = heard(icp={"exclusions": ["cafés"]})
    asks: Any = {how: known, "change": change, "decisions": CACHED, "last": LAST}
    command = await journey_guard(confirmed(**asks), config())
    assert updates(command)["asking"]["details"] == {"orders": orders}
    assert "change" not in updates(command)


@pytest.mark.parametrize(
    "how",
    [{"answer": {"kind": "enrich", "value": "later"}}, {"heard": heard(wish=order("enrich"))}],
)
async def test_word_about_shown_candidates_never_searches_again(how: Any) -> None:
    command = await journey_guard(confirmed(decisions=RERUN, last=LAST, **how), config())
    assert (command.goto, updates(command)["found"]) == ("normalize", LAST)
    assert not updates(command)["consent"]


async def test_reply_to_another_question_is_ignored(
    monkeypatch: pytest.MonkeyPatch, logged: list[Any]
) -> None:
    asking = question("rerun", "?")
    reply = {"choice": "rerun", "question": "another"}
    monkeypatch.setattr(journey, "interrupt", lambda payload: reply)
    assert (await choose(confirmed(asking=asking))).goto == "choose"
    assert [line["action"] for line in logged] == ["answer_ignored"]
    reply["question"] = asking["id"]
    command = await choose(confirmed(asking=asking))
    assert (command.goto, updates(command)["reply"]) == ("ingest", reply)
    assert said(command) == "Search again"


async def test_notes_are_sent_if_nothing_is_to_be_done() -> None:
    command = await journey_guard(
        confirmed(decisions=NEITHER, notes=["It cannot be used."]), config()
    )
    assert (command.goto, said(command)) == ("__end__", "It cannot be used.")


async def test_changes_of_the_profile_can_be_taken_back_after_the_confirmation() -> None:
    def before(icp: Any, name: str = "acme.com") -> Any:
        return {"what": "profile", "site": site(name), "customers": [], "icp": icp}

    # What made the first profile, and what is of another company, is agreed.
    feedback: Any = {"what": "feedback", "said": {"domain:a.com": None}}
    undo = [before(None), before(ICP, "other.com"), before(ICP), feedback]
    answer: Any = {"kind": "confirm_icp", "value": "confirm"}
    known = state(decisions=NEITHER, icp=ICP, answer=answer, undo=undo, **COMPANY)
    assert updates(await journey_guard(known, config()))["undo"] == undo[2:]
