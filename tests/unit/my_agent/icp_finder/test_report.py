"""Nodes `progress_report`, `enrich` and `finalize`."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from my_agent.icp_finder import prompts, reports
from my_agent.icp_finder.enrichment import jobs
from my_agent.icp_finder.enrichment.jobs import JobError
from my_agent.icp_finder.graph import graph
from my_agent.icp_finder.model import Candidate, Failure, Job
from my_agent.icp_finder.nodes.report import enrich, finalize, progress_report
from my_agent.icp_finder.reading.heard import order
from my_agent.icp_finder.reading.questions import question
from my_agent.icp_finder.records import store
from tests.support.icp_state import (
    WHICH,
    config,
    confirmed,
    heard,
    said,
    scored,
    updates,
)


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Replace the background job; no run is started. The dictionary contains the queued job."""
    known: dict[str, Any] = {}

    async def find(tenant_id: str, rule_name: str, icp_hash: str) -> Job | None:
        return known.get("job")

    async def enqueue(config: Any, *, rule_name: str, icp_hash: str, keys: Any) -> Job:
        if "error" in known:
            raise JobError(known["error"])
        created = "job" not in known
        known["keys"] = list(keys)
        known["job"] = made = Job("j1", "queued", False, 0, len(keys))
        return replace(made, created=created)

    async def enrich_now(tenant_id: str, rule_name: str, icp_hash: str, keys: Any) -> Any:
        known["now"] = list(keys)
        return [Candidate(key, key, "web", details={"status": "read"}) for key in keys]

    monkeypatch.setattr(jobs, "find", find)
    monkeypatch.setattr(jobs, "enqueue", enqueue)
    monkeypatch.setattr(jobs, "enrich_now", enrich_now)
    return known


async def found_some(count: int) -> None:
    many = [scored(f"domain:{n:02}.com", 1 - n / 100) for n in range(count)]
    await store.add_candidates("acme", **WHICH, found=many)


async def test_report_shows_best_candidates_and_asks_for_enrichment(
    job: dict[str, Any],
) -> None:
    await found_some(60)
    command = await progress_report(confirmed(found=WHICH, notes=["A note."]), config())
    found = updates(command)
    assert command.goto == "choose"
    assert found["asking"]["kind"] == "enrich"
    assert len(found["candidates"]) == 50
    assert found["candidates"][0]["parts"] == {"industry": 1.0}
    text = said(command)
    assert text.startswith("A note.")
    assert "1. domain:00.com: 100%" in text
    assert "10. " in text
    assert "11. " not in text
    assert "the best 10 now, and the next 40 in the background" in text


async def test_no_candidates_skip_the_enrichment_question(job: dict[str, Any]) -> None:
    for found in (WHICH, None):
        command = await progress_report(confirmed(found=found), config())
        assert command.goto == "finalize"
        assert updates(command)["notes"] == [prompts.NO_CANDIDATES]


async def test_candidates_are_shown_and_asked_about_once(job: dict[str, Any]) -> None:
    await found_some(3)
    later = {"kind": "enrich", "value": "later"}
    command = await progress_report(confirmed(found=WHICH, reported=WHICH, answer=later), config())
    assert (command.goto, updates(command)["notes"]) == ("finalize", [prompts.NOT_ENRICHED])
    command = await progress_report(confirmed(found=WHICH, reported=WHICH), config())
    assert (command.goto, updates(command)["notes"]) == ("finalize", [])


async def test_unanswered_question_is_asked_again_without_the_list(job: dict[str, Any]) -> None:
    await found_some(3)
    waiting = question("enrich", "Shall I?", candidates=3)
    notes = [prompts.unheard(["hm, well"])]
    unclear = confirmed(found=WHICH, reported=WHICH, waiting=waiting, notes=notes)
    again = await progress_report(unclear, config())
    assert (again.goto, updates(again)["asking"]) == ("choose", waiting)
    assert said(again) == f"{notes[0]}\n\nShall I?"


