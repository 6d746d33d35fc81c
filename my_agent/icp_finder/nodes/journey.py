"""Nodes `journey_guard` and `choose`: ask for missing data and for consent."""

from typing import Any, Literal

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, interrupt

from my_agent.companies import ssic
from my_agent.icp_finder import prompts
from my_agent.icp_finder.log import log_action
from my_agent.icp_finder.nodes.changes import changed_parts, difference, next_session
from my_agent.icp_finder.nodes.undoing import profile_of
from my_agent.icp_finder.prompts import CUSTOMERS
from my_agent.icp_finder.reading.heard import Order, nothing
from my_agent.icp_finder.reading.questions import (
    Kind,
    Question,
    names_other,
    question,
    reply_text,
    same,
)
from my_agent.icp_finder.records import store
from my_agent.icp_finder.records.decisions import Decisions
from my_agent.icp_finder.state import Asked, State
from my_agent.user import caller
from my_agent.web.sites import domain

Exit = Literal["normalize", "choose", "__end__"]


async def journey_guard(state: State, config: RunnableConfig) -> Command[Exit]:
    """Ask for the next missing item, or route to the search.

    Orders that were understood, but that the words do not give for sure, wait in `offers` until they
    are asked about. If the stored candidates are sufficient, discovery is ready. Otherwise the user has to agree to
    a new search.
    """
    if _chosen(state, "start_over") == "start_over":
        return await _start_over(state, config)
    if _chosen(state, "new_session") == "new":
        session = next_session(state, nothing())
        return _say(state, [prompts.new_session(session["website"])], asked=None)
    if (asking := _asked_first(state)) is not None:
        left = {} if asking["kind"] == "offer" else {"offers": state.get("offers")}
        return _ask(state, asking, **{"offers": [], **left})
    missing = _missing(state)
    if missing is not None:
        return _request(state, *missing)
    if not state.get("confirmed"):
        return _confirm(state)
    return _routed(state)


def _routed(state: State) -> Command[Exit]:
    """Route a confirmed company to the search, or to the candidates that there are."""
    decisions, wish = state["decisions"], state.get("heard", nothing())["wish"]
    name = wish["name"] if wish else ""
    answers_it = _chosen(state, "enrich") is not None or name == "enrich"
    if answers_it and state.get("last"):
        # The answer is about the candidates that were shown, so they must not be replaced by a new
        # search.
        return _cached(state, decisions["reason"])
    wanted: Decisions = {"use_cached": False, "rerun_icp": True, "reason": prompts.ASKED_FOR}
    if _chosen(state, "rerun") == "rerun" and not decisions["rerun_icp"]:
        return _search(state, wanted)
    if wish is not None and name == "search" and not state.get("consent"):
        return _search(state, wanted) if wish["sure"] else _rerun(state, wanted)
    if decisions["rerun_icp"]:
        return _rerun(state, decisions)
    if decisions["use_cached"]:
        return _cached(state, decisions["reason"])
    return _say(state, [], asked=None)


async def choose(state: State) -> Command[Literal["ingest", "choose"]]:
    """Interrupt until the question is answered; `ingest` reads the answer like any message.

    An answer that names another question, such as that of a second click, changes nothing.
    """
    asking = state.get("asking")
    reply = interrupt(asking)
    if asking is not None and names_other(reply, asking):
        log_action("answer_ignored", state.get("thread_id"), kind=asking["kind"])
        return Command(goto="choose")
    message = HumanMessage(reply_text(reply))
    return Command(goto="ingest", update={"reply": reply, "messages": [message]})


def _asked_first(state: State) -> Question | None:
    """Return the question that a message raises: about a change, a website, or something it wishes."""
    heard, change = state.get("heard", nothing()), state.get("change")
    if change is not None and (parts := changed_parts(state, change)):
        session = next_session(state, change)
        return question(
            "context_change",
            prompts.context_change(difference(state, change)),
            changed=list(parts),
            website=session["website"],
            new_session=session["request"],
        )
    if (website := heard["stray"]) is not None:
        name = domain(website)
        log_action("domain_asked", state.get("thread_id"), site=name)
        return question("domain", prompts.whose(name), website=website, domain=name)
    wish = heard["wish"]["name"] if heard["wish"] else ""
    site = state.get("site")
    if wish == "start_over" and site is not None:
        return question("start_over", prompts.start_over(site, state.get("icp")))
    if wish == "new_session" and site is not None:
        request = next_session(state, nothing())["request"]
        return question("new_session", prompts.NEW_SESSION, new_session=request)
    if state.get("offers"):
        return question("offer", _offer(state["offers"]), orders=state["offers"])
    waiting = state.get("waiting")
    # Other questions are asked again by what is missing, or by the node that asked them.
    return (
        waiting
        if waiting and waiting["kind"] in ("domain", "start_over", "new_session", "offer")
        else None
    )


def _offer(orders: list[Order]) -> str:
    """Describe orders that were understood, but that the words do not give for sure."""
    told = [prompts.offered(each["name"], each.get("names", [])) for each in orders]
    return prompts.offer(told)


