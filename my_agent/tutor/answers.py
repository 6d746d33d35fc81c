"""Answers: ask the model for an answer, in bounded time, and refuse an empty one."""

import asyncio

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from my_agent.tutor.state import FINISH

# Reasons for which an answer ends before its end.
CUT = frozenset({"length", "content_filter", "max_tokens"})


async def ask(model: BaseChatModel, messages: list[BaseMessage], seconds: float) -> AIMessage:
    """Return the model's answer. An answer that was cut says so in its `finish`.

    Args:
        model: the model that answers.
        messages: the conversation.
        seconds: maximum time of the whole answer.

    Raises:
        ModelCallError: the model failed or was too slow, or its answer is empty.
    """
    try:
        async with asyncio.timeout(seconds):
            answer = await model.ainvoke(messages)
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
