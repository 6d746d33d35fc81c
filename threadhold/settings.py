"""Settings: read a server's settings from the environment or an env file.

An app with settings of its own inherits from `Settings`, so that one class reads all of them.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from langgraph_runtime_sql.audit import keys
from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.webhooks import signing
from threadhold.config_file import ConfigError, read_config
from threadhold.http import json_limits
from threadhold.http.metrics_access import MIN_TOKEN_CHARACTERS

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
    log_error_messages: bool = Field(
        False,
        description="Show messages of errors in the log. They may quote what users typed; without "
        "them, a line has the class and the stack frames",
    )
    durability: Literal["process", "power-loss"] = Field(
        "process", description="Failure that acknowledged writes survive"
    )
    n_jobs_per_worker: int | None = Field(
        None, ge=0, description="Maximum number of concurrent runs; 0 starts none (default 100)"
    )
    shutdown_grace_seconds: float = Field(
        10.0, ge=0, description="Time for requests, streams and runs to finish at shutdown"
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
    max_connections: int = Field(
        10_000,
        gt=0,
        description="Maximum number of open connections, lower if RLIMIT_NOFILE is; a new one "
        "replaces the one that has waited longest for a request",
    )
    head_timeout_seconds: float = Field(
        15.0, gt=0, description="Time for a client to send the head of a request"
    )
    body_timeout_seconds: float = Field(
        60.0, gt=0, description="Time for a client to send the body of a request, else 408"
    )
    langgraph_aes_key: str | None = Field(
        None,
        repr=False,
        description="Master key that encrypts what people typed, at rest: 16, 24 or 32 bytes",
    )
    old_aes_keys: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        repr=False,
        description="Earlier master keys, separated by commas, until `keys rotate` has run",
    )
    allow_private_webhooks: bool = Field(
        False, description="Allow webhooks to private addresses and by plain http"
    )

    webhook_secrets: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        repr=False,
        description="Secrets that sign webhooks, such as `whsec_...`, the newest first, separated by "
        "commas (default: webhooks are not signed)",
    )
    public_url: str | None = Field(
        None,
        description="URL at which clients reach the API, for agent cards and the OpenAPI "
        "description (default: relative URLs)",
    )
    metrics_token: str | None = Field(
        None,
        repr=False,
        min_length=MIN_TOKEN_CHARACTERS,
        description="Token with which a scraper reads `/metrics` (`Authorization: Bearer ...`), whose "
        "figures cover all tenants",
    )
    public_metrics: bool | None = Field(
        None,
        description="Everyone may read `/metrics` (default: only with `APP_ENV=local_dev`, and if "
        "neither a token nor a permission is set)",
    )
    docs_page: bool | None = Field(
        None, description="Serve the page `/docs` (default: only with `APP_ENV=local_dev`)"
    )

    @model_validator(mode="after")
    def _docs_page_in_development(self) -> Self:
        if self.docs_page is None:
            # The settings are frozen for everybody else.
            object.__setattr__(self, "docs_page", self.is_local)
        return self

    audit_log: bool = Field(
        True, description="Write changes, refusals and policy decisions to the audit log"
    )
    audit_retention_days: float | None = Field(
        None, ge=1, description="Age at which audit entries are removed (default: never)"
    )

    audit_key: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        repr=False,
        description="Keys of the audit log, the newest first, separated by commas, at least 32 "
        "characters each (default: on SQLite a file beside the database, else none)",
    )

    @field_validator("audit_key", mode="before")
    @classmethod
    def _audit_key(cls, value: object) -> object:
        return keys.read(value) if isinstance(value, str) else value

    @field_validator("webhook_secrets")
    @classmethod
    def _webhook_secrets(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            signing.read_secret(each)
        return value

    @field_validator("cors_allow_origins", "old_aes_keys", "webhook_secrets", mode="before")
    @classmethod
    def _origins(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(origin.strip() for origin in value.split(",") if origin.strip())
        return value

    @field_validator("langgraph_aes_key", "old_aes_keys")
    @classmethod
    def _key_lengths(cls, value: str | tuple[str, ...] | None) -> object:
        keys = value if isinstance(value, tuple) else () if value is None else (value,)
        if not all(len(key.encode()) in KEY_LENGTHS for key in keys):
            raise ValueError("a key has 16, 24 or 32 bytes")
        return value

    @field_validator("redis_url", "redis_prefix", "public_url", "metrics_token", mode="before")
    @classmethod
    def _none_if_empty(cls, value: object) -> object:
        return value or None

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value


KEY_LENGTHS = (16, 24, 32)

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
        return kind(**{**_project_settings(kind, given), **_file_settings(kind), **given})
    except ValidationError as error:
        problems = []
        for problem in error.errors():
            names = (str(name).upper() for name in problem["loc"][:1])
            # pydantic puts these words in front of our own messages.
            message = problem["msg"].removeprefix("Value error, ")
            problems.append(": ".join([*names, message]))
        raise BadSettings("\n".join(problems)) from error


def _file_settings(kind: type[AnySettings]) -> dict[str, str]:
    """Return the settings whose variable with `_FILE` names a file, such as a mounted secret.

    Raises:
        BadSettings: the file cannot be read, or the variable is set as well.
    """
    found: dict[str, str] = {}
    for field in kind.model_fields:
        name = field.upper()
        if not (path := os.environ.get(f"{name}_FILE")):
            continue
        if os.environ.get(name):
            raise BadSettings(f"{name}: also given by {name}_FILE; set one of them")
        try:
            found[field] = Path(path).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not a text file"
            raise BadSettings(f"{name}_FILE: cannot read {path}: {reason}") from error
    return found


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
    variables = {name.upper(): name for name in kind.model_fields if name != "langgraph_json"}
    return {
        variables[variable]: value
        for variable, value in env.items()
        if variable in variables and value and not os.environ.get(variable)
    }
