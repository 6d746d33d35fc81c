"""Settings of a server: name, default, meaning. Read from the environment or a file of it.

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
    """A setting has a value it cannot have; the message names each."""


class AppEnvironment(BaseSettings):
    """Where the server runs, which decides whether it needs authentication."""

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
        """Whether a caller without a token acts as the developer."""
        return self.app_env == "local_dev"


class Settings(AppEnvironment):
    """Settings of `threadhold serve`. Variables are the names in capitals."""

    model_config = SettingsConfigDict(env_file=".env")

    langgraph_json: Path = Field(
        Path("langgraph.json"),
        description="The project to serve: its graphs, auth, store and hooks",
    )
    database_url: str = Field(
        "sqlite:///./data/threadhold.db", description="Where everything is kept"
    )
    redis_url: str | None = Field(
        None, description="The Redis through which several processes share a Postgres database"
    )
    redis_prefix: str | None = Field(
        None,
        description="What all names in Redis begin with (default: `threadhold:` and the database's own)",
    )
    log_level: LogLevel = Field(
        "INFO", description="`DEBUG` also shows what langgraph_api says about each run"
    )
    durability: Literal["process", "power-loss"] = Field(
        "process", description="What an acknowledged write survives the loss of"
    )
    n_jobs_per_worker: int | None = Field(
        None, ge=0, description="Runs at a time; 0 starts none (default 100)"
    )
    shutdown_grace_seconds: float = Field(
        10.0, ge=0, description="How long requests, and then runs, may go on at shutdown"
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
        description="JSON bodies with more values, keys not counted, are refused with 422",
    )
    max_json_depth: int = Field(
        json_limits.MAX_DEPTH,
        gt=0,
        le=json_limits.MAX_DEPTH,
        description="JSON bodies nested deeper are refused with 422; at most 200",
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
    def _given(cls, value: object) -> object:
        return value or None

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value


AnySettings = TypeVar("AnySettings", bound=Settings)


def read_settings(kind: type[AnySettings], **given: Any) -> AnySettings:
    """Read settings: what is given here, the environment, the project's `env`, then `.env`.

    Args:
        kind: The class of the settings.
        given: Values by field; None is not given.

    Raises:
        BadSettings: a setting has a value it cannot have.
    """
    given = {name: value for name, value in given.items() if value is not None}
    try:
        return kind(**{**_of_project(kind, given), **given})
    except ValidationError as error:
        problems = [
            ": ".join([*(str(name).upper() for name in problem["loc"][:1]), _said(problem["msg"])])
            for problem in error.errors()
        ]
        raise BadSettings("\n".join(problems)) from error


def _of_project(kind: type[AnySettings], given: Mapping[str, Any]) -> dict[str, str]:
    """The settings that the project's `langgraph.json` sets by its `env`.

    Its graphs and its `auth` read them from there, too, wherever the server was started.
    """
    path = given.get("langgraph_json") or kind(**given).langgraph_json
    try:
        env = read_config(path).env
    except ConfigError:
        # Not every command needs a project; one that does reads it again and says what is wrong.
        return {}
    fields = (name for name in kind.model_fields if name != "langgraph_json")
    variables = {name: name.upper() for name in fields}
    return {
        name: env[variable]
        for name, variable in variables.items()
        if env.get(variable) and not os.environ.get(variable)
    }


def _said(message: str) -> str:
    """The message of a check of ours, without the words that pydantic puts in front of it."""
    return message.removeprefix("Value error, ")
