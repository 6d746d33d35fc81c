"""Endpoints: routes of the products. Their handlers get the caller, and a typed body and query.

OpenAPI describes them by these types and the first line of the handler's docstring.
"""

import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from my_agent.keys import TENANT_ID
from my_agent.user import LOCAL, User
from threadhold import gate, operations, users
from threadhold.gate import Operation
from threadhold.host import NO_IDEMPOTENCY_KEY, REPLAYED, LargeBody, read_json

Json = dict[str, Any]
Model = TypeVar("Model", bound=BaseModel)
# The arguments after the caller are `body` and `query`, if the handler has them.
Handler = Callable[..., Awaitable[ASGIApp | Json]]


@dataclass(frozen=True)
class Caller:
    """A request, and its authenticated user.

    Attributes:
        request: The request.
        user: The authenticated user.
    """

    request: Request
    user: users.User

    @property
    def person(self) -> User:
        """The user as the graphs know it, with the tenant whose rows it may touch."""
        if not self.user.identity:
            return LOCAL
        return User(str(self.user.get(TENANT_ID)), self.user.identity)

    @property
    def tenant(self) -> str:
        """The tenant whose rows the user may touch."""
        return self.person.tenant_id

    def name(self, parameter: str) -> str:
        """Return the value of a parameter of the path."""
        return str(self.request.path_params[parameter])

    def header(self, name: str) -> str:
        """Return a header, or an empty text."""
        return self.request.headers.get(name, "")

    def accepts(self, kind: str) -> bool:
        """Return whether the client names a media type among those that it accepts."""
        return kind in ",".join(self.request.headers.getlist("accept")).lower()

    def writing(self, operation: Operation, **detail: Any) -> AbstractAsyncContextManager[None]:
        """Let the block write to the graphs' tables, as `gate.admitted`."""
        return gate.admitted(operation, self.user, **detail)

    async def enter(self, operation: Operation, **detail: Any) -> None:
        """Enter in the audit log what the caller reads."""
        await gate.entered(operation, self.user, **detail)


class Refusal(HTTPException):
    """A refusal whose answer is more than its `detail`.

    Args:
        status: The HTTP status.
        content: The body of the answer.
        headers: More headers.
    """

    def __init__(self, status: int, content: Json, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, str(content.get("detail", "")), headers)
        self.content = content


class Endpoint(Route):
    """A route of a product.

    Args:
        route: Method and path.
        handler: Answers it. A dict is sent as JSON.
        acts_again: A repeated request would act again, so the header `Idempotency-Key` is refused.
        permission: The permission that the caller needs. None: the caller needs a tenant.
        otherwise: The JSON that replaces an empty body.
        convert: Makes the JSON of a body that may have another type.
        large: What it reads beyond the usual size of bodies. The handler reads it.

    Attributes:
        named: Method and path.
    """

    def __init__(
        self,
        route: str,
        handler: Handler,
        *,
        acts_again: bool = False,
        permission: str | None = None,
        otherwise: bytes = b"",
        convert: Callable[[Request, bytes], bytes] | None = None,
        large: Callable[[], LargeBody] | None = None,
    ) -> None:
        method, _, path = route.partition(" ")
        super().__init__(path, self._answer, methods=[method])
        types = get_type_hints(handler)
        self.named, self.method = route, method
        self.handler, self.large = handler, large
        self.body: type[BaseModel] | None = types.get("body")
        self.query: type[BaseModel] | None = types.get("query")
        self._acts_again, self._permission = acts_again, permission
        self._otherwise, self._convert = otherwise, convert

    async def _answer(self, request: Request) -> ASGIApp:
        user = await users.of(request)
        await self._admit(user)
        arguments: Json = {}
        if self.method not in ("GET", "DELETE") and self.large is None:
            # Also without a type: what a client sends must be within the limits.
            content = await read_json(request)
            if self._acts_again and "idempotency-key" in request.headers:
                raise HTTPException(422, NO_IDEMPOTENCY_KEY)
            if self.body is not None:
                content = content if self._convert is None else self._convert(request, content)
                arguments["body"] = _parsed(self.body, content or self._otherwise)
        if self.query is not None:
            arguments["query"] = _queried(self.query, request)
        try:
            answer = await self.handler(Caller(request, user), **arguments)
        except Refusal as refusal:
            return JSONResponse(refusal.content, refusal.status_code, refusal.headers)
        response = JSONResponse(answer) if isinstance(answer, dict) else answer
        if operations.is_repetition(user) and isinstance(response, Response):
            response.headers[REPLAYED] = "true"
        return response

    async def _admit(self, user: users.User) -> None:
        if self._permission is not None:
            user.require(self._permission)
            return
        await operations.permit(user)
        if user.identity and not user.get(TENANT_ID):
            # Another authentication, whose tenants are unknown.
            raise HTTPException(404)


def endpoint(route: str, **options: Any) -> Callable[[Handler], Endpoint]:
    """Make an `Endpoint` of a handler. The arguments are those of `Endpoint`."""
    return lambda handler: Endpoint(route, handler, **options)


def _parsed(model: type[Model], content: bytes) -> Model:
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        raise HTTPException(422, _problems(error, "body")) from error


def _queried(model: type[Model], request: Request) -> Model:
    values = {name: value for name, value in request.query_params.items() if value}
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise HTTPException(422, _problems(error, "query")) from error
    except OverflowError as error:
        raise HTTPException(422, "query: a value is out of range") from error


def _problems(error: ValidationError, place: str) -> str:
    return "; ".join(
        f"{'.'.join(map(str, each['loc'])) or place}: {each['msg']}" for each in error.errors()
    )


def described(endpoints: Iterable[Endpoint]) -> Json:
    """Return the OpenAPI `paths` and `components` of endpoints."""
    every = list(endpoints)
    models = {each.body for each in every if each.body} | {
        each.query for each in every if each.query
    }
    names: Any
    names, schemas = models_json_schema(
        sorted(((model, "validation") for model in models), key=lambda each: repr(each[0])),
        ref_template="#/components/schemas/Products.{model}",
    )
    found = {model: schema for (model, _), schema in names.items()}
    paths: Json = {}
    for each in every:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, found, schemas)
    components = {f"Products.{name}": each for name, each in schemas.get("$defs", {}).items()}
    return {"paths": paths, "components": {"schemas": components}}


def _operation(each: Endpoint, found: Any, schemas: Json) -> Json:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in each.param_convertors
    ]
    if each.query is not None:
        name = found[each.query]["$ref"].rpartition(".")[2]
        parameters += [
            {"name": name, "in": "query", "required": False, "schema": schema}
            for name, schema in schemas["$defs"][name]["properties"].items()
        ]
    operation: Json = {
        "tags": ["Products"],
        "summary": (each.handler.__doc__ or "").strip().partition("\n")[0],
        "operationId": re.sub(r"\W+", "_", f"{each.method} {each.path}").strip("_").lower(),
        "parameters": parameters,
        "responses": {
            "200": {"description": "Success"},
            "422": {"description": "The request is invalid; `detail` says why"},
        },
    }
    if each.body is not None:
        content: Json = {"application/json": {"schema": found[each.body]}}
        operation["requestBody"] = {"required": True, "content": content}
    elif each.large is not None:
        content = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation
