"""Node `ingest`: read the new messages, and refuse them in a read-only thread."""

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from my_agent.icp_finder import prompts, thread
from my_agent.icp_finder.answers import parse
from my_agent.icp_finder.log import log_action
from my_agent.icp_finder.message_parser import (
    MAX_TEXT,
    combine,
    has_content,
    parse_reply,
    parse_text,
)
from my_agent.icp_finder.settings import IcpSettings
from my_agent.icp_finder.sites import websites
from my_agent.icp_finder.state import State
from my_agent.user import caller


async def ingest(
    state: State, config: RunnableConfig
) -> Command[Literal["return_user_probe", "__end__"]]:
    """Read the new messages or the answer to an interrupt.

    A message that arrives while a question waits is parsed as its answer, if possible. In a locked
    or archived thread, the user gets a fixed answer and nothing is read.

    Raises:
        NoTenantError: the user belongs to no tenant.
        pydantic.ValidationError: a setting has an invalid value.
    """
    user, thread_id = caller(config), thread.thread_id(config)
    about = await thread.metadata(config)
    if thread.is_read_only(about):
        log_action("read_only", thread_id, status=about.get("status"))
        answer = {"messages": [AIMessage(prompts.READ_ONLY)]}
        return Command(goto="__end__", update=answer)
    update = {
        "tenant_id": user.tenant_id,
        "thread_id": thread_id,
        "rule_name": _text(about.get("rule_name")) or IcpSettings.from_environment().icp_rule_name,
        "notes": [],
        "consent": False,
        "reply": None,
        "asking": None,
        # Run in a thread: the first call reads the public suffix list.
        **await asyncio.to_thread(_read_reply, state, about),
    }
    return Command(goto="return_user_probe", update=update)


def _read_reply(state: State, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the thread's website, the parsed message, and the option that it chooses."""
    text = _new_text(state["messages"])
    reply = state.get("reply")
    parsed = parse_reply(reply) if isinstance(reply, Mapping) else parse_text(text)
    is_new = has_content(parsed)
    seed = about.get("payload") if state.get("site") is None else None
    if isinstance(seed, Mapping):
        # The payload that the thread was created with comes before its first message.
        parsed = combine({**parse_reply(seed), "website": None}, parsed)
    asking = state.get("asking")
    chosen = parse(asking["kind"], text if reply is None else reply) if asking else None
    if chosen == "change" and is_new:
        # The message already contains the change.
        chosen = None
    answered = asking is not None and chosen is not None
    return {
        "website": next(iter(websites(_text(about.get("website")))), None),
        "heard": parsed,
        "seeded": not is_new and (isinstance(seed, Mapping) or state.get("seeded", False)),
        "answer": {"kind": asking["kind"], "value": chosen} if asking and answered else None,
        "unclear": asking is not None and not answered and not is_new,
    }


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
