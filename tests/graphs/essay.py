"""A graph of the functional API that takes a text, and asks about what it has written."""

from typing import Any

from langgraph.func import entrypoint
from langgraph.types import interrupt


@entrypoint()
async def graph(topic: str) -> dict[str, Any]:
    essay = f"About {topic}."
    answer = interrupt({"essay": essay, "question": "Do you approve this essay?"})
    return {"essay": essay, "approved": f"{type(answer).__name__} {answer}"}
