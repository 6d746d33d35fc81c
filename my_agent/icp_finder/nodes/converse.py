"""Node `converse`: do what a message asks for and costs nothing, and answer its questions."""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from my_agent.icp_finder import prompts, reports
from my_agent.icp_finder.enrichment import jobs
from my_agent.icp_finder.log import log_action
from my_agent.icp_finder.model import Candidate, Company, Icp, Scored
from my_agent.icp_finder.nodes import table as tables
from my_agent.icp_finder.nodes.table import Table
from my_agent.icp_finder.nodes.undoing import take_back, with_feedback
from my_agent.icp_finder.reading.commands import FEEDBACK
from my_agent.icp_finder.reading.heard import Heard, Order, has_data
from my_agent.icp_finder.reading.questions import Question
from my_agent.icp_finder.records import feedback, store
from my_agent.icp_finder.records.feedback import Verdict
from my_agent.icp_finder.search import scoring, searching, shortlist
from my_agent.icp_finder.search.website import read_site
from my_agent.icp_finder.settings import IcpSettings
from my_agent.icp_finder.state import State, company_of
from my_agent.user import caller
from my_agent.web.fetch import SiteError
from my_agent.web.sites import domain
from my_agent.web.websites import readable

Exit = Literal["choose", "profile_builder", "return_user_probe", "__end__"]

_TALK = {"greeting": prompts.GREETING, "thanks": prompts.THANKS, "bye": prompts.BYE, "early": ""}


async def converse(state: State, config: RunnableConfig) -> Command[Exit]:
    """Do the orders of a message. Nothing is searched or enriched here.

    A question that waits is asked again, with the same id.
    """
    table = await tables.load(caller(config).tenant_id, state.get("last"), state["rule_name"])
    table.view = state.get("view") or [each.candidate.key for each in table.shown]
    table.page, table.undo = state.get("page", 0), list(state.get("undo") or [])
    heard, replies, restored = state["heard"], list[str](), dict[str, Any]()
    for order in _courteous(heard):
        if order["name"] == "undo":
            undone, before = await _undo(table, confirmed=bool(state.get("confirmed")))
            restored |= before
            replies.append(undone)
        else:
            replies.append(await _reply(state, table, order))
    notes = list(dict.fromkeys([*state.get("notes", []), *filter(None, replies)]))
    update = {"view": table.view, "page": table.page, "undo": table.undo, "notes": notes}
    update["heard"] = {**heard, "orders": []}
    if restored:
        # What is stored has changed, so it is looked at again.
        again = {**update, **restored, "answer": None, "change": None}
        return Command(goto="return_user_probe", update=again)
    goes_on = has_data(heard) or heard["wish"] or heard["stray"] or state.get("answer")
    waiting = state.get("waiting")
    if goes_on or state.get("offers") or state.get("change") or not (waiting or _is_over(state)):
        return Command(goto="profile_builder", update=update)
    update["notes"] = []
    if waiting is None:
        text = "\n\n".join(notes) or prompts.HELP
        return Command(goto="__end__", update={**update, "messages": [AIMessage(text)]})
    is_whole = waiting["kind"] == "offer" or "keys" in waiting["details"]
    question = waiting["question"] if is_whole else prompts.SHORT[waiting["kind"]]
    text = "\n\n".join([*notes, question])
    asked = {"asking": _recounted(waiting, table), "waiting": None, "messages": [AIMessage(text)]}
    return Command(goto="choose", update={**update, **asked})


def _recounted(waiting: Question, table: Table) -> Question:
    """Return a question about all candidates with their number after the feedback."""
    if waiting["kind"] != "enrich" or "keys" in waiting["details"]:
        return waiting
    count = min(len(table.shown), IcpSettings.from_environment().wanted)
    return {**waiting, "details": {**waiting["details"], "candidates": count}}


def _courteous(heard: Heard) -> list[Order]:
    """Return the orders of a message, without small talk if there is anything else to answer."""
    others = [each for each in heard["orders"] if each["name"] != "talk"]
    return others if others or has_data(heard) else heard["orders"][:1]


def _is_over(state: State) -> bool:
    """Return whether nothing is to be asked after the answer: no missing data, and no search."""
    greets = any(each["words"] == "greeting" for each in state["heard"]["orders"])
    if greets or not state.get("confirmed"):
        return False
    decisions = state["decisions"]
    return not decisions["rerun_icp"] or state.get("declined") == decisions["reason"]


