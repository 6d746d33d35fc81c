"""An agent whose calls of tools wait for a person, as LangChain's documentation writes it."""

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool


@tool
def send_email(to: list[str], subject: str, copies: int, urgent: bool = False) -> str:
    """Send an email."""
    return f"sent {copies!r} of {subject!r} to {to!r}, urgent: {urgent!r}"


@tool
def delete_file(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


@tool
def ask_person(question: str) -> str:
    """Ask the person something. The person answers instead of the tool."""
    raise NotImplementedError(question)


class Scripted(BaseChatModel):
    """A model that calls the tools, and then repeats what they have returned."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> "Scripted":
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        results = []
        for each in reversed(messages):
            if not isinstance(each, ToolMessage):
                break
            results.append(str(each.content))
        if results:
            answer = AIMessage("Done: " + "; ".join(reversed(results)))
        else:
            email = {"to": ["ana@example.com"], "subject": "Hello", "copies": 2}
            calls = {
                "send_email": email,
                "delete_file": {"path": "/tmp/old"},
                "ask_person": {"question": "Which one?"},
            }
            wanted = str(messages[-1].content)
            answer = AIMessage(
                "",
                tool_calls=[
                    {"name": name, "args": args, "id": f"call-{len(messages)}-{name}"}
                    for name, args in calls.items()
                    if name in wanted
                ],
            )
        return ChatResult(generations=[ChatGeneration(message=answer)])


graph = create_agent(
    Scripted(),
    [send_email, delete_file, ask_person],
    middleware=[
        HumanInTheLoopMiddleware(
            interrupt_on={
                "send_email": True,
                "delete_file": {"allowed_decisions": ["approve", "reject"]},
                "ask_person": {"allowed_decisions": ["respond"]},
            },
            description_prefix="A person has to look at it",
        )
    ],
)
