"""Database URLs: check them, and read from them which database they name."""

from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from langgraph_runtime_sql.errors import BadDatabaseUrl


def is_postgres(url: str) -> bool:
    """Return whether a URL names a Postgres database, with any driver."""
    return url.partition("://")[0].partition("+")[0] in ("postgresql", "postgres")


def postgres_dsn(url: str) -> str:
    """Return the URL in the form that Postgres's own clients accept.

    Raises:
        BadDatabaseUrl: `url` is not a URL.
    """
    _parse(url)
    return f"postgresql://{url.partition('://')[2]}"


def shown(url: str) -> str:
    """Return the URL for messages and logs: without its password.

    Raises:
        BadDatabaseUrl: `url` is not a URL.
    """
    return _parse(url).render_as_string(hide_password=True) if is_postgres(url) else url


def database_path(url: str) -> Path:
    """Return the file that an SQLite URL names.

    Raises:
        BadDatabaseUrl: `url` is not a URL, names another database, or SQLite in memory, which
            loses every write.
    """
    parsed = _parse(url)
    if parsed.get_backend_name() != "sqlite":
        raise BadDatabaseUrl(
            f"{parsed.get_backend_name()!r} is not supported here; use sqlite:///path/to/file.db "
            "or postgresql://user:password@host/database"
        )
    if not parsed.database or parsed.database == ":memory:" or parsed.query:
        raise BadDatabaseUrl(
            f"{url!r} does not name a plain file; use sqlite:///path/to/file.db, "
            "because a database in memory keeps nothing"
        )
    return Path(parsed.database).resolve()


def _parse(url: str) -> URL:
    try:
        return make_url(url)
    except (ArgumentError, ValueError) as error:
        # The message leaves out a URL that may hold a password.
        shown = repr(url) if "@" not in url else "The database URL"
        raise BadDatabaseUrl(
            f"{shown} is not a database URL; use sqlite:///path/to/file.db "
            "or postgresql://user:password@host/database"
        ) from error
