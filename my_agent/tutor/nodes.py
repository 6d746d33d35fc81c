"""The steps of a lesson: a message is let in, answered and corrected."""

import asyncio
from typing import Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
)
from langgraph.runtime import Runtime
from langgraph.types import Command, Send

from my_agent.models import chat_model
from my_agent.offline import OfflineChatModel
from my_agent.tutor import grammar
from my_agent.tutor.context import Context
from my_agent.tutor.corrections import Correction, correction, merge
from my_agent.tutor.offline import OfflineTutor
from my_agent.tutor.review import review
from my_agent.tutor.settings import TutorSettings
from my_agent.tutor.state import TIMESTAMP, State, now, unanswered
from my_agent.tutor.window import window

NOTHING = "There is nothing to answer: send a message of the user's with text"
# Messages that the model corrects at the same time.
AT_ONCE = 4
# Characters of the answer before a message that the one who corrects it reads.
CONTEXT = 1000


def admit(
    state: State, runtime: Runtime[Context]
) -> Command[Literal["reply", "correct", "refuse"]]:
    """Lets a message in, to be answered and corrected at the same time, or takes it out again."""
    info = runtime.execution_info
    named: State = {"messages": [], "thread_id": (info and info.thread_id) or ""}
    waiting = unanswered(state["messages"])
    wrong = [message for message in waiting if _problem(message)]
    if waiting and not wrong:
        return Command(update=named, goto=["reply", "correct"])
    removed = [RemoveMessage(id=str(message.id)) for message in wrong]
    return Command(update={**named, "messages": removed}, goto=Send("refuse", {"messages": wrong}))


def refuse(state: State) -> State:
    """Fails the run, after the messages that it is about are out of the thread.

    Raises:
        ValueError: always, with what is wrong with them.
    """
    problems = [problem for each in state["messages"] if (problem := _problem(each))]
    raise ValueError(problems[0] if problems else NOTHING)


def _problem(message: AnyMessage) -> str | None:
    """Why a message cannot be answered."""
    longest = TutorSettings.from_environment().max_message_length
    if not message.text.strip():
        return NOTHING
    if len(message.text) > longest:
        return f"The message is too long: at most {longest} characters"
    return None


async def reply(state: State, runtime: Runtime[Context]) -> State:
    """Answers what the learner has written since the last answer.

    Raises:
        ModelCallError: the model was not reached, refused, or broke off; the run fails with it.
    """
    context = _context(runtime)
    settings = TutorSettings.from_environment()
    model = await asyncio.to_thread(chat_model, context.model)
    if isinstance(model, OfflineChatModel):
        model = OfflineTutor()
    read = window(state["messages"], turns=settings.window_turns, length=settings.window_length)
    answer = await model.ainvoke([SystemMessage(context.system_prompt), *read])
    answer.additional_kwargs[TIMESTAMP] = now()
    return {"messages": [answer]}


async def correct(state: State, runtime: Runtime[Context]) -> State:
    """Corrects what `reply` answers. Both are kept together or, if either fails, not at all.

    A message whose run had failed is therefore still unanswered, and is corrected with the next.
    """
    context = _context(runtime)
    name = context.correction_model or TutorSettings.from_environment().correction_model
    model = await asyncio.to_thread(chat_model, name or context.model)
    waiting = unanswered(state["messages"])
    before = _said_before(state["messages"], len(waiting))
    turns = asyncio.Semaphore(AT_ONCE)

    async def in_turn(message: HumanMessage) -> Correction | None:
        async with turns:
            return await _correct(message, model, before)

    corrected = await asyncio.gather(*map(in_turn, waiting))
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
    """The end of the answer that the last `waiting` messages follow."""
    last = messages[-waiting - 1] if len(messages) > waiting else None
    return str(last.text)[-CONTEXT:] if isinstance(last, AIMessage) else ""


def _context(runtime: Runtime[Context]) -> Context:
    # langgraph's types deny it, but outside a server a run without a context has None here.
    return runtime.context or Context()  # type: ignore[truthy-bool]
