"""Graph `icp_finder`: its nodes and edges.

ingest -> return_user_probe -> profile_builder -> journey_guard -> normalize -> refresh_icp
-> decide_strategy -> ssic_fallback -> progress_report -> enrich -> finalize.

A side question, feedback on a candidate and small talk go from `return_user_probe` to `converse`.
If the user has to choose, a node goes to `choose`, which interrupts the run. `ingest` then reads
the answer like any message. The other exits of a node are in its return type.
"""

from langgraph.graph import END, START, StateGraph

from my_agent.icp_finder.context import Context
from my_agent.icp_finder.nodes.converse import converse
from my_agent.icp_finder.nodes.ingest import ingest
from my_agent.icp_finder.nodes.journey import choose, journey_guard
from my_agent.icp_finder.nodes.probe import return_user_probe
from my_agent.icp_finder.nodes.profile import profile_builder
from my_agent.icp_finder.nodes.report import enrich, finalize, progress_report
from my_agent.icp_finder.nodes.search import (
    decide_strategy,
    normalize,
    refresh_icp,
    ssic_fallback,
)
from my_agent.icp_finder.state import Input, State

graph = (
    StateGraph(State, context_schema=Context, input_schema=Input)
    .add_node(ingest)
    .add_node(return_user_probe)
    .add_node(profile_builder)
    .add_node(journey_guard)
    .add_node(choose)
    .add_node(normalize)
    .add_node(refresh_icp)
    .add_node(decide_strategy)
    .add_node(ssic_fallback)
    .add_node(progress_report)
    .add_node(enrich)
    .add_node(finalize)
    .add_node(converse)
    .add_edge(START, "ingest")
    .add_edge("profile_builder", "journey_guard")
    .add_edge("ssic_fallback", "progress_report")
    .add_edge("enrich", "finalize")
    .add_edge("finalize", END)
    .compile(name="icp_finder")
)
