"""Options of the runtime that `langgraph_api` does not have, each declared once.

The class of an option says where it applies. `threadhold.options` adds the options that the runtime
does not read. Environment, command line, arguments and documentation follow from the fields.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
)
from pydantic_settings import NoDecode

from langgraph_runtime_sql import key_texts
from langgraph_runtime_sql.limit_settings import Limits
from langgraph_runtime_sql.retention_rules import KeepRule

# langgraph_api requires a Redis URL, but never reads it.
NO_REDIS = "none"

EVENTS_SECONDS = 3 * 24 * 3600
EVENTS_BYTES = 32 * 2**20


StateKeys = Literal["all", "input"]


@dataclass(frozen=True, kw_only=True)
class Retention:
    """How long the events of ended runs, and checkpoints, are kept.

    Attributes:
        events_seconds: How long after they were stored.
        events_bytes: How many stored bytes of each thread, the newest ones.
        checkpoints: The rules for checkpoints. The first matching rule applies to a thread.
    """

    events_seconds: float = EVENTS_SECONDS
    events_bytes: int = EVENTS_BYTES
    checkpoints: tuple[KeepRule, ...] = ()


@dataclass(frozen=True)
class ThreadTable:
    """A table of the host whose rows belong to threads, and are deleted with them.

    Attributes:
        name: The table.
        thread: The text column with the id of the thread.
        tenant: The text column with the tenant.
        guard: The setting that lets a trigger of the table accept deletions of a tenant, whose
            name is its value: a row of `facts` on SQLite, `threadhold.<guard>` on Postgres.
    """

    name: str
    thread: str = "thread_id"
    tenant: str = "tenant_id"
    guard: str | None = None


def _as_tuple(value: Any) -> Any:
    """Return any list as a tuple. A text is no list of its letters."""
    if isinstance(value, str | bytes):
        # pydantic takes a TypeError for a mistake of the validator.
        raise ValueError("must be a list, not one text")  # noqa: TRY004
    return tuple(value) if isinstance(value, Iterable) else value


def _audit_keys(given: Sequence[str]) -> Sequence[str]:
    return tuple(key for each in given for key in key_texts.audit_keys(each))


def _aes_keys(given: Sequence[str]) -> Sequence[str]:
    return tuple(map(key_texts.master_key, given))


def _webhook_secrets(given: Sequence[str]) -> Sequence[str]:
    for each in given:
        key_texts.webhook_key(each)
    return given


Texts = Annotated[Sequence[str], NoDecode, BeforeValidator(_as_tuple)]
"""A list of texts. A variable of the environment separates them by commas."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)


class ServerOptions(_Model):
    """Options of a server that the runtime reads.

    `validation_alias` is the environment variable in small letters, if its name is not the field's.
    """

    redis_prefix: str | None = Field(
        default=None,
        description="Prefix of all channels in Redis, so that deployments can share one (default: "
        "`threadhold:` and an id of the database)",
    )
    build: str | None = Field(
        default=None,
        validation_alias="threadhold_build",
        description="Name of the build that the process is of: it claims the runs that no build has "
        "claimed, and those of its own build (default: only runs that no build has claimed)",
    )
    durability: Literal["process", "power-loss"] = Field(
        default="process",
        description="Failure that acknowledged writes survive: the death of the `process`, or also "
        "a `power-loss` (each commit waits for the disk)",
    )
    grace_seconds: float = Field(
        default=10.0,
        ge=0,
        validation_alias="shutdown_grace_seconds",
        description="Time for requests, streams and runs to finish at shutdown; a run that takes longer "
        "returns to the queue and continues after the next start",
    )
    audit_log: bool = Field(
        default=True, description="Write changes, refusals and policy decisions to the audit log"
    )
    audit_retention_days: float | None = Field(
        default=None,
        ge=1,
        description="Age at which audit entries are removed, in days, at least 1 (default: never)",
    )
    audit_key: Annotated[Texts, AfterValidator(_audit_keys)] = Field(
        default=(),
        repr=False,
        description="Keys of the audit log, the newest first, at least 32 characters each: the "
        "newest signs entries, and the others verify older ones (default: on SQLite a file beside "
        "the database, else none)",
    )
    old_aes_keys: Annotated[Texts, AfterValidator(_aes_keys)] = Field(
        default=(),
        repr=False,
        description="Earlier values of `LANGGRAPH_AES_KEY`, which still decrypt, until "
        "`keys rotate` has run",
    )
    webhook_secrets: Annotated[Texts, AfterValidator(_webhook_secrets)] = Field(
        default=(),
        repr=False,
        description="Secrets that sign webhooks by the Standard Webhooks scheme, such as "
        "`whsec_...`, the newest first; each tenant gets a key derived from them (default: webhooks "
        "are not signed)",
    )


class ProjectOptions(_Model):
    """Options of a project: the section `sql` of its `langgraph.json`, and its folder."""

    tenant_key: str | None = Field(
        default=None,
        description="Key of the tenant in metadata and in an authenticated user; none: no tenants",
    )
    limits: InstanceOf[Limits] = Field(
        default_factory=Limits, description="What tenants, users and assistants may use"
    )
    retention: InstanceOf[Retention] = Field(
        default_factory=Retention, description="How long events and checkpoints are kept"
    )
    state_keys: StateKeys = Field(
        default="all",
        description="Keys of a state that clients may write: `all`, or those of the graph's `input`",
    )
    folder: Path | None = Field(
        default=None, description="Folder of the file, from which relative paths count"
    )


class Options(ServerOptions, ProjectOptions):
    """Options of the runtime."""

    model_config = ConfigDict(extra="forbid", validate_by_alias=False, validate_by_name=True)

    thread_tables: Callable[[], Sequence[ThreadTable]] = Field(
        default=tuple,
        description="Returns the tables of the host whose rows are deleted with their thread",
    )
    aes_key: bytes | None = Field(
        default=None,
        repr=False,
        description="Master key of a command that does not load langgraph_api. A server takes it "
        "from there",
    )


def redis_url() -> str | None:
    """Return the URL of the Redis that carries messages between processes, or None."""
    from langgraph_api import config

    url = str(config.REDIS_URI)
    return None if url == NO_REDIS else url
