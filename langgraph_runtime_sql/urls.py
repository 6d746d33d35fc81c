"""Database URLs: what they may name."""

from pathlib import Path

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from langgraph_runtime_sql.errors import BadDatabaseUrl


def database_path(url: str) -> Path:
    """The file that an SQLite URL names.

    Raises:
        BadDatabaseUrl: not a URL, another database, or SQLite in memory (which
            could not keep a write).
    """
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise BadDatabaseUrl(f"{url!r} is not a database URL: {error}") from error
    if parsed.get_backend_name() != "sqlite":
        raise BadDatabaseUrl(
            f"{parsed.get_backend_name()!r} is not supported; use sqlite:///path/to/file.db"
        )
    if not parsed.database or parsed.database == ":memory:" or parsed.query:
        raise BadDatabaseUrl(
            f"{url!r} does not name a plain file; use sqlite:///path/to/file.db, "
            "because a database in memory keeps nothing"
        )
    return Path(parsed.database).resolve()
