"""Talk: a conversation of a tenant of its own with the real graph."""

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from bench.turns.world import Logs, World, seen
from my_agent.icp_finder.graph import graph


class Talk:
    """A conversation.

    Attributes:
        tenant: the tenant, and the id of its thread.
    """

    def __init__(self, tenant: str, logs: Logs) -> None:
        self.tenant = tenant
        self._logs = logs
        self._graph: Any = graph.copy(update={"checkpointer": InMemorySaver()})
        user = {"identity": "ann", "tenant_id": tenant}
        self._config: RunnableConfig = {
            "configurable": {"thread_id": tenant, "langgraph_auth_user": user}
        }
        self._said = 0
        self._logged = 0

    async def say(self, text: str) -> None:
        """Send a message, as the answer to the question if one waits."""
        state = await self._graph.aget_state(self._config)
        self._said, self._logged = len(state.values.get("messages", [])), len(self._logs)
        waits = bool(state.interrupts)
        sent: Any = Command(resume=text) if waits else {"messages": [HumanMessage(text)]}
        await self._graph.ainvoke(sent, self._config)

    async def question(self) -> str:
        """Return the kind of the question that waits; also one that is answered by typing."""
        state = await self._graph.aget_state(self._config)
        if state.interrupts:
            return str(state.interrupts[0].value["kind"])
        return str(state.values.get("asked") or "none")

    async def world(self) -> World:
        """Return what can be seen now, and what the last message was answered."""
        state = await self._graph.aget_state(self._config)
        new = state.values.get("messages", [])[self._said :]
        said = "\n\n".join(str(each.text) for each in new if isinstance(each, AIMessage))
        waiting = state.interrupts[0].value if state.interrupts else None
        return await seen(self.tenant, state.values, waiting, said, self._logs[self._logged :])
