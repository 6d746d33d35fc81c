"""What has just been said, and whether this thread may still take it."""

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from my_agent.icp_finder import prompts, thread
from my_agent.icp_finder.answers import parse
from my_agent.icp_finder.heard import MAX_TEXT, combined, listen, says_something, told
from my_agent.icp_finder.log import noted
from my_agent.icp_finder.settings import IcpSettings
from my_agent.icp_finder.sites import websites
from my_agent.icp_finder.state import State
from my_agent.user import caller


async def ingest(
    state: State, config: RunnableConfig
) -> Command[Literal["return_user_probe", "__end__"]]:
    """Reads what is new: messages, or the answer to an interrupt.

    A message that comes while a question waits is taken for its answer, if it is one. A thread
    that is locked or archived is answered, and nothing is read.

    Raises:
        NoTenantError: the user belongs to no tenant.
        pydantic.ValidationError: a setting does not parse.
    """
    user, thread_id = caller(config), thread.thread_id(config)
    about = await thread.metadata(config)
    if thread.is_read_only(about):
        noted("read_only", thread_id, status=about.get("status"))
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
        # In a thread: the first time, the list of the internet's suffixes is read.
        **await asyncio.to_thread(_said, state, about),
    }
    return Command(goto="return_user_probe", update=update)


def _said(state: State, about: Mapping[str, Any]) -> dict[str, Any]:
    """What the thread is about, what the user has said, and which option that chooses."""
    text = _new_text(state["messages"])
    reply = state.get("reply")
    heard = told(reply) if isinstance(reply, Mapping) else listen(text)
    is_news = says_something(heard)
    seed = about.get("payload") if state.get("site") is None else None
    if isinstance(seed, Mapping):
        # What the thread was opened with goes before its first message.
        heard = combined({**told(seed), "website": None}, heard)
    asking = state.get("asking")
    chosen = parse(asking["kind"], text if reply is None else reply) if asking else None
    if chosen == "change" and is_news:
        # It says what to change already.
        chosen = None
    answered = asking is not None and chosen is not None
    return {
        "website": next(iter(websites(_text(about.get("website")))), None),
        "heard": heard,
        "seeded": not is_news and (isinstance(seed, Mapping) or state.get("seeded", False)),
        "answer": {"kind": asking["kind"], "value": chosen} if asking and answered else None,
        "unclear": asking is not None and not answered and not is_news,
    }


def _new_text(messages: list[AnyMessage]) -> str:
    """What people have said since we last did."""
    new: list[str] = []
    for message in reversed(messages):
        if not isinstance(message, HumanMessage):
            break
        new.append(str(message.text))
    return "\n".join(reversed(new))[:MAX_TEXT]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
