"""The offline model: answers when no model is configured, and says so."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

# Long enough to recognise the question, short enough to stream quickly.
GIST_LENGTH = 160

# The metadata that an endpoint sends with the last token.
FINISHED = {"finish_reason": "stop", "model_name": "offline"}


def gist(text: str) -> str:
    """Return the text on one line, cut at a word after at most `GIST_LENGTH` characters."""
    line = " ".join(text.split())
    if len(line) <= GIST_LENGTH:
        return line
    head = line[:GIST_LENGTH]
    return f"{head.rsplit(' ', 1)[0]} …"


def offline_answer(messages: list[BaseMessage]) -> str:
    """Return the whole answer. Equal messages get equal answers."""
    asked = [message for message in messages if isinstance(message, HumanMessage)]
    question = gist(str(asked[-1].text)) if asked else ""
    wrote = f"You wrote: “{question}”." if question else "You wrote no text."
    return (
        "I am offline: no language model is configured, so this is not a real answer. "
        f"{wrote} It is message {len(asked)} from you in this conversation. "
        "Set OPENAI_API_KEY, or OPENAI_BASE_URL for any OpenAI-compatible endpoint, and ask again."
    )


class OfflineChatModel(BaseChatModel):
    """Stream `answer` word by word. Deterministic; uses neither network nor clock."""

    def answer(self, messages: list[BaseMessage]) -> str:
        """Return the whole answer to a conversation."""
        return offline_answer(messages)

    @property
    def _llm_type(self) -> str:
        return "offline"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        answer = AIMessage(self.answer(messages), response_metadata=FINISHED)
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for token in re.findall(r"\S+\s*", self.answer(messages)):
            yield ChatGenerationChunk(message=AIMessageChunk(content=token))
        yield ChatGenerationChunk(message=AIMessageChunk(content="", response_metadata=FINISHED))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages, stop, **kwargs):
            # Yield to the event loop, as reading from a socket would, so that tokens are sent one
            # by one.
            await asyncio.sleep(0)
            yield chunk
