"""START -> admit -> reply and correct, side by side -> END."""

from langgraph.graph import END, START, StateGraph

from my_agent.tutor.context import Context
from my_agent.tutor.nodes import admit, correct, reply
from my_agent.tutor.state import Input, State

graph = (
    StateGraph(State, context_schema=Context, input_schema=Input)
    .add_node(reply)
    .add_node(correct)
    # Not a node: what it refuses must not have been kept.
    .add_conditional_edges(START, admit)
    .add_edge("reply", END)
    .add_edge("correct", END)
    .compile(name="tutor")
)