async def _reply(state: State, table: Table, order: Order) -> str:
    """Do an order, and return the answer."""
    name, words = order["name"], order["words"]
    match name:
        case "reject" | "keep" | "like" | "restore":
            return await _feedback(state, table, order)
        case "candidate":
            return await _add(state, table, words)
        case "stop":
            stopped = table.last and await jobs.stop(table.tenant_id, **table.last)
            return prompts.STOPPED if stopped else prompts.NO_JOB
        case "whats_new":
            return await _news(table)
        case "show" | "filter":
            return _show(table, order)
        case "more":
            return _more(table)
        case "explain" | "tell" | "dispute":
            return _explain(state, table, order)
        case "talk":
            # Who is welcomed back is greeted.
            is_greeted = words == "greeting" and state.get("notes")
            return "" if is_greeted else _TALK.get(words, prompts.CHATTER)
    if words == "why_enrich":
        tried = [each.candidate for each in table.found if each.candidate.details]
        return reports.enriched(tried) if tried else prompts.ENRICHED_NOTHING
    if name == "progress" or (words == "progress" and table.last):
        job = await jobs.find(table.tenant_id, **table.last) if table.last else None
        return reports.progress(job) if job else prompts.NO_JOB
    return _answer(state, table, name, words)


def _answer(state: State, table: Table, name: str, words: str) -> str:
    """Answer a question from what is stored, or from what the product says about itself."""
    (site, customers, icp), waiting = company_of(state), state.get("waiting")
    help_ = prompts.HELP if state.get("confirmed") else prompts.HELP_START
    if name == "help":
        return help_
    if name == "export":
        return prompts.EXPORT if table.found else prompts.NOTHING_YET
    if name == "rejected":
        gone = [each for each in table.said.values() if each.verdict == "rejected"]
        return reports.rejections([(each.name, each.reason) for each in gone])
    if name == "profile" or words in ("profile", "regions", "industries", "sizes"):
        return reports.about_profile(site, customers, icp) if site else help_
    if words in prompts.ABOUT:
        return prompts.ABOUT[words]
    if words == "why_ask" and waiting is None:
        return prompts.ABOUT["why"]
    if waiting is not None:
        return prompts.ABOUT_QUESTION[waiting["kind"]]
    return f"{prompts.CANNOT}\n\n{help_}" if state.get("confirmed") else help_


async def _news(table: Table) -> str:
    """Say what the last search has changed."""
    versions = await store.versions(table.tenant_id, **table.last) if table.last else []
    if not versions:
        return prompts.NOTHING_YET
    if versions[0].number == 1:
        return prompts.FIRST_SEARCH
    return prompts.NEWS.format(reports.difference(versions[0].changes), versions[0].at)


def _show(table: Table, order: Order) -> str:
    """Show the first page of the list, filtered by some words, or the named candidates."""
    words, keys, known = order["words"], order["keys"], table.known
    if keys:
        places = [(at, key) for at, key in enumerate(table.view, 1) if key in keys and key in known]
        lines = [f"{at}. {reports.line(known[key])}" for at, key in places]
        return "\n".join(lines) or prompts.NOTHING_YET
    if not table.found:
        return prompts.NOTHING_YET
    if found := shortlist.filtered(words, table.shown):
        return _page(table, found, 0, words)
    return prompts.NONE_MATCH.format(words) if words else prompts.NO_CANDIDATES


def _more(table: Table) -> str:
    known = {each.candidate.key: each for each in table.shown}
    found = [known[key] for key in table.view if key in known]
    if not found:
        return prompts.NOTHING_YET
    return prompts.NO_MORE if table.page >= len(found) else _page(table, found, table.page, "")


def _page(table: Table, found: Sequence[Scored], start: int, words: str) -> str:
    _view(table, found, start)
    return reports.page(shortlist.listed(found, start, table.said), start, len(found), words)


def _view(table: Table, found: Sequence[Scored], start: int) -> None:
    """Keep which candidates the user sees numbered."""
    table.view = [each.candidate.key for each in found]
    table.page = min(start + shortlist.PAGE, len(found))


