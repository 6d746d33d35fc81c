"""A graph that is no chat: inputs, context, progress, and a result in its state."""

from typing import Any, Literal

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from pydantic import BaseModel, Field


class Author(BaseModel):
    name: str
    age: int = Field(ge=18)


class Input(BaseModel):
    """What a report is about."""

    topic: str = Field(description="What to write about", min_length=3)
    pages: int = Field(2, ge=1, le=9)
    style: Literal["plain", "formal"] = "plain"
    draft: bool = False
    tags: list[str] = []
    authors: list[Author] = []
    limit: float | None = None


class State(Input):
    outline: list[str] = []
    report: str = ""
    facts: dict[str, Any] = {}


class Context(BaseModel):
    """How the report is written."""

    tone: Literal["dry", "warm"] = "dry"
    words: int = 100


async def plan(state: State) -> dict[str, Any]:
    writer = get_stream_writer()
    for i in range(state.pages):
        writer({"stage": "planning", "page": i + 1, "of": state.pages})
    return {"outline": [f"Page {i + 1}" for i in range(state.pages)]}


async def write(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
    given = state.model_dump(exclude={"outline", "report", "facts"})
    context = runtime.context or Context()
    facts = {"input": given, "tone": context.tone, "words": context.words}
    return {"report": f"# {state.topic}\n\nA report in {len(state.outline)} pages.", "facts": facts}


graph = (
    StateGraph(State, input_schema=Input, context_schema=Context)
    .add_node(plan)
    .add_node(write)
    .add_edge(START, "plan")
    .add_edge("plan", "write")
    .add_edge("write", END)
    .compile()
)
