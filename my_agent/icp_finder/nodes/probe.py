"""Node `return_user_probe`: load the stored company, and detect changes to it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from my_agent.icp_finder import prompts
from my_agent.icp_finder.log import log_action
from my_agent.icp_finder.model import Snapshot
from my_agent.icp_finder.reading.answers import question, same
from my_agent.icp_finder.reading.changes import (
    changed_elsewhere,
    changed_parts,
    difference,
    new_website,
    next_session,
    unclear_site,
)
from my_agent.icp_finder.reading.message_parser import (
    NO_CONTENT,
    ParsedMessage,
    combine,
    has_content,
)
from my_agent.icp_finder.reading.turns import is_listing
from my_agent.icp_finder.records import store
from my_agent.icp_finder.records.decisions import Decisions, Signals, decide, signals
from my_agent.icp_finder.records.diffs import icp_hash
from my_agent.icp_finder.search.page_kinds import KNOWN
from my_agent.icp_finder.settings import IcpSettings
from my_agent.icp_finder.sites import domain
from my_agent.icp_finder.state import State
from my_agent.user import caller

Exit = Literal["profile_builder", "converse", "choose", "__end__"]


async def return_user_probe(state: State, config: RunnableConfig) -> Command[Exit]:
    """Load the stored data, decide about candidates, and detect a change of website or ICP.

    Raises:
        TablesError: the database cannot be used.
    """
    tenant_id = caller(config).tenant_id
    update = _apply_snapshot(await _snapshot(tenant_id, state), state)
    known = cast("State", {**state, **update})
    if known.get("confirmed") and _removes_industries(known):
        # A confirmed profile stays searchable.
        heard = known["heard"]
        rest = {name: given for name, given in heard["icp"].items() if name != "industries"}
        notes = [*update.get("notes", state.get("notes", [])), prompts.LAST_INDUSTRY]
        update |= {"heard": {**heard, "icp": rest}, "notes": notes}
        known = cast("State", {**state, **update})
    if (website := _without_role(known, update)) is not None:
        return _ask_role(known, update, website)
    known = cast("State", {**state, **update})
    if not state.get("seeded") and is_side(known):
        return Command(goto="converse", update=update)
    change, parts = _change(known)
    if not parts:
        return Command(goto="profile_builder", update={**update, "change": None})
    if state.get("seeded"):
        # The thread was created for this change, so the user need not confirm it, only the search.
        decided = {"change": change, "heard": change, "decisions": decide_changed(parts)}
        return Command(goto="profile_builder", update={**update, **decided})
    answer = state.get("answer")
    chosen = answer["value"] if answer and answer["kind"] == "context_change" else None
    log_action("context_change", state.get("thread_id"), parts=parts, chosen=chosen)
    if chosen is None:
        return _ask(known, update, change, parts)
    update |= {"change": None, "answer": None}
    if chosen == "new":
        message = AIMessage(prompts.new_session(next_session(known, change)["website"]))
        return Command(goto="__end__", update={**update, "messages": [message]})
    if chosen == "keep":
        update |= {"heard": NO_CONTENT, "notes": [prompts.KEPT]}
    else:
        update |= await _continue_here(tenant_id, known, change, parts)
    return Command(goto="profile_builder", update=update)


async def _snapshot(tenant_id: str, state: State) -> Snapshot:
    """Load the data of the company of the thread, or else of the message."""
    site, rule_name = state.get("site"), state["rule_name"]
    opened_for = site["website"] if site else state.get("website")
    known = domain(opened_for) if opened_for else None
    snapshot = await store.load_snapshot(tenant_id, domain=known, rule_name=rule_name)
    named = _named(state.get("heard", NO_CONTENT))
    if known or named is None or snapshot.profile is None:
        return snapshot
    if named == snapshot.profile.company["site"]["domain"]:
        return snapshot
    # A new thread names a company that is not the one saved last; it may also be stored.
    other = await store.load_snapshot(tenant_id, domain=named, rule_name=rule_name)
    return other if other.profile is not None or not snapshot.profile.confirmed else snapshot


def _removes_industries(state: State) -> bool:
    return state.get("heard", NO_CONTENT)["icp"].get("industries") == []


def is_side(state: State) -> bool:
    """Return whether the message is a side question, feedback or small talk.

    A greeting continues the journey, unless a question waits.
    """
    turn = state.get("turn")
    if turn is None:
        return False
    if turn["topic"] == "greeting":
        return state.get("waiting") is not None
    only_notes = bool(state.get("notes")) and turn["kind"] == "change"
    has_nothing = not has_content(state.get("heard", NO_CONTENT))
    return turn["kind"] in ("question", "feedback", "talk") or (only_notes and has_nothing)


def _without_role(state: State, update: dict[str, Any]) -> str | None:
    """Return a website whose role is unknown. Websites that are no company's own are left out."""
    parsed = state.get("heard", NO_CONTENT)
    turn = state.get("turn")
    if turn is None or turn["kind"] in ("question", "feedback", "talk") or state.get("seeded"):
        return None
    own = parsed["website"]
    others = [each for each in parsed["sites"] if domain(each) not in KNOWN]
    refused = [each for each in parsed["sites"] if each not in others]
    if own and domain(own) in KNOWN:
        refused, own = [own, *refused], None
    if refused:
        notes = [prompts.not_company(domain(each)) for each in refused]
        update["notes"] = [*update.get("notes", state.get("notes", [])), *notes]
    parsed = {**parsed, "website": own, "sites": others}
    listing = is_listing(parsed["text"], state.get("asked"))
    website = unclear_site(state, parsed, listing=listing)
    if website is not None:
        parsed = {**parsed, "sites": []}
    if refused or website is not None:
        update["heard"] = parsed
    return website


