"""A graph that asks for an enrichment in the background, as the ICP finder does."""

from dataclasses import asdict
from typing import Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph

from my_agent.icp_finder.enrichment import jobs


class State(TypedDict, total=False):
    """Attributes:
    rule_name: the rule of the candidates.
    icp_hash: the hash of the profile that the discovery used.
    keys: the keys of the candidates.
    job: the enqueued job.
    """

    rule_name: str
    icp_hash: str
    keys: list[str]
    job: dict[str, Any]


async def ask(state: State, config: RunnableConfig) -> State:
    job = await jobs.enqueue(
        config, rule_name=state["rule_name"], icp_hash=state["icp_hash"], keys=state["keys"]
    )
    return {"job": asdict(job)}


graph = StateGraph(State).add_node(ask).add_edge(START, "ask").compile()
