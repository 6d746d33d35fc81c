"""The smallest useful agent: one node that answers with the text of the last message."""

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph


async def answer(state: MessagesState) -> dict[str, list[AIMessage]]:
    return {"messages": [AIMessage(content=f"echo: {state['messages'][-1].text}")]}


# `bench.bare` compiles this builder with a stock saver.
builder = StateGraph(MessagesState)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
builder.add_edge("answer", END)
graph = builder.compile()
