"""Conversations: what the routes of the conversational graphs share."""

from typing import Any
from uuid import UUID

from starlette.exceptions import HTTPException

from server.routes.endpoint import Caller, Json, Refusal
from threadhold import operations

UNFINISHED = {
    "error": "Unfinished",
    "message": "The run was stopped or continues without this stream. Read the thread later",
}
"""The error that the client receives if a stream ends before its run."""


async def find_thread(caller: Caller, thread_id: str, graph: str) -> Json:
    """Return the caller's thread for a conversation with `graph`.

    Args:
        caller: The user of the request.
        thread_id: The id from the client.
        graph: The id of the graph.

    Raises:
        HTTPException: (404) the caller has no such thread; (409) it is of another graph.
    """
    found = await operations.read_thread(caller.user, str(as_id(thread_id)))
    metadata = found["metadata"]
    # Before the first run stores `graph_id`, only the thread policy stores the agent. A thread
    # with neither is open to every graph.
    other = metadata.get("graph_id") or metadata.get("agent") or graph
    if other != graph:
        detail = f"Thread {found['thread_id']} belongs to the graph {other!r}, not to {graph!r}"
        raise Refusal(409, {"error": "other_graph", "detail": detail})
    return found


async def is_new(caller: Caller, thread_id: str, graph: str) -> bool:
    """Return whether the caller has no thread with this id; another user may have it.

    Raises:
        HTTPException: (404) it is no id; (409) the thread is of another graph.
    """
    as_id(thread_id)
    try:
        await find_thread(caller, thread_id, graph)
    except HTTPException as error:
        if error.status_code != 404:
            raise
        return True
    return False


def as_id(thread_id: str) -> UUID:
    """Return the id of a thread that a client names.

    Raises:
        HTTPException: (404) it is no id.
    """
    try:
        return UUID(thread_id)
    except ValueError as error:
        raise HTTPException(404, "Thread not found") from error


def text_of(message: Json) -> str:
    """Return the text of a message. Its content is a text or a list of blocks."""
    content: Any = message["content"]
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content if block.get("type") == "text")
