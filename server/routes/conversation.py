"""Conversations: functions that the routes of the conversational graphs share."""

from typing import Any
from uuid import UUID

from server.routes.forwarding import Answer, Request

Json = dict[str, Any]

UNFINISHED = {
    "error": "Unfinished",
    "message": "The run was stopped or continues without this stream. Read the thread later",
}
"""The error that the client receives if a stream ends before its run."""


async def find_thread(request: Request, thread_id: str, graph: str) -> UUID | None:
    """Find the caller's thread for a conversation with `graph`.

    Args:
        request: The request. It is answered if there is no such thread.
        thread_id: The id from the client.
        graph: The id of the graph.

    Returns:
        The thread's id. None: the request has been answered with 404, 409 or the platform's error.
    """
    found = await find_or_new_thread(request, thread_id, graph)
    if found is None:
        return None
    identifier, missing = found
    if missing is not None:
        await request.relay(missing)
        return None
    return identifier


async def find_or_new_thread(
    request: Request, thread_id: str, graph: str
) -> tuple[UUID, Answer | None] | None:
    """Find the caller's thread, or accept the id of a new one.

    Args:
        request: The request. It is answered if the id cannot be used.
        thread_id: The id from the client.
        graph: The id of the graph.

    Returns:
        The id, and the platform's 404 if the caller has no such thread; another user may have it.
        None: the request has been answered with 404, 409 or the platform's error.
    """
    try:
        identifier = UUID(thread_id)
    except ValueError:
        await request.refuse(404, {"detail": "Thread not found"})
        return None
    found = await request.call("GET", f"/threads/{identifier}")
    if found.status == 404:
        return identifier, found
    if found.status != 200:
        await request.relay(found)
        return None
    metadata = found.content["metadata"]
    # Before the first run stores `graph_id`, only the thread policy stores the agent. A thread
    # with neither is open to every graph.
    other = metadata.get("graph_id") or metadata.get("agent") or graph
    if other != graph:
        detail = f"Thread {identifier} belongs to the graph {other!r}, not to {graph!r}"
        await request.answer({"error": "other_graph", "detail": detail}, found, status=409)
        return None
    return identifier, None


def text_of(message: Json) -> str:
    """Return the text of a message. Its content is a text or a list of blocks."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content if block.get("type") == "text")
