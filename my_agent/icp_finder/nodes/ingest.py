"""Node `ingest`: read the new messages, and refuse them in a read-only thread."""

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Command

from my_agent import parsing
from my_agent.icp_finder import prompts, thread
from my_agent.icp_finder.context import Context
from my_agent.icp_finder.log import log_action
from my_agent.icp_finder.reading import turn_model, turns
from my_agent.icp_finder.reading.answers import Question, parse, reply_text
from my_agent.icp_finder.reading.message_parser import (
    MAX_TEXT,
    NO_CONTENT,
    ParsedMessage,
    combine,
    has_content,
    merge_icp,
    parse_reply,
)
from my_agent.icp_finder.reading.turns import Reading, Situation
from my_agent.icp_finder.settings import IcpSettings
from my_agent.icp_finder.sites import domain, websites
from my_agent.icp_finder.state import State
from my_agent.user import caller

# Characters of a message that is read in the server's process: a pattern that takes the square of them
# takes a millisecond. Longer messages are read by a worker.
SHORT = 500
# Seconds that the rules may take for a longer message.
SECONDS = 10.0


async def ingest(
    state: State, config: RunnableConfig, runtime: Runtime[Context]
) -> Command[Literal["return_user_probe", "__end__"]]:
    """Read the new messages or the answer to an interrupt.

    A message that arrives while a question waits is parsed as its answer, if possible. In a locked
    or archived thread, the user gets a fixed answer and nothing is read.

    Raises:
        NoTenantError: the user belongs to no tenant.
        ModelNotAllowedError: the settings do not allow the model that the run names.
        pydantic.ValidationError: a setting has an invalid value.
    """
    user, thread_id = caller(config), thread.thread_id(config)
    about = await thread.metadata(config)
    if thread.is_read_only(about):
        log_action("read_only", thread_id, status=about.get("status"))
        answer = {"messages": [AIMessage(prompts.READ_ONLY)]}
        return Command(goto="__end__", update=answer)
    # langgraph's types exclude None, but a run without a context gets None outside a server.
    context = runtime.context or Context()  # type: ignore[truthy-bool]
    # Run in a thread: the first call reads the public suffix list.
    reading = await _by_rules(state)
    if not reading.certain:
        text, situation = _new_text(state["messages"]), _situation(state)
        reading = await turn_model.read(
            text, situation, reading, model=context.model, thread_id=thread_id
        )
    is_early = thread.is_early(config, state.get("asking"))
    update = {
        "tenant_id": user.tenant_id,
        "thread_id": thread_id,
        "rule_name": _text(about.get("rule_name")) or IcpSettings.from_environment().icp_rule_name,
        "consent": False,
        "reply": None,
        "asking": None,
        **await asyncio.to_thread(_applied, state, about, reading, is_early),
    }
    turn = update["turn"]
    log_action("turn", thread_id, kind=turn["kind"], topic=turn["topic"], by=turn["by"])
    return Command(goto="return_user_probe", update=update)


async def _by_rules(state: State) -> Reading:
    """Read the message, or the structured answer to an interrupt, by rules."""
    told = await asyncio.to_thread(_told, state)
    if isinstance(told, Reading):
        return told
    if len(told) <= SHORT:
        return await asyncio.to_thread(turns.read, told, _situation(state))
    try:
        return await parsing.run(turns.read, told, _situation(state), seconds=SECONDS)
    except parsing.Unreadable:
        return Reading(turns.turn("unclear"), {**NO_CONTENT, "text": told}, certain=False)


def _told(state: State) -> Reading | str:
    """Return what a structured answer says, or the text of the message."""
    reply, asking = state.get("reply"), state.get("asking")
    if isinstance(reply, Mapping) or (reply is not None and not isinstance(reply, str)):
        parsed = parse_reply(reply) if isinstance(reply, Mapping) else NO_CONTENT
        chosen = parse(asking["kind"], reply) if asking else None
        if chosen == "change" and has_content(parsed):
            # The reply already contains the change.
            chosen = None
        if chosen is not None:
            return Reading(turns.turn("answer"), parsed, choice=chosen)
        if has_content(parsed):
            return Reading(turns.turn("change"), parsed)
        return reply_text(reply)
    return _new_text(state["messages"]) if reply is None else reply[:MAX_TEXT]


def _situation(state: State) -> Situation:
    """Return what a message is read against."""
    asking, site, waiting = state.get("asking"), state.get("site"), state.get("change")
    customers, icp = state.get("customers", []), state.get("icp")
    if icp is not None and waiting is not None:
        icp = merge_icp(icp, waiting["icp"])
    names = [name for each in state.get("candidates", []) for name in _named(each)]
    return Situation(
        asking=asking["kind"] if asking else None,
        asked=state.get("asked"),
        icp=icp,
        names=names,
        known=frozenset(each["domain"] for each in [*([site] if site else []), *customers]),
        confirmed=bool(state.get("confirmed")),
    )


def _named(shown: Mapping[str, Any]) -> list[str]:
    website = shown.get("website")
    return [str(shown.get("name") or ""), *([domain(website)] if website else [])]


def _applied(
    state: State, about: Mapping[str, Any], reading: Reading, is_early: bool
) -> dict[str, Any]:
    """Return the update for a reading: the data in it and the option that it chooses."""
    asking, parsed, turn = state.get("asking"), reading.parsed, reading.turn
    choice = None if is_early else reading.choice
    if is_early and reading.choice is not None:
        # A second click: the message was sent before the question was asked.
        turn = turns.turn("talk", "early")
    notes = [prompts.not_in_profile(reading.missing)] if reading.missing else []
    if asking and asking["kind"] == "domain" and choice is not None:
        turn, parsed, notes = _role(choice, asking, parsed)
    is_new = has_content(parsed)
    seed = about.get("payload") if state.get("site") is None else None
    if isinstance(seed, Mapping):
        # The payload that the thread was created with comes before its first message.
        parsed = combine({**parse_reply(seed), "website": None}, parsed)
    answered = asking is not None and choice is not None
    is_side = turn["kind"] in ("question", "feedback", "talk")
    is_unclear = asking is not None and not answered and not is_new and not is_side
    return {
        "website": next(iter(websites(_text(about.get("website")))), None),
        "heard": parsed,
        "turn": turn,
        "notes": notes,
        "seeded": not is_new and (isinstance(seed, Mapping) or state.get("seeded", False)),
        "answer": {"kind": asking["kind"], "value": choice} if asking and answered else None,
        # A question that was not answered is asked again.
        "waiting": asking if asking and not answered and not is_new else None,
        "unclear": is_unclear and not reading.missing,
    }


def _role(
    choice: str, asking: Question, parsed: ParsedMessage
) -> tuple[turns.Turn, ParsedMessage, list[str]]:
    """Return what the answer to the question about a website does."""
    website = str(asking["details"].get("website"))
    if choice == "ours":
        return turns.turn("change"), {**parsed, "website": website, "sites": []}, []
    if choice == "customer":
        return turns.turn("change"), {**parsed, "sites": [website], "customers": True}, []
    if choice == "candidate":
        name = domain(website)
        return turns.turn("feedback", "candidate", name=name), {**NO_CONTENT}, []
    return turns.turn("talk", "noted"), {**NO_CONTENT}, [prompts.MENTIONED]


def _new_text(messages: list[AnyMessage]) -> str:
    """Return the text of the user's messages since our last answer."""
    new: list[str] = []
    for message in reversed(messages):
        if not isinstance(message, HumanMessage):
            break
        new.append(str(message.text))
    return "\n".join(reversed(new))[:MAX_TEXT]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
