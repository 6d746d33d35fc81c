"""Connector: how the deployment names one MCP server, what of it may be asked, and for which tenants."""

import json
import re
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

MOST = 20
"""Connectors of one deployment."""
EVERY_TENANT = "*"

Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
Header = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]+$", max_length=100)]
Given = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
_CREDENTIALS = re.compile(r"://[^/?#]*@")


class Connector(BaseModel):
    """One MCP server. Nothing is allowed that is not written here.

    Attributes:
        name: begins the names of its tools, as in `prometheus.query`.
        url: address of a server that speaks Streamable HTTP.
        command: program and arguments of a server that speaks through stdin and stdout.
        headers: by header of the requests, the environment variable with its value.
        environment: environment variables that the command gets, besides `PATH`, `HOME` and the like.
        tools: the tools that may be called.
        tenants: the tenants that may call them; `*` is every tenant.
        seconds: maximum time of one call, with the start of a command.
        max_chars: characters of an answer that are kept.
        at_once: calls at the same time. One tenant never has all of them, if there are several.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]*$", max_length=32)]
    url: Given | None = None
    command: Annotated[tuple[Given, ...], Field(max_length=50)] = ()
    headers: dict[Header, Variable] = {}
    environment: tuple[Variable, ...] = ()
    tools: Annotated[tuple[Given, ...], Field(min_length=1, max_length=100)]
    tenants: Annotated[tuple[Given, ...], Field(min_length=1)]
    seconds: Annotated[float, Field(gt=0, le=120)] = 10.0
    max_chars: Annotated[int, Field(ge=100, le=1_000_000)] = 20_000
    at_once: Annotated[int, Field(ge=1, le=32)] = 4

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.url is None) == (not self.command):
            raise ValueError(f"{self.name}: give either `url` or `command`")
        if self.url is None:
            if self.headers:
                raise ValueError(f"{self.name}: a command has no `headers`, name its `environment`")
            return self
        if self.environment:
            raise ValueError(f"{self.name}: a URL has no `environment`, name its `headers`")
        if urlsplit(self.url).scheme not in ("http", "https") or not urlsplit(self.url).hostname:
            raise ValueError(f"{self.name}: `url` must begin with http:// or https://")
        if _CREDENTIALS.search(self.url):
            raise ValueError(f"{self.name}: put the credentials of `url` into `headers`")
        return self

    def serves(self, tenant: str) -> bool:
        """Return whether a tenant may use it."""
        return tenant in self.tenants or EVERY_TENANT in self.tenants


def parsed(value: object) -> object:
    """Return the list that a setting holds as JSON; other values as they are.

    Raises:
        ValueError: the text is not JSON, or two connectors have the same name.
    """
    if not isinstance(value, str):
        return value
    try:
        found = json.loads(value)
    except json.JSONDecodeError as error:
        raise ValueError(f"It is not JSON: {error.msg} in line {error.lineno}") from None
    listed = found if isinstance(found, list) else []
    names = [each.get("name") for each in listed if isinstance(each, dict)]
    if twice := sorted({str(each) for each in names if names.count(each) > 1}):
        raise ValueError(f"Two connectors have the same name: {', '.join(twice)}")
    return found
