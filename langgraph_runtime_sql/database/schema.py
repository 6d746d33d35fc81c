"""The schema of both databases.

The tables of store items are langgraph's: its stores create them.
"""

import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    Uuid,
    literal_column,
    text,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from langgraph_runtime_sql import json_codec
from langgraph_runtime_sql.statuses import RunStatus, ThreadStatus

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Id(TypeDecorator[uuid.UUID]):
    """A UUID. In SQLite 36 characters, so that people can read the file."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(Uuid(as_uuid=True))
        return dialect.type_descriptor(Text())

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        if dialect.name == "postgresql":
            return lambda value: None if value is None else _as_uuid(value)
        return lambda value: None if value is None else str(_as_uuid(value))

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        if dialect.name == "postgresql":
            return None
        return lambda value: None if value is None else uuid.UUID(value)


def _as_uuid(value: Any) -> uuid.UUID:
    return value if isinstance(value, uuid.UUID) else uuid.UUID(value)


class AnyId(TypeDecorator[str]):
    """An id that langgraph or a graph has chosen: 16 bytes of a UUID, or another text with a mark.

    Bytes sort as the texts do, UUIDs before others.
    """

    impl = LargeBinary
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        return _packed

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        return lambda value: None if value is None else unpacked_id(value)


def _packed(value: Any) -> bytes | None:
    return None if value is None else packed_id(value if type(value) is str else str(value))


_CANONICAL = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# The largest UUID, which nobody draws.
_MARK = b"\xff" * 16


# Each id of a run is stored many times.
@lru_cache(maxsize=4096)
def packed_id(text: str) -> bytes:
    """Return an id as `AnyId` stores it."""
    if _CANONICAL.fullmatch(text):
        packed = bytes.fromhex(text.replace("-", ""))
        if packed != _MARK:
            return packed
    return _MARK + text.encode(errors="surrogatepass")


@lru_cache(maxsize=4096)
def unpacked_id(packed: bytes) -> str:
    """Return the id that `packed_id` was given."""
    if packed.startswith(_MARK):
        return packed[len(_MARK) :].decode(errors="surrogatepass")
    digits = packed.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


class Timestamp(TypeDecorator[datetime]):
    """An aware datetime. In SQLite microseconds since 1970, which sort by time."""

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(DateTime(timezone=True))
        return dialect.type_descriptor(BigInteger())

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any] | None:
        if dialect.name == "postgresql":
            return None
        return lambda value: None if value is None else (value - _EPOCH) // _MICROSECOND

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        if dialect.name == "postgresql":
            return None
        return lambda value: None if value is None else _EPOCH + timedelta(microseconds=value)


class Json(TypeDecorator[Any]):
    """A JSON document, NULL for None."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            from sqlalchemy.dialects.postgresql import JSONB

            return dialect.type_descriptor(JSONB(none_as_null=True))
        return dialect.type_descriptor(Text())

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        return lambda value: None if value is None else json_codec.dumps(value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        if dialect.name == "postgresql":
            return None
        return lambda value: None if value is None else json_codec.loads(value)


class Sealed(Json):
    """A JSON document that is encrypted if a master key is configured (`encryption.documents`).

    Args:
        table: The name of the table.
        key: The column with the row's id. Statements that select the document select it too,
            because the ciphertext is bound to the row.
    """

    cache_ok = True

    def __init__(self, table: str, key: str) -> None:
        super().__init__()
        self.table = table
        self.key = key


# A partial index states its condition for SQLite only, and Postgres takes it from there. A
# condition for Postgres would import its dialect in every process.
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)


def _document(name: str) -> Column[Any]:
    return Column(name, Json, nullable=False)


def _owner(key: str) -> ForeignKey:
    return ForeignKey(key, ondelete="CASCADE")


