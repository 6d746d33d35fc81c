"""Stream n tokens, through a chat model or as custom events."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Literal

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from tests.support.gates import passed


class Input(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    n: int
    delay: float  # seconds before each token
    size: int  # characters in each token, at least
    mode: Literal["messages", "custom"]
    gate: str  # path of a file with the number of tokens that may be sent; none without the file


class State(Input, total=False):
    sent: int


class CountingModel(BaseChatModel):
    """A chat model that streams "0 1 2 ...", one number a token."""

    n: int
    delay: float = 0.0
    size: int = 0
    gate: str = ""

    @property
    def _llm_type(self) -> str:
        return "counting"

    def token(self, i: int) -> str:
        return f"{i} ".rjust(self.size, ".")

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        text = "".join(self.token(i) for i in range(self.n))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for i in range(self.n):
            yield ChatGenerationChunk(message=AIMessageChunk(content=self.token(i)))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for i in range(self.n):
            # A delay of 0 still yields to the event loop, as reading a socket does.
            await asyncio.sleep(self.delay)
            await passed(self.gate, i)
            yield ChatGenerationChunk(message=AIMessageChunk(content=self.token(i)))


async def tokens(state: State, runtime: Runtime) -> State:
    model = CountingModel(
        n=state.get("n", 10),
        delay=state.get("delay", 0.0),
        size=state.get("size", 0),
        gate=state.get("gate", ""),
    )
    if state.get("mode") == "custom":
        for i in range(model.n):
            await asyncio.sleep(model.delay)
            await passed(model.gate, i)
            runtime.stream_writer({"token": model.token(i), "i": i})
        return {"sent": model.n}
    answer = await model.ainvoke(state.get("messages") or "count")
    return {"sent": model.n, "messages": [answer]}


graph = (
    StateGraph(State, input_schema=Input)
    .add_node(tokens)
    .add_edge(START, "tokens")
    .add_edge("tokens", END)
    .compile()
)
