"""Graph `tutor`: START -> admit -> reply and correct -> remember -> END; or admit -> refuse."""

from langgraph.graph import START, StateGraph

from my_agent.tutor.context import Context
from my_agent.tutor.nodes import admit, correct, refuse, remember, reply
from my_agent.tutor.state import Input, State

graph = (
    StateGraph(State, context_schema=Context, input_schema=Input)
    .add_node(admit)
    .add_node(reply)
    .add_node(correct)
    .add_node(remember)
    .add_node(refuse)
    .add_edge(START, "admit")
    # `admit` returns a Command that names the next nodes.
    .add_edge(["reply", "correct"], "remember")
    .set_finish_point("remember")
    .compile(name="tutor")
)
