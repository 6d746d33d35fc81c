"""Node `return_user_probe`: load the stored company, and detect changes to it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from my_agent.icp_finder import prompts
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
from my_agent.icp_finder.state import State
from my_agent.user import caller
from my_agent.web.page_kinds import KNOWN
from my_agent.web.sites import domain

Exit = Literal["profile_builder", "converse", "__end__"]


async def return_user_probe(state: State, config: RunnableConfig) -> Command[Exit]:
    """Load the stored data, decide about candidates, and detect a change of website or ICP.

    Raises:
        TablesError: the database cannot be used.
    """
    tenant_id = caller(config).tenant_id
    update = _apply_snapshot(await _snapshot(tenant_id, state), state)
    known = cast("State", {**state, **update})
    update |= _usable(known)
    known = cast("State", {**state, **update})
    change, parts = _change(known)
    after: Exit = "converse" if known["heard"]["orders"] else "profile_builder"
    if not parts:
        return Command(goto=after, update={**update, "change": None})
    if state.get("seeded"):
        # The thread was created for this change, so the user need not confirm it, only the search.
        # Until then it is not stored, so it waits in `change` for the answer's run.
        decided = {"change": change, "heard": change, "decisions": decide_changed(parts)}
        return Command(goto=after, update={**update, **decided})
    answer = state.get("answer")
    chosen = answer["value"] if answer and answer["kind"] == "context_change" else None
    log_action("context_change", state.get("thread_id"), parts=parts, chosen=chosen)
    # Until there is an answer, the data wait in `change`.
    waits = _without_data(known["heard"])
    if chosen is None:
        return Command(goto=after, update={**update, "change": change, "heard": waits})
    update |= {"change": None, "answer": None}
    if chosen == "new":
        message = AIMessage(prompts.new_session(next_session(known, change)["website"]))
        return Command(goto="__end__", update={**update, "messages": [message], "notes": []})
    if chosen == "keep":
        update |= {"heard": waits, "notes": [*known.get("notes", []), prompts.KEPT]}
    else:
        update |= await _continue_here(tenant_id, known, change, parts)
    return Command(goto=after, update=update)


async def _snapshot(tenant_id: str, state: State) -> Snapshot:
    """Load the data of the company of the thread, or else of the message."""
    site, rule_name = state.get("site"), state["rule_name"]
    opened_for = site["website"] if site else state.get("website")
    known = domain(opened_for) if opened_for else None
    website = state.get("heard", nothing())["website"]
    named = domain(website) if website else None
    if known is None and state.get("fresh"):
        # Who has started over is not asked about another company that was stored before.
        if named is None:
            return Snapshot()
        return await store.load_snapshot(tenant_id, domain=named, rule_name=rule_name)
    snapshot = await store.load_snapshot(tenant_id, domain=known, rule_name=rule_name)
    if known or named is None or snapshot.profile is None:
        return snapshot
    if named == snapshot.profile.company["site"]["domain"]:
        return snapshot
    # A new thread names a company that is not the one saved last; it may also be stored.
    other = await store.load_snapshot(tenant_id, domain=named, rule_name=rule_name)
    return other if other.profile is not None or not snapshot.profile.confirmed else snapshot


def _usable(state: State) -> dict[str, Any]:
    """Return the message without what cannot be used: sites of no company, an empty industry."""
    heard, notes = state.get("heard", nothing()), list(state.get("notes", []))
    if state.get("confirmed") and heard["icp"].get("industries") == []:
        # A confirmed profile stays searchable.
        rest = {name: given for name, given in heard["icp"].items() if name != "industries"}
        heard = {**heard, "icp": rest}
        notes.append(prompts.LAST_INDUSTRY)
    own, others, stray = heard["website"], heard["customers"], heard["stray"]
    refused = [each for each in (own, stray, *others) if each and domain(each) in KNOWN]
    site, known = state.get("site"), [each["domain"] for each in state.get("customers", [])]
    if stray and domain(stray) in [site["domain"] if site else "", *known]:
        refused.append(stray)
    notes += [prompts.not_company(domain(each)) for each in refused if domain(each) in KNOWN]
    heard = {
        **heard,
        "website": None if own in refused else own,
        "stray": None if stray in refused else stray,
        "customers": [each for each in others if each not in refused],
    }
    return {"heard": heard, "notes": notes}


def _without_data(heard: Heard) -> Heard:
    return {**heard, "website": None, "customers": [], "without": [], "icp": {}}


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
        welcome = prompts.welcome(company["site"], company["customers"])
        known["notes"] = [welcome, *state.get("notes", [])]
    elif seen.changed_elsewhere and snapshot.rule is not None:
        changed = prompts.changed_elsewhere(seen.changed_elsewhere, snapshot.rule.icp)
        known["notes"] = [changed, *state.get("notes", [])]
    known |= {"site": company["site"], "customers": company["customers"]}
    return known | ({"icp": snapshot.rule.icp} if snapshot.rule else {})


def _change(state: State) -> tuple[Heard, tuple[str, ...]]:
    """Return the pending change combined with the message, and the parts that it would change."""
    heard, waiting = state.get("heard", nothing()), state.get("change")
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
    website = new_website(state, change)
    if website is not None:
        snapshot = await store.load_snapshot(
            tenant_id, domain=domain(website), rule_name=state["rule_name"]
        )
        if snapshot.profile is not None:
            new = cast("State", {**state, "site": None})
            return {
                **_apply_snapshot(snapshot, new),
                "heard": {**change, "website": None, "customers": []},
            }
    return {"heard": change, "consent": True, "decisions": decide_changed(parts)}


def decide_changed(parts: tuple[str, ...]) -> Decisions:
    """Return the decision after a change: the stored candidates no longer fit."""
    reason = f"the {prompts.listed(parts)} changed"
    return {"use_cached": False, "rerun_icp": True, "reason": reason}
