"""Database URLs: which are accepted, and what is shown of them."""

import pytest

from langgraph_runtime_sql.database.url import database_path, is_postgres, postgres_dsn, shown
from langgraph_runtime_sql.errors import BadDatabaseUrl


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:secret@host:5432/name?sslmode=require",
        "postgres://user:secret@host:5432/name?sslmode=require",
        "postgresql+psycopg://user:secret@host:5432/name?sslmode=require",
    ],
)
def test_every_postgres_url_scheme_is_accepted(url: str) -> None:
    assert is_postgres(url)
    assert postgres_dsn(url) == "postgresql://user:secret@host:5432/name?sslmode=require"
    assert "secret" not in shown(url)
    with pytest.raises(BadDatabaseUrl, match="is not supported here"):
        database_path(url)


def test_sqlite_url_is_not_a_postgres_url() -> None:
    assert not is_postgres("sqlite:///data/app.db")
    assert shown("sqlite:///data/app.db") == "sqlite:///data/app.db"


def test_invalid_url_is_refused_without_showing_its_password() -> None:
    with pytest.raises(BadDatabaseUrl) as refused:
        postgres_dsn("postgresql://user:secret@host:port/name")
    assert "secret" not in str(refused.value)
