"""What is known of a returning user's company, and whether that still holds."""

from datetime import UTC, datetime
from typing import Any, Literal

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from my_agent.icp_finder import prompts, records
from my_agent.icp_finder.answers import question
from my_agent.icp_finder.changes import changed_parts, next_session
from my_agent.icp_finder.decisions import Decisions, Signals, decide, signals
from my_agent.icp_finder.diffs import icp_hash
from my_agent.icp_finder.heard import NOTHING, Heard
from my_agent.icp_finder.log import noted
from my_agent.icp_finder.model import Snapshot
from my_agent.icp_finder.settings import IcpSettings
from my_agent.icp_finder.sites import domain, readable
from my_agent.icp_finder.state import State
from my_agent.user import caller

Exit = Literal["profile_builder", "choose", "__end__"]


async def return_user_probe(state: State, config: RunnableConfig) -> Command[Exit]:
    """Loads what is known, decides about candidates, and notices a change of website or ICP.

    Raises:
        ProductDatabaseError: the database cannot be used.
    """
    snapshot = await _snapshot(caller(config).tenant_id, state)
    seen = signals(snapshot, state["rule_name"], IcpSettings.from_environment(), datetime.now(UTC))
    update = {**_known(snapshot, state, seen), "decisions": decide(seen)}
    noted(
        "return_user_probe",
        state.get("thread_id"),
        is_return_user=update["is_return_user"],
        **update["decisions"],
    )
    return _with_change({**state, **update}, update)  # type: ignore[typeddict-item]


async def _snapshot(tenant_id: str, state: State) -> Snapshot:
    """What is known of the company that the thread, or else the message, is about."""
    site, rule_name = state.get("site"), state["rule_name"]
    opened_for = site["website"] if site else state.get("website")
    known = domain(opened_for) if opened_for else None
    snapshot = await records.load_snapshot(tenant_id, domain=known, rule_name=rule_name)
    named = _named(state.get("heard", NOTHING))
    if known or named is None or snapshot.profile is None:
        return snapshot
    if named == snapshot.profile.company["site"]["domain"]:
        return snapshot
    # A new thread, a company that is not the one saved last: perhaps another one that is known.
    other = await records.load_snapshot(tenant_id, domain=named, rule_name=rule_name)
    return other if other.profile is not None or not snapshot.profile.confirmed else snapshot


def _named(heard: Heard) -> str | None:
    """The company that a first message is about."""
    others = [] if heard["customers"] else heard["sites"]
    website = heard["website"] or next(iter(others), None)
    return domain(website) if website else None


def _known(snapshot: Snapshot, state: State, seen: Signals) -> dict[str, Any]:
    """The state as far as it is stored; a thread that knows more keeps it."""
    discovery = snapshot.discovery
    known: dict[str, Any] = {
        "confirmed": seen.icp_confirmed,
        # Of a profile in the making only a new thread's user has returned.
        "is_return_user": state.get("is_return_user", False)
        or seen.icp_confirmed
        or (seen.profile_exists and state.get("site") is None),
        "last": discovery
        and {"rule_name": discovery.rule_name, "icp_hash": icp_hash(discovery.basis)},
    }
    if snapshot.profile is None:
        return known
    company = snapshot.profile.company
    if state.get("site") is None:
        known["notes"] = [prompts.welcome(company["site"], company["customers"])]
    known |= {"site": company["site"], "customers": company["customers"]}
    return known | ({"icp": snapshot.rule.icp} if snapshot.rule else {})


def _with_change(state: State, update: dict[str, Any]) -> Command[Exit]:
    """Go on, unless the user has to say first what becomes of a change."""
    heard = state.get("heard", NOTHING)
    change = heard if changed_parts(state, heard) else state.get("change") or NOTHING
    parts = changed_parts(state, change) if state.get("confirmed") else ()
    if not parts:
        return Command(goto="profile_builder", update={**update, "change": None})
    if state.get("seeded"):
        # The thread was opened for the change: nothing to choose but whether to search.
        decided = {"change": None, "decisions": decide_changed(parts)}
        return Command(goto="profile_builder", update={**update, **decided})
    answer = state.get("answer")
    chosen = answer["value"] if answer and answer["kind"] == "context_change" else None
    noted("context_change", state.get("thread_id"), parts=parts, chosen=chosen)
    if chosen is None:
        return _ask(state, update, change, parts)
    update |= {"change": None, "answer": None}
    if chosen == "new":
        session = next_session(state, change)
        message = AIMessage(prompts.new_session(session["about"]))
        return Command(goto="__end__", update={**update, "messages": [message]})
    if chosen == "keep":
        kept = {"heard": NOTHING, "notes": [prompts.KEPT]}
        return Command(goto="profile_builder", update={**update, **kept})
    accepted = {"heard": change, "consent": True, "decisions": decide_changed(parts)}
    return Command(goto="profile_builder", update={**update, **accepted})


def decide_changed(parts: tuple[str, ...]) -> Decisions:
    """The decision about candidates that a change makes worthless."""
    reason = f"the {prompts.listed(parts)} changed"
    return {"use_cached": False, "rerun_icp": True, "reason": reason}


def _ask(
    state: State, update: dict[str, Any], change: Heard, parts: tuple[str, ...]
) -> Command[Exit]:
    session = next_session(state, change)
    words = prompts.context_change(prompts.listed(parts))
    asking = question(
        "context_change",
        words,
        changed=list(parts),
        website=readable(session["website"]),
        new_session=session["request"],
    )
    notes = [*update.get("notes", []), *([prompts.UNCLEAR] if state.get("unclear") else [])]
    message = AIMessage("\n\n".join([*notes, words]))
    waiting = {"change": change, "asking": asking, "messages": [message], "notes": []}
    return Command(goto="choose", update={**update, **waiting})
