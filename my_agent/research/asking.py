"""Asking the model: within the budgets and the time, for an answer of a schema."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel

from my_agent.models import ModelSettings, chat_model
from my_agent.research.work import Work

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
        model = await asyncio.to_thread(_model, answer_tokens)
        messages = [SystemMessage(system), HumanMessage(text)]
        needed = (len(system) + len(text)) // _CHARACTERS + _FRAME + answer_tokens
        problem: Exception | None = None
        for _ in range(1 + settings.research_model_retries):
            stage, budget = self.work.stage, self.work.budget
            if name := budget.missing(stage, tokens=needed, model_calls=1):
                if problem is not None:
                    break
                raise OutOfBudget(name)
            seconds = min(settings.research_model_seconds, budget.left("seconds", stage))
            answer, problem = await self._once(model, messages, seconds, needed - answer_tokens)
            if answer is not None:
                return answer
        if isinstance(problem, Unusable):
            raise problem
        raise WorkerFailed(str(problem) or type(problem).__name__) from problem

    async def _once(
        self, model: BaseChatModel, messages: list[BaseMessage], seconds: float, asked: int
    ) -> tuple[Schema | None, Exception | None]:
        from openai import OpenAIError

        from my_agent.endpoint import ModelCallError

        budget, stage = self.work.budget, self.work.stage
        structured = model.with_structured_output(
            self.schema, method="json_schema", include_raw=True
        )
        tokens = asked
        try:
            found: Any = await self.work.guarded(
                # The tag keeps the answer out of the stream: it is not a message to the user.
                lambda: structured.ainvoke(messages, {"tags": ["nostream"]}),
                seconds,
            )
        except TimeoutError:
            logger.warning("The model did not answer within %g seconds in %s", seconds, stage)
            self.timeouts.append({"stage": stage, "what": "model", "seconds": seconds})
            return None, WorkerFailed(f"The model did not answer within {seconds:g} seconds.")
        except ModelCallError as error:
            return None, error
        except (OpenAIError, ValueError) as error:
            # A refusal, an answer that was cut, or one that is no JSON.
            return None, Unusable(str(error))
        else:
            raw = found["raw"]
            # An endpoint may count wrongly or not at all.
            reported = (raw.usage_metadata or {}).get("total_tokens", 0)
            tokens = max(asked + len(str(raw.text)) // _CHARACTERS, int(reported))
            parsed = found["parsed"]
            if isinstance(parsed, self.schema):
                return parsed, None
            return None, Unusable(str(found["parsing_error"] or "the model refused to answer"))
        finally:
            budget.spend(stage, model_calls=1, tokens=tokens)


def is_offline() -> bool:
    """Return whether no model is configured."""
    return not ModelSettings.from_environment().is_configured


def _model(answer_tokens: int) -> BaseChatModel:
    # The client's own repetitions would not be counted.
    settings = ModelSettings.from_environment().model_copy(update={"max_retries": 0})
    model = chat_model(settings=settings)
    return model.model_copy(update={"max_tokens": answer_tokens})