async def test_running_job_is_reported_without_question(job: dict[str, Any]) -> None:
    await found_some(3)
    job["job"] = Job("j1", "running", False, 2, 40)
    command = await progress_report(confirmed(found=WHICH), config())
    assert command.goto == "finalize"
    assert "is running: 2 of 40 companies" in updates(command)["notes"][-1]


async def test_failed_job_is_offered_again(job: dict[str, Any]) -> None:
    await found_some(3)
    job["job"] = Job("j1", "failed", False, 2, 40)
    command = await progress_report(confirmed(found=WHICH), config())
    assert command.goto == "choose"
    assert "has failed: 2 of 40 companies. Write “enrich” to go on with it." in said(command)


async def test_requested_enrichment_starts_unasked(job: dict[str, Any]) -> None:
    await found_some(3)
    of = confirmed(found=WHICH, heard=heard(wish=order("enrich")))
    assert (await progress_report(of, config())).goto == "enrich"


async def test_unsure_wish_is_asked_about_by_name(job: dict[str, Any]) -> None:
    await found_some(3)
    wish = order("enrich", ["domain:02.com", "domain:00.com"], sure=False)
    of = confirmed(found=WHICH, reported=WHICH, heard=heard(wish=wish))
    command = await progress_report(of, config())
    assert (command.goto, updates(command)["asking"]["details"]) == (
        "choose",
        {
            "candidates": 2,
            "keys": ["domain:02.com", "domain:00.com"],
            "names": ["domain:02.com", "domain:00.com"],
            "left_out": [],
        },
    )
    assert said(command) == "Shall I enrich domain:02.com and domain:00.com?"


def test_question_about_all_but_some_names_those_left_out() -> None:
    names = [f"C{number}" for number in range(8)]
    asked = prompts.ask_these(names, ["Evil Corp"])
    assert asked == "Shall I enrich 8 companies, all except Evil Corp?"
    assert reports.some(names) == ["C0", "C1", "C2", "C3", "C4", "3 more"]


async def test_only_the_named_candidates_are_enriched(job: dict[str, Any]) -> None:
    await found_some(3)
    of = confirmed(
        found=WHICH,
        candidates=[{"key": f"domain:{n:02}.com"} for n in range(3)],
        heard=heard(wish=order("enrich", ["domain:02.com"])),
    )
    found: Any = await enrich(of, config())
    assert (job["now"], found["enrichment"]["now"]) == (["domain:02.com"], ["domain:02.com"])
    assert "keys" not in job


async def test_ten_candidates_are_enriched_now_and_forty_by_job(
    job: dict[str, Any], logged: list[Any]
) -> None:
    await found_some(60)
    of = confirmed(found=WHICH, candidates=[{"key": f"domain:{n:02}.com"} for n in range(60)])
    found: Any = await enrich(of, config())
    assert job["now"] == [f"domain:{n:02}.com" for n in range(10)]
    assert job["keys"] == [f"domain:{n:02}.com" for n in range(10, 50)]
    assert found["enrichment"] == {
        "now": job["now"],
        "failed": [],
        "job": "j1",
        "queued": 40,
    }
    again: Any = await enrich(of, config())
    assert "started no other" in again["notes"][-1]
    actions = [line["action"] for line in logged]
    assert actions == ["enriched", "job_queued", "enriched", "job_merged"]


async def test_what_is_enriched_already_is_no_part_of_the_job(job: dict[str, Any]) -> None:
    many = [scored(f"domain:{n:02}.com", 1 - n / 100) for n in range(14)]
    read = {"status": "read"}
    many[11] = replace(many[11], candidate=replace(many[11].candidate, details=read))
    await store.add_candidates("acme", **WHICH, found=many)
    of = confirmed(found=WHICH, candidates=[{"key": each.candidate.key} for each in many])
    await enrich(of, config())
    assert job["keys"] == ["domain:10.com", "domain:12.com", "domain:13.com"]


