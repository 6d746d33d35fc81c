"""Answers: ask the model for an answer, in bounded size and time, and refuse an empty one."""

import asyncio

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage

from my_agent import token_budget
from my_agent.models import ModelSettings
from my_agent.tutor.state import FINISH

# Reasons for which an answer ends before its end.
CUT = frozenset({"length", "content_filter", "max_tokens"})


def budget(name: str | None) -> int:
    """Return the tokens that the messages of one call may have.

    Args:
        name: name of the model; None: the configured one.
    """
    endpoint = ModelSettings.from_environment()
    return token_budget.budget(name or endpoint.model, endpoint.context_tokens)


async def ask(
    model: BaseChatModel, system: str, messages: list[AnyMessage], seconds: float, tokens: int
) -> AIMessage:
    """Return the model's answer. An answer that was cut says so in its `finish`.

    Args:
        model: the model that answers.
        system: the system prompt. A client may send any; half of the budget is its own.
        messages: the conversation.
        seconds: maximum time of the whole answer.
        tokens: budget of the call. The oldest messages are left out.

    Raises:
        ModelCallError: the model failed or was too slow, or its answer is empty.
    """
    prompt = SystemMessage(token_budget.shorten(system, tokens // 2))
    try:
        async with asyncio.timeout(seconds):
            answer = await model.ainvoke(token_budget.fit([prompt, *messages], tokens))
    except TimeoutError as error:
        # Imported late: the endpoint's client takes half a second to import.
        from my_agent.endpoint import ModelCallError

        raise ModelCallError(
            f"The model did not finish its answer within {seconds:g} seconds. Send the message again."
        ) from error
    reason = answer.response_metadata.get("finish_reason")
    refusal = answer.additional_kwargs.get("refusal")
    if not str(answer.text).strip():
        if refusal:
            # The model's own words say why.
            answer = answer.model_copy(update={"content": str(refusal)})
        else:
            from my_agent.endpoint import ModelCallError

            why = {
                "content_filter": "A content filter stopped the model's answer.",
                "length": "The model used its maximum length without an answer.",
            }.get(str(reason), "The model gave an empty answer.")
            raise ModelCallError(f"{why} Send the message again, or another one.")
    if reason in CUT:
        answer.additional_kwargs[FINISH] = reason
    return answer
