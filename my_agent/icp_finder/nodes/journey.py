"""Nodes `journey_guard` and `choose`: ask for missing data and for consent."""

from typing import Any, Literal

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, interrupt

from my_agent.companies import ssic
from my_agent.icp_finder import prompts
from my_agent.icp_finder.log import log_action
from my_agent.icp_finder.nodes.changes import changed_parts, difference, next_session
from my_agent.icp_finder.nodes.undoing import agreed, profile_of
from my_agent.icp_finder.prompts import CUSTOMERS
from my_agent.icp_finder.reading.heard import nothing
from my_agent.icp_finder.reading.questions import OPTIONS, Question, question, same
from my_agent.icp_finder.records import store
from my_agent.icp_finder.records.decisions import Decisions
from my_agent.icp_finder.state import Asked, State, chosen, company_of
from my_agent.understanding.replies import names_other, spoken
from my_agent.user import caller
from my_agent.web.sites import domain
from my_agent.web.websites import readable

Exit = Literal["normalize", "choose", "__end__"]


async def journey_guard(state: State, config: RunnableConfig) -> Command[Exit]:
    """Ask for the next missing item, or route to the search.

    Orders that the words do not give for sure wait in `offers` until they are asked about. If the
    stored candidates are sufficient, discovery is ready. Otherwise the user has to agree to a search.
    """
    if chosen(state, "start_over") == "start_over":
        return await _start_over(state, config)
    if chosen(state, "new_session") == "new":
        website = next_session(state, nothing())["website"]
        return _say(state, prompts.NEW_SESSION_FOR.format(website))
    if (asking := _asked_first(state)) is not None:
        return _ask(state, asking, offers=[] if asking["kind"] == "offer" else state.get("offers"))
    if (missing := _missing(state)) is not None:
        # Something that the user types rather than chooses.
        log_action("journey_asked", state.get("thread_id"), what=missing[0])
        return _say(state, missing[1], asked=missing[0])
    return _routed(state) if state.get("confirmed") else _confirm(state)


def _routed(state: State) -> Command[Exit]:
    """Route a confirmed company to the search, or to the candidates that there are."""
    decisions, wish = state["decisions"], state["heard"]["wish"]
    name = wish["name"] if wish else ""
    if state.get("last") and (name == "enrich" or chosen(state, "enrich") is not None):
        # The answer is about the candidates that were shown, so they must not be replaced by a new
        # search.
        return _cached(state, decisions["reason"])
    wanted: Decisions = {"use_cached": False, "rerun_icp": True, "reason": "you asked for it"}
    if chosen(state, "rerun") == "rerun" and not decisions["rerun_icp"]:
        return _search(state, wanted)
    if wish is not None and name == "search" and not state.get("consent"):
        return _search(state, wanted) if wish["sure"] else _rerun(state, wanted)
    if decisions["rerun_icp"]:
        return _rerun(state, decisions)
    return _cached(state, decisions["reason"]) if decisions["use_cached"] else _say(state)


async def choose(state: State) -> Command[Literal["ingest", "choose"]]:
    """Interrupt until the question is answered; `ingest` reads the answer like any message.

    An answer that names another question, such as that of a second click, changes nothing.
    """
    asking = state.get("asking")
    reply = interrupt(asking)
    if asking is not None and names_other(reply, asking.get("id")):
        log_action("answer_ignored", state.get("thread_id"), kind=asking["kind"])
        return Command(goto="choose")
    message = HumanMessage(spoken(OPTIONS[asking["kind"]] if asking else {}, reply))
    return Command(goto="ingest", update={"reply": reply, "messages": [message], "answer": None})


def _asked_first(state: State) -> Question | None:
    """Return the question that a message raises: about a change, a website, or something it wishes."""
    heard, change, site = state["heard"], state.get("change"), state.get("site")
    waiting = state.get("waiting")
    if offers := state.get("offers"):
        # They are about what is on the table now. A change waits, and may end in another search.
        return question("offer", prompts.offer(offers), orders=offers)
    if waiting and waiting["kind"] == "offer":
        return waiting
    if change is not None and (parts := changed_parts(state, change)):
        session = next_session(state, change)
        return question(
            "context_change",
            prompts.WANTS_CHANGE.format(difference(state, change)),
            changed=list(parts),
            website=session["website"],
            new_session=session["request"],
        )
    if (website := heard["stray"]) is not None:
        name = domain(website)
        log_action("domain_asked", state.get("thread_id"), site=name)
        words = prompts.WHOSE.format(readable(name))
        return question("domain", words, website=website, domain=name)
    wish = heard["wish"]["name"] if heard["wish"] else ""
    if wish == "start_over" and site is not None:
        return question("start_over", prompts.start_over(site, state.get("icp")))
    if wish == "new_session" and site is not None:
        request = next_session(state, nothing())["request"]
        return question("new_session", prompts.NEW_SESSION, new_session=request)
    # Other questions are asked again by what is missing, or by the node that asked them.
    again = ("domain", "start_over", "new_session")
    return waiting if waiting and waiting["kind"] in again else None


