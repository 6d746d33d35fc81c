"""Node `converse`: answer side questions, store feedback, and return to the waiting question."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from my_agent.icp_finder import prompts
from my_agent.icp_finder.enrichment import jobs
from my_agent.icp_finder.log import log_action
from my_agent.icp_finder.model import Candidate, Company, Icp, Scored
from my_agent.icp_finder.prompts import CUSTOMERS
from my_agent.icp_finder.reading.turns import Turn, turn
from my_agent.icp_finder.records import feedback, store
from my_agent.icp_finder.records.feedback import Feedback, Verdict
from my_agent.icp_finder.search import scoring, searching, shortlist
from my_agent.icp_finder.search.website import read_site
from my_agent.icp_finder.sites import domain
from my_agent.icp_finder.state import State
from my_agent.user import caller
from my_agent.web.fetch import SiteError

Exit = Literal["choose", "journey_guard", "__end__"]

_VERDICTS: dict[str, Verdict] = {"reject": "rejected", "keep": "kept", "like": "liked"}


@dataclass
class Table:
    """What a conversation about candidates needs.

    Attributes:
        tenant_id: the tenant.
        rule_name: the rule in force.
        found: all candidates of the last search, best first.
        said: the feedback, by key.
        shown: the candidates without the rejected ones, in the order of the feedback.
        view: keys of the candidates, as the user saw them numbered.
        page: number of candidates that have been shown.
        replies: the sentences of the answer.
    """

    tenant_id: str
    rule_name: str
    found: list[Scored]
    said: dict[str, Feedback]
    shown: list[Scored]
    view: list[str]
    page: int
    replies: list[str] = field(default_factory=list)


async def converse(state: State, config: RunnableConfig) -> Command[Exit]:
    """Answer a message that is no answer to a question and changes no data of the company.

    Nothing is searched or enriched here. A question that waits is asked again, with the same id.
    """
    table = await _table(state, caller(config).tenant_id)
    read = state.get("turn") or turn("talk", "chatter")
    if read["kind"] == "feedback":
        await _feedback(state, table, read)
    elif read["kind"] == "question":
        await _question(state, table, read)
    elif (sentence := _TALK.get(read["topic"])) is not None:
        table.replies.append(sentence)
    update: dict[str, Any] = {"view": table.view, "page": table.page, "answer": None}
    notes = [*state.get("notes", []), *table.replies]
    waiting = state.get("waiting")
    if waiting is not None:
        text = "\n\n".join([*notes, prompts.SHORT[waiting["kind"]]])
        again = {"asking": waiting, "waiting": None, "notes": [], "messages": [AIMessage(text)]}
        return Command(goto="choose", update={**update, **again})
    if _continues(state):
        return Command(goto="journey_guard", update={**update, "notes": notes})
    said = {"messages": [AIMessage("\n\n".join(notes) or prompts.HELP)], "notes": []}
    return Command(goto="__end__", update={**update, **said})


_TALK = {
    "greeting": prompts.GREETING,
    "thanks": prompts.THANKS,
    "bye": prompts.BYE,
    "chatter": prompts.CHATTER,
}


def _continues(state: State) -> bool:
    """Return whether there is something to ask after the answer: missing data, or a search."""
    if not state.get("confirmed") or len(state.get("customers", [])) < CUSTOMERS:
        return True
    decisions = state["decisions"]
    return decisions["rerun_icp"] and state.get("declined") != decisions["reason"]


async def _table(state: State, tenant_id: str) -> Table:
    """Load the candidates of the last search and the feedback."""
    last, rule_name = state.get("last"), state["rule_name"]
    found = (
        [] if last is None else await store.best_candidates(tenant_id, **last, limit=shortlist.MOST)
    )
    said = await feedback.feedback_of(tenant_id, last["rule_name"] if last else rule_name)
    shown = feedback.ranked(found, said)
    view = state.get("view") or [each.candidate.key for each in shown]
    rule_name = last["rule_name"] if last else rule_name
    return Table(tenant_id, rule_name, found, said, shown, view, state.get("page", 0))


# --- questions ---------------------------------------------------------------


async def _question(state: State, table: Table, read: Turn) -> None:
    topic, site, icp = read["topic"], state.get("site"), state.get("icp")
    waiting = state.get("waiting")
    help_ = prompts.HELP if state.get("confirmed") else prompts.HELP_START
    if topic == "question":
        kind = waiting["kind"] if waiting else None
        table.replies.append(prompts.ABOUT_QUESTION[kind] if kind else help_)
    elif topic == "profile" and site is not None:
        table.replies.append(prompts.about_profile(site, state.get("customers", []), icp))
    elif topic == "status":
        await _status(state, table)
    elif topic == "rejected":
        lines = [
            (each.name, each.reason) for each in table.said.values() if each.verdict == "rejected"
        ]
        table.replies.append(prompts.rejections(lines))
    elif topic == "show":
        _show(table, read["words"])
    elif topic == "more":
        _more(table)
    elif topic == "explain":
        _explain(state, table, read)
    elif topic == "other":
        table.replies += [prompts.CANNOT, help_]
    else:
        table.replies.append(help_)


async def _status(state: State, table: Table) -> None:
    last = state.get("last")
    job = None if last is None else await jobs.find(table.tenant_id, **last)
    table.replies.append(prompts.NO_JOB if job is None else prompts.progress(job))


def _show(table: Table, words: str) -> None:
    """Show the first page of the list, filtered by some words."""
    found = shortlist.filtered(words, table.shown) if words else table.shown
    if not table.found:
        table.replies.append(prompts.NOTHING_YET)
    elif not found:
        table.replies.append(prompts.none_match(words) if words else prompts.NO_CANDIDATES)
    else:
        _page(table, found, 0, words)


def _more(table: Table) -> None:
    known = {each.candidate.key: each for each in table.shown}
    found = [known[key] for key in table.view if key in known]
    if not found:
        table.replies.append(prompts.NOTHING_YET)
    elif table.page >= len(found):
        table.replies.append(prompts.NO_MORE)
    else:
        _page(table, found, table.page, "")


def _page(table: Table, found: Sequence[Scored], start: int, words: str) -> None:
    text = shortlist.listed(found, start, table.said)
    table.replies.append(prompts.page(text, start, len(found), words))
    table.view = [each.candidate.key for each in found]
    table.page = min(start + shortlist.PAGE, len(found))


def _explain(state: State, table: Table, read: Turn) -> None:
    """Explain each named candidate; say so if a company is none."""
    named = _named(table, read)
    if state.get("site") is None or state.get("icp") is None or not named:
        table.replies.append(_unknown(state, table, read))
        return
    places = {key: at for at, key in enumerate(table.view, 1)}
    for each in named[: shortlist.PAGE]:
        place = places.get(each.candidate.key, 0)
        table.replies.append(shortlist.explained(each, place, table.said))


def _unknown(state: State, table: Table, read: Turn) -> str:
    """Return the sentence about a company or number that is not in the list."""
    site = state.get("site")
    if name := read["name"]:
        if site is not None and name == site["domain"]:
            return prompts.own_or_customer(name, own=True)
        if name in [each["domain"] for each in state.get("customers", [])]:
            return prompts.own_or_customer(name, own=False)
        return prompts.not_listed(name)
    return prompts.numbers_unknown(len(table.view)) if table.found else prompts.NOTHING_YET


def _named(table: Table, read: Turn) -> list[Scored]:
    """Return the candidates that a message names by number, name or domain."""
    by_number = shortlist.by_number(read["numbers"], table.view, table.found)
    return by_number or shortlist.by_name(read["name"], table.found)[:1]


# --- feedback ----------------------------------------------------------------


async def _feedback(state: State, table: Table, read: Turn) -> None:
    """Store what the user says about candidates."""
    topic = read["topic"]
    if topic == "candidate":
        await _add(state, table, read["name"])
        return
    named = _named(table, read)
    if topic == "restore":
        named = [each for each in named if each.candidate.key in table.said]
    if not named:
        unknown = prompts.NOT_SAID if topic == "restore" else _unknown(state, table, read)
        table.replies.append(unknown)
        return
    names = [each.candidate.name for each in named]
    keys = [each.candidate.key for each in named]
    log_action("feedback", state.get("thread_id"), verdict=topic, candidates=len(named))
    if topic == "restore":
        await feedback.forget(table.tenant_id, table.rule_name, keys)
        table.replies.append(prompts.noted("restored", names, ""))
    else:
        verdict = _VERDICTS[topic]
        await feedback.save(table.tenant_id, table.rule_name, verdict, named, read["words"])
        table.replies.append(prompts.noted(verdict, names, read["words"]))
    table.said = await feedback.feedback_of(table.tenant_id, table.rule_name)
    if (last := state.get("last")) is not None:
        # Exports and background jobs read the stored scores.
        said = feedback.weights(table.said)
        await searching.apply_feedback(table.tenant_id, **last, feedback=said)
    table.shown = feedback.ranked(table.found, table.said)
    if topic == "like":
        others = [each for each in table.shown if each.candidate.key not in keys]
        alike = [(max(feedback.likeness(each, one) for one in named), each) for each in others]
        close = [each for how, each in sorted(alike, key=lambda pair: -pair[0]) if how > 0]
        text = shortlist.listed(close[: shortlist.PAGE], 0, table.said)
        table.replies.append(prompts.alike(prompts.listed(names), text))
        if close:
            table.view = [each.candidate.key for each in close]
            table.page = min(shortlist.PAGE, len(close))


async def _add(state: State, table: Table, name: str) -> None:
    """Read a company's website and add the company to the candidates, scored like the others."""
    last, site, icp = state.get("last"), state.get("site"), state.get("icp")
    if last is None or site is None or icp is None:
        table.replies.append(prompts.NOTHING_YET)
        return
    customers = state.get("customers", [])
    if name in [site["domain"], *(each["domain"] for each in customers)]:
        own = name == site["domain"]
        table.replies.append(prompts.own_or_customer(name, own=own))
        return
    company: Company = {"site": site, "customers": customers}
    try:
        scored = await _scored(f"https://{name}", company, icp)
    except SiteError as error:
        table.replies.append(str(error))
        return
    await store.add_candidates(table.tenant_id, **last, found=[scored])
    table.replies.append(prompts.added_candidate(scored.candidate.name, scored.score.total))


async def _scored(website: str, company: Company, icp: Icp) -> Scored:
    read = await read_site(website)
    candidate = Candidate(
        key=f"domain:{domain(website)}",
        name=read["name"],
        source="web",
        website=website,
        about=read["about"],
    )
    score = await asyncio.to_thread(scoring.score, candidate, company, icp)
    return Scored(candidate, score)
