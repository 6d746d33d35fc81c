"""The smallest useful agent: one node that answers the last message with its text."""

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph


async def answer(state: MessagesState) -> dict[str, list[AIMessage]]:
    return {"messages": [AIMessage(content=f"echo: {state['messages'][-1].text}")]}


# The bare measurement compiles the same builder with the stock SQLite saver.
builder = StateGraph(MessagesState)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
builder.add_edge("answer", END)
graph = builder.compile()
