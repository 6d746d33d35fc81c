"""START -> admit -> reply and correct in parallel -> END; or admit -> refuse."""

from langgraph.graph import START, StateGraph

from my_agent.tutor.context import Context
from my_agent.tutor.nodes import admit, correct, refuse, reply
from my_agent.tutor.state import Input, State

graph = (
    StateGraph(State, context_schema=Context, input_schema=Input)
    .add_node(admit)
    .add_node(reply)
    .add_node(correct)
    .add_node(refuse)
    .add_edge(START, "admit")
    # `admit` returns a Command that names the next nodes.
    .set_finish_point("reply")
    .set_finish_point("correct")
    .compile(name="tutor")
)
