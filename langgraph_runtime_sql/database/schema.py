"""The schema, once, for both databases.

Checkpoints and store items are not here: their tables belong to
langgraph's own savers and stores, which create and migrate them.
"""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
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
    """A UUID. SQLite: 36 characters, so that a person can read the file."""

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


class Moment(TypeDecorator[datetime]):
    """An aware datetime. SQLite: microseconds since 1970, so that it sorts and compares."""

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


# Indexes of some rows name their condition for SQLite, and Postgres takes it from there: naming it
# for Postgres, too, would load its dialect in every process.
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


assistants = Table(
    "assistants",
    metadata,
    Column("assistant_id", Id, primary_key=True),
    Column("graph_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text),
    _document("config"),
    _document("context"),
    _document("metadata"),
    Column("version", Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    # Whose it is; NULL: nobody's, which is the system's. See `tenants`.
    Column("tenant", Text),
    Index(None, "graph_id"),
    Index(None, "created_at"),
)

assistant_versions = Table(
    "assistant_versions",
    metadata,
    Column(
        "assistant_id",
        Id,
        ForeignKey("assistants.assistant_id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("version", Integer, primary_key=True),
    Column("graph_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text),
    _document("config"),
    _document("context"),
    _document("metadata"),
    Column("created_at", Moment, nullable=False),
    Column("tenant", Text),
)

threads = Table(
    "threads",
    metadata,
    Column("thread_id", Id, primary_key=True),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("state_updated_at", Moment, nullable=False),
    _document("metadata"),
    _document("config"),
    Column("status", Text, nullable=False),
    # Its status once no run of it is in flight: what the last one that ended left.
    Column("resting_status", Text, nullable=False, server_default=ThreadStatus.IDLE.value),
    Column("values", Json),
    Column("interrupts", Json, nullable=False),
    Column("error", Json),
    # Time to live: the strategy and minutes asked for, and the date they give.
    Column("ttl_strategy", Text),
    Column("ttl_minutes", Float),
    Column("expires_at", Moment),
    Column("tenant", Text),
    Index(None, "updated_at"),
    Index(None, "created_at"),
    Index(None, "state_updated_at"),
    Index(None, "status", "updated_at"),
    Index(
        "ix_threads_expires_at",
        "expires_at",
        sqlite_where=text("expires_at IS NOT NULL"),
    ),
)

# Long enough that a thread in use seldom enters another one, which writes its labels again; short
# enough that few threads share the one at the end of a page, all of which are looked at.
PERIOD_SECONDS = 600

# The scalar top-level entries of each thread's metadata, so that a search by
# them is an index look-up on any key, whatever keys a host invents.
thread_labels = Table(
    "thread_labels",
    metadata,
    Column(
        "thread_id",
        Id,
        ForeignKey("threads.thread_id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    # When the thread was last updated, in whole periods since 1970. A trigger keeps it so.
    Column("period", BigInteger, nullable=False),
    Column("tenant", Text),
    # With the tenant, whom policies ask for, so that the table need not be looked at.
    Index(None, "key", "value", "period", "thread_id", "tenant"),
    sqlite_with_rowid=False,
)

# Statements name these two statuses so, not by a parameter: SQLite would plan them anew at
# each call, to see whether an index on some of the runs applies to its value.
PENDING_LITERAL = literal_column(f"'{RunStatus.PENDING}'", Text)
RUNNING_LITERAL = literal_column(f"'{RunStatus.RUNNING}'", Text)
_IS_PENDING = f"status = '{RunStatus.PENDING}'"
_IS_RUNNING = f"status = '{RunStatus.RUNNING}'"

# Nobody's runs are one tenant's, too. Not `coalesce`, which Postgres does not trust to tell
# nothing: under policies it would not look for it in an index.
TENANT = "(CASE WHEN tenant IS NULL THEN '' ELSE tenant END)"

runs = Table(
    "runs",
    metadata,
    # Insertion order, which breaks ties between equal dates.
    Column(
        "seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    ),
    Column("run_id", Id, nullable=False, unique=True),
    Column("thread_id", Id, ForeignKey("threads.thread_id", ondelete="CASCADE"), nullable=False),
    Column("assistant_id", Id, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("status", Text, nullable=False),
    _document("metadata"),
    _document("kwargs"),
    Column("multitask_strategy", Text, nullable=False),
    Column("langsmith_session_name", Text),
    # The claim: how often the run was started, by which process, until when.
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("claimed_by", Text),
    Column("lease_until", Moment),
    # A cancellation that was acknowledged outlives the process that heard it.
    Column("cancel_action", Text),
    Column("cancel_reason", Text),
    Column("tenant", Text),
    Index(None, "thread_id", "created_at"),
    Index(None, "assistant_id"),
    Index(
        "ix_runs_pending",
        "created_at",
        "seq",
        # Lets a claim pass over the runs of blocked threads without reading them.
        "thread_id",
        sqlite_where=text(_IS_PENDING),
    ),
    Index(
        "ix_runs_pending_thread",
        "thread_id",
        "created_at",
        "seq",
        sqlite_where=text(_IS_PENDING),
    ),
    # Where tenants take turns: who waits, for which run, and who has how many in flight.
    Index(
        "ix_runs_pending_tenant",
        text(TENANT),
        "created_at",
        "seq",
        "thread_id",
        sqlite_where=text(_IS_PENDING),
    ),
    Index(
        "ix_runs_running_tenant",
        text(TENANT),
        sqlite_where=text(_IS_RUNNING),
    ),
    # The invariant of the queue: a thread has at most one running run.
    Index(
        "uq_runs_running_thread",
        "thread_id",
        unique=True,
        sqlite_where=text(_IS_RUNNING),
    ),
)

crons = Table(
    "crons",
    metadata,
    Column("cron_id", Id, primary_key=True),
    Column("assistant_id", Id, nullable=False),
    Column("thread_id", Id, ForeignKey("threads.thread_id", ondelete="CASCADE")),
    Column("user_id", Text),
    # Who created it, as authentication knew them: its runs are theirs. Never shown.
    Column("creator", Json),
    Column("on_run_completed", Text),
    Column("schedule", Text, nullable=False),
    Column("timezone", Text),
    Column("end_time", Moment),
    Column("enabled", Boolean, nullable=False),
    Column("next_run_date", Moment, nullable=False),
    # While a scheduler is firing this cron, others leave it alone until then.
    Column("claimed_until", Moment),
    _document("payload"),
    _document("metadata"),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("tenant", Text),
    Index(None, "next_run_date"),
    Index(None, "assistant_id"),
    Index(None, "thread_id"),
)

# What is true of the whole database, by name; see `tenants`.
database_settings = Table(
    "facts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text),
)
