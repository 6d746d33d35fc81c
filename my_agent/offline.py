"""The model that answers when none is configured, and says that it is no model."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

# Enough to recognise one's own question, short enough to stream in a moment.
GIST_LENGTH = 160

# What an endpoint reports with the last token.
FINISHED = {"finish_reason": "stop", "model_name": "offline"}


def gist(text: str) -> str:
    """The text on one line, cut at a word boundary after `GIST_LENGTH` characters at most."""
    line = " ".join(text.split())
    if len(line) <= GIST_LENGTH:
        return line
    head = line[:GIST_LENGTH]
    return f"{head.rsplit(' ', 1)[0]} …"


def offline_answer(messages: list[BaseMessage]) -> str:
    """The whole answer: the same messages always get the same one."""
    asked = [message for message in messages if isinstance(message, HumanMessage)]
    question = gist(str(asked[-1].text)) if asked else ""
    wrote = f"You wrote: “{question}”." if question else "You wrote no text."
    return (
        "I am offline: no language model is configured, so this is not a real answer. "
        f"{wrote} It is message {len(asked)} from you in this conversation. "
        "Set OPENAI_API_KEY, or OPENAI_BASE_URL for any OpenAI-compatible endpoint, and ask again."
    )


class OfflineChatModel(BaseChatModel):
    """Streams its `answer` word by word; deterministic, touches neither network nor clock."""

    def answer(self, messages: list[BaseMessage]) -> str:
        """The whole answer to a conversation."""
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
            # Lets the loop turn, as reading a socket would: tokens leave one by one.
            await asyncio.sleep(0)
            yield chunk
