"""An exchange with a model for one value: the requests, what is asked again, and how it ends."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel

from my_agent import shapes
from my_agent.answering import ending
from my_agent.failures import Failed, Kind, ModelCallError

T = TypeVar("T")
Reader = Callable[[str, bool], T]
"""Returns the value in an answer, given whether the answer was cut; raises ValueError."""

logger = logging.getLogger(__name__)

SAID: dict[Kind, str] = {
    "refused": "The model refused to answer.",
    "filtered": "A content filter stopped the model's answer.",
    "late": "The model did not answer in time.",
    "unusable": "The model's answer does not have the form that was asked for.",
    "paused": "The model has failed several times in a row, and is not asked for a minute.",
    "cut": "The model's answer was cut at its maximum length.",
}
"""What a person is told, unless the endpoint's error says more."""


@dataclass(frozen=True)
class Asked(Generic[T]):
    """What a model has answered.

    Attributes:
        value: the value.
        tokens: tokens of all attempts, as the endpoint has reported them; 0 if it does not.
    """

    value: T
    tokens: int


class Exchange(Generic[T]):
    """The requests of one call.

    Args:
        model: the model.
        schema: the form of an answer.
        read: reads an answer.
        idle: seconds without a byte before a request fails.
        seconds: maximum time of all requests.
    """

    def __init__(
        self,
        model: BaseChatModel,
        schema: type[BaseModel],
        read: Reader[T],
        idle: float,
        seconds: float,
    ) -> None:
        self._model, self._schema, self._read = model, schema, read
        self._idle, self._seconds = idle, seconds
        self._clock = asyncio.get_running_loop().time
        self._begun = self._clock()
        self._in_words = self._was_limited = False
        self._tokens = 0
        self.is_outage = False
        self.is_sent = False

    @property
    def waited(self) -> float:
        """Seconds since the call has begun."""
        return self._clock() - self._begun

    async def held(self, messages: list[BaseMessage], *, answers: int) -> Asked[T] | Failed:
        """Return the value, or why there is none.

        Args:
            messages: the messages.
            answers: how many answers may be asked for.
        """
        if self._seconds <= 0:
            return self._failed("late")
        try:
            async with asyncio.timeout(self._seconds):
                return await self._asked(messages, answers)
        except TimeoutError as error:
            self.is_outage = True
            return self._failed("late", error)
        except ModelCallError as error:
            self.is_outage = error.is_outage
            return replace(self._failed(error.kind, error.__cause__), said=str(error))

    def _failed(self, kind: Kind, cause: BaseException | None = None) -> Failed:
        # Without the cause's message: an endpoint may quote what the user wrote.
        name = f", {type(cause).__name__}" if cause is not None else ""
        logger.warning("No %s from the model: %s%s", self._schema.__name__, kind, name)
        return Failed(kind, SAID.get(kind, ""), tokens=self._tokens)

    async def _asked(self, messages: list[BaseMessage], answers: int) -> Asked[T] | Failed:
        while True:
            answers -= 1
            answer = await self._sent(messages)
            why, text = ending(answer), shapes.said(answer)
            if answer.additional_kwargs.get("refusal"):
                return self._failed("refused")
            if why == "filtered":
                return self._failed("filtered")
            try:
                return Asked(self._read(text, why == "cut"), self._tokens)
            except (ValueError, RecursionError) as error:
                if why == "cut":
                    # Another answer would be cut as well.
                    return self._failed("cut", error)
                if not answers:
                    return self._failed("unusable", error)
                messages = [*messages, *shapes.again(text, error, self._schema)]

    async def _sent(self, messages: list[BaseMessage]) -> AIMessage:
        """Return an answer. A rejected form is asked for in words, a full endpoint once more."""
        while True:
            try:
                return await self._request(messages)
            except ModelCallError as error:
                if error.about_format and not self._in_words:
                    self._in_words = True
                    continue
                wait = error.retry_after
                if wait is None or self._was_limited or self.waited + wait >= self._seconds:
                    raise
            self._was_limited = True
            await asyncio.sleep(wait)

    async def _request(self, messages: list[BaseMessage]) -> AIMessage:
        # Imported late: the endpoint's client takes half a second to import.
        from my_agent.endpoint import form

        if self._in_words:
            messages, options = shapes.in_words(messages, self._schema), dict[str, Any]()
        else:
            options = {"response_format": form(self._schema)}
        self.is_sent = True
        answer = await self._model.ainvoke(
            messages,
            {"tags": [TAG_NOSTREAM]},
            timeout=max(0.001, min(self._idle, self._seconds - self.waited)),
            **options,
        )
        # An endpoint may count wrongly or not at all.
        reported: Any = answer.usage_metadata["total_tokens"] if answer.usage_metadata else 0
        self._tokens += reported if isinstance(reported, int) else 0
        return answer
