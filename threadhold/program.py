"""Program: describe a command line and its app, Threadhold's own or one built on Threadhold."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette

from langgraph_runtime_sql.errors import RuntimeSqlError
from threadhold.settings import Settings
from threadhold.tables import Tables, TablesError

if TYPE_CHECKING:
    from threadhold.move.schema import Schema
    from threadhold.tenant_data import Rule


def no_tables() -> Sequence[Tables]:
    """Return no tables: the program has only those of the runtime."""
    return []


def no_folders(tenant: str) -> Sequence[Path]:
    """Return no folders: all data of the tenant is in the database."""
    return []


@dataclass(frozen=True)
class Program:
    """Configuration of the commands in `threadhold.cli`. Its functions must be picklable.

    Attributes:
        name: Name of the program in help and messages.
        settings: Class of its settings.
        create_app: Makes the host app from the settings; takes the keyword `studio`, which lets
            LangGraph Studio in.
        launch: Python arguments that start the program again, for `--workers`. A folder in the
            working directory must not be able to shadow the program.
        tables: Returns its own tables, besides those of the runtime.
        tenant_folders: Returns the folders outside of the database that hold a tenant's data, by
            the tenant's name. An erase removes them.
    """

    name: str
    settings: type[Settings]
    create_app: Callable[..., Starlette]
    launch: tuple[str, ...]
    tables: Callable[[], Sequence[Tables]] = no_tables
    tenant_folders: Callable[[str], Sequence[Path]] = no_folders

    @property
    def expected(self) -> tuple[type[Exception], ...]:
        """Exceptions that the command line reports without traceback."""
        return (RuntimeSqlError, TablesError)

    def migrate(self, url: str) -> None:
        """Migrate all tables in the database of `url`."""
        from langgraph_runtime_sql import migrations

        migrations.migrate(url)
        for each in self.tables():
            each.open(url).close()

    def schemas(self) -> "Sequence[Schema]":
        """Return the schemas that a move copies."""
        from threadhold.move.schema import runtime_schema, schema_of

        return [runtime_schema(), *map(schema_of, self.tables())]

    def tenant_rules(self) -> "Sequence[Rule]":
        """Return the rules of all tables for a tenant's data, dependent tables first."""
        from threadhold.tenant_data import RUNTIME, rules_of

        return [*(rule for each in self.tables() for rule in rules_of(each)), *RUNTIME]

    def command(self, *arguments: str) -> list[str]:
        """Return the command line that starts this program with `arguments`."""
        return [sys.executable, *self.launch, *arguments]
