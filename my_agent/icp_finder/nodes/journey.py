"""What is still missing, what the user has to agree to, and the waiting for it."""

from typing import Any, Literal

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command, interrupt

from my_agent.icp_finder import prompts
from my_agent.icp_finder.answers import Kind, Question, question, spoken
from my_agent.icp_finder.decisions import Decisions
from my_agent.icp_finder.heard import NOTHING, says_something
from my_agent.icp_finder.log import noted
from my_agent.icp_finder.prompts import CUSTOMERS
from my_agent.icp_finder.state import Asked, State

Exit = Literal["normalize", "choose", "__end__"]


async def journey_guard(state: State) -> Command[Exit]:
    """Asks for the next thing that is missing, or lets the journey go on.

    Where the candidates there are will do, discovery is ready; where they will not, the user has
    to agree to search again.
    """
    missing = _missing(state)
    if missing is not None:
        return _request(state, *missing)
    if not state.get("confirmed"):
        return _confirm(state)
    decisions = state["decisions"]
    if _chosen(state, "enrich") is not None and state.get("last"):
        # The answer is about candidates that were shown; they are not searched for again meanwhile.
        return _cached(state, decisions["reason"])
    if state.get("heard", NOTHING)["wish"] == "rerun" and not state.get("consent"):
        asked_for: Decisions = {
            "use_cached": False,
            "rerun_icp": True,
            "reason": "you asked for it",
        }
        return _search(state, asked_for)
    if decisions["rerun_icp"]:
        return _rerun(state, decisions)
    if decisions["use_cached"]:
        return _cached(state, decisions["reason"])
    return _say(state, [], asked=None)


async def choose(state: State) -> Command[Literal["ingest"]]:
    """Waits for the answer to a question, and has it read like any message."""
    reply = interrupt(state["asking"])
    message = HumanMessage(spoken(reply))
    return Command(goto="ingest", update={"reply": reply, "messages": [message]})


def _missing(state: State) -> tuple[Asked, str] | None:
    """What to ask for next, and how."""
    site, customers, icp = state.get("site"), state.get("customers", []), state.get("icp")
    if site is None:
        return "website", prompts.ASK_WEBSITE
    if len(customers) < CUSTOMERS:
        return "customers", prompts.ask_customers(customers)
    if icp is None or not icp["industries"]:
        return "industries", prompts.ASK_INDUSTRIES
    return None


def _request(state: State, what: Asked, words: str) -> Command[Exit]:
    """Ask for something that is typed rather than chosen."""
    noted("journey_asked", state.get("thread_id"), what=what)
    heard = state.get("heard", NOTHING)
    again = state.get("asked") == what and not says_something(heard) and heard["text"].strip()
    lead = [prompts.NO_WEBSITE] if again and what in ("website", "customers") else []
    return _say(state, [*lead, words], asked=what)


def _confirm(state: State) -> Command[Exit]:
    """Have the user agree to company and ICP; that is the consent to search, too."""
    chosen = _chosen(state, "confirm_icp")
    if chosen == "confirm":
        noted("icp_confirmed", state.get("thread_id"))
        first: Decisions = {
            "use_cached": False,
            "rerun_icp": True,
            "reason": "you have just confirmed the ideal customer profile",
        }
        return _search(state, first)
    if chosen == "change":
        return _say(state, [prompts.ASK_CHANGE], asked="icp")
    icp, site = state["icp"], state["site"]
    words = prompts.confirm(site, icp) if site and icp else ""
    return _ask(state, question("confirm_icp", words, icp=icp, website=site and site["website"]))


def _rerun(state: State, decisions: Decisions) -> Command[Exit]:
    """Ask whether to search again, once for each reason."""
    chosen, thread_id, reason = _chosen(state, "rerun"), state.get("thread_id"), decisions["reason"]
    if chosen == "rerun" or state.get("consent"):
        noted("rerun_confirmed", thread_id, reason=reason)
        return _search(state, decisions)
    if chosen == "keep" or state.get("declined") == reason:
        noted("rerun_declined", thread_id, reason=reason)
        if state.get("last") is None:
            return _say(state, [prompts.NOT_SEARCHED], asked=None, declined=reason)
        return _cached(state, reason, declined=reason)
    noted("rerun_asked", thread_id, reason=reason)
    return _ask(state, question("rerun", prompts.rerun(reason), reason=reason))


def _search(state: State, decisions: Decisions) -> Command[Exit]:
    update = {
        "decisions": decisions,
        "consent": True,
        "confirmed": True,
        "declined": None,
        "discovery_ready": False,
    }
    return Command(goto="normalize", update={**_settled(), **update})


def _cached(state: State, reason: str, **update: Any) -> Command[Exit]:
    """Go on with what the last search left, without another one."""
    noted("use_cached", state.get("thread_id"), reason=reason)
    ready = {"discovery_ready": True, "found": state.get("last"), "consent": False}
    return Command(goto="normalize", update={**_settled(), **ready, **update})


def _settled() -> dict[str, Any]:
    """Nothing is asked any more."""
    return {"asking": None, "asked": None, "unclear": False, "change": None}


def _chosen(state: State, kind: Kind) -> str | None:
    answer = state.get("answer")
    return answer["value"] if answer and answer["kind"] == kind else None


def _say(state: State, words: list[str], *, asked: Asked | None, **update: Any) -> Command[Exit]:
    """Answer, and leave the next word to the user."""
    text = "\n\n".join([*state.get("notes", []), *words]) or prompts.UNCHANGED
    said = {"messages": [AIMessage(text)], "notes": [], "asked": asked, "answer": None}
    return Command(goto="__end__", update={**said, **update})


def _ask(state: State, asking: Question) -> Command[Exit]:
    """Ask in the conversation, and wait for the answer."""
    lead = [prompts.UNCLEAR] if state.get("unclear") else []
    text = "\n\n".join([*state.get("notes", []), *lead, asking["question"]])
    update = {
        "messages": [AIMessage(text)],
        "notes": [],
        "answer": None,
        "asked": None,
        "asking": asking,
    }
    return Command(goto="choose", update=update)
