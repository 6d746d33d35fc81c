"""Wishes: what a message without data wants. What is not certain is read by a model, if there is one."""

from typing import Literal

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, ConfigDict, Field

from my_agent.asking import Failed, structured
from my_agent.diagnosis import words
from my_agent.diagnosis.state import Wish
from my_agent.understanding import quotes

PROMPT = """An assistant investigates an incident from logs that a person pastes. Say what the person's message \
wants, and quote the words that say it. {question}
- conclude: end the search for evidence with what there is, or say that there is no more.
- status: know what was found so far, how sure it is, or why.
- report: have the report.
- help: know what the assistant can do.
- remark: tell something, also an opinion about the cause, or give an order that changes the confidence.
- thanks: nothing but thanks."""


class Said(BaseModel):
    """What a message wants."""

    model_config = ConfigDict(extra="ignore")

    wish: Literal["conclude", "status", "report", "help", "remark", "thanks"]
    quote: str = Field(default="", max_length=2_000)


async def read(
    said: str,
    question: str | None,
    *,
    has_sources: bool,
    name: str | None,
    config: RunnableConfig,
) -> Wish:
    """Return what a message without data wants.

    Args:
        said: the message.
        question: the open question for more evidence, or None.
        has_sources: whether the session has something to read.
        name: name of the model; None: the configured one.
        config: config of the run.

    Raises:
        ModelNotAllowedError: the settings do not allow the model.
    """
    certain = words.wish(said, has_sources=has_sources, is_asked=question is not None)
    if certain is not None:
        return certain
    if not has_sources:
        return "ask"
    asked = f"It has asked: {question[:600]}" if question is not None else ""
    messages = [SystemMessage(PROMPT.format(question=asked)), HumanMessage(said[:4_000])]
    answer = await structured(Said, messages, model=name, config=config)
    if answer is None or isinstance(answer, Failed):
        return "status" if said.rstrip().endswith("?") else "remark"
    found = answer.value
    is_said = quotes.find(found.quote, said) is not None
    # The search ends only by words of the person.
    return found.wish if is_said or found.wish != "conclude" else "remark"
