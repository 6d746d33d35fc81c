"""Show a component and progress while a run goes on. Its bundle is missing, as of a component that nobody has."""

from typing import Annotated, Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.graph.ui import AnyUIMessage, push_ui_message, ui_message_reducer
from typing_extensions import TypedDict

from tests.support.gates import passed


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    ui: Annotated[list[AnyUIMessage], ui_message_reducer]


async def show(state: State) -> dict[str, Any]:
    """Show a card that grows. A message that begins with a slash is the path of a gate."""
    text = str(state["messages"][-1].text)
    gate = text if text.startswith("/") else None
    message = AIMessage("Here is your card.", id=str(uuid4()))
    card = push_ui_message("card", {"title": "Ode"}, message=message)
    get_stream_writer()({"type": "progress", "step": "Writing", "done": 1, "total": 2})
    await passed(gate, 0)
    push_ui_message("card", {"verse": "to the sea"}, id=card["id"], message=message, merge=True)
    await passed(gate, 1)
    return {"messages": [message]}


graph = StateGraph(State).add_node(show).add_edge(START, "show").add_edge("show", END).compile()
