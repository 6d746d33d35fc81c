"""Idempotency: answer a repeated creation with what the first request has created."""

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from langgraph_runtime_sql import process, request_context
from langgraph_runtime_sql.gate.idempotency import Repeatable, gone
from langgraph_runtime_sql.tenancy import tenants
from threadhold.http import request_body
from threadhold.http.layers import Exchange, Step

HEADER = "idempotency-key"
REPLAYED = "idempotent-replayed"
MAX_LENGTH = 255
_THREAD, _RUN = "/threads/{thread_id}", "/threads/{thread_id}/runs/{run_id}"
# Routes that create a thread or run, each with the routes that answer a repetition: a read, whose
# filters the repetition passes, and the one that joins the run.
_CREATIONS: dict[str, tuple[str, ...]] = {
    "/threads": (_THREAD,),
    f"{_THREAD}/copy": (_THREAD,),
    **{
        f"{prefix}{end}": (_RUN, *joins)
        for prefix in ("/runs", "/threads/{thread_id}/runs")
        for end, joins in (
            ("", ()),
            ("/stream", (f"{_RUN}/stream",)),
            ("/wait", (f"{_RUN}/join",)),
        )
    },
}
# Routes that would act again. All others only read, or a repetition asks for what already holds:
# `docs/how-to/once.md` has every route.
_REFUSED = {
    ("POST", "/assistants"),
    # Each change of an assistant makes a version.
    ("PATCH", "/assistants/{assistant_id}"),
    ("POST", "/runs/batch"),
    ("POST", "/runs/crons"),
    ("POST", "/threads/{thread_id}/runs/crons"),
    ("POST", "/threads/{thread_id}/state"),
    ("POST", "/threads/{thread_id}/commands"),
    ("POST", "/mcp"),
    ("POST", "/mcp/"),
    ("POST", "/a2a/{assistant_id}"),
    ("POST", "/a2a/{assistant_id}/"),
}
REFUSAL = (
    "This route does not support the header Idempotency-Key: a repetition would act again. Send the "
    "request without the header."
)
_OF_BODY = (b"content-length", b"content-type", b"transfer-encoding", b"last-event-id")
# The place in an ASGI scope of the fingerprint of the client's own request.
_CLIENT_REQUEST = "threadhold.client_request"
_INVALID = f"There must be one header Idempotency-Key, with 1 to {MAX_LENGTH} characters"


def note_client_request(scope: Scope, body: bytes) -> None:
    """Let the repetition of a request be recognized by its own body, whatever a route makes of it."""
    if has_key(scope):
        scope.setdefault(_CLIENT_REQUEST, _digest(scope["path"], body))


def repeatable(scope: Scope, user: Any, body: bytes, number: int = 0) -> Repeatable | None:
    """Return what recognizes a repetition of a request; None for a request without a key.

    Args:
        scope: The ASGI scope.
        user: The authenticated user.
        body: What is asked for, if the body of the client's request was not noted.
        number: How many objects the request has created before.

    Raises:
        HTTPException: (422) the header is invalid.
    """
    found = Headers(scope=scope).getlist(HEADER) if has_key(scope) else []
    if not found:
        return None
    if len(found) > 1 or not 0 < len(found[0]) <= MAX_LENGTH:
        raise HTTPException(422, _INVALID)
    tenant = tenants.of_user(user, process.configuration().options.tenant_key)
    further = [str(number)] if number else []
    name = _digest(tenant or "", str(getattr(user, "identity", "") or ""), found[0], *further)
    return Repeatable(name, scope.get(_CLIENT_REQUEST) or _digest(scope["path"], body))


class Idempotency:
    """Let a request with `Idempotency-Key` create its thread or run once.

    Args:
        reads: Path and application of the route that reads the thread or run, and of the one that
            joins the run, if that answers repetitions.
    """

    def __init__(self, reads: list[tuple[str, ASGIApp]]) -> None:
        self._reads = reads

    async def __call__(self, exchange: Exchange) -> None:
        scope, send = exchange.scope, exchange.send
        if not has_key(scope) or scope["method"] != "POST":
            return
        body = await request_body.read(scope, exchange.receive)
        if (request := repeatable(scope, scope.get("user"), body)) is None:
            raise HTTPException(422, _INVALID)

        async def send_unless_repeated(message: Message) -> None:
            # The refusal of a repetition, which gets another answer below.
            if request.found is None:
                await send(message)

        async def repeat(error: BaseException | None) -> None:
            if error is None and request.found is not None:
                await self._repeat(request.found, scope, exchange.receive, send)

        exchange.send = send_unless_repeated
        exchange.at_end(repeat)
        token = request_context.idempotency.set(request)
        exchange.after(request_context.idempotency.reset, token)

    async def _repeat(
        self, found: dict[str, Any], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a repetition with the thread, the run, or the run's stream or result."""
        ids: dict[str, str] = {name: str(each) for name, each in found.items()}

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers[REPLAYED] = "true"
                if "run_id" in ids:
                    headers["content-location"] = _RUN.format(**ids)
            await send(message)

        read: list[Message] = []

        async def keep(message: Message) -> None:
            read.append(message)

        plain, *joins = self._reads
        await plain[1](_reading(scope, plain[0], ids), receive, keep)
        if read[0]["status"] == 404:
            # Somebody else's now, or deleted since the transaction that found it.
            await JSONResponse({"detail": gone(**ids)}, 409)(scope, receive, send)
        elif joins and read[0]["status"] == 200:
            [(path, app)] = joins
            await app(_reading(scope, path, ids), receive, marked)
        else:
            for message in read:
                await marked(message)


def _reading(scope: Scope, path: str, ids: dict[str, str]) -> Scope:
    """Return the scope of a GET on behalf of the same caller."""
    headers = [each for each in scope["headers"] if each[0] not in _OF_BODY]
    # From the beginning of the stream, as in the first answer.
    headers.append((b"last-event-id", b"-"))
    return {
        **scope,
        "method": "GET",
        "path": path.format(**ids),
        "raw_path": path.format(**ids).encode(),
        "path_params": ids,
        "query_string": b"",
        "headers": headers,
    }


def _digest(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def has_key(scope: Scope) -> bool:
    """Return whether a request has the header."""
    return scope["type"] == "http" and HEADER in Headers(scope=scope)


def _refusing(refused: Collection[str]) -> Step:
    """Refuse keys of requests with one of these methods."""

    async def refuse_keys(exchange: Exchange) -> ASGIApp | None:
        if not has_key(exchange.scope) or exchange.scope["method"] not in refused:
            return None
        return JSONResponse({"detail": REFUSAL}, 422)

    return refuse_keys


def steps(path: str, methods: Collection[str], reads: Mapping[str, ASGIApp]) -> list[Step]:
    """Return the steps of a route that creates something, and so knows or refuses keys.

    Args:
        path: The path of the route.
        methods: Its methods.
        reads: By path, the applications of the routes that answer `GET`.
    """
    if "POST" in methods and (paths := _CREATIONS.get(path)) is not None:
        return [Idempotency([(each, reads[each]) for each in paths])]
    refused = {each for each in methods if (each, path) in _REFUSED}
    return [_refusing(refused)] if refused else []
