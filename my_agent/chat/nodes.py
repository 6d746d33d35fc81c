"""The steps of a conversation."""

import asyncio

from langchain_core.messages import SystemMessage
from langgraph.runtime import Runtime

from my_agent.chat.context import Context
from my_agent.chat.state import State
from my_agent.models import chat_model


async def generate(state: State, runtime: Runtime[Context]) -> State:
    """Answers the conversation so far.

    Raises:
        ModelCallError: the model was not reached, refused, or broke off; the run fails with it.
        ValueError: there is nothing to answer.
    """
    if not state["messages"]:
        raise ValueError("There is nothing to answer: send at least one message")
    # langgraph's types deny it, but outside a server a run without a context has None here.
    context = runtime.context or Context()  # type: ignore[truthy-bool]
    model = await asyncio.to_thread(chat_model, context.model)
    answer = await model.ainvoke([SystemMessage(context.system_prompt), *state["messages"]])
    return {"messages": [answer]}
