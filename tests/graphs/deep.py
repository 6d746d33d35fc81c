"""A deep agent whose messages are a delta channel, with a model that follows a script.

A message of the user is a list of tool calls: `look 8` calls the tool eight times at once, `ask` calls
one that interrupts, `send 3 look 8` sends three sub-agents, each with the message `look 8`. For any
other message, and after the tools, the model tells what it sees, in order.
"""

from collections.abc import Sequence
from typing import Any

from deepagents import create_deep_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.types import interrupt


class Script(BaseChatModel):
    """A model that calls the tools that the last message of the user names."""

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        told = [each for each in messages if not isinstance(each, SystemMessage)]
        calls = called(str(told[-1].content)) if isinstance(told[-1], HumanMessage) else []
        turn = len(told)
        answer = AIMessage(
            "" if calls else f"I see {seen(told)}",
            tool_calls=[
                {"name": name, "args": args, "id": f"call-{turn}-{at}"}
                for at, (name, args) in enumerate(calls)
            ],
        )
        return ChatResult(generations=[ChatGeneration(message=answer)])


def called(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the tool calls that a message asks for."""
    match text.split():
        case ["look", count, *rest]:
            looks = [("look", {"place": place}) for place in range(int(count))]
            return [*looks[:5], *called(" ".join(rest)), *looks[5:]]
        case ["ask", *_]:
            return [("ask", {"question": "sure?"})]
        case ["send", count, *rest]:
            orders = [" ".join([*rest, f"#{at}"]) for at in range(int(count))]
            return [("task", {"subagent_type": "scout", "description": each}) for each in orders]
    return []


def seen(messages: Sequence[AnyMessage | BaseMessage]) -> str:
    """Describe messages in a few words each."""
    words = (
        "calls" if isinstance(each, AIMessage) and each.tool_calls else f"<{each.content}>"
        for each in messages
        if not isinstance(each, AIMessage) or each.tool_calls
    )
    return ", ".join(words)


@tool
async def look(place: int) -> str:
    """Look at a place."""
    return f"place {place}"


@tool
async def ask(question: str) -> str:
    """Ask the user."""
    return f"the user says {interrupt(question)}"


scout = create_deep_agent(model=Script(), tools=[look, ask])
graph = create_deep_agent(
    model=Script(),
    tools=[look, ask],
    subagents=[{"name": "scout", "description": "Looks at places.", "runnable": scout}],
)
