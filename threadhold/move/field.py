"""Fields: convert the values of a column from SQLite to Postgres."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Column

from langgraph_runtime_sql.database.postgres.connection import DIALECT as POSTGRES
from langgraph_runtime_sql.database.schema import AnyId
from langgraph_runtime_sql.database.sqlite.engine import DIALECT as SQLITE
from threadhold.move import canonical
from threadhold.move.canonical import Json, Unstorable

_BITS = {"INTEGER": 31, "BIGINT": 63}


class Field:
    """One column of a moved table.

    Args:
        column: The Postgres column. `info["source"]` is its name in SQLite, if different.

    Attributes:
        name: Name in Postgres.
        source: Name in SQLite.
        into: Placeholder for its value in an INSERT.
        out: Expression that selects it.
    """

    def __init__(self, column: Column[Any]) -> None:
        kind = column.type.compile(dialect=POSTGRES)
        self.name = column.name
        self.source = str(column.info.get("source", column.name))
        self._nullable = bool(column.nullable)
        self._is_json = kind in ("JSON", "JSONB")
        # JSON stays text, so that no number changes its form.
        self.into = f"%s::{kind}" if self._is_json else "%s"
        self.out = quoted(self.name) + ("::text" if self._is_json else "")
        # Both databases hold the same bytes of such an id.
        same = isinstance(column.type, AnyId)
        read = None if same else column.type.dialect_impl(SQLITE).result_processor(SQLITE, None)
        self._read = _json if self._is_json else read or _same
        self._check = _check_of(kind)

    def read(self, raw: Any) -> Any:
        """Convert a value of SQLite.

        Raises:
            Unstorable: Postgres cannot hold it.
        """
        if raw is None:
            if not self._nullable:
                raise Unstorable(f"column {self.name} holds nothing")
            return None
        try:
            value = self._read(raw)
            self._check(value)
        except Unstorable as error:
            raise Unstorable(f"column {self.name} {error}") from error
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            # SQLite accepts any value in any column, such as a word for an id.
            raise Unstorable(f"column {self.name} holds {str(raw)[:60]!r}") from error
        return value

    def stored(self, value: Any) -> Any:
        """Convert a value of Postgres."""
        return Json(value) if self._is_json and value is not None else value


def quoted(name: str) -> str:
    """Quote a name for a statement of either database."""
    return '"' + name.replace('"', '""') + '"'


def _same(value: Any) -> Any:
    return value


def _json(value: Any) -> Json:
    return Json(value.decode() if isinstance(value, bytes) else value)


def _check_of(kind: str) -> Callable[[Any], None]:
    """Return the function that checks values for a Postgres type."""
    if kind in _BITS:
        bound = 2 ** _BITS[kind]
        return lambda value: canonical.check_number(value, -bound, bound - 1)
    checks: dict[str, Callable[[Any], None]] = {
        "JSON": canonical.loads,
        "JSONB": _check_jsonb,
        "TEXT": _check_text,
        "BYTEA": _check_bytes,
    }
    return checks.get(kind, _same)


def _check_jsonb(value: Json) -> None:
    document = canonical.loads(value)
    # jsonb refuses some characters, which JSON can hold only as escapes.
    if "\\u" in value:
        canonical.check_json(document)


def _check_text(value: Any) -> None:
    if not isinstance(value, str):
        raise Unstorable(f"holds {value!r}, which is no text")
    canonical.check_text(value)


def _check_bytes(value: Any) -> None:
    if not isinstance(value, bytes):
        raise Unstorable(f"holds {str(value)[:60]!r}, which is text and not bytes")
