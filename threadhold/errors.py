"""The errors of the library that a host may meet, in one place.

All of them descend from `RuntimeSqlError`. Those of a start carry one sentence that says what is
wrong and what to do.
"""

from langgraph_runtime_sql.errors import (
    BadDatabaseUrl,
    BadRedis,
    CannotOpen,
    DatabaseBusy,
    DatabaseInUse,
    DatabaseOverloaded,
    DatabaseTooNew,
    EventsLost,
    FileInUse,
    NotStarted,
    RuntimeSqlError,
)
from threadhold.config_file import ConfigError
from threadhold.extras import MissingExtra
from threadhold.platform import ForbiddenPrefix, PlatformAlreadyConfigured

__all__ = [
    "BadDatabaseUrl",
    "BadRedis",
    "CannotOpen",
    "ConfigError",
    "DatabaseBusy",
    "DatabaseInUse",
    "DatabaseOverloaded",
    "DatabaseTooNew",
    "EventsLost",
    "FileInUse",
    "ForbiddenPrefix",
    "MissingExtra",
    "NotStarted",
    "PlatformAlreadyConfigured",
    "RuntimeSqlError",
]
