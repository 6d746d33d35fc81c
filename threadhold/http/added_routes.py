"""Added routes: those that Threadhold adds to the API's own, inside of its authentication and limits."""

from collections.abc import Iterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from langgraph_runtime_sql.ops.runs import partial
from langgraph_runtime_sql.ops.threads import finding, listening
from threadhold import users

Json = dict[str, Any]
_TEXT: Json = {"type": "string"}
_NAME: Json = {"type": ["string", "null"]}
_ID: Json = {**_TEXT, "format": "uuid"}


def install(app: Starlette) -> None:
    """Put the routes before the API's, of which `/threads/{thread_id}` would take the first.

    Args:
        app: The stock application, before the layers around its routes.
    """
    from langgraph_api.route import ApiRoute

    made = [
        ApiRoute("/me", read_caller, methods=["GET"]),
        ApiRoute("/threads/stream", stream_threads, methods=["GET"]),
        ApiRoute("/threads/find", find_threads, methods=["GET"]),
        ApiRoute("/threads/{thread_id}/runs/{run_id}/partial", read_partial, methods=["GET"]),
    ]
    for route in made:
        # An answer to HEAD would have no end.
        route.methods = {"GET"}
    for routes in _lists(app.router.routes):
        served = {each.path for each in routes if isinstance(each, ApiRoute)}
        if served:
            # A project may switch the routes of threads off.
            has_threads = "/threads/search" in served
            routes[:0] = [each for each in made if has_threads or each.path == "/me"]


def _lists(routes: list[BaseRoute]) -> Iterator[list[Any]]:
    """Yield the lists of routes of an application, with those of its mounts."""
    yield routes
    for route in routes:
        if (inner := getattr(route, "routes", None)) is not None:
            yield from _lists(inner)


def _json(schema: Json) -> Json:
    """Return the description of a JSON answer."""
    return {"description": "Success", "content": {"application/json": {"schema": schema}}}


async def stream_threads(request: Request) -> Response:
    """Stream which of the caller's threads change."""
    from langgraph_api.sse import EventSourceResponse

    answer: Response = EventSourceResponse(listening.listen(await listening.listed()))
    return answer


async def find_threads(request: Request) -> Response:
    """Answer with the caller's threads that have the words of the query's `text`."""
    from langgraph_api.route import ApiResponse

    answer: Response = ApiResponse(await finding.find(request.query_params.get("text", "")))
    return answer


async def read_partial(request: Request) -> Response:
    """Answer with the messages that a run has streamed and that its thread's state does not have."""
    from langgraph_api.route import ApiResponse

    names = request.path_params
    found = await partial.streamed(names["thread_id"], names["run_id"])
    answer: Response = ApiResponse({"messages": found})
    return answer


async def read_caller(request: Request) -> Response:
    """Answer with what the project's authentication says about the caller, for a page to show."""
    user = await users.of(request)
    return JSONResponse(
        {
            "identity": user.identity or None,
            "display_name": user.display_name or None,
            "tenant": user.tenant,
            "permissions": list(user.permissions),
        },
        headers={"cache-control": "no-store"},
    )


DESCRIPTION: Json = {
    "paths": {
        "/me": {
            "get": {
                "tags": ["System"],
                "summary": "Get Caller",
                "description": "Who the caller is, as the project's authentication says.",
                "operationId": "get_caller_me_get",
                "responses": {
                    "200": _json(
                        {
                            "type": "object",
                            "required": ["identity", "display_name", "tenant", "permissions"],
                            "properties": {
                                "identity": _NAME,
                                "display_name": _NAME,
                                "tenant": _NAME,
                                "permissions": {"type": "array", "items": _TEXT},
                            },
                        }
                    )
                },
            }
        },
        "/threads/stream": {
            "get": {
                "tags": ["Threads"],
                "summary": "Stream Changed Threads",
                "description": "Server-sent events, while the client listens. `ready`: what is read "
                "from now on lacks no change that is not told. `thread`: a thread of the caller, or "
                "its runs, have changed; the newest row, at most four times a second. `deleted`: a "
                "thread is gone, or no longer shown to the caller. `overflow`: read the list again. "
                "`resume`: the server stops; ask again.",
                "operationId": "stream_threads_threads_stream_get",
                "responses": {
                    "200": {
                        "description": "Success",
                        "content": {
                            "text/event-stream": {
                                "schema": {
                                    **_TEXT,
                                    "description": "The data of `thread` has thread_id, status, "
                                    "updated_at, state_updated_at, metadata and interrupts, as "
                                    "`POST /threads/search`, and active, the ids of the runs that are "
                                    "not over; that of `deleted` has thread_id.",
                                }
                            }
                        },
                    }
                },
            }
        },
        "/threads/find": {
            "get": {
                "tags": ["Threads"],
                "summary": "Find Threads By Words",
                "description": "The newest threads of the caller whose title or state has all words of a "
                "text, in any case. It reads the 500 newest threads, for at most two seconds.",
                "operationId": "find_threads_threads_find_get",
                "parameters": [
                    {
                        "name": "text",
                        "in": "query",
                        "required": True,
                        "schema": {**_TEXT, "minLength": 1, "maxLength": finding.LONGEST},
                    }
                ],
                "responses": {
                    "200": _json(
                        {
                            "type": "object",
                            "required": ["threads", "is_complete"],
                            "properties": {
                                "threads": {
                                    "type": "array",
                                    "items": {"type": "object"},
                                    "description": "At most 20, each with thread_id, status, "
                                    "updated_at, state_updated_at, metadata, interrupts, and the "
                                    "excerpt with the words, which is null if the title has them.",
                                },
                                "is_complete": {
                                    "type": "boolean",
                                    "description": "Whether all threads were read.",
                                },
                            },
                        }
                    ),
                    "422": {"description": "The text has no words, or is too long"},
                },
            }
        },
        "/threads/{thread_id}/runs/{run_id}/partial": {
            "get": {
                "tags": ["Thread Runs"],
                "summary": "Get Partial Messages",
                "description": "The messages that a run has streamed and that the state of its thread "
                "does not have, such as one that was cut when the run was cancelled. Empty for a run "
                "that has succeeded, and when its events are no longer kept.",
                "operationId": "partial_threads__thread_id__runs__run_id__partial_get",
                "parameters": [
                    {"name": name, "in": "path", "required": True, "schema": _ID}
                    for name in ("thread_id", "run_id")
                ],
                "responses": {
                    "200": _json(
                        {
                            "type": "object",
                            "required": ["messages"],
                            "properties": {
                                "messages": {"type": "array", "items": {"type": "object"}}
                            },
                        }
                    ),
                    "404": {"description": "The thread has no such run"},
                    "422": {"description": "An id is no UUID"},
                },
            }
        },
    }
}
"""The routes as OpenAPI has them."""
