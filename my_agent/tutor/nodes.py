"""Nodes of the graph `tutor`: admit a message, answer it and correct it."""

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
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.types import Command, Send

from my_agent.models import chat_model, requested_model
from my_agent.offline import OfflineChatModel
from my_agent.tutor import turns
from my_agent.tutor.context import Context
from my_agent.tutor.corrections import Correction, Issue, correction, merge
from my_agent.tutor.offline import OfflineTutor
from my_agent.tutor.review import review
from my_agent.tutor.settings import TutorSettings
from my_agent.tutor.state import TIMESTAMP, State, now, unanswered
from my_agent.tutor.window import window
from my_agent.user import NoTenantError, caller

NO_TEXT = "The run has no user message with text: send at least one"
# Messages that the model corrects concurrently.
MAX_CONCURRENT = 4
# Characters of the preceding answer that the correcting model reads.
CONTEXT = 1000


def admit(
    state: State, runtime: Runtime[Context]
) -> Command[Literal["reply", "correct", "refuse"]]:
    """Route a message to `reply` and `correct`, or remove it from the thread and go to `refuse`."""
    info = runtime.execution_info
    base: State = {"messages": [], "thread_id": (info and info.thread_id) or ""}
    waiting = unanswered(state["messages"])
    wrong = [message for message in waiting if _problem(message)]
    if waiting and not wrong:
        return Command(update=base, goto=["reply", "correct"])
    removed = [RemoveMessage(id=str(message.id)) for message in wrong]
    return Command(update={**base, "messages": removed}, goto=Send("refuse", {"messages": wrong}))


def refuse(state: State) -> State:
    """Fail the run after the invalid messages have been removed from the thread.

    Raises:
        ValueError: always. The message is what is wrong with the messages.
    """
    problems = [problem for each in state["messages"] if (problem := _problem(each))]
    raise ValueError(problems[0] if problems else NO_TEXT)


def _problem(message: AnyMessage) -> str | None:
    """Return why a message cannot be answered, or None if it can."""
    longest = TutorSettings.from_environment().max_message_length
    if not message.text.strip():
        return NO_TEXT
    if len(message.text) > longest:
        return f"The message is too long: at most {longest} characters"
    return None


async def reply(state: State, runtime: Runtime[Context]) -> State:
    """Answer what the learner has written since the last answer.

    Raises:
        ModelCallError: the model was unreachable, refused the request, or its answer broke off. The
            run fails with this error.
    """
    context = _context(runtime)
    settings = TutorSettings.from_environment()
    model = await asyncio.to_thread(requested_model, context.model)
    if isinstance(model, OfflineChatModel):
        model = OfflineTutor()
    read = window(state["messages"], turns=settings.window_turns, length=settings.window_length)
    answer = await model.ainvoke([SystemMessage(context.system_prompt), *read])
    answer.additional_kwargs[TIMESTAMP] = now()
    return {"messages": [answer]}


async def correct(state: State, runtime: Runtime[Context]) -> State:
    """Correct the messages that `reply` answers.

    The results of both nodes are stored together or, if either fails, not at all. A message of a
    failed run therefore stays unanswered, and the next run corrects it.
    """
    context = _context(runtime)
    configured = TutorSettings.from_environment().correction_model
    if configured and context.correction_model in (None, configured):
        model = await asyncio.to_thread(chat_model, configured)
    else:
        name = context.correction_model or context.model
        model = await asyncio.to_thread(requested_model, name)
    waiting = unanswered(state["messages"])
    before = _previous_answer(state["messages"], len(waiting))
    slots = asyncio.Semaphore(MAX_CONCURRENT)
    tenant = _tenant()
    until = asyncio.get_running_loop().time() + turns.SECONDS

    async def limited(message: HumanMessage) -> Correction | None:
        async with slots:
            harper = await turns.check(tenant, str(message.text), until)
            return await _correct(message, model, before, harper)

    corrected = await asyncio.gather(*map(limited, waiting))
    return {"messages": [], "corrections": [each for each in corrected if each is not None]}


async def _correct(
    message: HumanMessage, model: BaseChatModel, before: str, harper: list[Issue]
) -> Correction | None:
    text = str(message.text)
    reviewed = (
        None if isinstance(model, OfflineChatModel) else await review(model, text, before=before)
    )
    issues, explanation = reviewed or ([], "")
    return correction(str(message.id), text, merge(issues, harper), explanation)


def _tenant() -> str:
    """Return the tenant whose turn a check takes; an empty text for users without a tenant."""
    try:
        return caller(get_config()).tenant_id
    except NoTenantError:
        return ""


def _previous_answer(messages: list[AnyMessage], waiting: int) -> str:
    """Return the end of the answer before the last `waiting` messages."""
    last = messages[-waiting - 1] if len(messages) > waiting else None
    return str(last.text)[-CONTEXT:] if isinstance(last, AIMessage) else ""


def _context(runtime: Runtime[Context]) -> Context:
    # langgraph's types exclude None, but a run without a context gets None outside a server.
    return runtime.context or Context()  # type: ignore[truthy-bool]
