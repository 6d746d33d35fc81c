"""Settings of the runtime that `langgraph_api` does not have."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

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
        checkpoints: The rules for checkpoints; the first one that is about a thread decides.
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


@dataclass(frozen=True, kw_only=True)
class Options:
    """Settings that the platform makes before the runtime starts.

    Attributes:
        power_loss: fsync each commit, so that it survives a power failure and not only a crash.
        grace_seconds: How long running runs may continue at shutdown. Then they are handed back,
            and continue after the next start.
        tenant_key: The key of the tenant in metadata and in an authenticated user. None disables
            tenants.
        redis_prefix: The prefix of all keys and channels in Redis; None derives it from the
            database.
        audit: Whether changes, refusals and policy decisions are written to the audit log.
        audit_days: Age in days at which the server removes audit entries; None keeps them.
        audit_key: Keys of the audit log, the newest first; see `audit.keys`.
        old_aes_keys: Earlier master keys, which still unwrap the keys of tenants.
        aes_key: The master key of a command that does not load langgraph_api. A server takes it
            from there.
        webhook_secrets: Keys that sign webhooks; see `webhooks.signing`. Without one they are unsigned.
        limits: What tenants, users and assistants may use.
        retention: How long events and checkpoints are kept.
        state_keys: Which keys of a state clients may write: `all`, or those of the graph's `input`.
        thread_tables: Tables of the host whose rows are deleted with their thread.
        project: Folder of the `langgraph.json`.
    """

    power_loss: bool = False
    grace_seconds: float = 10.0
    tenant_key: str | None = None
    redis_prefix: str | None = None
    audit: bool = True
    audit_days: float | None = None
    audit_key: tuple[str, ...] = field(default=(), repr=False)
    old_aes_keys: tuple[bytes, ...] = field(default=(), repr=False)
    aes_key: bytes | None = field(default=None, repr=False)
    webhook_secrets: tuple[bytes, ...] = field(default=(), repr=False)
    limits: Limits = field(default_factory=Limits)
    retention: Retention = field(default_factory=Retention)
    state_keys: StateKeys = "all"
    thread_tables: tuple[ThreadTable, ...] = ()
    project: Path | None = None


def redis_url() -> str | None:
    """Return the URL of the Redis that carries messages between processes, or None."""
    from langgraph_api import config

    url = str(config.REDIS_URI)
    return None if url == NO_REDIS else url
