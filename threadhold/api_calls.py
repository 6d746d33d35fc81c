"""API calls: the functions behind the API's routes, called as a user without a request.

So a host's route does what the API's route does: the same check of the body, the same handlers, hooks
and limits, and the same refusals.
"""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import jsonschema_rs
import orjson
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.gate.idempotency import gone
from threadhold.http import error_handlers, idempotency
from threadhold.stock import endpoints
from threadhold.users import User, acting

Json = dict[str, Any]

REPEATED = "threadhold.repeated"
"""Key of the ASGI scope of a request that repeats an earlier one."""
_CREATED = "threadhold.created"
# Of a repetition, a stream begins at its first event.
_LAST_EVENT = b"last-event-id"


@dataclass(frozen=True)
class Call:
    """A call of a function that answers a route of the API.

    Attributes:
        function: Its name in `threadhold.stock.endpoints`.
        method: The method of the route.
        route: Its path, with names for the parameters.
        values: The values of the parameters.
        query: The query.
        body: The body.
    """

    function: str
    method: str
    route: str
    values: Mapping[str, Any] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None

    @property
    def content(self) -> bytes:
        """The body as JSON."""
        return b"" if self.body is None else orjson.dumps(self.body)

    async def answer(self, user: User) -> Any:
        """Call the function as a user.

        Raises:
            HTTPException: it refuses.
        """
        from langgraph_api import route

        function = endpoints.find(self.function)
        request = route.ApiRequest(self._scope(user))
        request._body = bytearray(self.content)
        with acting(user):
            try:
                return await function(request)
            except jsonschema_rs.ValidationError as error:
                raise HTTPException(422, error_handlers.shortened(str(error))) from error

    def _scope(self, user: User) -> Json:
        path = self.route.format(**self.values)
        headers = [each for each in user.asgi["headers"] if each[0] != _LAST_EVENT]
        return {
            "type": "http",
            "method": self.method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": urlencode(self.query).encode(),
            "headers": [*headers, (_LAST_EVENT, b"-")],
            "path_params": {name: str(each) for name, each in self.values.items()},
            "route": self.route,
            "user": user.fields,
            "auth": user.credentials,
        }


def content_of(answer: Any) -> Any:
    """Return the parsed JSON of an answer."""
    return orjson.loads(answer.body)


async def once(user: User, call: Call) -> tuple[dict[str, str] | None, Any]:
    """Call a function that creates something, unless the request repeats an earlier one.

    Returns:
        The ids of what the earlier request has created, or None; and the answer.
    """
    # One request may create a thread and several runs.
    number = user.asgi.get(_CREATED, 0)
    repeatable = idempotency.repeatable(user.asgi, user.fields, call.content, number)
    token = request_context.idempotency.set(repeatable)
    try:
        found, made = None, await call.answer(user)
    except HTTPException:
        if repeatable is None or repeatable.found is None:
            raise
        found, made = {name: str(each) for name, each in repeatable.found.items()}, None
        user.asgi[REPEATED] = True
    finally:
        request_context.idempotency.reset(token)
    user.asgi[_CREATED] = number + 1
    return found, made


async def again(reading: Awaitable[Json], ids: dict[str, str]) -> Json:
    """Read what an earlier request has created.

    Raises:
        HTTPException: (409) it is gone, or hidden from the user.
    """
    try:
        return await reading
    except HTTPException as error:
        if error.status_code != 404:
            raise
        raise HTTPException(409, gone(**ids)) from error
