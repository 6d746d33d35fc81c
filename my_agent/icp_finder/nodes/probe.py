"""Node `return_user_probe`: load the stored company, and detect changes to it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from my_agent.icp_finder import prompts, reports
from my_agent.icp_finder.log import log_action
from my_agent.icp_finder.model import Snapshot
from my_agent.icp_finder.nodes.changes import (
    changed_elsewhere,
    changed_parts,
    new_website,
    next_session,
)
from my_agent.icp_finder.reading.heard import Heard, combined, has_data, nothing
from my_agent.icp_finder.records import store
from my_agent.icp_finder.records.decisions import Decisions, Signals, decide, signals
from my_agent.icp_finder.records.diffs import icp_hash
from my_agent.icp_finder.settings import IcpSettings
from my_agent.icp_finder.state import State, chosen
from my_agent.user import caller
from my_agent.web.page_kinds import KNOWN
from my_agent.web.sites import domain
from my_agent.web.websites import readable

Exit = Literal["profile_builder", "converse", "__end__"]


async def return_user_probe(state: State, config: RunnableConfig) -> Command[Exit]:
    """Load the stored data, decide about candidates, and detect a change of website or ICP.

    Raises:
        TablesError: the database cannot be used.
    """
    tenant_id = caller(config).tenant_id
    update = _apply_snapshot(await _snapshot(tenant_id, state), state)
    update |= _usable(_after(state, update))
    known = _after(state, update)
    change, parts = _change(known)
    after: Exit = "converse" if known["heard"]["orders"] else "profile_builder"
    if not parts:
        return Command(goto=after, update={**update, "change": None})
    if state.get("seeded"):
        # The thread was created for this change, so the user need not confirm it, only the search.
        # Until then it is not stored, so it waits in `change` for the answer's run.
        decided = {"change": change, "heard": change, "decisions": decide_changed(parts)}
        return Command(goto=after, update={**update, **decided})
    answer = chosen(state, "context_change")
    log_action("context_change", state.get("thread_id"), parts=parts, chosen=answer)
    # Until there is an answer, the data wait in `change`.
    waits: Heard = {**known["heard"], "website": None, "customers": [], "without": [], "icp": {}}
    if answer is None:
        return Command(goto=after, update={**update, "change": change, "heard": waits})
    update |= {"change": None, "answer": None}
    if answer == "new":
        website = next_session(known, change)["website"]
        message = AIMessage(prompts.NEW_SESSION_FOR.format(website))
        return Command(goto="__end__", update={**update, "messages": [message], "notes": []})
    if answer == "keep":
        update |= {"heard": waits, "notes": [*known["notes"], prompts.KEPT]}
    else:
        update |= await _continue_here(tenant_id, known, change, parts)
    return Command(goto=after, update=update)


def _after(state: State, update: Mapping[str, Any]) -> State:
    return cast("State", {**state, **update})


async def _snapshot(tenant_id: str, state: State) -> Snapshot:
    """Load the data of the company of the thread, or else of the message."""
    site, website = state.get("site"), state["heard"]["website"]
    opened_for = site["website"] if site else state.get("website")
    known = domain(opened_for) if opened_for else None
    named = domain(website) if website else None

    async def stored(of: str | None) -> Snapshot:
        return await store.load_snapshot(tenant_id, domain=of, rule_name=state["rule_name"])

    if known is None and state.get("fresh"):
        # Who has started over is not asked about another company that was stored before.
        return Snapshot() if named is None else await stored(named)
    snapshot = await stored(known)
    profile = snapshot.profile
    if known or named is None or profile is None or named == profile.company["site"]["domain"]:
        return snapshot
    # A new thread names a company that is not the one saved last; it may also be stored.
    other = await stored(named)
    return other if other.profile is not None or not profile.confirmed else snapshot


def _usable(state: State) -> dict[str, Any]:
    """Return the message without what cannot be used: sites of no company, an empty industry."""
    heard, notes, icp = state["heard"], list(state["notes"]), dict(state["heard"]["icp"])
    if state.get("confirmed") and icp.get("industries") == []:
        # A confirmed profile stays searchable.
        del icp["industries"]
        notes.append(prompts.LAST_INDUSTRY)
    own, others, stray = heard["website"], heard["customers"], heard["stray"]
    refused = [each for each in (own, stray, *others) if each and domain(each) in KNOWN]
    notes += [prompts.NOT_COMPANY.format(readable(domain(each))) for each in refused]
    site, customers = state.get("site"), state.get("customers", [])
    if stray and domain(stray) in [each["domain"] for each in (site, *customers) if each]:
        refused.append(stray)
    usable: Heard = {
        **heard,
        "icp": icp,
        "website": None if own in refused else own,
        "stray": None if stray in refused else stray,
        "customers": [each for each in others if each not in refused],
    }
    return {"heard": usable, "notes": notes}


def _apply_snapshot(snapshot: Snapshot, state: State) -> dict[str, Any]:
    """Return the state stored in a snapshot, and the decision for it. The decision is logged."""
    seen = signals(snapshot, state["rule_name"], IcpSettings.from_environment(), datetime.now(UTC))
    if elsewhere := changed_elsewhere(state, snapshot):
        seen = replace(seen, changed_elsewhere=elsewhere)
    update = {**_stored_state(snapshot, state, seen), "decisions": decide(seen)}
    returns, thread_id = update["is_return_user"], state.get("thread_id")
    log_action("return_user_probe", thread_id, is_return_user=returns, **update["decisions"])
    return update


def _stored_state(snapshot: Snapshot, state: State, seen: Signals) -> dict[str, Any]:
    """Return the stored part of the state. Values of the thread that are not stored stay."""
    discovery = snapshot.discovery
    known: dict[str, Any] = {
        "confirmed": seen.icp_confirmed,
        # For an unconfirmed profile, the user counts as returning only in a new thread.
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
        count = len(company["customers"])
        also = f" and {count} of your customers" if count else ""
        welcome = prompts.WELCOME.format(reports.named(company["site"]), also)
        known["notes"] = [welcome, *state["notes"]]
    elif seen.changed_elsewhere and snapshot.rule is not None:
        parts = reports.listed(seen.changed_elsewhere)
        changed = reports.profile_now(prompts.CHANGED_ELSEWHERE.format(parts), snapshot.rule.icp)
        known["notes"] = [changed, *state["notes"]]
    known |= {"site": company["site"], "customers": company["customers"]}
    return known | ({"icp": snapshot.rule.icp} if snapshot.rule else {})


def _change(state: State) -> tuple[Heard, tuple[str, ...]]:
    """Return the pending change combined with the message, and the parts that it would change."""
    heard, waiting = state["heard"], state.get("change")
    stored: Mapping[str, Any] = waiting or {}
    if stored and "orders" not in stored:
        # A thread that an earlier release left waiting has its change in another form.
        waiting = {**nothing(), "website": stored["website"], "icp": stored["icp"]}
    change = heard if waiting is None else combined(waiting, heard)
    if not has_data(change):
        return change, ()
    return change, changed_parts(state, change) if state.get("confirmed") else ()


async def _continue_here(
    tenant_id: str, state: State, change: Heard, parts: tuple[str, ...]
) -> dict[str, Any]:
    """Apply a change in this thread. A company that is already stored is loaded."""
    if (website := new_website(state, change)) is not None:
        name, rule_name = domain(website), state["rule_name"]
        snapshot = await store.load_snapshot(tenant_id, domain=name, rule_name=rule_name)
        if snapshot.profile is not None:
            heard: Heard = {**change, "website": None, "customers": []}
            return {**_apply_snapshot(snapshot, _after(state, {"site": None})), "heard": heard}
    return {"heard": change, "consent": True, "decisions": decide_changed(parts)}


def decide_changed(parts: tuple[str, ...]) -> Decisions:
    """Return the decision after a change: the stored candidates no longer fit."""
    reason = f"the {reports.listed(parts)} changed"
    return {"use_cached": False, "rerun_icp": True, "reason": reason}
