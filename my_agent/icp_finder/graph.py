"""Graph `icp_finder`: its nodes and edges.

ingest -> return_user_probe -> profile_builder -> journey_guard -> normalize -> refresh_icp
-> decide_strategy -> ssic_fallback -> progress_report -> enrich -> finalize.

A side question, feedback on a candidate and small talk go from `return_user_probe` to `converse`.
If the user has to choose, a node goes to `choose`, which interrupts the run. `ingest` then reads
the answer like any message. The other exits of a node are in its return type.
"""

from langgraph.graph import END, START, StateGraph

from my_agent.context import Context
from my_agent.icp_finder.nodes import converse, ingest, journey, probe, profile, report, search
from my_agent.icp_finder.state import Input, State

graph = (
    StateGraph(State, context_schema=Context, input_schema=Input)
    .add_node(ingest.ingest)
    .add_node(probe.return_user_probe)
    .add_node(profile.profile_builder)
    .add_node(journey.journey_guard)
    .add_node(journey.choose)
    .add_node(search.normalize)
    .add_node(search.refresh_icp)
    .add_node(search.decide_strategy)
    .add_node(search.ssic_fallback)
    .add_node(report.progress_report)
    .add_node(report.enrich)
    .add_node(report.finalize)
    .add_node(converse.converse)
    .add_edge(START, "ingest")
    .add_edge("profile_builder", "journey_guard")
    .add_edge("ssic_fallback", "progress_report")
    .add_edge("enrich", "finalize")
    .add_edge("finalize", END)
    .compile(name="icp_finder")
)
