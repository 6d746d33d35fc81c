"""The supervisor: decides which worker is next, from the state, the flags and the budgets.

planning -> searching -> extracting -> analyzing -> reporting -> completed. A stage whose result
fails its check is repeated, or sends work back, at most `MAX_RETRIES` times.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Send

from my_agent.research import dedupe, files, planning, progress
from my_agent.research.budgets import totals
from my_agent.research.compression import MAX_RESULTS, compress_results
from my_agent.research.model import (
    CrawledPage,
    CrawlFailure,
    Report,
    SearchResult,
    as_dict,
    from_dict,
)
from my_agent.research.projects import Flag
from my_agent.research.state import CrawlTask, SearchTask, State
from my_agent.research.work import Work

MAX_RETRIES = 3
# A worker that has less time left than this, in seconds, starts nothing.
_SLACK = 0.05
Json = dict[str, Any]
Worker = Literal["planner", "searcher", "extractor", "analyzer", "reporter", "stop"]
_STAGES: dict[Worker, str] = {
    "planner": "planning",
    "searcher": "searching",
    "extractor": "extracting",
    "analyzer": "analyzing",
    "reporter": "reporting",
}


@dataclass
class Decision:
    """What happens next.

    Attributes:
        worker: the next worker.
        stage: the stage.
        total: number of items of the stage.
        update: changes of the state.
        searches: the tasks of searchers.
        crawls: the tasks of extractors.
        sent_back: whether an earlier stage is repeated.
    """

    worker: Worker
    stage: str
    total: int = 1
    update: State = field(default_factory=lambda: State())
    searches: list[SearchTask] = field(default_factory=list)
    crawls: list[CrawlTask] = field(default_factory=list)
    sent_back: bool = False


async def supervisor(
    state: State, config: RunnableConfig
) -> Command[Literal["planner", "searcher", "extractor", "analyzer", "reporter", "stop"]]:
    """Route the work to the next worker, or to several searchers or extractors at once."""
    before = state.get("stage", "planning")
    work = Work.of(config, state)
    update = _collected(state)
    moment = time.time()
    # After a crash the time in between is nobody's work.
    spent = min(max(0.0, moment - state.get("tick", moment)), work.settings.research_agent_seconds)
    work.budget.spend(before if before in _STAGES.values() else "reporting", seconds=spent)
    whole: State = {**state, **update}
    whole["agent"] = update["agent"] = _worked(state)
    update["elapsed"] = None  # type: ignore[typeddict-item]
    flag = await work.flag(fresh=True)
    decision = decide(whole, flag, work)
    if decision.worker == "reporter" and state.get("report"):
        decision.sent_back = True
    update = {**update, **decision.update, "stage": decision.stage, "tick": moment}
    update["usage"] = work.budget.spent
    timeouts = [*(state.get("timeouts") or []), *(decision.update.get("timeouts") or [])]
    whole = {**whole, **update, "usage": work.budget.usage, "timeouts": timeouts}
    await work.publish(lambda found: _shown(found, decision, whole, work))
    if decision.stage != before:
        await _saved(work, whole)
    sends = [Send("searcher", each) for each in decision.searches]
    sends += [Send("extractor", each) for each in decision.crawls]
    return Command(goto=sends or decision.worker, update=update)


def decide(state: State, flag: Flag, work: Work) -> Decision:
    """Return what happens next. It neither waits nor writes.

    Args:
        state: the state, with what the last workers have brought.
        flag: what the user wants.
        work: the budgets and settings.
    """
    stage = state.get("stage", "planning")
    if flag in ("cancel", "pause") or state.get("error"):
        return Decision("stop", stage)
    order = {
        "planning": _plan,
        "searching": _search,
        "extracting": _extract,
        "analyzing": _analyze,
        "reporting": _report,
    }
    if stage not in order:
        return Decision("stop", "completed")
    return order[stage](state, flag, work)


def _plan(state: State, flag: Flag, work: Work) -> Decision:
    plan = state.get("plan")
    if flag == "finish":
        return _analyze(state, flag, work)
    if plan and plan["queries"]:
        return _search(state, flag, work)
    retries = _retried(state, "planning") if plan else state.get("retries", {})
    if plan and not _may_retry(state, "planning", work):
        return Decision("stop", "planning", update={"error": "The plan has no query."})
    return Decision("planner", "planning", update={"retries": retries})


def _search(state: State, flag: Flag, work: Work) -> Decision:
    plan, searched = state.get("plan") or {}, state.get("searched") or {}
    queries = list(plan.get("queries", []))
    pending = [each for each in queries if each not in searched]
    if pending and flag != "finish":
        update, error = _in_time(state, "searching", work)
        if error:
            return Decision("stop", "searching", update=update)
        tasks, missing = _search_tasks(pending, _left(update, work), work)
        if tasks:
            total = len(queries)
            return Decision("searcher", "searching", total, update=update, searches=tasks)
        state = _hit(state, missing)
    elif flag != "finish" and not _gave_up(state) and _too_few(state):
        more = planning.wider(state["asked"], queries, work.settings.research_parallel)
        if more and _may_retry(state, "searching", work):
            again: State = {
                **state,
                "plan": {**plan, "queries": [*queries, *more]},
                "retries": _retried(state, "searching"),
            }
            return _with(_search(again, flag, work), again, "plan", "retries")
    if (cause := _no_source(state)) is not None:
        return Decision("stop", "searching", update={"error": cause})
    return _with(_extract(state, flag, work), state, "limits_hit")


def _extract(state: State, flag: Flag, work: Work) -> Decision:
    targets, read = _targets(state, work), state.get("read") or {}
    pending = [each for each in targets if each not in read]
    if pending and flag != "finish":
        update, error = _in_time(state, "extracting", work)
        if error:
            return Decision("stop", "extracting", update=update)
        tasks, missing = _crawl_tasks(pending, _left(update, work), work)
        if tasks:
            total = len(targets)
            return Decision("extractor", "extracting", total, update=update, crawls=tasks)
        state = _hit(state, missing)
    elif flag != "finish":
        plan = state.get("plan") or {}
        readable = sum(row["ok"] for row in read.values())
        queries = list(plan.get("queries", []))
        more = planning.wider(state["asked"], queries, work.settings.research_parallel)
        if readable < plan.get("min_pages", 0) and more and _may_retry(state, "searching", work):
            again: State = {
                **state,
                "plan": {**plan, "queries": [*queries, *more]},
                "retries": _retried(state, "searching"),
            }
            found = _with(_search(again, flag, work), again, "plan", "retries")
            found.sent_back = True
            return found
        if (cause := _no_page(state)) is not None:
            return Decision("stop", "extracting", update={"error": cause})
    return _with(_analyze(state, flag, work), state, "limits_hit")


def _analyze(state: State, flag: Flag, work: Work) -> Decision:
    if state.get("analysis") is None:
        return Decision("analyzer", "analyzing")
    return _report(state, flag, work)


def _report(state: State, flag: Flag, work: Work) -> Decision:
    report = state.get("report")
    if report is None:
        return Decision("reporter", "reporting")
    wrong = broken(from_dict(Report, report))
    if wrong and _may_retry(state, "reporting", work):
        retries = _retried(state, "reporting")
        return Decision("reporter", "reporting", update={"retries": retries, "report": None})
    if wrong:
        return Decision("stop", "reporting", update={"error": f"The report is wrong: {wrong[0]}"})
    return Decision("stop", "completed")


def broken(report: Report) -> list[str]:
    """Return what is wrong with the markers of a report; the reporter has checked the words."""
    known = {each.id for each in report.ledger}
    return [
        f"“{claim.text[:60]}” has no source"
        for section in report.sections
        for claim in section.claims
        if not claim.entries or not known.issuperset(claim.entries)
    ]


def page_row(page: CrawledPage) -> Json:
    """Return what the state holds of a page: everything but its text."""
    row = as_dict(page)
    del row["text"]
    return {**row, "ok": True}


def failure_row(failure: CrawlFailure) -> Json:
    """Return what the state holds of a page that could not be read."""
    row = {"ok": False, "url": failure.url, "reason": failure.reason}
    return {**row, "retryable": failure.retryable}


# --- what is left to do


def _collected(state: State) -> State:
    """Return the results of the last searchers, merged with the earlier ones."""
    if not state.get("found"):
        return {}
    results = [from_dict(SearchResult, each) for each in state.get("results", [])]
    results += [from_dict(SearchResult, each) for each in state["found"]]
    unique = dedupe.unique(results)
    if len(unique) > MAX_RESULTS:
        unique = compress_results(unique)
    # mypy: None empties the channel.
    return {"results": [as_dict(each) for each in unique], "found": None}  # type: ignore[typeddict-item]


def _targets(state: State, work: Work) -> list[str]:
    """Return the canonical addresses to read, the most promising first; read ones included."""
    wanted = planning.subject_forms(state["asked"])
    least = (state.get("plan") or {}).get("min_quality", 0.0)

    def promise(result: Json) -> tuple[bool, float]:
        said = planning.content_forms(f"{result['title']} {result['snippet']}")
        about = len(wanted & said) / len(wanted) if wanted else 0.0
        return result["quality"] < least, -(about + result["quality"])

    ranked = sorted(state.get("results", []), key=promise)
    addresses = dict.fromkeys(dedupe.canonical(each["url"]) for each in ranked)
    return list(addresses)[: work.settings.research_pages]


def _worked(state: State) -> Json:
    """Return the worker of the current stage with the time of its last batch."""
    stage, agent = state.get("stage", "planning"), state.get("agent") or {}
    if agent.get("stage") != stage:
        agent = {"stage": stage, "seconds": 0.0, "timeouts": 0}
    # The tasks of a batch run at the same time. Time between two processes is no task's.
    return {**agent, "seconds": agent["seconds"] + max(state.get("elapsed") or [0.0])}


def _in_time(state: State, stage: str, work: Work) -> tuple[State, bool]:
    """Return changes of the state, and whether the worker has run out of its time for good.

    A worker whose time is over is repeated: it has its time again, and what it brought stays.
    """
    agent, seconds = state.get("agent") or {}, work.settings.research_agent_seconds
    if agent.get("stage") != stage:
        agent = {"stage": stage, "seconds": 0.0, "timeouts": 0}
    if agent["seconds"] < seconds - _SLACK:
        return {"agent": agent}, False
    again = {"stage": stage, "seconds": 0.0, "timeouts": agent["timeouts"] + 1}
    update: State = {
        "agent": again,
        "timeouts": [{"stage": stage, "what": "agent", "seconds": seconds}],
    }
    if again["timeouts"] <= work.settings.research_fetch_retries:
        return update, False
    error = f"The worker of the stage {stage} did not end within {seconds:g} seconds."
    # A resumed project has the whole time again.
    return {**update, "agent": {}, "error": error}, True


def _left(update: State, work: Work) -> float:
    return work.settings.research_agent_seconds - float(update["agent"]["seconds"])


def _search_tasks(pending: list[str], left: float, work: Work) -> tuple[list[SearchTask], str]:
    batch, fetches, missing = _batch(pending, work, "searching")
    seconds = work.budget.left("seconds", "searching")
    tasks: list[SearchTask] = [
        {"task_query": each, "fetches": fetches, "seconds": seconds, "agent_seconds": left}
        for each in batch
    ]
    return tasks, missing


def _crawl_tasks(pending: list[str], left: float, work: Work) -> tuple[list[CrawlTask], str]:
    batch, fetches, missing = _batch(pending, work, "extracting")
    seconds = work.budget.left("seconds", "extracting")
    size = int(work.budget.left("bytes", "extracting") // max(1, len(batch)))
    if size < 1:
        return [], "bytes"
    tasks: list[CrawlTask] = [
        {
            "task_url": each,
            "fetches": fetches,
            "bytes": size,
            "seconds": seconds,
            "agent_seconds": left,
        }
        for each in batch
    ]
    return tasks, missing


def _batch(pending: list[str], work: Work, stage: str) -> tuple[list[str], int, str]:
    """Return what may be done at once, the attempts of each, and the budget that forbids more."""
    if (missing := work.budget.missing(stage, fetches=1)) is not None:
        return [], 0, missing
    left = int(work.budget.left("fetches", stage))
    batch = pending[: min(work.settings.research_parallel, left)]
    return batch, left // len(batch), ""


def _too_few(state: State) -> bool:
    plan = state.get("plan") or {}
    return len(state.get("results", [])) < int(plan.get("min_results", 0))


def _gave_up(state: State) -> bool:
    return bool(state.get("limits_hit"))


def _no_source(state: State) -> str | None:
    """Return why the search as a whole has failed: no result, and every query had only failures."""
    searched = state.get("searched") or {}
    if state.get("results") or not searched:
        return None
    reasons = [each["failures"] for each in searched.values()]
    if not all(reasons):
        return None
    first = reasons[0][0]
    return f"No source answered. {first['source']}: {first['reason']}"


def _no_page(state: State) -> str | None:
    """Return why reading as a whole has failed: of no page, and all may answer later."""
    rows = list((state.get("read") or {}).values())
    if not rows or state.get("limits_hit") or any(row["ok"] for row in rows):
        return None
    if not all(row.get("retryable") for row in rows):
        return None
    return f"None of the {len(rows)} pages that were found could be read. {rows[0]['reason']}"


def _may_retry(state: State, stage: str, work: Work) -> bool:
    most = min(MAX_RETRIES, work.settings.research_stage_retries)
    return state.get("retries", {}).get(stage, 0) < most


def _retried(state: State, stage: str) -> dict[str, int]:
    retries = state.get("retries", {})
    return {**retries, stage: retries.get(stage, 0) + 1}


def _hit(state: State, name: str) -> State:
    hit = list(dict.fromkeys([*state.get("limits_hit", []), name]))
    return {**state, "limits_hit": hit}


def _with(decision: Decision, state: State, *names: str) -> Decision:
    """Return a decision that also stores these values of the state."""
    values: Mapping[str, Any] = state
    kept = {name: values[name] for name in names if name in values}
    decision.update = {**kept, **decision.update}  # type: ignore[typeddict-item]
    return decision


# --- progress and backups


def _shown(found: Json, decision: Decision, state: State, work: Work) -> Json:
    ended = "pending" if decision.sent_back else "completed"
    if decision.worker != "stop" or decision.stage == "completed":
        found = progress.begin(found, decision.stage, decision.total, ended=ended)
    return {
        **found,
        "usage": totals(work.budget.usage),
        "limits_hit": state.get("limits_hit", []),
        "retries": state.get("retries", {}),
        "timeouts": len(state.get("timeouts") or []),
        "notes": [*(state.get("notes") or []), *_failed_sources(state)],
    }


def _failed_sources(state: State) -> list[str]:
    """Return a sentence for each source that failed, once for each reason."""
    searched = state.get("searched") or {}
    failures = [failure for each in searched.values() for failure in each["failures"]]
    said = [f"The source {each['source']} failed: {each['reason']}" for each in failures]
    return list(dict.fromkeys(said))


async def _saved(work: Work, state: State) -> None:
    """Write the state file and a backup: a stage has ended."""
    from my_agent.research import pages
    from my_agent.research.projects import find
    from my_agent.research.snapshots import snapshot

    row = await find(work.key)
    if row is None:
        # The project was deleted.
        return
    percentage = progress.view(row)["percentage"]
    made = snapshot(state, work.key, await pages.by_address(work.key), percentage)
    work.keep(made)
    await files.save(work.settings, work.key, made)
