"""Statements: SQLAlchemy Core compiled once, executed on the driver directly.

SQLAlchemy writes the SQL for each dialect. Its execution layer costs several times the statement
itself and is left out. Parameters and results still pass through the types in `schema`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import ClauseElement, Insert, Select
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.selectable import SelectBase

from langgraph_runtime_sql.database.schema import Sealed

Processor = Callable[[Any], Any]
Params = Mapping[str, Any]
Row = dict[str, Any]

# Postgres's type code of a float: SQLAlchemy's result processors ask for a type code.
FLOAT = 701


class Compiled:
    """One statement for one dialect: its SQL, and the conversion of parameters and results."""

    __slots__ = ("columns", "command", "defaults", "into", "order", "sealed", "sql")

    def __init__(self, statement: ClauseElement, dialect: Dialect) -> None:
        compiled: Any = statement.compile(
            dialect=dialect, compile_kwargs={"render_postcompile": True}
        )
        self.sql = str(compiled)
        self.command = self.sql.encode()
        # The names of parameters in a dialect that numbers them.
        self.order: tuple[str, ...] = tuple(compiled.positiontup or ())
        self.defaults: dict[str, Any] = dict(compiled.params)
        self.into: list[tuple[str, Processor]] = []
        for name in self.defaults:
            # An IN list is expanded: `ids` becomes `ids_1`, `ids_2`, all of the type of `ids`.
            bind = compiled.binds.get(name)
            if bind is None:
                bind = compiled.binds[name.rpartition("_")[0]]
            processor = bind.type.dialect_impl(dialect).bind_processor(dialect)
            if processor is not None:
                self.into.append((name, processor))
        self.columns: list[tuple[str, Processor | None]] = [
            (column.key or "", column.type.dialect_impl(dialect).result_processor(dialect, FLOAT))
            for column in _columns(statement)
        ]
        self.sealed = _sealed(statement)

    def bind(self, params: Params | None) -> dict[str, Any]:
        """Return the driver's parameters: `params` over the statement's own literals."""
        values = {**self.defaults, **params} if params else dict(self.defaults)
        for name, processor in self.into:
            values[name] = processor(values[name])
        return values

    def bind_in_order(self, params: Params | None) -> list[Any]:
        """Return the driver's parameters for a dialect that numbers them."""
        values = self.bind(params)
        return [values[name] for name in self.order]

    def rows(self, fetched: Iterable[tuple[Any, ...]]) -> list[Row]:
        """Return the driver's tuples as dicts in the types of `schema`."""
        columns = self.columns
        return [
            {
                name: value if processor is None else processor(value)
                for (name, processor), value in zip(columns, record, strict=True)
            }
            for record in fetched
        ]


class Prepared:
    """A statement that is compiled once for each dialect.

    Args:
        statement: The statement, or a function that builds it at the first use, for a start
            that does not need it.

    Attributes:
        locking: The statement for transactions that lock: this one, except for `LockingSelect`.
    """

    __slots__ = ("_compiled", "_statement", "locking")

    def __init__(self, statement: ClauseElement | Callable[[], ClauseElement]) -> None:
        self.locking = self
        self._statement = statement
        self._compiled: dict[Dialect, Compiled] = {}

    def compiled(self, dialect: Dialect) -> Compiled:
        try:
            return self._compiled[dialect]
        except KeyError:
            written = self._statement
            statement = written if isinstance(written, ClauseElement) else written()
            return self._compiled.setdefault(dialect, Compiled(statement, dialect))


class LockingSelect(Prepared):
    """A query that locks the rows that it reads, in a transaction that must (`Connection.locks`).

    Args:
        query: The query without a lock.
        shared: Whether others may lock the same rows in the same way.
    """

    __slots__ = ()

    def __init__(self, query: Select[Any], *, shared: bool = False) -> None:
        super().__init__(query)
        self.locking = Prepared(query.with_for_update(read=shared, key_share=not shared))


Statement = Prepared | ClauseElement


def compile_statement(statement: Statement, dialect: Dialect) -> Compiled:
    """Compile `statement` for `dialect`; only `Prepared` ones are cached."""
    if isinstance(statement, Prepared):
        return statement.compiled(dialect)
    return Compiled(statement, dialect)


class InsertNew(Insert):
    """An INSERT that does nothing where the key exists, even in a row that policies hide."""

    inherit_cache = True


@compiles(InsertNew)
def _(element: InsertNew, compiler: Any, **options: Any) -> str:
    return f"{compiler.visit_insert(element, **options)} ON CONFLICT DO NOTHING"


class Upsert(Insert):
    """An INSERT that replaces the other columns of the row with its key."""

    inherit_cache = True


@compiles(Upsert)
def _(element: Upsert, compiler: Any, **options: Any) -> str:
    table: Any = element.table
    key = [column.name for column in table.primary_key.columns]
    changed = ", ".join(
        f"{column.name} = excluded.{column.name}"
        for column in table.columns
        if column.name not in key
    )
    written = compiler.visit_insert(element, **options)
    return f"{written} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"


def _sealed(statement: ClauseElement) -> tuple[tuple[str, str, str], ...]:
    """Return each sealed column, its table, and the column with the row's id."""
    columns = list(_columns(statement))
    found = tuple(
        (column.key or "", column.type.table, column.type.key)
        for column in columns
        if isinstance(column.type, Sealed)
    )
    names = {column.key for column in columns}
    for name, table, key in found:
        if key not in names:
            raise TypeError(f"A statement that reads {table}.{name} must read {key} too")
    return found


def _columns(statement: ClauseElement) -> Iterable[Any]:
    if isinstance(statement, SelectBase):
        return statement.selected_columns
    if isinstance(statement, UpdateBase):
        return (statement.returning_column_descriptions and statement.exported_columns) or ()
    return ()
