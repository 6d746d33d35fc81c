"""Settings: read a server's settings from the environment or an env file.

An app with settings of its own inherits from `Settings`, so that one class reads all of them.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from langgraph_runtime_sql.errors import RuntimeSqlError
from threadhold.config_file import ConfigError, read_config
from threadhold.http import json_limits

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]


class BadSettings(RuntimeSqlError, ValueError):
    """Settings have invalid values; the message names each of them."""


class AppEnvironment(BaseSettings):
    """Environment of the server, which decides whether it needs authentication."""

    model_config = SettingsConfigDict(
        extra="ignore", frozen=True, env_ignore_empty=True, hide_input_in_errors=True
    )

    app_env: Literal["local_dev", "staging", "production"] = Field(
        default="local_dev",
        description="`local_dev` listens on loopback and needs no token; "
        "`staging` and `production` refuse to start without authentication",
    )

    @property
    def is_local(self) -> bool:
        """Whether callers need no token."""
        return self.app_env == "local_dev"


class Settings(AppEnvironment):
    """Settings of `threadhold serve`. Variables are the names in capitals."""

    model_config = SettingsConfigDict(env_file=".env")

    langgraph_json: Path = Field(
        Path("langgraph.json"),
        description="Configuration file of the project: its graphs, auth, store and hooks",
    )
    database_url: str = Field(
        "sqlite:///./data/threadhold.db", description="SQLite file or Postgres database"
    )
    redis_url: str | None = Field(
        None,
        description="Redis that lowers the latency between several processes on Postgres (optional)",
    )
    redis_prefix: str | None = Field(
        None,
        description="Prefix of all channels in Redis (default: `threadhold:` and an id of the database)",
    )
    log_level: LogLevel = Field(
        "INFO", description="`DEBUG` includes langgraph_api's lines about each run"
    )
    durability: Literal["process", "power-loss"] = Field(
        "process", description="Failure that acknowledged writes survive"
    )
    n_jobs_per_worker: int | None = Field(
        None, ge=0, description="Maximum number of concurrent runs; 0 starts none (default 100)"
    )
    shutdown_grace_seconds: float = Field(
        10.0, ge=0, description="Time for requests, and then for runs, to finish at shutdown"
    )
    cors_allow_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Web origins that may call the API, separated by commas"
    )
    max_body_bytes: int = Field(
        json_limits.DEFAULT_BYTES, gt=0, description="Larger request bodies are refused with 413"
    )
    max_json_nodes: int = Field(
        json_limits.DEFAULT_VALUES,
        gt=0,
        description="JSON bodies with more values (keys not counted) are refused with 422",
    )
    max_json_depth: int = Field(
        json_limits.MAX_DEPTH,
        gt=0,
        le=json_limits.MAX_DEPTH,
        description="JSON bodies with more levels are refused with 422; at most 200",
    )
    allow_private_webhooks: bool = Field(
        False, description="Allow webhooks to private addresses and by plain http"
    )

    @field_validator("cors_allow_origins", mode="before")
    @classmethod
    def _origins(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(origin.strip() for origin in value.split(",") if origin.strip())
        return value

    @field_validator("redis_url", "redis_prefix", mode="before")
    @classmethod
    def _none_if_empty(cls, value: object) -> object:
        return value or None

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value


AnySettings = TypeVar("AnySettings", bound=Settings)


def read_settings(kind: type[AnySettings], **given: Any) -> AnySettings:
    """Read settings from the arguments, the environment, the project's `env` and `.env`.

    Earlier sources override later ones.

    Args:
        kind: The class of the settings.
        given: Values by field; None means not given.

    Raises:
        BadSettings: a setting has an invalid value.
    """
    given = {name: value for name, value in given.items() if value is not None}
    try:
        return kind(**{**_project_settings(kind, given), **given})
    except ValidationError as error:
        problems = []
        for problem in error.errors():
            names = (str(name).upper() for name in problem["loc"][:1])
            # pydantic puts these words in front of our own messages.
            message = problem["msg"].removeprefix("Value error, ")
            problems.append(": ".join([*names, message]))
        raise BadSettings("\n".join(problems)) from error


def _project_settings(kind: type[AnySettings], given: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings in the `env` of the project's `langgraph.json`.

    The project's graphs and `auth` read the same variables.
    """
    path = given.get("langgraph_json") or kind(**given).langgraph_json
    try:
        env = read_config(path).env
    except ConfigError:
        # Not every command needs a project; those that do read it again and report the error.
        return {}
    fields = (name for name in kind.model_fields if name != "langgraph_json")
    variables = {name: name.upper() for name in fields}
    return {
        name: env[variable]
        for name, variable in variables.items()
        if env.get(variable) and not os.environ.get(variable)
    }
