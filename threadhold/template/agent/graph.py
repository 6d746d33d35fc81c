"""A conversation graph. Call a model in `answer` for real answers."""

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph


def answer(state: MessagesState) -> dict[str, list[AIMessage]]:
    """Answer the last message."""
    text = state["messages"][-1].text
    count = sum(message.type == "human" for message in state["messages"])
    return {"messages": [AIMessage(f"You said {text!r}, which is message {count} of this thread.")]}


graph = (
    StateGraph(MessagesState)
    .add_node(answer)
    .add_edge(START, "answer")
    .add_edge("answer", END)
    .compile()
)
