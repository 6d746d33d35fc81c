"""What is known of a returning user's company, and whether that still holds."""

from datetime import UTC, datetime
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from my_agent.icp_finder import prompts, records
from my_agent.icp_finder.answers import question
from my_agent.icp_finder.changes import changed_parts, new_website, next_session
from my_agent.icp_finder.decisions import Decisions, Signals, decide, signals
from my_agent.icp_finder.diffs import icp_hash
from my_agent.icp_finder.heard import NOTHING, Heard, combined
from my_agent.icp_finder.log import noted
from my_agent.icp_finder.model import Snapshot
from my_agent.icp_finder.settings import IcpSettings
from my_agent.icp_finder.sites import domain
from my_agent.icp_finder.state import State
from my_agent.user import caller

Exit = Literal["profile_builder", "choose", "__end__"]


async def return_user_probe(state: State, config: RunnableConfig) -> Command[Exit]:
    """Loads what is known, decides about candidates, and notices a change of website or ICP.

    Raises:
        ProductDatabaseError: the database cannot be used.
    """
    tenant_id = caller(config).tenant_id
    update = _probed(await _snapshot(tenant_id, state), state)
    known = cast("State", {**state, **update})
    change, parts = _change(known)
    if not parts:
        return Command(goto="profile_builder", update={**update, "change": None})
    if state.get("seeded"):
        # The thread was opened for the change: nothing to choose but whether to search.
        decided = {"change": change, "heard": change, "decisions": decide_changed(parts)}
        return Command(goto="profile_builder", update={**update, **decided})
    answer = state.get("answer")
    chosen = answer["value"] if answer and answer["kind"] == "context_change" else None
    noted("context_change", state.get("thread_id"), parts=parts, chosen=chosen)
    if chosen is None:
        return _ask(known, update, change, parts)
    update |= {"change": None, "answer": None}
    if chosen == "new":
        message = AIMessage(prompts.new_session(next_session(known, change)["website"]))
        return Command(goto="__end__", update={**update, "messages": [message]})
    if chosen == "keep":
        update |= {"heard": NOTHING, "notes": [prompts.KEPT]}
    else:
        update |= await _continued(tenant_id, known, change, parts)
    return Command(goto="profile_builder", update=update)


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


def _probed(snapshot: Snapshot, state: State) -> dict[str, Any]:
    """What a snapshot says, and the decision that follows; it is logged."""
    seen = signals(snapshot, state["rule_name"], IcpSettings.from_environment(), datetime.now(UTC))
    update = {**_known(snapshot, state, seen), "decisions": decide(seen)}
    returns, thread_id = update["is_return_user"], state.get("thread_id")
    noted("return_user_probe", thread_id, is_return_user=returns, **update["decisions"])
    return update


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


def _change(state: State) -> tuple[Heard, tuple[str, ...]]:
    """What would change a confirmed company: the message, and the change that waits."""
    heard, waiting = state.get("heard", NOTHING), state.get("change")
    change = heard if waiting is None else combined(waiting, heard)
    return change, changed_parts(state, change) if state.get("confirmed") else ()


async def _continued(
    tenant_id: str, state: State, change: Heard, parts: tuple[str, ...]
) -> dict[str, Any]:
    """The thread goes on with a change: of a company that is known, with what is known of it."""
    website = new_website(state, change)
    if website is not None:
        snapshot = await records.load_snapshot(
            tenant_id, domain=domain(website), rule_name=state["rule_name"]
        )
        if snapshot.profile is not None:
            new = cast("State", {**state, "site": None})
            return {**_probed(snapshot, new), "heard": {**change, "website": None, "sites": []}}
    return {"heard": change, "consent": True, "decisions": decide_changed(parts)}


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
        website=session["website"],
        new_session=session["request"],
    )
    notes = [*update.get("notes", []), *([prompts.UNCLEAR] if state.get("unclear") else [])]
    message = AIMessage("\n\n".join([*notes, words]))
    waiting = {"change": change, "asking": asking, "messages": [message], "notes": []}
    return Command(goto="choose", update={**update, **waiting})
