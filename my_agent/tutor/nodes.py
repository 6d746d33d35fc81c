"""The steps of a lesson: a message is let in, answered and corrected."""

import asyncio
from typing import Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.runtime import Runtime

from my_agent.models import chat_model
from my_agent.offline import OfflineChatModel
from my_agent.tutor import grammar
from my_agent.tutor.context import Context
from my_agent.tutor.corrections import Correction, correction, merge
from my_agent.tutor.review import review
from my_agent.tutor.settings import TutorSettings
from my_agent.tutor.state import TIMESTAMP, State, now, unanswered
from my_agent.tutor.window import window


def admit(state: State) -> list[Literal["reply", "correct"]]:
    """Lets a message in, to be answered and corrected at the same time.

    It decides before the message is kept, so that one that is refused leaves nothing behind.

    Raises:
        ValueError: there is nothing to answer, or too much.
    """
    waiting = unanswered(state["messages"])
    longest = TutorSettings.from_environment().max_message_length
    if not waiting or not all(message.text.strip() for message in waiting):
        raise ValueError("There is nothing to answer: send a message of the user's with text")
    if any(len(message.text) > longest for message in waiting):
        raise ValueError(f"The message is too long: at most {longest} characters")
    return ["reply", "correct"]


async def reply(state: State, runtime: Runtime[Context]) -> State:
    """Answers what the learner has written since the last answer.

    Raises:
        ModelCallError: the model was not reached, refused, or broke off; the run fails with it.
    """
    context = _context(runtime)
    settings = TutorSettings.from_environment()
    model = await asyncio.to_thread(chat_model, context.model)
    read = window(state["messages"], turns=settings.window_turns, length=settings.window_length)
    answer = await model.ainvoke([SystemMessage(context.system_prompt), *read])
    answer.additional_kwargs[TIMESTAMP] = now()
    info = runtime.execution_info
    return {"messages": [answer], "thread_id": (info and info.thread_id) or ""}


async def correct(state: State, runtime: Runtime[Context]) -> State:
    """Corrects what `reply` answers. Both are kept together or, if either fails, not at all.

    A message whose run had failed is therefore still unanswered, and is corrected with the next.
    """
    context = _context(runtime)
    name = context.correction_model or TutorSettings.from_environment().correction_model
    model = await asyncio.to_thread(chat_model, name or context.model)
    waiting = unanswered(state["messages"])
    before = _said_before(state["messages"], len(waiting))
    corrected = await asyncio.gather(*(_correct(each, model, before) for each in waiting))
    return {"messages": [], "corrections": [each for each in corrected if each is not None]}


async def _correct(message: HumanMessage, model: BaseChatModel, before: str) -> Correction | None:
    text = str(message.text)
    harper = await asyncio.to_thread(grammar.check, text)
    reviewed = (
        None if isinstance(model, OfflineChatModel) else await review(model, text, before=before)
    )
    issues, explanation = reviewed or ([], "")
    return correction(str(message.id), text, merge(issues, harper), explanation)


def _said_before(messages: list[AnyMessage], waiting: int) -> str:
    """The answer that the last `waiting` messages follow."""
    last = messages[-waiting - 1] if len(messages) > waiting else None
    return str(last.text) if isinstance(last, AIMessage) else ""


def _context(runtime: Runtime[Context]) -> Context:
    # langgraph's types deny it, but outside a server a run without a context has None here.
    return runtime.context or Context()  # type: ignore[truthy-bool]
