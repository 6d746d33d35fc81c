"""Every setting of the server: name, default, meaning. Read from the environment, then `.env`."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from hooks.settings import IdentitySettings
from hooks.thread_settings import ThreadSettings
from threadhold.http import json_limits

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]


class Settings(IdentitySettings, ThreadSettings):
    """The server's settings, with those of identity and the thread policy. Variables are the names in capitals."""

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
