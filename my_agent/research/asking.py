"""Asking the model: within the budgets and the time, for an answer of a schema."""

import logging
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel

from my_agent.asking import Asked, Failed, structured
from my_agent.failures import OUTAGES
from my_agent.models import ModelSettings
from my_agent.research.work import GRACE, Work
from my_agent.storable import storable

Schema = TypeVar("Schema", bound=BaseModel)

logger = logging.getLogger(__name__)

# Characters of a token, rather few: an estimate must not be too low.
_CHARACTERS = 3
# What the schema and the frame of a message cost.
_FRAME = 300


class WorkerFailed(RuntimeError):
    """A worker has used all its attempts. The message is the cause.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """


class OutOfBudget(Exception):
    """A budget does not allow a call.

    Attributes:
        name: the budget.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Unusable(Exception):
    """The model answered, but never with what was asked for."""


@dataclass
class Asker(Generic[Schema]):
    """Asks one kind of question and counts what it costs.

    Attributes:
        work: the surroundings; its budget is charged.
        schema: the form of an answer.
        timeouts: calls that ran out of time.
    """

    work: Work
    schema: type[Schema]
    timeouts: list[dict[str, Any]]

    async def ask(self, system: str, text: str, *, answer_tokens: int) -> Schema:
        """Return the model's answer.

        Args:
            system: the instructions.
            text: the material.
            answer_tokens: maximum length of the answer.

        Raises:
            OutOfBudget: the budget does not allow the call.
            Unusable: no answer had the form of the schema.
            WorkerFailed: the model was not reachable, or did not answer in time.
            Stopped: the user has stopped the project.
        """
        settings = self.work.settings
        messages = [SystemMessage(system), HumanMessage(text)]
        needed = (len(system) + len(text)) // _CHARACTERS + _FRAME + answer_tokens
        problem: Unusable | WorkerFailed | None = None
        for _ in range(1 + settings.research_model_retries):
            stage, budget = self.work.stage, self.work.budget
            if name := budget.missing(stage, tokens=needed, model_calls=1):
                if problem is not None:
                    break
                raise OutOfBudget(name)
            seconds = min(settings.research_model_seconds, budget.left("seconds", stage))
            found = await self._once(messages, seconds, needed - answer_tokens, answer_tokens)
            if not isinstance(found, Unusable | WorkerFailed):
                return found
            problem = found
        raise problem or WorkerFailed("The model was not asked.")

    async def _once(
        self, messages: list[BaseMessage], seconds: float, asked: int, answer_tokens: int
    ) -> Schema | Unusable | WorkerFailed:
        budget, stage = self.work.budget, self.work.stage
        tokens = asked
        try:
            found = await self._found(messages, seconds, answer_tokens)
            if found is None:
                return WorkerFailed("No model is configured.")
            if isinstance(found, Failed):
                tokens = max(asked, found.tokens)
                if found.kind == "late":
                    logger.warning("The model did not answer in %s", stage)
                    self.timeouts.append({"stage": stage, "what": "model", "seconds": seconds})
                outage = found.kind in OUTAGES
                return WorkerFailed(found.said) if outage else Unusable(found.said)
            length = len(found.value.model_dump_json())
            tokens = max(asked + length // _CHARACTERS, found.tokens)
            return self.schema.model_validate(_storable(found.value.model_dump()))
        finally:
            budget.spend(stage, model_calls=1, tokens=tokens)

    async def _found(
        self, messages: list[BaseMessage], seconds: float, answer_tokens: int
    ) -> Asked[Schema] | Failed | None:
        try:
            # The call ends by itself in time, so that it can say why it has no answer.
            return await self.work.guarded(
                lambda: structured(
                    self.schema,
                    messages,
                    model=None,
                    config=self.work.config,
                    seconds=seconds,
                    once=True,
                    answer_tokens=answer_tokens,
                ),
                seconds + GRACE,
            )
        except TimeoutError:
            # The client was not ready in time.
            return Failed("late", f"The model did not answer within {seconds:g} seconds.")


def _storable(value: Any) -> Any:
    """Return a value whose texts every database can store."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_storable(each) for each in value]
    if isinstance(value, dict):
        return {name: _storable(each) for name, each in value.items()}
    return value


def is_offline() -> bool:
    """Return whether no model is configured."""
    return not ModelSettings.from_environment().is_configured
