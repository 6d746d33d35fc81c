"""Nodes of the graph `chat`: complete the question, find passages, answer."""

import asyncio
import logging
from collections.abc import Sequence

from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import TAG_NOSTREAM
from langgraph.runtime import Runtime

from my_agent.chat import prompts
from my_agent.chat.citations import cited
from my_agent.chat.context import Context
from my_agent.chat.documents.chunking import Passage
from my_agent.chat.documents.search import has_documents, search
from my_agent.chat.extract import ExtractModel
from my_agent.chat.reference import resolve
from my_agent.chat.settings import ChatSettings
from my_agent.chat.state import Answered, Found, Retrieved, Rewritten, State
from my_agent.chat.window import before, question, window
from my_agent.models import ModelSettings, chat_model, requested_model
from my_agent.offline import OfflineChatModel
from my_agent.user import caller

logger = logging.getLogger(__name__)


async def rewrite(state: State, config: RunnableConfig) -> Rewritten:
    """Rewrite a follow-up question so that it can be searched for without the conversation.

    The first question of a thread stays unchanged. So does every question of a tenant that can read
    no documents.
    """
    asked = question(state["messages"])
    earlier = before(window(state["messages"]))
    if not asked or not question(earlier):
        return {"main_question": asked}
    searched: bool = await asyncio.to_thread(has_documents, caller(config).tenant_id)
    return {"main_question": await completed(asked, earlier) if searched else asked}


async def completed(asked: str, earlier: Sequence[AnyMessage]) -> str:
    """Return the question with the names and topics that it takes from earlier messages.

    Without a model, `resolve` fills in the references from the earlier questions. If the model
    fails, the question is returned unchanged.
    """
    if not ModelSettings.from_environment().is_configured:
        return resolve(
            asked, [str(each.text) for each in earlier if isinstance(each, HumanMessage)]
        )
    model = await asyncio.to_thread(chat_model, ChatSettings.from_environment().rewrite_model)
    try:
        # Without this tag the rewrite would be streamed to the client as if it were the answer.
        answer = await model.ainvoke(prompts.rewriting(earlier, asked), {"tags": [TAG_NOSTREAM]})
    except Exception:
        # Any failure is acceptable here: the original question can be searched for as well.
        logger.warning("Question rewrite failed; searched the original question", exc_info=True)
        return asked
    found = " ".join(answer.text.split())
    if not found:
        logger.warning("Question rewrite was empty; searched the original question")
    return found or asked


async def retrieve(state: State, config: RunnableConfig) -> Retrieved:
    """Find the passages of documents that match the question."""
    tenant = caller(config).tenant_id
    found = await asyncio.to_thread(search, state.get("main_question", ""), tenant)
    passages = [
        Found(number=each.number, title=each.title, section=each.section, text=each.text)
        for each in found
    ]
    return {"passages": passages, "citations": []}


async def generate(state: State, runtime: Runtime[Context]) -> Answered:
    """Answer the last question, from the passages if there are any.

    Raises:
        ModelCallError: the model was unreachable, refused the request, or its answer broke off. The
            run fails with this error.
        ValueError: the thread has no messages.
    """
    if not state["messages"]:
        raise ValueError("The thread has no messages: send at least one message")
    # langgraph's types exclude None, but a run without a context gets None outside a server.
    context = runtime.context or Context()  # type: ignore[truthy-bool]
    passages = [Passage(**each) for each in state.get("passages", [])]
    model = await asyncio.to_thread(requested_model, context.model)
    if passages and isinstance(model, OfflineChatModel):
        model = ExtractModel(question=state.get("main_question", ""), passages=passages)
    system_message = prompts.system(context.system_prompt, passages)
    answer = await model.ainvoke([system_message, *window(state["messages"])])
    citations = cited(str(answer.text), passages)
    # Also stored with the message: the state's `citations` are those of the last answer only.
    extra = {**answer.additional_kwargs, **({"citations": citations} if citations else {})}
    return {
        "messages": [answer.model_copy(update={"additional_kwargs": extra})],
        "citations": citations,
    }
