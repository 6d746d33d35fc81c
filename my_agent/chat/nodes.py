"""The steps of a conversation over documents."""

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
from my_agent.models import ModelSettings, chat_model
from my_agent.offline import OfflineChatModel
from my_agent.user import caller

logger = logging.getLogger(__name__)


async def rewrite(state: State, config: RunnableConfig) -> Rewritten:
    """Makes a follow-up question stand by itself, so that it can be searched for.

    A first question stays as it is, and so does any where there is nothing to search.
    """
    asked = question(state["messages"])
    earlier = before(window(state["messages"]))
    if not asked or not question(earlier):
        return {"main_question": asked}
    searched: bool = await asyncio.to_thread(has_documents, caller(config).tenant_id)
    return {"main_question": await completed(asked, earlier) if searched else asked}


async def completed(asked: str, earlier: Sequence[AnyMessage]) -> str:
    """A question with what it takes from the conversation before it.

    Without a model, references are resolved by what was asked about before.
    """
    if not ModelSettings.from_environment().is_configured:
        return resolve(
            asked, [str(each.text) for each in earlier if isinstance(each, HumanMessage)]
        )
    model = await asyncio.to_thread(chat_model, ChatSettings.from_environment().rewrite_model)
    try:
        # Nobody who watches the answer is to see this one.
        answer = await model.ainvoke(prompts.rewriting(earlier, asked), {"tags": [TAG_NOSTREAM]})
    except Exception:
        # Whatever it is, the question can be searched for as it was asked.
        logger.warning("A question was searched for as it was asked: no rewrite", exc_info=True)
        return asked
    found = " ".join(answer.text.split())
    if not found:
        logger.warning("A question was searched for as it was asked: the rewrite is empty")
    return found or asked


async def retrieve(state: State, config: RunnableConfig) -> Retrieved:
    """Finds the passages of documents that the question is about."""
    tenant = caller(config).tenant_id
    found = await asyncio.to_thread(search, state.get("main_question", ""), tenant)
    passages = [
        Found(number=each.number, title=each.title, section=each.section, text=each.text)
        for each in found
    ]
    return {"passages": passages, "citations": []}


async def generate(state: State, runtime: Runtime[Context]) -> Answered:
    """Answers the end of the conversation, from the passages if there are any.

    Raises:
        ModelCallError: the model was not reached, refused, or broke off; the run fails with it.
        ValueError: there is nothing to answer.
    """
    if not state["messages"]:
        raise ValueError("There is nothing to answer: send at least one message")
    # langgraph's types deny it, but outside a server a run without a context has None here.
    context = runtime.context or Context()  # type: ignore[truthy-bool]
    passages = [Passage(**each) for each in state.get("passages", [])]
    model = await asyncio.to_thread(chat_model, context.model)
    if passages and isinstance(model, OfflineChatModel):
        model = ExtractModel(question=state.get("main_question", ""), passages=passages)
    told = prompts.system(context.system_prompt, passages)
    answer = await model.ainvoke([told, *window(state["messages"])])
    citations = cited(str(answer.text), passages)
    # With the answer, too, because those of the thread are the last answer's alone.
    kept = {**answer.additional_kwargs, **({"citations": citations} if citations else {})}
    return {
        "messages": [answer.model_copy(update={"additional_kwargs": kept})],
        "citations": citations,
    }
