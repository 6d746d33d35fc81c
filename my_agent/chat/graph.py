"""Graph `chat`: START -> rewrite -> retrieve -> generate -> END."""

from langgraph.graph import END, START, StateGraph

from my_agent.chat.context import Context
from my_agent.chat.nodes import generate, retrieve, rewrite
from my_agent.chat.state import Input, State

graph = (
    StateGraph(State, context_schema=Context, input_schema=Input)
    .add_node(rewrite)
    .add_node(retrieve)
    .add_node(generate)
    .add_edge(START, "rewrite")
    .add_edge("rewrite", "retrieve")
    .add_edge("retrieve", "generate")
    .add_edge("generate", END)
    .compile(name="chat")
)
