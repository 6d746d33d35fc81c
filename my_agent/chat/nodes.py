"""Nodes of the graph `chat`: complete the question, find passages, answer."""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import replace

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from my_agent import answering, token_budget
from my_agent.chat import prompts
from my_agent.chat.citations import check
from my_agent.chat.context import Context
from my_agent.chat.documents.chunking import Passage
from my_agent.chat.documents.search import NOTHING, has_documents, search
from my_agent.chat.extract import ExtractModel
from my_agent.chat.failures import ERRORS
from my_agent.chat.fragments import asks_again
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
    earlier = before(window(state["messages"]))
    said = [str(each.text).strip() for each in earlier if isinstance(each, HumanMessage)]
    asked_before = any(each and not is_small_talk(each) for each in said)
    # "yes" answers a question of the model. Without any, it asks for nothing.
    if is_small_talk(asked) or (not asked_before and asks_again(asked)):
        return {"main_question": ""}
    if not asked or not asked_before:
        return {"main_question": asked}
    searched: bool = await asyncio.to_thread(has_documents, caller(config).tenant_id)
    return {"main_question": await completed(asked, earlier, config) if searched else asked}


async def retrieve(state: State, config: RunnableConfig) -> Retrieved:
    """Find the passages of documents that answer the question."""
    tenant, wanted = caller(config).tenant_id, state.get("main_question", "")
    readable = await asyncio.to_thread(has_documents, tenant)
    searched = readable and bool(wanted.strip())
    found = await asyncio.to_thread(search, wanted, tenant) if searched else NOTHING
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
        for each in found.passages
    ]
    return {
        "passages": passages,
        "citations": [],
        "unsupported": [],
        "readable": readable,
        "searched": searched,
        "uncertain": bool(passages) and not found.sure,
    }


async def generate(
    state: State, runtime: Runtime[Context], config: RunnableConfig | None = None
) -> Answered:
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
    searched, uncertain = state.get("searched", False), state.get("uncertain", False)
    model = await asyncio.to_thread(requested_model, context.model)
    quotes = isinstance(model, OfflineChatModel) and state.get("readable", False)
    if quotes:
        model = ExtractModel(
            question=state.get("main_question", ""), passages=passages, uncertain=uncertain
        )
    messages = prompts.answering(
        context.system_prompt,
        window(state["messages"]),
        passages,
        searched=searched,
        uncertain=uncertain,
        key=secrets.token_hex(8),
    )
    answer = await _called(model, messages, context.model, config or {})
    checked = check(str(answer.text), passages)
    if quotes:
        # The sentences around the quotations are ours.
        checked = replace(checked, unsupported=[])
    # Also stored with the message: the state's `citations` are those of the last answer only.
    notes = {"citations": checked.citations, "unsupported": checked.unsupported}
    extra = {**answer.additional_kwargs, **{name: each for name, each in notes.items() if each}}
    if answering.ending(answer) == "cut":
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
    model: BaseChatModel, messages: Sequence[AnyMessage], name: str | None, config: RunnableConfig
) -> AIMessage:
    """Call the model within its budget and time.

    Raises:
        ModelCallError: the call failed, or the model refused or answered nothing or too late.
    """
    endpoint = ModelSettings.from_environment()
    tokens = token_budget.budget(name or endpoint.model, endpoint.context_tokens)
    return await answering.answer(
        model,
        token_budget.fit(messages, tokens),
        config=config,
        seconds=ChatSettings.from_environment().answer_seconds,
        errors=ERRORS,
    )