def _missing(state: State) -> tuple[Asked, str] | None:
    """Return the next missing item and the question for it, or None."""
    site, customers, icp = company_of(state)
    if site is None:
        return "website", prompts.ASK_WEBSITE
    if len(customers) < CUSTOMERS and not (state.get("enough") or state.get("confirmed")):
        return "customers", prompts.ask_customers(customers)
    if icp is None or not icp["industries"]:
        return "industries", prompts.ASK_INDUSTRIES
    return None


async def _start_over(state: State, config: RunnableConfig) -> Command[Exit]:
    """Forget company and profile; the change can be taken back."""
    site = state.get("site")
    if site is not None:
        await store.forget(caller(config).tenant_id, site["domain"])
    log_action("started_over", state.get("thread_id"))
    gone = ("site", "icp", "last", "found", "reported", "enrichment", "declined")
    update: dict[str, Any] = {
        **dict.fromkeys(gone),
        "customers": [],
        "candidates": [],
        "view": [],
        "page": 0,
        "confirmed": False,
        "enough": False,
        "fresh": True,
        "undo": [*(state.get("undo") or []), profile_of(state)],
    }
    return _say(state, prompts.STARTED_OVER, prompts.ASK_WEBSITE, asked="website", **update)


def _confirm(state: State) -> Command[Exit]:
    """Ask the user to confirm company and ICP. The confirmation is also the consent to search."""
    (site, _, icp), answer = company_of(state), chosen(state, "confirm_icp")
    if answer == "confirm":
        log_action("icp_confirmed", state.get("thread_id"))
        reason = "you have just confirmed the ideal customer profile"
        first: Decisions = {"use_cached": False, "rerun_icp": True, "reason": reason}
        return _search(state, first, undo=agreed(state))
    if answer == "change":
        return _say(state, prompts.ASK_CHANGE, asked="icp")
    unknown = [each for each in icp["industries"] if not ssic.codes([each])] if icp else []
    is_changed = any(each.startswith(prompts.CHANGED.format("")) for each in state["notes"])
    known = "\n".join(str(each.text) for each in state["messages"]) if is_changed else ""
    words = prompts.confirm(site, icp, unknown, known) if site and icp else ""
    return _ask(state, question("confirm_icp", words, icp=icp, website=site and site["website"]))


def _rerun(state: State, decisions: Decisions) -> Command[Exit]:
    """Ask whether to search again, once for each reason."""
    answer, thread_id, reason = chosen(state, "rerun"), state.get("thread_id"), decisions["reason"]
    if answer == "rerun" or state.get("consent"):
        log_action("rerun_confirmed", thread_id, reason=reason)
        return _search(state, decisions)
    if answer == "keep" or state.get("declined") == reason:
        log_action("rerun_declined", thread_id, reason=reason)
        if state.get("last") is None:
            return _say(state, prompts.NOT_SEARCHED, declined=reason)
        return _cached(state, reason, declined=reason)
    log_action("rerun_asked", thread_id, reason=reason)
    return _ask(state, question("rerun", prompts.RERUN.format(reason), reason=reason))


def _search(state: State, decisions: Decisions, **more: Any) -> Command[Exit]:
    agreed = {"consent": True, "confirmed": True, "declined": None, "discovery_ready": False}
    return _on({"decisions": decisions, **agreed, **more})


def _cached(state: State, reason: str, **more: Any) -> Command[Exit]:
    """Continue with the candidates of the last search."""
    log_action("use_cached", state.get("thread_id"), reason=reason)
    return _on({"discovery_ready": True, "found": state.get("last"), "consent": False, **more})


def _on(update: dict[str, Any]) -> Command[Exit]:
    """Go on, with no question left."""
    closed = dict.fromkeys(("asking", "asked", "change"))
    return Command(goto="normalize", update={**closed, **update})


def _say(state: State, *words: str, asked: Asked | None = None, **update: Any) -> Command[Exit]:
    """Answer and end the run."""
    text = "\n\n".join([*state["notes"], *words]) or prompts.HELP
    said = {"messages": [AIMessage(text)], "notes": [], "asked": asked, "answer": None}
    return Command(goto="__end__", update={**said, **update})


def _ask(state: State, asking: Question, **update: Any) -> Command[Exit]:
    """Ask in the conversation and wait for the answer."""
    asking = same(asking, state.get("waiting"))
    said = _say(state, asking["question"], asking=asking, **update)
    return Command(goto="choose", update=said.update)
