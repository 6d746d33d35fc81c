"""The graph `chat` with the offline model."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime
from pydantic import ValidationError

from my_agent.chat import prompts
from my_agent.chat.context import Context
from my_agent.chat.graph import graph
from my_agent.chat.nodes import generate

pytestmark = pytest.mark.usefixtures("no_model", "product_file")


def test_graph_is_linear() -> None:
    drawn = graph.get_graph()
    assert {(edge.source, edge.target) for edge in drawn.edges} == {
        ("__start__", "rewrite"),
        ("rewrite", "retrieve"),
        ("retrieve", "generate"),
        ("generate", "__end__"),
    }


def test_input_and_context_schemas() -> None:
    assert list(graph.get_input_jsonschema()["properties"]) == ["messages"]
    context = graph.get_context_jsonschema()
    assert context is not None
    assert context["properties"].keys() == {"model", "system_prompt"}
    assert all(value["description"] for value in context["properties"].values())
    assert context["properties"]["system_prompt"]["default"] == prompts.SYSTEM


async def test_node_answers_offline() -> None:
    update = await generate({"messages": [HumanMessage("Olá?")]}, Runtime(context=Context()))
    [answer] = update["messages"]
    assert isinstance(answer, AIMessage)
    assert "“Olá?”" in answer.text


async def test_thread_keeps_the_conversation() -> None:
    talk = graph.copy(update={"checkpointer": InMemorySaver()})
    config: Any = {"configurable": {"thread_id": "t"}}
    await talk.ainvoke({"messages": [HumanMessage("one")]}, config)
    state = await talk.ainvoke({"messages": [HumanMessage("two")]}, config)
    assert [message.type for message in state["messages"]] == ["human", "ai", "human", "ai"]
    assert "message 2 from you" in state["messages"][-1].text


async def test_tokens_are_streamed_one_by_one() -> None:
    stream = graph.astream({"messages": [HumanMessage("hi")]}, stream_mode=["messages", "values"])
    seen = [(mode, part) async for mode, part in stream]
    parts: list[Any] = [part for mode, part in seen if mode == "messages"]
    tokens: list[AIMessageChunk] = [token for token, _ in parts]
    assert {type(token) for token in tokens} == {AIMessageChunk}
    assert len(tokens) > 10
    final: Any = seen[-1][1]
    assert "".join(token.text for token in tokens) == final["messages"][-1].text
    # The streamed tokens have the id of the final message, so that clients can match them.
    assert {token.id for token in tokens} == {final["messages"][-1].id}


async def test_run_without_messages_fails() -> None:
    with pytest.raises(ValueError, match="at least one message"):
        await graph.ainvoke({"messages": []})


@pytest.mark.parametrize(
    "context", [{"model": ""}, {"model": 5}, {"temperature": 1}, {"system_prompt": None}]
)
async def test_invalid_context_fails(context: dict[str, Any]) -> None:
    untyped: Any = context
    with pytest.raises(ValidationError):
        await graph.ainvoke({"messages": [HumanMessage("hi")]}, context=untyped)
