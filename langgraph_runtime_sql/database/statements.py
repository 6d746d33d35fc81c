"""Statements: SQLAlchemy Core compiled once, executed on the driver directly.

SQLAlchemy writes the SQL for each dialect; its execution layer is left out
because it costs several times what the statement itself does. What remains of
it here is the part that matters: parameters and results go through the types
declared in `tables`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import ClauseElement, Insert
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.selectable import SelectBase

Processor = Callable[[Any], Any]
Params = Mapping[str, Any]
Row = dict[str, Any]

# What Postgres's driver says of a column where it matters to a type: that floats are floats.
FLOAT = 701


class Compiled:
    """One statement for one dialect: its text, and how values go in and out."""

    __slots__ = ("columns", "command", "defaults", "into", "order", "sql")

    def __init__(self, statement: ClauseElement, dialect: Dialect) -> None:
        compiled: Any = statement.compile(
            dialect=dialect, compile_kwargs={"render_postcompile": True}
        )
        self.sql = str(compiled)
        self.command = self.sql.encode()
        # Where the dialect numbers parameters.
        self.order: tuple[str, ...] = tuple(compiled.positiontup or ())
        self.defaults: dict[str, Any] = dict(compiled.params)
        self.into: list[tuple[str, Processor]] = []
        for name in self.defaults:
            # An IN list is expanded: `ids` becomes `ids_1`, `ids_2`, all of its type.
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

    def bind(self, params: Params | None) -> dict[str, Any]:
        """The driver's parameters for `params`, over the statement's own literals."""
        values = {**self.defaults, **params} if params else dict(self.defaults)
        for name, processor in self.into:
            values[name] = processor(values[name])
        return values

    def bind_in_order(self, params: Params | None) -> list[Any]:
        """The same for a dialect that numbers them."""
        values = self.bind(params)
        return [values[name] for name in self.order]

    def rows(self, fetched: Iterable[tuple[Any, ...]]) -> list[Row]:
        """Driver tuples as dicts in the types of `tables`."""
        columns = self.columns
        return [
            {
                name: value if processor is None else processor(value)
                for (name, processor), value in zip(columns, record, strict=True)
            }
            for record in fetched
        ]


class Prepared:
    """A statement that is written once and compiled once for each dialect.

    Args:
        statement: It, or what writes it, where that takes long and not every start needs it.
    """

    __slots__ = ("_compiled", "_statement")

    def __init__(self, statement: ClauseElement | Callable[[], ClauseElement]) -> None:
        self._statement = statement
        self._compiled: dict[Dialect, Compiled] = {}

    def compiled(self, dialect: Dialect) -> Compiled:
        try:
            return self._compiled[dialect]
        except KeyError:
            written = self._statement
            statement = written if isinstance(written, ClauseElement) else written()
            return self._compiled.setdefault(dialect, Compiled(statement, dialect))


Statement = Prepared | ClauseElement


def compile_statement(statement: Statement, dialect: Dialect) -> Compiled:
    """`statement` for `dialect`; only `Prepared` ones are remembered."""
    if isinstance(statement, Prepared):
        return statement.compiled(dialect)
    return Compiled(statement, dialect)


class InsertNew(Insert):
    """An insertion that changes nothing where the key is taken, by a row that may be hidden."""

    inherit_cache = True


@compiles(InsertNew)
def _(element: InsertNew, compiler: Any, **options: Any) -> str:
    return f"{compiler.visit_insert(element, **options)} ON CONFLICT DO NOTHING"


def _columns(statement: ClauseElement) -> Iterable[Any]:
    if isinstance(statement, SelectBase):
        return statement.selected_columns
    if isinstance(statement, UpdateBase):
        return (statement.returning_column_descriptions and statement.exported_columns) or ()
    return ()
