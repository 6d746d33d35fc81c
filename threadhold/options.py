"""Options of the platform, each declared once.

The class of an option says where it applies:

- `SharedOptions`, with `ServerOptions` of the runtime: the environment (`threadhold.settings`), and an
  argument of `LangGraphPlatform`;
- `PlatformOptions`: an argument of `LangGraphPlatform` only;
- `Settings` in `threadhold.settings`: the environment only;
- `ProjectOptions` of the runtime: `sql` in `langgraph.json`.

The name of a field is the argument; `validation_alias` is the variable, in small letters, if it has
another name; `flag` is the option of the command line. Documentation follows from the fields.
"""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SkipValidation,
    ValidationError,
)
from pydantic.fields import FieldInfo

from langgraph_runtime_sql.options import Options, ServerOptions
from threadhold.config_file import Config, ConfigError, kind_of
from threadhold.host_objects import Authenticate
from threadhold.http import json_limits
from threadhold.http.metrics_access import MIN_TOKEN_CHARACTERS

P = ParamSpec("P")
AnyModel = TypeVar("AnyModel", bound=BaseModel)
First = TypeVar("First")
Result = TypeVar("Result")


def _public_url(url: str) -> str:
    """Return the URL without a slash at its end."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be like 'https://api.example.com'")
    return url.rstrip("/")


def _takes_request(found: Authenticate) -> Authenticate:
    try:
        inspect.signature(found).bind(None)
    except TypeError:
        raise ValueError("must be a function that takes a request") from None
    except ValueError:
        # A function of C has no signature.
        pass
    return found


class SharedOptions(ServerOptions):
    """Options that a variable of the environment or an argument of the platform gives."""

    database_url: str = Field(
        default="sqlite:///./data/threadhold.db",
        description="SQLite file (`sqlite:///path/to/file.db`, relative to the working directory) or "
        "Postgres (`postgresql://user:password@host/database`)",
        json_schema_extra={"flag": "--database-url"},
    )
    redis_url: str | None = Field(
        default=None,
        description="Redis, only with Postgres, such as `redis://127.0.0.1:6379/0`. It lowers the "
        "latency of streams between processes, which otherwise exchange events through Postgres",
        json_schema_extra={"flag": "--redis-url"},
    )
    n_jobs: int | None = Field(
        default=None,
        ge=0,
        validation_alias="n_jobs_per_worker",
        description="Maximum number of concurrent runs in a process; 0 starts none "
        "(default: `N_JOBS_PER_WORKER`, else 120)",
    )
    max_body_bytes: int = Field(
        default=json_limits.DEFAULT_BYTES,
        gt=0,
        description="Larger request bodies are refused with 413",
    )
    body_timeout_seconds: float = Field(
        default=60.0, gt=0, description="Time for a client to send the body of a request, else 408"
    )
    max_json_nodes: int = Field(
        default=json_limits.DEFAULT_VALUES,
        gt=0,
        description="JSON bodies with more values (objects, arrays, strings, numbers, booleans and "
        "nulls; no keys) are refused with 422, before they are parsed",
    )
    max_json_depth: int = Field(
        default=json_limits.MAX_DEPTH,
        gt=0,
        le=json_limits.MAX_DEPTH,
        description="JSON bodies with deeper nesting of objects and arrays are refused with 422; "
        f"at most {json_limits.MAX_DEPTH}",
    )
    allow_private_webhooks: bool = Field(
        default=False,
        description="Also call webhooks at private addresses, and by plain http. Loopback stays "
        "refused unless the project's `webhooks.url.disable_loopback` is false",
    )
    public_url: Annotated[str, AfterValidator(_public_url)] | None = Field(
        default=None,
        description="URL at which clients reach the API, with the mount prefix, for agent cards and "
        "the OpenAPI description (default: relative URLs, except for requests to a loopback name)",
    )
    metrics_token: str | None = Field(
        default=None,
        repr=False,
        min_length=MIN_TOKEN_CHARACTERS,
        description="Token with which a scraper reads `/metrics` (`Authorization: Bearer ...`), whose "
        f"figures cover all tenants; at least {MIN_TOKEN_CHARACTERS} characters",
    )
    public_metrics: bool | None = Field(
        default=None,
        description="Everyone may read `/metrics` (default: no; with a server's settings, if "
        "`APP_ENV=local_dev` and neither a token nor a permission is set)",
    )
    docs_page: bool | None = Field(
        default=None,
        description="Serve the page `/docs` (default: yes; with a server's settings, only with "
        "`APP_ENV=local_dev`)",
    )


class PlatformOptions(SharedOptions):
    """Arguments of `LangGraphPlatform`. Texts do not stand for numbers or booleans."""

    model_config = ConfigDict(
        arbitrary_types_allowed=True,
        extra="forbid",
        strict=True,
        validate_by_alias=False,
        validate_by_name=True,
    )

    config: SkipValidation[Config] = Field(
        default="langgraph.json",
        kw_only=False,
        description="Path of a `langgraph.json`, a mapping of the same shape, or the result of "
        "`read_config`. In a mapping, a graph may be the object itself: "
        '`{"graphs": {"agent": graph}}`',
    )
    hooks: Any = Field(
        default=None,
        description="Object with the host's hooks (`threadhold.hooks`), or its location: "
        "`./file.py:object` or `module:object`. Overrides `sql.hooks` of the config",
    )
    authenticate: Annotated[Authenticate, AfterValidator(_takes_request)] | None = Field(
        default=None,
        description="The host's own function. It takes a Starlette `Request`, of WebSockets too, and "
        "returns the user: a string, a dict with `identity`, or an object with this attribute. None, "
        "or an `HTTPException` with the status 401 or 403, refuses the request. A plain function runs "
        "in a thread. It replaces `@auth.authenticate` of the `auth` in the config, whose other "
        "handlers stay. The host's dependencies and routes' decorators do not reach a mounted app, so "
        "without it and without `auth` the API is open",
    )
    cors: Mapping[str, Any] | None = Field(
        default=None,
        description="In the shape of `http.cors` in the config, which it overrides. By default no "
        "other origin may read answers",
    )
    studio: bool = Field(
        default=False,
        description="Let LangGraph Studio's website reach this server from a browser. For "
        "development on loopback",
    )
    metrics_permission: str | None = Field(
        default=None,
        description="Permission of users that may read `/metrics`, whose figures cover all tenants "
        "(default: nobody may)",
    )
    audit_permission: str | None = Field(
        default=None,
        description="Permission that users need to read `/audit` (default: there is no such route)",
    )
    env: Mapping[str, str] | None = Field(
        default=None,
        description="Environment variables for the project. They override those of the process and "
        "of the config",
    )


class ServedOptions(PlatformOptions, Options):
    """All options of a platform, with those of its project: what a process is configured with."""


def shared(given: BaseModel, model: type[BaseModel] = PlatformOptions) -> dict[str, Any]:
    """Return the values of the fields that a model has in common with another one."""
    names = type(given).model_fields.keys() & model.model_fields
    return {name: getattr(given, name) for name in names}


def takes(
    model: Callable[P, AnyModel],
) -> Callable[[Callable[[First, AnyModel], Result]], Callable[Concatenate[First, P], Result]]:
    """Make a decorator: the function's second argument, a model, is given as arguments.

    Type checkers and `inspect.signature` see a parameter for each field.

    Args:
        model: The class of the model.
    """
    kind = cast(type[AnyModel], model)

    def decorate(
        function: Callable[[First, AnyModel], Result],
    ) -> Callable[Concatenate[First, P], Result]:
        [first, *_] = inspect.signature(function).parameters.values()
        parameters = sorted(
            (_parameter(name, field) for name, field in kind.model_fields.items()),
            key=lambda each: each.kind,
        )
        signature = inspect.Signature([first, *parameters])

        @functools.wraps(function)
        def run(of: First, /, *args: P.args, **named: P.kwargs) -> Result:
            given = signature.bind(of, *args, **named).arguments
            del given[first.name]
            return function(of, made(kind, given))

        run.__signature__ = signature  # type: ignore[attr-defined]
        return run

    return decorate


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    kinds = inspect.Parameter
    kind = kinds.POSITIONAL_OR_KEYWORD if field.kw_only is False else kinds.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=field.default, annotation=field.annotation)


def made(model: type[AnyModel], given: Mapping[str, Any]) -> AnyModel:
    """Make a model of the given values.

    Raises:
        ConfigError: a value is invalid; the message names each of them.
    """
    try:
        return model(**given)
    except ValidationError as error:
        raise ConfigError("\n".join(problems(error))) from error


def problems(error: ValidationError, called: Callable[[str], str] = str) -> list[str]:
    """Say which value is wrong, what is wanted, and what was given, without a secret's value.

    Args:
        error: What the model has raised.
        called: Returns what the reader calls a field.
    """
    return [
        ": ".join([*(called(str(name)) for name in each["loc"][:1]), _problem(each)])
        for each in error.errors()
    ]


def _problem(problem: Any) -> str:
    # pydantic puts these words in front of our own messages.
    message = problem["msg"].removeprefix("Value error, ")
    message = re.sub(r"^\w+ should ", "must ", message)
    given = problem["input"]
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if is_number or problem["type"] == "literal_error":
        # No secret.
        message += f", not {given!r}"
    elif problem["type"].endswith("_type"):
        message += f", not {kind_of(given)}"
    return message
