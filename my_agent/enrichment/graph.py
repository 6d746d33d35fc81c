"""Graph `enrichment`: START -> enrich_next (repeats until no candidate is left) -> END."""

from langgraph.graph import START, StateGraph

from my_agent.enrichment.nodes import enrich_next
from my_agent.enrichment.state import Input, State

graph = (
    StateGraph(State, input_schema=Input)
    .add_node(enrich_next)
    .add_edge(START, "enrich_next")
    .compile(name="enrichment")
)
