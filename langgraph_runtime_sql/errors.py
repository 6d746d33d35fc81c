"""The errors of this package. Without a message, an error shows its docstring."""

import math
from enum import StrEnum
from pathlib import Path

from starlette.exceptions import HTTPException


class RuntimeSqlError(Exception):
    """The runtime cannot do what was asked."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class BadDatabaseUrl(RuntimeSqlError):
    """The database URL cannot be used."""


class CannotOpen(RuntimeSqlError):
    """The SQLite file cannot be used."""

    def __init__(self, path: Path, error: Exception) -> None:
        super().__init__(
            f"{path} cannot be used as a database: {error}. The folder must be writable, and the "
            "file must be a SQLite database or not exist yet."
        )


class BadRedis(RuntimeSqlError, ValueError):
    """The Redis server or its URL cannot be used."""


class DatabaseInUse(RuntimeSqlError):
    """Another process owns the database."""


class FileInUse(DatabaseInUse):
    """Another process owns the SQLite file."""

    def __init__(self, path: Path, owner: str) -> None:
        process = f"process {owner}" if owner else "another process"
        super().__init__(
            f"{path} is in use by {process}. Only one process can use a SQLite file: stop that "
            "process, give this one another file, or use Postgres for several processes."
        )


class DatabaseTooNew(RuntimeSqlError):
    """A newer version of this package has migrated the database."""


class DatabaseTooOld(RuntimeSqlError):
    """The database is from before the first release, and no script brings it up to date."""


class UngatedWrite(RuntimeSqlError):
    """A write in a client's request did not pass the gate: `gate.writes` must admit it."""


class DatabaseIncomplete(RuntimeSqlError):
    """A move into this database was not finished."""


class DatabaseClosed(RuntimeSqlError):
    """The database is closed."""


class NotStarted(RuntimeSqlError):
    """The platform is not running: enter its lifespan first."""


class WriteConflict(RuntimeSqlError):
    """Another transaction was faster. Repeating the operation sees its result."""


class Outdated(RuntimeSqlError):
    """The state to be changed is no longer the newest one."""


class OtherTenants(RuntimeSqlError, HTTPException):
    """The row belongs to another tenant."""

    def __init__(self) -> None:
        HTTPException.__init__(self, 403, type(self).__doc__)


class DatabaseBusy(RuntimeSqlError):
    """The database is busy. Nothing was committed, and the same call may succeed now."""


class DatabaseOverloaded(RuntimeSqlError):
    """The database cannot write now: the disk is full or failing, or the server is away.

    Attributes:
        public: What clients are told.
    """

    public = "The database cannot be used now."


class DatabaseState(StrEnum):
    """Whether the database can be written to, as `/health` and `/metrics` name it."""

    OK = "ok"
    DISK_FULL = "disk full"
    READ_ONLY = "read-only"
    FAILING = "disk failing"
    UNREACHABLE = "unreachable"
    DAMAGED = "damaged"


_OUTAGES = {
    DatabaseState.DISK_FULL: "The disk of the database is full",
    DatabaseState.READ_ONLY: "The database is read-only",
    DatabaseState.FAILING: "The disk of the database fails",
    DatabaseState.UNREACHABLE: "Postgres cannot be reached",
}


class DatabaseOutage(DatabaseOverloaded):
    """The database cannot be used until the cause is gone. Nothing of the operation is stored.

    Args:
        state: The cause.
        reason: What the database or the system says about it.

    Attributes:
        state: The cause.
        reason: What the database or the system says about it.
        public: What clients are told: not the reason, which names files and hosts.
    """

    def __init__(self, state: DatabaseState, reason: str) -> None:
        self.state, self.reason, self.public = state, reason, f"{_OUTAGES[state]}."
        super().__init__(f"{_OUTAGES[state]}: {reason}")


class DatabaseDamaged(RuntimeSqlError):
    """The stored data of the database are damaged, and an operation has met the damage.

    Args:
        where: The SQLite file, or the name of another database.
        reason: What the database says about it.
        description: What an operator is told; by default `reason` and what to do.

    Attributes:
        state: `DatabaseState.DAMAGED`.
        where: As given.
        reason: What the database says about it.
        public: What clients are told.
    """

    state = DatabaseState.DAMAGED
    public = "The stored data that this request needs are damaged. The operator must restore them."

    def __init__(self, where: Path | str, reason: str, description: str | None = None) -> None:
        self.where, self.reason = where, reason
        super().__init__(
            description
            or f"{where} is damaged: {reason}. `threadhold doctor` lists the damage. Stop the server, "
            "and put a backup in its place with `threadhold restore --force`."
        )


class SearchTimeout(RuntimeSqlError):
    """A search reaches its time limit. Repeating it would take as long."""

    def __init__(self, seconds: float, advice: str) -> None:
        super().__init__(f"The search was cut off after {seconds:g} s. {advice}")


class EventsLost(RuntimeSqlError, RuntimeError):
    """Events were lost on their way to this client. The run's stored state is complete."""


class GraphExited(RuntimeSqlError, RuntimeError):
    """A node called `sys.exit`. This fails its run instead of ending the process."""

    def __init__(self, code: object) -> None:
        super().__init__(
            f"The graph called sys.exit({code!r}), which fails its run, not the process"
        )


class SupersededAttempt(RuntimeSqlError, RuntimeError):
    """The attempt no longer owns its run, so its write is refused."""

    # The error code that our Postgres triggers raise.
    SQLSTATE = "TH001"


class LimitReached(RuntimeSqlError, HTTPException):
    """A limit of `sql.limits` is reached. Answers 429.

    Args:
        limit: Its name, as `tenant.threads`.
        what: What there may be at most, as "100 threads".
        seconds: When the same request may succeed.
        advice: What the client can do.

    Attributes:
        limit: The name of the limit.
    """

    def __init__(
        self, limit: str, what: str, seconds: float, advice: str = "Try again later."
    ) -> None:
        self.limit = limit
        HTTPException.__init__(
            self,
            429,
            f"The limit {limit} is reached: at most {what}. {advice}",
            {"retry-after": str(max(1, math.ceil(seconds)))},
        )


class TooManyWaiting(LimitReached):
    """Too much work of one tenant waits for a thread of the process. Answers 429.

    Args:
        what: What there may be at most, as "100 operations that wait".
    """

    def __init__(self, what: str) -> None:
        super().__init__("tenant.waiting_operations", what, 1)


class DamagedEvents(RuntimeSqlError):
    """Stored events cannot be read. Their readers get `EventsLost` in their place."""


class DamagedCheckpoint(RuntimeSqlError):
    """A value of a checkpoint cannot be put together from its parts. Answers 500 with the place."""
