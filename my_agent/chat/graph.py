"""START -> generate -> END."""

from langgraph.graph import END, START, StateGraph

from my_agent.chat.context import Context
from my_agent.chat.nodes import generate
from my_agent.chat.state import Input, State

graph = (
    StateGraph(State, context_schema=Context, input_schema=Input)
    .add_node(generate)
    .add_edge(START, "generate")
    .add_edge("generate", END)
    .compile(name="chat")
)
