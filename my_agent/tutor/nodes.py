"""Nodes of the graph `tutor`: admit a message, answer it and correct it."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
)
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.types import Command, Send

from my_agent.models import chat_model, requested_model
from my_agent.offline import OfflineChatModel
from my_agent.tutor import answers, memory, practice, turns
from my_agent.tutor.context import Context
from my_agent.tutor.corrections import Check, Correction, Issue, Source, correction, merge
from my_agent.tutor.offline import OfflineTutor
from my_agent.tutor.review import Problem, Reviewed, review
from my_agent.tutor.settings import TutorSettings
from my_agent.tutor.state import CHECK, TIMESTAMP, State, now
from my_agent.tutor.window import window
from my_agent.understanding.replies import unanswered
from my_agent.user import NoTenantError, caller

NO_TEXT = "The run has no user message with text: send at least one"
# Messages that the model corrects concurrently.
MAX_CONCURRENT = 4
# Characters of the preceding answer that the correcting model reads.
CONTEXT = 1000

Judge = Callable[..., Awaitable[Reviewed]]
"""Asks the model about a text: `review` of a run."""


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


async def reply(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """Answer what the learner has written since the last answer.

    Raises:
        ModelCallError: the model was unreachable, too slow, refused the request, its answer broke
            off, or it is empty. The run fails with this error.
    """
    context = _context(runtime)
    settings = TutorSettings.from_environment()
    if (exercise := await memory.practise(state["messages"])) is not None:
        return {"messages": [exercise]}
    model = await asyncio.to_thread(requested_model, context.model)
    if isinstance(model, OfflineChatModel):
        model = OfflineTutor()
    read = window(state["messages"], turns=settings.window_turns, length=settings.window_length)
    about = await memory.about_learner()
    system = f"{context.system_prompt}\n\n{about}" if about else context.system_prompt
    answer = await answers.ask(
        model, system, read, settings.reply_seconds, answers.budget(context.model), config
    )
    answer.additional_kwargs[TIMESTAMP] = now()
    if (exercise_id := memory.open_exercise(state["messages"])) is not None:
        answer.additional_kwargs[practice.EXERCISE] = exercise_id
    return {"messages": [answer]}


async def correct(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """Correct the messages that `reply` answers.

    The results of both nodes are stored together or, if either fails, not at all. A message of a
    failed run therefore stays unanswered, and the next run corrects it.
    """
    context = _context(runtime)
    settings = TutorSettings.from_environment()
    configured = settings.correction_model
    # The settings' own model need not be allowed.
    trusted = bool(configured) and context.correction_model in (None, configured)
    name = configured if trusted else context.correction_model or context.model
    model = await asyncio.to_thread(chat_model if trusted else requested_model, name)
    judge: Judge | None = None
    if not isinstance(model, OfflineChatModel):
        judge = partial(
            review,
            name,
            config=config,
            trusted=trusted,
            seconds=settings.review_seconds,
            tokens=answers.budget(name),
        )
    waiting = unanswered(state["messages"])
    before = _previous_answer(state["messages"], len(waiting))
    slots = asyncio.Semaphore(MAX_CONCURRENT)
    tenant = _tenant()
    until = asyncio.get_running_loop().time() + settings.check_seconds

    async def limited(message: HumanMessage) -> tuple[HumanMessage, Correction | None]:
        if practice.wish(str(message.text)) is not None:
            # A command such as "practise" is no English to correct.
            return message, None
        async with slots:
            found = await turns.check(tenant, str(message.text), until)
            return await _correct(message, judge, before, found)

    corrected = await asyncio.gather(*map(limited, waiting))
    return {
        "messages": [message for message, _ in corrected],
        "corrections": [each for _, each in corrected if each is not None],
    }


async def remember(state: State) -> State:
    """Add the new mistakes, and what the learner said about level and language, to the profile."""
    if state["messages"][-1].additional_kwargs.get(practice.PRACTICE):
        # An answer to an exercise is graded there, and makes no new exercise.
        return {"messages": []}
    answered = _last_turn(state["messages"])
    names = {str(message.id) for message in answered}
    new = [each for each in state.get("corrections", []) if each["message_id"] in names]
    await memory.remember([str(message.text) for message in answered], new)
    return {"messages": []}


def _last_turn(messages: list[AnyMessage]) -> list[HumanMessage]:
    """Return the learner's messages that the last answer answers."""
    end = len(messages)
    while end and not isinstance(messages[end - 1], HumanMessage):
        end -= 1
    return unanswered(messages[:end])


async def _correct(
    message: HumanMessage,
    judge: Judge | None,
    before: str,
    local: turns.Found,
) -> tuple[HumanMessage, Correction | None]:
    """Return the message with its check, and its correction.

    The model judges what the local checks found. Without its answer, theirs counts.
    """
    text = str(message.text)
    # Without a model, nothing checks other languages than English.
    checked_by: list[Source] = ["rules", "harper"] if local.is_english else []
    issues, explanation = local.issues, ""
    degraded: Problem | None = None if local.complete else "busy"
    if judge is not None:
        said = await judge(text, before=before, findings=issues)
        explanation = said.explanation
        if said.problem is None:
            # The model has read all of it, and knows the findings.
            degraded = None
            issues = merge(said.issues, (each for each in issues if _is_among(each, said.issues)))
        else:
            degraded = said.problem
            issues = merge(said.issues, issues)
        if said.answered:
            checked_by = ["model", *checked_by]
    found = correction(
        str(message.id), text, issues, explanation, checked_by=checked_by, degraded=degraded
    )
    check = Check(
        checked_by=checked_by, degraded=degraded, issues=len(found["issues"]) if found else 0
    )
    kwargs = {**message.additional_kwargs, CHECK: check}
    return message.model_copy(update={"additional_kwargs": kwargs}), found


def _is_among(issue: Issue, others: list[Issue]) -> bool:
    """Return whether a checker's finding is one that the model lists too."""
    return any(
        (issue["start"], issue["end"], issue["replacement"])
        == (other["start"], other["end"], other["replacement"])
        for other in others
    )


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