assistants = Table(
    "assistants",
    metadata,
    Column("assistant_id", Id, primary_key=True),
    Column("graph_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text),
    Column("config", Sealed("assistants", "assistant_id"), nullable=False),
    Column("context", Sealed("assistants", "assistant_id"), nullable=False),
    _document("metadata"),
    Column("version", Integer, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    # NULL is the system's, which belongs to no tenant. See `tenants`.
    Column("tenant", Text),
    Index(None, "graph_id"),
    Index(None, "created_at"),
    Index(None, "tenant", "created_at"),
)
"""A graph with a configuration, under a name and a version."""

assistant_versions = Table(
    "assistant_versions",
    metadata,
    Column("assistant_id", Id, _owner("assistants.assistant_id"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("graph_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text),
    Column("config", Sealed("assistant_versions", "assistant_id"), nullable=False),
    Column("context", Sealed("assistant_versions", "assistant_id"), nullable=False),
    _document("metadata"),
    Column("created_at", Timestamp, nullable=False),
    Column("tenant", Text),
)
"""A version of an assistant, also the current one."""

threads = Table(
    "threads",
    metadata,
    Column("thread_id", Id, primary_key=True),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("state_updated_at", Timestamp, nullable=False),
    _document("metadata"),
    Column("config", Sealed("threads", "thread_id"), nullable=False),
    Column("status", Text, nullable=False),
    # The status that the last ended run left, for when no run is in flight.
    Column("resting_status", Text, nullable=False, server_default=ThreadStatus.IDLE.value),
    Column("values", Sealed("threads", "thread_id")),
    # The keys of long lists that `values` leaves out, and the checkpoint that has them.
    Column("long_values", Json),
    Column("interrupts", Sealed("threads", "thread_id"), nullable=False),
    Column("error", Sealed("threads", "thread_id")),
    # Time to live: the requested strategy and minutes, and the resulting date.
    Column("ttl_strategy", Text),
    Column("ttl_minutes", Float),
    Column("expires_at", Timestamp),
    Column("tenant", Text),
    Index(None, "updated_at"),
    Index(None, "created_at"),
    Index(None, "state_updated_at"),
    Index(None, "status", "updated_at"),
    Index("ix_threads_expires_at", "expires_at", sqlite_where=text("expires_at IS NOT NULL")),
)
"""A thread: its metadata, status and newest state."""

# Long, so that a thread in use seldom enters a new period, which rewrites its labels.
# Short, so that few threads share a page's last period, all of which a search examines.
PERIOD_SECONDS = 600

thread_labels = Table(
    "thread_labels",
    metadata,
    Column("thread_id", Id, _owner("threads.thread_id"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    # The period of the thread's last update, in whole periods since 1970. A trigger updates it.
    Column("period", BigInteger, nullable=False),
    Column("tenant", Text),
    # The tenant is included because policies check it: searches then read only the index.
    Index(None, "key", "value", "period", "thread_id", "tenant"),
    sqlite_with_rowid=False,
)
"""A scalar top-level entry of a thread's metadata: an index finds the thread by any key."""

# Literals, not parameters: SQLite would plan a statement anew at each call, to check whether a
# partial index applies to the parameter's value.
PENDING_LITERAL = literal_column(f"'{RunStatus.PENDING}'", Text)
RUNNING_LITERAL = literal_column(f"'{RunStatus.RUNNING}'", Text)
_IS_PENDING = f"status = '{RunStatus.PENDING}'"
_IS_RUNNING = f"status = '{RunStatus.RUNNING}'"

# Runs without a tenant count as one tenant's. `coalesce` would not do: to Postgres it is not
# leakproof, so under policies it would not use an index on it.
TENANT = "(CASE WHEN tenant IS NULL THEN '' ELSE tenant END)"

runs = Table(
    "runs",
    metadata,
    # Insertion order, which breaks ties between equal dates.
    Column(
        "seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    ),
    Column("run_id", Id, nullable=False, unique=True),
    Column("thread_id", Id, _owner("threads.thread_id"), nullable=False),
    Column("assistant_id", Id, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("status", Text, nullable=False),
    _document("metadata"),
    Column("kwargs", Sealed("runs", "run_id"), nullable=False),
    Column("multitask_strategy", Text, nullable=False),
    Column("langsmith_session_name", Text),
    # The claim: the number of starts, the claiming process, and the end of its lease.
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("claimed_by", Text),
    Column("lease_until", Timestamp),
    # An acknowledged cancellation is stored, so that it survives the process that received it.
    Column("cancel_action", Text),
    Column("cancel_reason", Text),
    Column("tenant", Text),
    # For limits: the user who made the run, and which of a tenant's runs start first.
    Column("user_id", Text),
    Column("priority", Integer, nullable=False, server_default="0"),
    # The build that claimed it: only processes of this build claim it again. NULL: any does.
    Column("build", Text),
    Index(None, "thread_id", "created_at"),
    Index(None, "assistant_id"),
    Index(
        "ix_runs_pending",
        "created_at",
        "seq",
        # Included so that a claim skips the runs of blocked threads without reading them.
        "thread_id",
        sqlite_where=text(_IS_PENDING),
    ),
    Index(
        "ix_runs_pending_thread", "thread_id", "created_at", "seq", sqlite_where=text(_IS_PENDING)
    ),
    # For turns between tenants: the pending runs of each.
    Index(
        "ix_runs_pending_turn",
        text(TENANT),
        text("priority DESC"),
        "created_at",
        "seq",
        "thread_id",
        sqlite_where=text(_IS_PENDING),
    ),
    # The queue's invariant: a thread has at most one running run.
    Index("uq_runs_running_thread", "thread_id", unique=True, sqlite_where=text(_IS_RUNNING)),
)
"""A run: its input, status, claim and lease. It stays after its end."""

tenant_runs = Table(
    "tenant_runs",
    metadata,
    # An empty text for runs without a tenant, which are not counted here.
    Column("tenant", Text, primary_key=True),
    Column("running", Integer, nullable=False),
    sqlite_with_rowid=False,
)
"""How many runs of a tenant are running. Triggers count (`migrations.triggers`); a claim locks the row."""

event_segments = Table(
    "event_segments",
    metadata,
    Column("thread_id", Id, ForeignKey("threads.thread_id", ondelete="CASCADE"), primary_key=True),
    # 0 until the thread's writer gives the events a place; -1 of dictionaries.
    Column("epoch", BigInteger, primary_key=True, autoincrement=False),
    # The numbers of the first and last event.
    Column("first", BigInteger, primary_key=True, autoincrement=False),
    Column("last", BigInteger, nullable=False),
    # `*` for events of the thread itself.
    Column("run_id", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("resumable", Boolean, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("size", Integer, nullable=False),
    Column("events", LargeBinary),
    Column("tenant", Text),
    # The chain of dictionaries that the events are compressed with; see `events.dictionaries`.
    Column("dictionary", BigInteger),
    # For retention, which passes over rows without events.
    Index(
        "ix_event_segments_stored",
        "resumable",
        "created_at",
        sqlite_where=text("events IS NOT NULL"),
    ),
)
"""A segment of a thread's event log (`events.log`). A row without events stands for deleted ones."""


def _checkpoint_key() -> list[Column[Any]]:
    return [
        Column("thread_id", AnyId, primary_key=True),
        Column("checkpoint_ns", Text, primary_key=True),
        Column("checkpoint_id", AnyId, primary_key=True),
    ]


def _write_columns() -> list[Column[Any]]:
    return [
        *_checkpoint_key(),
        Column("task_id", AnyId, primary_key=True),
        Column("idx", Integer, primary_key=True, autoincrement=False),
    ]


# Partitions of a table of checkpoints, by thread: vacuum and indexes work on one of them at a time.
PARTITIONS = 16
# Graphs may choose ids of threads that the server does not know, so nothing refers to `threads`.
# An option of the dialect would import it in every process.
_BY_THREAD: Any = {"info": {"partition_by": "HASH (thread_id)"}}

thread_checkpoints = Table(
    "thread_checkpoints",
    metadata,
    *_checkpoint_key(),
    Column("parent_id", AnyId),
    Column("run_id", AnyId),
    # In a subgraph: the root graph's checkpoint from which the call began.
    Column("root_id", AnyId),
    Column("has_deltas", Boolean, nullable=False),
    Column("build", Text),
    # The number of its ancestors; see `checkpoint.chains`.
    Column("position", Integer, nullable=False),
    # The checkpoint that the value is a patch against.
    Column("base_id", AnyId),
    Column("size", Integer, nullable=False),
    Column("type", Text, nullable=False),
    Column("value", LargeBinary, nullable=False),
    Index(None, "run_id"),
    # A patch is stored with its base's id as it is found then: without the base, with none.
    CheckConstraint(
        "base_id IS NOT NULL OR replace(type, '+patch', '') = type", "ck_thread_checkpoints_base"
    ),
    **_BY_THREAD,
)
"""A checkpoint of a thread. Its value is langgraph's checkpoint with its metadata."""

thread_writes = Table(
    "thread_writes",
    metadata,
    *_write_columns(),
    Column("task_path", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("value", LargeBinary, nullable=False),
    **_BY_THREAD,
)
"""What a task has written to a channel, onto the checkpoint that it began from."""

run_writes = Table(
    "run_writes",
    metadata,
    Column("run_id", AnyId, primary_key=True),
    *_write_columns(),
    Column("task_path", Text),
    Column("channel", Text),
    Column("type", Text),
    Column("value", LargeBinary),
    Index(None, "thread_id"),
)
"""A write before a run replaced it (`checkpoint.undo`); without a channel if there was none."""


def partitions(table: Table) -> list[str]:
    """Return the names of a table's partitions in Postgres."""
    if "partition_by" not in table.info:
        return []
    return [f"{table.name}_{number}" for number in range(PARTITIONS)]


crons = Table(
    "crons",
    metadata,
    Column("cron_id", Id, primary_key=True),
    Column("assistant_id", Id, nullable=False),
    Column("thread_id", Id, _owner("threads.thread_id")),
    Column("user_id", Text),
    # The creator's user object; the cron's runs act as this user. The API never returns it.
    Column("creator", Sealed("crons", "cron_id")),
    Column("on_run_completed", Text),
    Column("schedule", Text, nullable=False),
    Column("timezone", Text),
    Column("end_time", Timestamp),
    Column("enabled", Boolean, nullable=False),
    Column("next_run_date", Timestamp, nullable=False),
    # Until this date other schedulers skip the cron, because one is firing it.
    Column("claimed_until", Timestamp),
    Column("payload", Sealed("crons", "cron_id"), nullable=False),
    _document("metadata"),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("tenant", Text),
    Index(None, "next_run_date"),
    Index(None, "assistant_id"),
    Index(None, "thread_id"),
)
"""A schedule that creates runs."""

webhooks = Table(
    "webhooks",
    metadata,
    Column("webhook_id", Id, primary_key=True),
    Column("run_id", Id, nullable=False),
    Column("status", Text, nullable=False),
    # The address and the body, which may contain what people typed.
    Column("message", Sealed("webhooks", "webhook_id"), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("created_at", Timestamp, nullable=False),
    Column("due_at", Timestamp, nullable=False),
    # After this time without an answer, the row is dead.
    Column("give_up_at", Timestamp, nullable=False),
    # Until this date other processes skip the row, because one is delivering it.
    Column("claimed_until", Timestamp),
    Column("error", Text),
    Column("tenant", Text),
    Index(None, "status", "due_at"),
    Index(None, "run_id"),
)
"""A webhook to deliver (`webhooks.outbox`). A delivered one is deleted, a dead letter stays. Its run and
thread may be deleted before it.
"""

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    # Made from tenant, user and the header.
    Column("key", Text, primary_key=True),
    Column("tenant", Text),
    # Made from the request's method, path and body.
    Column("fingerprint", Text, nullable=False),
    # What the first request has created.
    Column("thread_id", Id, nullable=False),
    Column("run_id", Id),
    Column("created_at", Timestamp, nullable=False),
    Index(None, "created_at"),
)
"""A request that its client may repeat (`gate.idempotency`)."""

effects = Table(
    "effects",
    metadata,
    # Made from the thread, the place in the graph and the key that the node gives.
    Column("effect_id", Id, primary_key=True),
    Column("thread_id", Id, _owner("threads.thread_id"), nullable=False),
    Column("run_id", Id, nullable=False),
    Column("attempt", Integer, nullable=False),
    # What executes the effect: the same attempt may do so twice, after a retry of its node.
    Column("token", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("result", Sealed("effects", "effect_id")),
    Column("created_at", Timestamp, nullable=False),
    Column("updated_at", Timestamp, nullable=False),
    Column("tenant", Text),
    Index(None, "thread_id"),
    Index(None, "status", "updated_at"),
)
"""A call of another system that a node must not repeat (`effects`)."""

tenant_keys = Table(
    "tenant_keys",
    metadata,
    Column("key_id", Id, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("wrapped", Text),
    # The fingerprint of the master key.
    Column("master", Text),
    Column("created_at", Timestamp, nullable=False),
    Column("erased_at", Timestamp),
    Index(None, "tenant", "version", unique=True),
)
"""A tenant's data key, encrypted by the master key (`encryption`). An erased key keeps its row without
`wrapped`. The tenant is empty for the key of rows without a tenant.
"""

limit_usage = Table(
    "limit_usage",
    metadata,
    # An empty text where there are no tenants.
    Column("tenant", Text, primary_key=True),
    # `tenant`, `user` or `assistant`, and its name; an empty text for the tenant itself.
    Column("scope", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    # The time up to which the starts so far use the limit, in seconds since 1970.
    Column("until", Float, nullable=False),
    sqlite_with_rowid=False,
)
"""How much of a limit on starts a minute is used (`limits.quotas`)."""

stored_bytes = Table(
    "stored_bytes",
    metadata,
    # An empty text where there are no tenants.
    Column("tenant", Text, primary_key=True),
    # The result of the last count, and the size of what requests stored after it.
    Column("counted", BigInteger, nullable=False),
    Column("added", BigInteger, nullable=False),
    # When a process counts again.
    Column("due_at", Timestamp, nullable=False),
    sqlite_with_rowid=False,
)
"""About how much a tenant with a limit on it stores (`limits.stored`)."""

database_settings = Table(
    "facts", metadata, Column("name", Text, primary_key=True), Column("value", Text)
)
"""A fact about the whole database, by its name, such as the metadata key of tenants."""

revocations = Table(
    "revocations",
    metadata,
    # Made from the token's id, or from tenant and subject: `ops.revocations` compares it.
    Column("key", Text, primary_key=True),
    Column("tenant", Text),
    Column("subject", Text),
    Column("token_id", Text),
    Column("reason", Text),
    Column("created_at", Timestamp, nullable=False),
    # NULL: it does not end.
    Column("expires_at", Timestamp),
    Index(None, "expires_at"),
)
"""A token or user that is refused, although the token is valid (`ops.revocations`)."""

audit_entries = Table(
    "audit_entries",
    metadata,
    Column(
        "seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    ),
    Column("at", Timestamp, nullable=False),
    Column("tenant", Text),
    Column("user_id", Text),
    Column("roles", Text),
    Column("address", Text),
    Column("method", Text),
    Column("route", Text),
    Column("action", Text, nullable=False),
    Column("object_kind", Text),
    Column("object_id", Text),
    Column("decision", Text, nullable=False),
    Column("status", Integer),
    # JSON in a text, because jsonb would change its bytes.
    Column("detail", Text),
    # The digest of the columns about a person, and its salt, which an erase removes with them.
    Column("person", Text, nullable=False),
    Column("salt", Text),
    # The place in a chain: its name, the entry's number in it from 1, and both hashes.
    Column("chain", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    # The key of the hash; NULL: anybody can compute it.
    Column("key_id", Text),
    # The proof that an erase with the key emptied the columns about a person.
    Column("erased", Text),
    Index("uq_audit_entries_chain_number", "chain", "number", unique=True),
    Index(None, "tenant", "seq"),
    # The first entries of chains, by the entry that they follow.
    Index("ix_audit_entries_start", "previous", sqlite_where=text("number = 1")),
)
"""An entry of the audit log (`audit`). Triggers refuse to change or delete it."""
