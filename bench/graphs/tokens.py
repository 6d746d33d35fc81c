"""A chat model that streams the requested number of tokens as fast as they are read."""

from collections.abc import AsyncIterator
from typing import Any, TypedDict

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.graph import END, START, StateGraph


class TokenModel(BaseChatModel):
    """Answer with `count` numbered tokens. No network, so that only the server is measured."""

    count: int

    @property
    def _llm_type(self) -> str:
        return "tokens"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        text = "".join(f"t{n} " for n in range(self.count))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=text))])

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for n in range(self.count):
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"t{n} "))


class Input(TypedDict):
    count: int


class State(Input):
    length: int


async def speak(state: Input) -> dict[str, int]:
    reply = await TokenModel(count=state["count"]).ainvoke("speak")
    return {"length": len(reply.text)}


builder = StateGraph(State, input_schema=Input)
builder.add_node("speak", speak)
builder.add_edge(START, "speak")
builder.add_edge("speak", END)
graph = builder.compile()
