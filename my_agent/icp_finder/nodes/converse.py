"""Node `converse`: do what a message asks for and costs nothing, and answer its questions."""

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
from my_agent.icp_finder.nodes.undoing import take_back, with_feedback
from my_agent.icp_finder.reading.commands import FEEDBACK
from my_agent.icp_finder.reading.heard import Heard, Order, has_data, nothing
from my_agent.icp_finder.reading.questions import Question
from my_agent.icp_finder.records import feedback, store
from my_agent.icp_finder.records.feedback import Feedback, Verdict
from my_agent.icp_finder.search import scoring, searching, shortlist
from my_agent.icp_finder.search.website import read_site
from my_agent.icp_finder.settings import IcpSettings
from my_agent.icp_finder.sites import domain
from my_agent.icp_finder.state import State, Undo
from my_agent.user import caller
from my_agent.web.fetch import SiteError

Exit = Literal["choose", "profile_builder", "return_user_probe", "__end__"]

_VERDICTS: dict[str, Verdict] = {"reject": "rejected", "keep": "kept", "like": "liked"}
_TALK = {"greeting": prompts.GREETING, "thanks": prompts.THANKS, "bye": prompts.BYE, "early": ""}


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
        undo: the changes that can be taken back.
        replies: the sentences of the answer.
    """

    tenant_id: str
    rule_name: str
    found: list[Scored]
    said: dict[str, Feedback]
    shown: list[Scored]
    view: list[str]
    page: int
    undo: list[Undo]
    replies: list[str] = field(default_factory=list)

    def named(self, order: Order) -> list[Scored]:
        """Return the candidates of an order."""
        known = {each.candidate.key: each for each in self.found}
        return [known[key] for key in order["keys"] or [] if key in known]


async def converse(state: State, config: RunnableConfig) -> Command[Exit]:
    """Do the orders of a message. Nothing is searched or enriched here.

    A question that waits is asked again, with the same id.
    """
    table = await _table(state, caller(config).tenant_id)
    heard, taken_back = state.get("heard", nothing()), dict[str, Any]()
    for order in _courteous(heard):
        if order["name"] == "undo":
            taken_back |= await _undo(state, table)
        else:
            await _do(state, table, order)
    update: dict[str, Any] = {"view": table.view, "page": table.page, "undo": table.undo}
    update["heard"] = {**heard, "orders": []}
    notes = list(dict.fromkeys([*state.get("notes", []), *filter(None, table.replies)]))
    if taken_back:
        # What is stored has changed, so it is looked at again.
        return Command(
            goto="return_user_probe",
            update={**update, **taken_back, "notes": notes, "answer": None, "change": None},
        )
    goes_on = (
        has_data(heard)
        or heard["wish"]
        or heard["stray"]
        or state.get("answer")
        or state.get("offers")
    )
    if goes_on or state.get("change"):
        return Command(goto="profile_builder", update={**update, "notes": notes})
    waiting = state.get("waiting")
    if waiting is not None:
        text = "\n\n".join([*notes, prompts.SHORT[waiting["kind"]]])
        again = {
            "asking": _recounted(waiting, table),
            "waiting": None,
            "notes": [],
            "messages": [AIMessage(text)],
        }
        return Command(goto="choose", update={**update, **again})
    if _continues(state):
        return Command(goto="profile_builder", update={**update, "notes": notes})
    said = {"messages": [AIMessage("\n\n".join(notes) or prompts.HELP)], "notes": []}
    return Command(goto="__end__", update={**update, **said})


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


def _continues(state: State) -> bool:
    """Return whether there is something to ask after the answer: missing data, or a search."""
    if not state.get("confirmed"):
        return True
    if any(each["words"] == "greeting" for each in state.get("heard", nothing())["orders"]):
        return True
    decisions = state["decisions"]
    return decisions["rerun_icp"] and state.get("declined") != decisions["reason"]


async def _table(state: State, tenant_id: str) -> Table:
    """Load the candidates of the last search and the feedback."""
    last, rule_name = state.get("last"), state["rule_name"]
    found = (
        [] if last is None else await store.best_candidates(tenant_id, **last, limit=shortlist.MOST)
    )
    rule_name = last["rule_name"] if last else rule_name
    said = await feedback.feedback_of(tenant_id, rule_name)
    shown = feedback.ranked(found, said)
    view = state.get("view") or [each.candidate.key for each in shown]
    undo = list(state.get("undo") or [])
    return Table(tenant_id, rule_name, found, said, shown, view, state.get("page", 0), undo)


async def _do(state: State, table: Table, order: Order) -> None:
    name, words = order["name"], order["words"]
    if name in FEEDBACK:
        await _feedback(state, table, order)
    elif name == "candidate":
        await _add(state, table, words)
    elif name == "stop":
        await _stop(state, table)
    elif name == "whats_new":
        await _news(state, table)
    elif name == "progress":
        await _status(state, table)
    elif name in ("show", "filter"):
        _show(table, order)
    elif name == "more":
        _more(table)
    elif name in ("explain", "tell", "dispute"):
        _explain(state, table, order)
    elif name == "talk":
        # Who is welcomed back is greeted.
        is_greeted = words == "greeting" and state.get("notes")
        table.replies.append("" if is_greeted else _TALK.get(words, prompts.CHATTER))
    else:
        await _answer(state, table, name, words)


async def _answer(state: State, table: Table, name: str, words: str) -> None:
    """Answer a question from what is stored, or from what the product says about itself."""
    site, icp, waiting = state.get("site"), state.get("icp"), state.get("waiting")
    help_ = prompts.HELP if state.get("confirmed") else prompts.HELP_START
    if name == "help":
        table.replies.append(help_)
    elif name == "export":
        table.replies.append(prompts.EXPORT if table.found else prompts.NOTHING_YET)
    elif name == "rejected":
        lines = [(e.name, e.reason) for e in table.said.values() if e.verdict == "rejected"]
        table.replies.append(prompts.rejections(lines))
    elif name == "profile" or words in ("profile", "regions", "industries", "sizes"):
        known = prompts.about_profile(site, state.get("customers", []), icp) if site else help_
        table.replies.append(known)
    elif words == "progress" and state.get("last"):
        await _status(state, table)
    elif (answer := prompts.ABOUT.get(words)) is not None:
        table.replies.append(answer)
    elif waiting is not None:
        table.replies.append(prompts.ABOUT_QUESTION[waiting["kind"]])
    else:
        table.replies += [prompts.CANNOT, help_] if state.get("confirmed") else [help_]


async def _status(state: State, table: Table) -> None:
    last = state.get("last")
    job = None if last is None else await jobs.find(table.tenant_id, **last)
    table.replies.append(prompts.NO_JOB if job is None else prompts.progress(job))


async def _stop(state: State, table: Table) -> None:
    last = state.get("last")
    stopped = last is not None and await jobs.stop(table.tenant_id, **last)
    table.replies.append(prompts.STOPPED if stopped else prompts.NO_JOB)


async def _news(state: State, table: Table) -> None:
    """Say what the last search has changed."""
    last = state.get("last")
    versions = [] if last is None else await store.versions(table.tenant_id, **last)
    if not versions:
        table.replies.append(prompts.NOTHING_YET)
    elif versions[0].number == 1:
        table.replies.append(prompts.FIRST_SEARCH)
    else:
        table.replies.append(prompts.news(versions[0]))


def _show(table: Table, order: Order) -> None:
    """Show the first page of the list, filtered by some words, or the named candidates."""
    if order["keys"]:
        named = set(order["keys"])
        places = [at for at, key in enumerate(table.view, 1) if key in named]
        lines = [
            f"{at}. {prompts.line(each)}"
            for at in places
            for each in table.found
            if each.candidate.key == table.view[at - 1]
        ]
        table.replies.append("\n".join(lines) or prompts.NOTHING_YET)
        return
    words = order["words"]
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


def _explain(state: State, table: Table, order: Order) -> None:
    """Explain each named candidate."""
    named = table.named(order)
    if not named:
        which = prompts.numbers_unknown(len(table.view)) if table.found else prompts.NOTHING_YET
        if order["name"] != "dispute":
            table.replies.append(which)
        elif not has_data(state.get("heard", nothing())):
            # Who says at once what is right needs no advice how to.
            table.replies.append(prompts.DISPUTED)
        return
    places = {key: at for at, key in enumerate(table.view, 1)}
    for each in named[: shortlist.PAGE]:
        place = places.get(each.candidate.key, 0)
        table.replies.append(shortlist.explained(each, place, table.said))
    if order["name"] == "dispute":
        table.replies.append(prompts.DISPUTED)


async def _feedback(state: State, table: Table, order: Order) -> None:
    """Store what the user says about candidates."""
    named, topic, last = table.named(order), order["name"], state.get("last")
    keys = [each.candidate.key for each in named]
    if topic == "restore":
        keys = [key for key in order["keys"] or [] if key in table.said]
    if not keys:
        empty = prompts.numbers_unknown(len(table.view)) if table.found else prompts.NOTHING_YET
        table.replies.append(prompts.NOT_SAID if topic == "restore" and order["keys"] else empty)
        return
    names = (
        [table.said[key].name for key in keys]
        if topic == "restore"
        else [e.candidate.name for e in named]
    )
    log_action("feedback", state.get("thread_id"), verdict=topic, candidates=len(keys))
    table.undo = with_feedback({**state, "undo": table.undo}, keys, table.said)
    if topic == "restore":
        await feedback.forget(table.tenant_id, table.rule_name, keys)
        table.replies.append(prompts.noted("restored", names, ""))
    else:
        verdict = _VERDICTS[topic]
        await feedback.save(table.tenant_id, table.rule_name, verdict, named, order["words"])
        table.replies.append(prompts.noted(verdict, names, order["words"]))
    await _feedback_changed(state, table)
    if topic == "like" and last is not None:
        others = [each for each in table.shown if each.candidate.key not in keys]
        alike = [(max(feedback.likeness(each, one) for one in named), each) for each in others]
        close = [each for how, each in sorted(alike, key=lambda pair: -pair[0]) if how > 0]
        text = shortlist.listed(close[: shortlist.PAGE], 0, table.said)
        table.replies.append(prompts.alike(prompts.listed(names), text))
        if close:
            table.view = [each.candidate.key for each in close]
            table.page = min(shortlist.PAGE, len(close))


async def _feedback_changed(state: State, table: Table) -> None:
    table.said = await feedback.feedback_of(table.tenant_id, table.rule_name)
    if (last := state.get("last")) is not None:
        # Exports and background jobs read the stored scores.
        said = feedback.weights(table.said)
        await searching.apply_feedback(table.tenant_id, **last, feedback=said)
    table.shown = feedback.ranked(table.found, table.said)


async def _undo(state: State, table: Table) -> dict[str, Any]:
    """Take back the last change, and return the company of before if it was one of the profile."""
    if not table.undo:
        table.replies.append(prompts.NOTHING_TO_UNDO)
        return {}
    last = table.undo.pop()
    found = {each.candidate.key: each for each in table.found}
    what = await take_back(table.tenant_id, table.rule_name, last, found)
    table.replies.append(prompts.undone(what, last["icp"]))
    if what == "feedback":
        await _feedback_changed(state, table)
        return {}
    return {**{name: last[name] for name in ("site", "customers", "icp")}, "fresh": False}


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