def _missing(state: State) -> tuple[Asked, str] | None:
    """Return the next missing item and the question for it, or None."""
    site, customers, icp = state.get("site"), state.get("customers", []), state.get("icp")
    if site is None:
        return "website", prompts.ASK_WEBSITE
    if len(customers) < CUSTOMERS and not (state.get("enough") or state.get("confirmed")):
        return "customers", prompts.ask_customers(customers)
    if icp is None or not icp["industries"]:
        return "industries", prompts.ASK_INDUSTRIES
    return None


def _request(state: State, what: Asked, words: str) -> Command[Exit]:
    """Ask for something that the user types rather than chooses."""
    log_action("journey_asked", state.get("thread_id"), what=what)
    return _say(state, [words], asked=what)


async def _start_over(state: State, config: RunnableConfig) -> Command[Exit]:
    """Forget company and profile; the change can be taken back."""
    site = state.get("site")
    if site is not None:
        await store.forget(caller(config).tenant_id, site["domain"])
    log_action("started_over", state.get("thread_id"))
    gone: dict[str, Any] = dict.fromkeys(("site", "icp", "last", "found", "reported", "enrichment"))
    update = {**gone, "customers": [], "candidates": [], "view": [], "page": 0, "confirmed": False}
    undo = [*(state.get("undo") or []), profile_of(state)]
    more = {"fresh": True, "enough": False, "undo": undo, "declined": None}
    return _say(
        state, [prompts.STARTED_OVER, prompts.ASK_WEBSITE], asked="website", **update, **more
    )


def _confirm(state: State) -> Command[Exit]:
    """Ask the user to confirm company and ICP. The confirmation is also the consent to search."""
    chosen = _chosen(state, "confirm_icp")
    if chosen == "confirm":
        log_action("icp_confirmed", state.get("thread_id"))
        first: Decisions = {
            "use_cached": False,
            "rerun_icp": True,
            "reason": "you have just confirmed the ideal customer profile",
        }
        # What was said until here is agreed, so an undo begins anew.
        return _search(state, first, undo=[])
    if chosen == "change":
        return _say(state, [prompts.ASK_CHANGE], asked="icp")
    icp, site = state["icp"], state["site"]
    unknown = [each for each in icp["industries"] if not ssic.codes([each])] if icp else []
    words = prompts.confirm(site, icp, unknown) if site and icp else ""
    return _ask(state, question("confirm_icp", words, icp=icp, website=site and site["website"]))


def _rerun(state: State, decisions: Decisions) -> Command[Exit]:
    """Ask whether to search again, once for each reason."""
    chosen, thread_id, reason = _chosen(state, "rerun"), state.get("thread_id"), decisions["reason"]
    if chosen == "rerun" or state.get("consent"):
        log_action("rerun_confirmed", thread_id, reason=reason)
        return _search(state, decisions)
    if chosen == "keep" or state.get("declined") == reason:
        log_action("rerun_declined", thread_id, reason=reason)
        if state.get("last") is None:
            return _say(state, [prompts.NOT_SEARCHED], asked=None, declined=reason)
        return _cached(state, reason, declined=reason)
    log_action("rerun_asked", thread_id, reason=reason)
    return _ask(state, question("rerun", prompts.rerun(reason), reason=reason))


def _search(state: State, decisions: Decisions, **more: Any) -> Command[Exit]:
    update = {
        **more,
        "decisions": decisions,
        "consent": True,
        "confirmed": True,
        "declined": None,
        "discovery_ready": False,
    }
    return Command(goto="normalize", update={**_question_closed(), **update})


def _cached(state: State, reason: str, **update: Any) -> Command[Exit]:
    """Continue with the candidates of the last search."""
    log_action("use_cached", state.get("thread_id"), reason=reason)
    ready = {"discovery_ready": True, "found": state.get("last"), "consent": False}
    return Command(goto="normalize", update={**_question_closed(), **ready, **update})


def _question_closed() -> dict[str, Any]:
    """Return the update that removes the waiting question."""
    return {"asking": None, "asked": None, "change": None}


def _chosen(state: State, kind: Kind) -> str | None:
    answer = state.get("answer")
    return answer["value"] if answer and answer["kind"] == kind else None


def _say(state: State, words: list[str], *, asked: Asked | None, **update: Any) -> Command[Exit]:
    """Answer and end the run."""
    text = "\n\n".join([*state.get("notes", []), *words]) or prompts.HELP
    said = {"messages": [AIMessage(text)], "notes": [], "asked": asked, "answer": None}
    return Command(goto="__end__", update={**said, **update})


def _ask(state: State, asking: Question, **update: Any) -> Command[Exit]:
    """Ask in the conversation and wait for the answer."""
    asking = same(asking, state.get("waiting"))
    text = "\n\n".join([*state.get("notes", []), asking["question"]])
    asked = {
        "messages": [AIMessage(text)],
        "notes": [],
        "answer": None,
        "asked": None,
        "asking": asking,
    }
    return Command(goto="choose", update={**asked, **update})
