"""Nodes `journey_guard` and `choose`: the questions and their order."""

from typing import Any

import pytest

from my_agent.icp_finder import prompts
from my_agent.icp_finder.nodes.journey import journey_guard
from my_agent.icp_finder.records.decisions import Decisions
from tests.support.icp_state import (
    COMPANY,
    ICP,
    LAST,
    confirmed,
    said,
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
    command = await journey_guard(state("hello", decisions=NEITHER, **known))
    assert command.goto == "__end__"
    assert updates(command)["asked"] == asked
    assert words in said(command)
    assert [line["what"] for line in logged] == [asked]


async def test_reply_without_website_is_asked_again_with_reason() -> None:
    command = await journey_guard(state("what?", decisions=NEITHER, asked="website"))
    assert said(command).startswith(prompts.NO_WEBSITE)


async def test_company_and_icp_need_confirmation() -> None:
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


async def test_cached_candidates_skip_the_question(
    logged: list[Any],
) -> None:
    command = await journey_guard(confirmed(decisions=CACHED, last=LAST))
    assert command.goto == "normalize"
    assert updates(command)["discovery_ready"]
    assert not updates(command)["consent"]
    assert updates(command)["found"] == LAST
    assert [line["action"] for line in logged] == ["use_cached"]


async def test_rerun_waits_for_consent(logged: list[Any]) -> None:
    command = await journey_guard(confirmed(decisions=RERUN, last=LAST))
    assert command.goto == "choose"
    assert said(command) == "Re-run discovery, because it is old?"
    assert updates(command)["asking"]["details"] == {"reason": "it is old"}
    assert [line["action"] for line in logged] == ["rerun_asked"]


async def test_confirmed_rerun_searches_again(logged: list[Any]) -> None:
    answer = {"kind": "rerun", "value": "rerun"}
    command = await journey_guard(confirmed(decisions=RERUN, last=LAST, answer=answer))
    assert (command.goto, updates(command)["consent"]) == ("normalize", True)
    assert [line["action"] for line in logged] == ["rerun_confirmed"]


async def test_declined_rerun_is_not_asked_again_for_same_reason(logged: list[Any]) -> None:
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


async def test_requested_rerun_needs_no_confirmation() -> None:
    command = await journey_guard(confirmed("re-run discovery", decisions=CACHED, last=LAST))
    assert updates(command)["decisions"]["rerun_icp"]
    assert updates(command)["consent"]


async def test_unclear_answer_repeats_the_question() -> None:
    command = await journey_guard(confirmed(decisions=RERUN, last=LAST, unclear=True))
    assert command.goto == "choose"
    assert said(command).startswith(prompts.UNCLEAR)


async def test_notes_are_sent_if_nothing_is_to_be_done() -> None:
    command = await journey_guard(confirmed(decisions=NEITHER, notes=["It cannot be used."]))
    assert (command.goto, said(command)) == ("__end__", "It cannot be used.")