def _explain(state: State, table: Table, order: Order) -> str:
    """Explain each named candidate."""
    named, is_dispute, heard = _named(table, order), order["name"] == "dispute", state["heard"]
    # Who says at once what is right, or asks, needs no advice how to.
    says_more = has_data(heard) or any(each["name"] != "dispute" for each in heard["orders"])
    advice = prompts.DISPUTED if is_dispute and (named or not says_more) else ""
    if not named:
        return advice if is_dispute else _unnumbered(table)
    places = {key: at for at, key in enumerate(table.view, 1)}
    told = [
        shortlist.explained(each, places.get(each.candidate.key, 0), table.said)
        for each in named[: shortlist.PAGE]
    ]
    return "\n\n".join(filter(None, [*told, advice]))


def _named(table: Table, order: Order) -> list[Scored]:
    known = table.known
    return [known[key] for key in order["keys"] or [] if key in known]


def _unnumbered(table: Table) -> str:
    """Ask which candidate is meant."""
    if not table.found:
        return prompts.NOTHING_YET
    return prompts.NUMBERS_UNKNOWN.format(len(table.view))


async def _feedback(state: State, table: Table, order: Order) -> str:
    """Store what the user says about candidates."""
    name, words, known = order["name"], order["words"], table.known
    names = {key: table.known[key].candidate.name for key in order["keys"] or [] if key in known}
    if name == "restore":
        names = {key: table.said[key].name for key in order["keys"] or [] if key in table.said}
        words = ""
    if not names:
        return prompts.NOT_SAID if name == "restore" and order["keys"] else _unnumbered(table)
    log_action("feedback", state.get("thread_id"), verdict=name, candidates=len(names))
    table.undo = with_feedback(table.undo, list(names), table.said)
    named = [known[key] for key in names if key in known]
    if name == "restore":
        await feedback.forget(table.tenant_id, table.rule_name, list(names))
    else:
        verdict = cast("Verdict", FEEDBACK[name])
        await feedback.save(table.tenant_id, table.rule_name, verdict, named, words)
    await _feedback_changed(table)
    noted = reports.noted(FEEDBACK[name], list(names.values()), words)
    return f"{noted}\n\n{_alike(table, named)}" if name == "like" and table.last else noted


def _alike(table: Table, named: Sequence[Scored]) -> str:
    """Show the candidates that are most like some."""
    keys = {each.candidate.key for each in named}
    others = [each for each in table.shown if each.candidate.key not in keys]
    alike = [(max(feedback.likeness(each, one) for one in named), each) for each in others]
    close = [each for how, each in sorted(alike, key=lambda pair: -pair[0]) if how > 0]
    if close:
        _view(table, close, 0)
    text = shortlist.listed(close[: shortlist.PAGE], 0, table.said)
    names = reports.listed([each.candidate.name for each in named])
    return prompts.ALIKE.format(names, text) if text else prompts.NONE_ALIKE.format(names)


async def _feedback_changed(table: Table) -> None:
    table.said = await feedback.feedback_of(table.tenant_id, table.rule_name)
    if table.last is not None:
        # Exports and background jobs read the stored scores.
        said = feedback.weights(table.said)
        await searching.apply_feedback(table.tenant_id, **table.last, feedback=said)


async def _undo(table: Table, *, confirmed: bool) -> tuple[str, dict[str, Any]]:
    """Take back the last change. Return the answer, and the company of before if that has changed."""
    if not table.undo:
        return prompts.NOTHING_TO_UNDO, {}
    last = table.undo.pop()
    await take_back(table.tenant_id, table.rule_name, last, table.known, confirmed=confirmed)
    if last["what"] == "feedback":
        await _feedback_changed(table)
        return prompts.UNDONE_FEEDBACK, {}
    before = {name: last[name] for name in ("site", "customers", "icp")}
    return reports.profile_now(prompts.UNDONE, last["icp"]), {**before, "fresh": False}


async def _add(state: State, table: Table, name: str) -> str:
    """Read a company's website and add the company to the candidates, scored like the others."""
    site, customers, icp = company_of(state)
    if table.last is None or site is None or icp is None:
        return prompts.NOTHING_YET
    if name == site["domain"]:
        return prompts.OWN_WEBSITE.format(readable(name))
    if name in [each["domain"] for each in customers]:
        return prompts.A_CUSTOMER.format(readable(name))
    try:
        scored = await _scored(f"https://{name}", {"site": site, "customers": customers}, icp)
    except SiteError as error:
        return str(error)
    await store.add_candidates(table.tenant_id, **table.last, found=[scored])
    return prompts.ADDED.format(scored.candidate.name, scored.score.total)


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
