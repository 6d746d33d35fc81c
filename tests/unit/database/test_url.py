"""Database URLs: what they name, and what is shown of them."""

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
def test_postgres_is_known_by_all_its_names(url: str) -> None:
    assert is_postgres(url)
    assert postgres_dsn(url) == "postgresql://user:secret@host:5432/name?sslmode=require"
    assert "secret" not in shown(url)
    with pytest.raises(BadDatabaseUrl, match="is not supported here"):
        database_path(url)


def test_a_file_is_no_postgres() -> None:
    assert not is_postgres("sqlite:///data/app.db")
    assert shown("sqlite:///data/app.db") == "sqlite:///data/app.db"


def test_a_url_that_is_none_is_refused_without_its_password() -> None:
    with pytest.raises(BadDatabaseUrl) as refused:
        postgres_dsn("postgresql://user:secret@host:port/name")
    assert "secret" not in str(refused.value)
