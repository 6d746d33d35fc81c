"""Extras: optional dependencies of the distribution, and the error that names a missing one."""

from importlib.util import find_spec

from langgraph_runtime_sql.database.url import is_postgres
from langgraph_runtime_sql.errors import RuntimeSqlError

MODULES = {
    "postgres": ("psycopg", "langgraph.checkpoint.postgres"),
    "redis": ("redis",),
    "vectors": ("numpy",),
    "jwt": ("jwt", "cryptography"),
    "otel": ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
}
"""Extra to the modules that it installs for the library."""


class MissingExtra(RuntimeSqlError, ImportError):
    """An optional dependency is not installed."""


def require(extra: str, feature: str) -> None:
    """Check that the modules of an extra are installed.

    Args:
        extra: A key of `MODULES`.
        feature: What needs the extra, such as `A postgresql:// database`.

    Raises:
        MissingExtra: a module is not installed; the message says how to install it.
    """
    missing = [name for name in MODULES[extra] if not _is_installed(name)]
    if missing:
        raise MissingExtra(
            f"{feature} needs {' and '.join(missing)}, which the extra {extra!r} installs: "
            f"pip install 'threadhold[{extra}]'"
        )


def require_clients(database_url: str, redis_url: str | None) -> None:
    """Check that the client packages of Postgres and Redis are installed, if the URLs need them.

    Raises:
        MissingExtra: one is not installed.
    """
    if is_postgres(database_url):
        require("postgres", "A postgresql:// database")
    if redis_url is not None:
        require("redis", "A Redis URL")


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        # Its parent package is missing.
        return False
