"""Errors: the exceptions that a host may catch, all subclasses of `RuntimeSqlError`."""

from langgraph_runtime_sql.errors import (
    BadDatabaseUrl,
    BadRedis,
    CannotOpen,
    DatabaseBusy,
    DatabaseDamaged,
    DatabaseInUse,
    DatabaseOutage,
    DatabaseOverloaded,
    DatabaseTooNew,
    DatabaseTooOld,
    EventsLost,
    FileInUse,
    NotStarted,
    RuntimeSqlError,
)
from threadhold.config_file import ConfigError
from threadhold.extras import MissingExtra
from threadhold.platform import ForbiddenPrefix, PlatformAlreadyConfigured
from threadhold.stock.replacement import StockChanged

__all__ = [
    "BadDatabaseUrl",
    "BadRedis",
    "CannotOpen",
    "ConfigError",
    "DatabaseBusy",
    "DatabaseDamaged",
    "DatabaseInUse",
    "DatabaseOutage",
    "DatabaseOverloaded",
    "DatabaseTooNew",
    "DatabaseTooOld",
    "EventsLost",
    "FileInUse",
    "ForbiddenPrefix",
    "MissingExtra",
    "NotStarted",
    "PlatformAlreadyConfigured",
    "RuntimeSqlError",
    "StockChanged",
]
