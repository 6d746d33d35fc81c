"""Settings: read a server's settings from the environment or an env file.

An app with settings of its own inherits from `Settings`, so that one class reads all of them.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.key_texts import master_key
from langgraph_runtime_sql.options import Texts
from threadhold.config_file import ConfigError, read_config
from threadhold.options import SharedOptions, problems

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


class Settings(AppEnvironment, SharedOptions):
    """Settings of `threadhold serve`, which include those that a platform takes as arguments."""

    model_config = SettingsConfigDict(env_file=".env")

    langgraph_json: Path = Field(
        default=Path("langgraph.json"),
        description="Configuration file of the project: its graphs, auth, store and hooks",
        json_schema_extra={"flag": "--config"},
    )
    log_level: LogLevel = Field(
        default="INFO", description="`DEBUG` includes langgraph_api's lines about each run"
    )
    log_error_messages: bool = Field(
        default=False,
        description="Show messages of errors in the log. They may quote what users typed; without "
        "them, a line has the class and the stack frames",
    )
    cors_allow_origins: Texts = Field(default=(), description="Web origins that may call the API")
    max_connections: int = Field(
        default=10_000,
        gt=0,
        description="Maximum number of open connections, lower if RLIMIT_NOFILE is; a new one "
        "replaces the one that has waited longest for a request",
    )
    head_timeout_seconds: float = Field(
        default=15.0, gt=0, description="Time for a client to send the head of a request"
    )
    langgraph_aes_key: Annotated[str, AfterValidator(master_key)] | None = Field(
        default=None,
        repr=False,
        description="Master key that encrypts what people typed, at rest: 16, 24 or 32 bytes",
    )

    @model_validator(mode="after")
    def _docs_page_in_development(self) -> Self:
        if self.docs_page is None:
            # The settings are frozen for everybody else.
            object.__setattr__(self, "docs_page", self.is_local)
        return self

    @field_validator("*", mode="before")
    @classmethod
    def _from_text(cls, value: object, info: ValidationInfo) -> object:
        """Read a text: a list is separated by commas, and an empty text is no value."""
        if not isinstance(value, str) or info.field_name not in Settings.model_fields:
            return value
        field = cls.model_fields[info.field_name]
        if NoDecode in field.metadata:
            return tuple(each.strip() for each in value.split(",") if each.strip())
        is_shared = info.field_name in SharedOptions.model_fields
        return None if not value and is_shared and field.default is None else value

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value


def variable(kind: type[BaseModel], name: str) -> str:
    """Return the environment variable of a field of a class of settings."""
    return str(kind.model_fields[name].validation_alias or name).upper()


def flags(kind: type[BaseModel]) -> dict[str, str]:
    """Return the fields of a class of settings that are options of the command line, with those."""
    extras = {name: field.json_schema_extra for name, field in kind.model_fields.items()}
    return {
        name: str(extra["flag"])
        for name, extra in extras.items()
        if isinstance(extra, dict) and "flag" in extra
    }


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
    # The class knows a field by the name of its variable, in small letters.
    given = {
        variable(kind, name).lower(): value for name, value in given.items() if value is not None
    }
    try:
        return kind(**{**_project_settings(kind, given), **_file_settings(kind), **given})
    except ValidationError as error:
        raise BadSettings("\n".join(problems(error, str.upper))) from error


def _file_settings(kind: type[AnySettings]) -> dict[str, str]:
    """Return the settings whose variable with `_FILE` names a file, such as a mounted secret.

    Raises:
        BadSettings: the file cannot be read, or the variable is set as well.
    """
    found: dict[str, str] = {}
    for name in (variable(kind, field) for field in kind.model_fields):
        if not (path := os.environ.get(f"{name}_FILE")):
            continue
        if os.environ.get(name):
            raise BadSettings(f"{name}: also given by {name}_FILE; set one of them")
        try:
            found[name.lower()] = Path(path).read_text("utf-8").strip()
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
    known = {variable(kind, name) for name in kind.model_fields} - {"LANGGRAPH_JSON"}
    return {
        name.lower(): value
        for name, value in env.items()
        if name in known and value and not os.environ.get(name)
    }
