"""An agent that thinks aloud: the messages of one of its models are streamed, and no state has them."""

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph

_thinks = FakeListChatModel(responses=["A thought that nobody keeps."])


async def think(state: MessagesState) -> dict[str, list[AIMessage]]:
    await _thinks.ainvoke(state["messages"])
    return {}


async def answer(state: MessagesState) -> dict[str, list[AIMessage]]:
    return {"messages": [AIMessage("The answer.")]}


graph = (
    StateGraph(MessagesState)
    .add_node(think)
    .add_node(answer)
    .add_edge(START, "think")
    .add_edge("think", "answer")
    .add_edge("answer", END)
    .compile()
)
