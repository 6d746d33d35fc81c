"""A function: its state is what it returned last, here a text, and it asks a question if told to."""

from typing import Any

from langgraph.func import entrypoint
from langgraph.types import interrupt


@entrypoint()
async def graph(input: dict[str, Any]) -> str:
    return str(interrupt(input["question"])) if "question" in input else "done"