def test_report_of_enrichment_says_what_was_found_and_why_not() -> None:
    full = {"status": "read", "emails": ["a@a.com"], "phones": ["6123 4567"], "size": "11-50"}
    down = {"status": "unreadable", "note": "d.com answered with an error (503)."}
    none = {"status": "no_website", "note": "No website of this company is known."}
    done = [
        Candidate("domain:a.com", "A", "web", details=full),
        Candidate("domain:b.com", "B", "web", details={"status": "read", "about": "x"}),
        Candidate("domain:d.com", "D", "web", details=down),
        *(Candidate(f"uen:{n}", f"N{n}", "register", details=none) for n in range(7)),
    ]
    assert reports.enriched(done).splitlines() == [
        "I have enriched 2 of 10 companies:",
        "- A: a@a.com, 6123 4567; 11-50 people",
        "- B: its site was read, but names no contact and no size",
        (
            "Not enriched: D (d.com answered with an error (503)); N0, N1, N2, N3, N4 and 2 more "
            "(no website of this company is known). Write “enrich” to try again."
        ),
    ]
    assert reports.enriched(done[2:3]).startswith("I could enrich none of 1 company.")
    job = Job("j", "done", False, 3, 3, [Failure("domain:d.com", "D", "It is down.")])
    assert "is done: 2 of 3 companies enriched. Not enriched: D (it is down)." in reports.progress(
        job
    )


async def test_environment_limits_enrichment(
    job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUN_NOW_LIMIT", "2")
    monkeypatch.setenv("RUN_LATER_LIMIT", "0")
    await found_some(5)
    of = confirmed(found=WHICH, candidates=[{"key": f"domain:{n:02}.com"} for n in range(5)])
    found: Any = await enrich(of, config())
    assert job["now"] == ["domain:00.com", "domain:01.com"]
    assert found["enrichment"]["job"] is None
    assert "keys" not in job


async def test_failed_job_start_is_reported_and_keeps_results(
    job: dict[str, Any], logged: list[Any]
) -> None:
    job["error"] = "No runs can be started here."
    of = confirmed(found=WHICH, candidates=[{"key": f"domain:{n:02}.com"} for n in range(12)])
    found: Any = await enrich(of, config())
    assert "I have enriched 10 companies" in found["notes"][0]
    assert "No runs can be started here." in found["notes"][1]
    assert "job_refused" in [line["action"] for line in logged]


async def test_finalize_sends_notes_once() -> None:
    found = await finalize(confirmed(notes=["One.", "Two."]))
    assert found["messages"][0].text == "One.\n\nTwo."
    assert found["notes"] == []
    nothing = await finalize(confirmed(notes=[]))
    assert nothing["messages"][0].text == f"{prompts.UNCHANGED}\n\n{prompts.HELP}"


def test_graph_has_its_nodes_in_order() -> None:
    assert list(graph.nodes) == [
        "__start__",
        "ingest",
        "return_user_probe",
        "profile_builder",
        "journey_guard",
        "choose",
        "normalize",
        "refresh_icp",
        "decide_strategy",
        "ssic_fallback",
        "progress_report",
        "enrich",
        "finalize",
        "converse",
    ]
    edges = {(edge.source, edge.target) for edge in graph.get_graph().edges}
    order = [name for name in graph.nodes if name not in ("choose", "enrich", "converse")]
    assert set(pairwise(order)) <= edges
    assert {target for source, target in edges if source == "choose"} == {
        "ingest",
        "choose",
    }
    assert {target for source, target in edges if source == "return_user_probe"} == {
        "profile_builder",
        "converse",
        "__end__",
    }


def test_input_schema_allows_messages_only() -> None:
    assert list(graph.get_input_jsonschema()["properties"]) == ["messages"]
