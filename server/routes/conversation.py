"""Conversations: what the routes of those graphs have in common with which one talks."""

from typing import Any, TypeVar
from uuid import UUID

from pydantic import BaseModel, ValidationError

from server.routes.forwarding import Request

Body = TypeVar("Body", bound=BaseModel)
Json = dict[str, Any]

UNFINISHED = {
    "error": "Unfinished",
    "message": "The run was stopped, or goes on elsewhere: read the thread later",
}
"""What is said where a stream ends and its run has not."""


async def read_body(request: Request, model: type[Body]) -> Body | None:
    """The body as a `model`; None once the request is refused."""
    try:
        return model.model_validate_json(request.body)
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}" for each in error.errors()
        ]
        await request.refuse(422, {"detail": "; ".join(problems)})
        return None


async def find_thread(request: Request, thread_id: str, graph: str) -> UUID | None:
    """The caller's conversation with `graph`; None once the request is refused."""
    try:
        identifier = UUID(thread_id)
    except ValueError:
        await request.refuse(404, {"detail": "Thread not found"})
        return None
    found = await request.ask("GET", f"/threads/{identifier}")
    if found.status != 200:
        await request.relay(found)
        return None
    metadata = found.content["metadata"]
    # The thread policy knows whose thread it is before the first run says so. Without either, it
    # is not yet anybody's.
    other = metadata.get("graph_id") or metadata.get("agent") or graph
    if other != graph:
        detail = f"Thread {identifier} is a conversation with {other!r}, not with {graph!r}"
        await request.answer({"error": "other_graph", "detail": detail}, found, status=409)
        return None
    return identifier


def text_of(message: Json) -> str:
    """The text of a message, whose content may be in blocks."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content if block.get("type") == "text")
