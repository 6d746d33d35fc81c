"""Answers: ask the model for an answer, in bounded size and time, and refuse an empty one."""

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage
from langchain_core.runnables import RunnableConfig

from my_agent import answering, token_budget
from my_agent.models import ModelSettings
from my_agent.tutor.state import FINISH


def budget(name: str | None) -> int:
    """Return the tokens that the messages of one call may have.

    Args:
        name: name of the model; None: the configured one.
    """
    endpoint = ModelSettings.from_environment()
    return token_budget.budget(name or endpoint.model, endpoint.context_tokens)


async def ask(
    model: BaseChatModel,
    system: str,
    messages: list[AnyMessage],
    seconds: float,
    tokens: int,
    config: RunnableConfig,
) -> AIMessage:
    """Return the model's answer. An answer that was cut says so in its `finish`.

    Args:
        model: the model that answers.
        system: the system prompt. A client may send any; half of the budget is its own.
        messages: the conversation.
        seconds: maximum time of the whole answer.
        tokens: budget of the call. The oldest messages are left out.
        config: config of the run.

    Raises:
        ModelCallError: the model failed or was too slow, or its answer is empty.
    """
    prompt = SystemMessage(token_budget.shorten(system, tokens // 2))
    fitting = token_budget.fit([prompt, *messages], tokens)
    answer = await answering.answer(model, fitting, config=config, seconds=seconds)
    if answering.ending(answer) in ("cut", "filtered"):
        answer.additional_kwargs[FINISH] = answer.response_metadata["finish_reason"]
    return answer
