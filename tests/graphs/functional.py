"""A graph of the functional API. Its state is its last result, a text. It may ask a question."""

from typing import Any

from langgraph.func import entrypoint
from langgraph.types import interrupt


@entrypoint()
async def graph(input: dict[str, Any]) -> str:
    return str(interrupt(input["question"])) if "question" in input else "done"
