"""Ask the question that the message names, and tell what was answered, with its type."""

from typing import Any

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send, interrupt

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where to go"},
        "days": {"type": "integer", "minimum": 1, "maximum": 10},
        "budget": {"type": "number"},
        "class": {"enum": ["first", "second"]},
        "window": {"type": "boolean", "default": True},
        "stops": {"type": "array", "items": {"type": "string"}},
        "hotel": {"anyOf": [{"$ref": "#/$defs/Hotel"}, {"type": "null"}], "default": None},
    },
    "required": ["city", "days"],
    "$defs": {
        "Hotel": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "stars": {"type": "integer"}},
            "required": ["name"],
        }
    },
}
QUESTIONS: dict[str, Any] = {
    "go": "go on?",
    "string": "What is your name?",
    "confirm": "Do you approve this action?",
    "words": "Shall I go on? (yes/no)",
    "agree": {"question": "The terms are fine for you?", "schema": {"type": "boolean"}},
    "options": {"question": "How many?", "options": [1, 2, {"label": "Many", "value": {"n": 9}}]},
    "object": {"invoice": {"total": 12.5, "lines": ["ink", "paper"]}, "note": "to be checked"},
    "number": {"question": "How old?", "schema": {"type": "number", "minimum": 0}},
    "form": {"message": "Plan the journey.", "json_schema": SCHEMA},
    "pause": {},
    "letter": {
        "action_request": {"action": "Question", "args": {"question": "Which tone?"}},
        "config": {"allow_respond": True, "allow_ignore": True},
    },
    "inbox": [
        {
            "action_request": {"action": "book", "args": {"seat": 4, "name": "Ana"}},
            "config": {
                "allow_accept": True,
                "allow_edit": True,
                "allow_respond": True,
                "allow_ignore": True,
            },
            "description": "Book a **seat**.",
        }
    ],
}


def route(state: MessagesState) -> list[Send]:
    names = str(state["messages"][-1].content).split()
    if not all(name in QUESTIONS or name in ("strict", "twice") for name in names):
        names = ["go"]
    return [Send("ask", {"name": name}) for name in names]


async def ask(state: dict[str, Any]) -> MessagesState:
    name = state["name"]
    if name == "strict":
        answer = interrupt("Write a number of months.")
        if not answer.isdigit():
            raise ValueError(f"{answer!r} is no number")
    elif name == "twice":
        answer = interrupt("For how many days?")
        while not answer.isdigit():
            answer = interrupt(f"{answer} is no number. Once more?")
    else:
        answer = interrupt(QUESTIONS[name])
    return {"messages": [AIMessage(f"{name}: {type(answer).__name__} {answer!r}")]}


graph = (
    StateGraph(MessagesState)
    .add_node(ask)
    .add_conditional_edges(START, route, ["ask"])
    .add_edge("ask", END)
    .compile()
)