def _ask_role(state: State, update: dict[str, Any], website: str) -> Command[Exit]:
    """Ask whose website the user has named."""
    name = domain(website)
    log_action("domain_asked", state.get("thread_id"), site=name)
    words = prompts.whose(name)
    asking = question("domain", words, website=website, domain=name)
    message = AIMessage("\n\n".join([*update.get("notes", state.get("notes", [])), words]))
    waiting = {"asking": asking, "waiting": None, "messages": [message], "notes": []}
    return Command(goto="choose", update={**update, **waiting})


def _named(parsed: ParsedMessage) -> str | None:
    """Return the domain of the company that a first message names."""
    others = [] if parsed["customers"] else parsed["sites"]
    website = parsed["website"] or next(iter(others), None)
    return domain(website) if website else None


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


def _change(state: State) -> tuple[ParsedMessage, tuple[str, ...]]:
    """Return the pending change combined with the message, and the parts that it would change."""
    parsed, waiting = state.get("heard", NO_CONTENT), state.get("change")
    change = parsed if waiting is None else combine(waiting, parsed)
    return change, changed_parts(state, change) if state.get("confirmed") else ()


async def _continue_here(
    tenant_id: str, state: State, change: ParsedMessage, parts: tuple[str, ...]
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
                "heard": {**change, "website": None, "sites": []},
            }
    return {"heard": change, "consent": True, "decisions": decide_changed(parts)}


def decide_changed(parts: tuple[str, ...]) -> Decisions:
    """Return the decision after a change: the stored candidates no longer fit."""
    reason = f"the {prompts.listed(parts)} changed"
    return {"use_cached": False, "rerun_icp": True, "reason": reason}


def _ask(
    state: State, update: dict[str, Any], change: ParsedMessage, parts: tuple[str, ...]
) -> Command[Exit]:
    session = next_session(state, change)
    words = prompts.context_change(difference(state, change))
    asking = question(
        "context_change",
        words,
        changed=list(parts),
        website=session["website"],
        new_session=session["request"],
    )
    asking = same(asking, state.get("waiting"))
    notes = [
        *update.get("notes", state.get("notes", [])),
        *([prompts.UNCLEAR] if state.get("unclear") else []),
    ]
    message = AIMessage("\n\n".join([*notes, words]))
    waiting = {"change": change, "asking": asking, "messages": [message], "notes": []}
    return Command(goto="choose", update={**update, **waiting})
