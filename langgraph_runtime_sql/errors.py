"""The errors of this package, one family.

RuntimeSqlError
├── BadDatabaseUrl      the URL names nothing we can keep writes in
├── CannotOpen          the SQLite file cannot be made, read or written, or is none
├── BadRedis            the URL names no Redis that can be used
├── DatabaseInUse       another process owns the database
├── DatabaseTooNew      migrated by a newer version
├── DatabaseIncomplete  a move into it was not finished
├── DatabaseClosed      used after stop
├── NotStarted          used outside the lifespan
├── EventsLost          a stream has a hole
├── Collided            another transaction was quicker: done again
├── Outdated            another writer of a state was quicker: done again
├── OtherTenants        the database refuses a row: 403
├── DatabaseBusy        nothing was committed; the same call may succeed now
├── DatabaseOverloaded  the disk is full or failing, or the server away: 503
├── TooSlow             a search takes too long: 503
├── GraphExited         a node called `sys.exit`
└── SupersededAttempt   the write belongs to an attempt that no longer owns its run
"""

from pathlib import Path

from starlette.exceptions import HTTPException


class RuntimeSqlError(Exception):
    """The runtime could not do what it was asked."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class BadDatabaseUrl(RuntimeSqlError):
    """The database URL cannot be used."""


class CannotOpen(RuntimeSqlError):
    """The SQLite file cannot be used."""

    def __init__(self, path: Path, error: Exception) -> None:
        super().__init__(
            f"{path} cannot be used as a database: {error}. It takes a folder in which files can be "
            "made and written, and a file that is SQLite's or not there yet."
        )


class BadRedis(RuntimeSqlError, ValueError):
    """The Redis cannot be used."""


class DatabaseInUse(RuntimeSqlError):
    """Another process owns the database."""


class FileInUse(DatabaseInUse):
    """Another process owns the SQLite file."""

    def __init__(self, path: Path, owner: str) -> None:
        who = f"process {owner}" if owner else "another process"
        super().__init__(
            f"{path} is in use by {who}. One process owns a SQLite file: stop that process, "
            "give this one a file of its own, or serve many processes from Postgres."
        )


class DatabaseTooNew(RuntimeSqlError):
    """The database was migrated by a newer version of this package."""


class DatabaseIncomplete(RuntimeSqlError):
    """A move into this database was begun and not finished."""


class DatabaseClosed(RuntimeSqlError):
    """The database is closed."""


class NotStarted(RuntimeSqlError):
    """The platform is not running: enter its lifespan first."""


class Collided(RuntimeSqlError):
    """Another transaction was quicker; the same operation sees what it did."""


class Outdated(RuntimeSqlError):
    """The state onto which something was to be written is no longer the newest."""


class OtherTenants(RuntimeSqlError, HTTPException):
    """This is not your tenant's to write"""

    def __init__(self) -> None:
        HTTPException.__init__(self, 403, type(self).__doc__)


class DatabaseBusy(RuntimeSqlError):
    """The database is busy; nothing was committed."""


class DatabaseOverloaded(RuntimeSqlError):
    """The database cannot take a write now."""


class TooSlow(RuntimeSqlError):
    """A search takes longer than others can wait for. The same one would again."""

    def __init__(self, seconds: float, advice: str) -> None:
        super().__init__(f"The search was cut off after {seconds:g} s. {advice}")


class EventsLost(RuntimeSqlError, RuntimeError):
    """Events were lost on their way from another process. What the run has written is not."""


class GraphExited(RuntimeSqlError, RuntimeError):
    """A node asked the process to end, which fails its run instead."""

    def __init__(self, code: object) -> None:
        super().__init__(f"The graph called sys.exit({code!r}), which fails the run")


class SupersededAttempt(RuntimeSqlError, RuntimeError):
    """This attempt no longer owns its run; what it writes is refused."""

    # How Postgres says so.
    SQLSTATE = "TH001"
