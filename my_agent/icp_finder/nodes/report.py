"""Nodes `progress_report`, `enrich` and `finalize`: show, enrich and close."""

from collections.abc import Sequence
from typing import Literal

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from my_agent.icp_finder import prompts, reports
from my_agent.icp_finder.enrichment import jobs
from my_agent.icp_finder.log import log_action
from my_agent.icp_finder.model import Scored
from my_agent.icp_finder.nodes import table as tables
from my_agent.icp_finder.reading.heard import Order
from my_agent.icp_finder.reading.questions import Question, question, same
from my_agent.icp_finder.settings import IcpSettings
from my_agent.icp_finder.state import Enrichment, Found, Shown, State, chosen
from my_agent.user import caller


async def progress_report(
    state: State, config: RunnableConfig
) -> Command[Literal["choose", "enrich", "finalize"]]:
    """Show the best candidates once, and ask whether to enrich them."""
    found, settings = state.get("found"), IcpSettings.from_environment()
    tenant_id = caller(config).tenant_id
    best = (await tables.load(tenant_id, found)).shown[: settings.wanted]
    notes = list(state["notes"])
    if found is None or not best:
        update: dict[str, object] = {"candidates": [], "notes": [*notes, prompts.NO_CANDIDATES]}
        return Command(goto="finalize", update=update)
    update = {"candidates": [_shown(each) for each in best], "reported": found}
    heard, waiting = state["heard"], state.get("waiting")
    wish = heard["wish"] if heard["wish"] and heard["wish"]["name"] == "enrich" else None
    if wish is not None and wish["sure"]:
        return Command(goto="enrich", update={**update, "answer": None})
    is_new = state.get("reported") != found
    if is_new or any(each["words"] == "greeting" for each in heard["orders"]):
        shown = best[: settings.run_now_limit]
        notes.append(reports.report(shown, len(best)))
        update |= {"view": [each.candidate.key for each in best], "page": len(shown)}
    job = await jobs.find(tenant_id, **found)
    works = job is not None and job.status not in reports.ENDED and wish is None
    notes = list(dict.fromkeys([*notes, *([reports.progress(job)] if job is not None else [])]))
    waits = waiting if waiting and waiting["kind"] == "enrich" else None
    if not works and chosen(state, "enrich") == "later":
        update |= {"notes": [*notes, prompts.NOT_ENRICHED], "answer": None}
        return Command(goto="finalize", update=update)
    if works or not (is_new or wish or waits):
        return Command(goto="finalize", update={**update, "notes": notes})
    if wish is not None and wish["keys"]:
        asking = _narrowed(wish, best)
    elif waits is not None and wish is None:
        asking = waits
    else:
        words = prompts.ask_enrichment(len(best), settings.run_now_limit, settings.run_later_limit)
        asking = same(question("enrich", words, candidates=len(best)), waiting)
    text = "\n\n".join([*notes, asking["question"]])
    update |= {"asking": asking, "notes": [], "messages": [AIMessage(text)]}
    return Command(goto="choose", update=update)


def _narrowed(wish: Order, best: Sequence[Scored]) -> Question:
    """Return the question for the candidates that the user has named, or for all but some."""
    keys = wish["keys"] or []
    known = {each.candidate.key: each.candidate.name for each in best}
    names = wish.get("names") or [known.get(key, key) for key in keys]
    left_out = [name for key, name in known.items() if key not in keys]
    if len(names) <= reports.NAMED or len(left_out) >= len(names):
        left_out = []
    words = prompts.ask_these(names, left_out)
    about = {"candidates": len(names), "keys": keys, "names": reports.some(names)}
    return question("enrich", words, **about, left_out=reports.some(left_out))


async def enrich(state: State, config: RunnableConfig) -> dict[str, object]:
    """Enrich the best candidates at once, and queue the next ones in a background job.

    Enriched candidates are skipped. The same ICP and rule have one job.

    Raises:
        ValueError: no candidates were found.
    """
    found, settings = state.get("found"), IcpSettings.from_environment()
    if found is None:
        raise ValueError("There is nothing to enrich: no candidates have been found")
    wish = state["heard"]["wish"]
    # Those that the user has named, and no others; or the best.
    keys = (wish["keys"] if wish else None) or [e["key"] for e in state.get("candidates", [])]
    now, later = keys[: settings.run_now_limit], keys[settings.run_now_limit :]
    done = await jobs.enrich_now(caller(config).tenant_id, **found, keys=now)
    read = [each.key for each in done if each.details.get("status") == "read"]
    failed = [each.key for each in done if each.key not in read]
    counts = {"candidates": len(read), "failed": len(failed)}
    log_action("enriched", state.get("thread_id"), **counts, **found)
    enrichment: Enrichment = {"now": read, "failed": failed, "job": None, "queued": 0}
    notes = [*state["notes"], reports.enriched(done)]
    # Loaded again, because the enrichment has changed the scores.
    table = await tables.load(caller(config).tenant_id, found)
    of = {key: each.candidate.details.get("status") for key, each in table.known.items()}
    later = [key for key in later if of.get(key) != "read"]
    if later := later[: settings.run_later_limit]:
        notes.append(await _enqueue(state, config, found, later, enrichment))
    shown = [_shown(each) for each in table.shown[: settings.wanted]]
    return {"enrichment": enrichment, "notes": notes, "candidates": shown}


async def _enqueue(
    state: State,
    config: RunnableConfig,
    found: Found,
    keys: Sequence[str],
    enrichment: Enrichment,
) -> str:
    """Start or find the background job. Return the sentence about it."""
    thread_id = state.get("thread_id")
    try:
        job = await jobs.enqueue(config, **found, keys=keys)
    except jobs.JobError as error:
        # The candidates enriched above stay enriched; the user can ask for the rest again.
        log_action("job_refused", thread_id, problem=type(error).__name__)
        return prompts.NOT_QUEUED.format(error)
    log_action("job_queued" if job.created else "job_merged", thread_id, job=job.id, **found)
    enrichment["job"], enrichment["queued"] = job.id, job.total
    return reports.queued(job)


async def finalize(state: State) -> State:
    """Send the remaining notes."""
    notes = state["notes"] or [prompts.UNCHANGED, prompts.HELP]
    log_action("finished", state.get("thread_id"), candidates=len(state.get("candidates", [])))
    return {"messages": [AIMessage("\n\n".join(notes))], "notes": [], "consent": False}


def _shown(scored: Scored) -> Shown:
    candidate, score = scored.candidate, scored.score
    return {
        "key": candidate.key,
        "name": candidate.name,
        "website": candidate.website,
        "industry": candidate.industry,
        "region": candidate.region,
        "source": candidate.source,
        "score": round(score.total, 3),
        "parts": {name: round(part, 3) for name, part in score.parts.items()},
    }
