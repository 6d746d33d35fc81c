"""START -> enrich_next, which comes back until all are done -> END."""

from langgraph.graph import START, StateGraph

from my_agent.enrichment.nodes import enrich_next
from my_agent.enrichment.state import Input, State

graph = (
    StateGraph(State, input_schema=Input)
    .add_node(enrich_next)
    .add_edge(START, "enrich_next")
    .compile(name="enrichment")
)
