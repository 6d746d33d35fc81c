"""Nodes of the graph `chat`: complete the question, find passages, answer."""

import asyncio
import secrets
from collections.abc import Sequence

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from my_agent import token_budget
from my_agent.chat import prompts
from my_agent.chat.citations import check
from my_agent.chat.context import Context
from my_agent.chat.documents.chunking import Passage
from my_agent.chat.documents.search import has_documents, search
from my_agent.chat.extract import ExtractModel
from my_agent.chat.failures import EmptyAnswerError, LateAnswerError, RefusedAnswerError
from my_agent.chat.rewriting import completed
from my_agent.chat.settings import ChatSettings
from my_agent.chat.small_talk import is_small_talk
from my_agent.chat.state import Answered, Found, Retrieved, Rewritten, State
from my_agent.chat.window import before, question, window
from my_agent.models import ModelSettings, requested_model
from my_agent.offline import OfflineChatModel
from my_agent.user import caller


async def rewrite(state: State, config: RunnableConfig) -> Rewritten:
    """Rewrite a follow-up question so that it can be searched for without the conversation.

    The first question of a thread stays unchanged. So does every question of a tenant that can read
    no documents. A greeting or thanks asks for nothing: the result is empty.
    """
    asked = question(state["messages"])
    if is_small_talk(asked):
        return {"main_question": ""}
    earlier = before(window(state["messages"]))
    if not asked or not question(earlier):
        return {"main_question": asked}
    searched: bool = await asyncio.to_thread(has_documents, caller(config).tenant_id)
    return {"main_question": await completed(asked, earlier) if searched else asked}


async def retrieve(state: State, config: RunnableConfig) -> Retrieved:
    """Find the passages of documents that answer the question."""
    tenant, wanted = caller(config).tenant_id, state.get("main_question", "")
    searched = bool(wanted.strip()) and await asyncio.to_thread(has_documents, tenant)
    found = await asyncio.to_thread(search, wanted, tenant) if searched else []
    passages = [
        Found(
            number=each.number,
            title=each.title,
            section=each.section,
            text=each.text,
            document_id=each.document_id,
            path=each.path,
            page=each.page,
            start=each.start,
            end=each.end,
        )
        for each in found
    ]
    return {"passages": passages, "citations": [], "unsupported": [], "searched": searched}


async def generate(state: State, runtime: Runtime[Context]) -> Answered:
    """Answer the last question, from the passages if there are any.

    Raises:
        ModelCallError: the model was unreachable, refused, answered nothing or too late, or its
            answer broke off. The run fails with this error.
        ValueError: the thread has no messages.
    """
    if not state["messages"]:
        raise ValueError("The thread has no messages: send at least one message")
    # langgraph's types exclude None, but a run without a context gets None outside a server.
    context = runtime.context or Context()  # type: ignore[truthy-bool]
    passages = [Passage(**each) for each in state.get("passages", [])]
    searched = state.get("searched", False)
    model = await asyncio.to_thread(requested_model, context.model)
    if isinstance(model, OfflineChatModel) and (passages or searched):
        model = ExtractModel(question=state.get("main_question", ""), passages=passages)
    messages = prompts.answering(
        context.system_prompt,
        window(state["messages"]),
        passages,
        searched=searched,
        key=secrets.token_hex(8),
    )
    answer = await _called(model, messages, context.model)
    checked = check(str(answer.text), passages)
    # Also stored with the message: the state's `citations` are those of the last answer only.
    notes = {"citations": checked.citations, "unsupported": checked.unsupported}
    extra = {**answer.additional_kwargs, **{name: each for name, each in notes.items() if each}}
    if answer.response_metadata.get("finish_reason") == "length":
        extra["incomplete"] = True
    update: dict[str, object] = {"additional_kwargs": extra}
    if checked.text != answer.text:
        update["content"] = checked.text
    return {
        "messages": [answer.model_copy(update=update)],
        "citations": checked.citations,
        "unsupported": checked.unsupported,
    }


async def _called(
    model: BaseChatModel, messages: Sequence[AnyMessage], name: str | None
) -> AIMessage:
    """Call the model within its budget and time, and check that it answered.

    Raises:
        ModelCallError: the call failed, or the model refused or answered nothing or too late.
    """
    endpoint = ModelSettings.from_environment()
    tokens = token_budget.budget(name or endpoint.model, endpoint.context_tokens)
    try:
        async with asyncio.timeout(ChatSettings.from_environment().answer_seconds):
            answer: AIMessage = await model.ainvoke(token_budget.fit(messages, tokens))
    except TimeoutError as error:
        raise LateAnswerError from error
    reason = answer.response_metadata.get("finish_reason")
    refusal = answer.additional_kwargs.get("refusal")
    if reason == "content_filter" or (refusal and not answer.text):
        raise RefusedAnswerError
    if not answer.text.strip():
        raise EmptyAnswerError
    return answer
