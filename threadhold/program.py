"""Program: describe a command line and its app, Threadhold's own or one built on Threadhold."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from langgraph_runtime_sql.errors import RuntimeSqlError
from threadhold.settings import Settings


def runtime_rules() -> Sequence[Any]:
    """Return the rules of the runtime's tables; see `threadhold.tenant_data`."""
    from threadhold import tenant_data

    return tenant_data.RUNTIME


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
        migrate: Migrates all tables of the program in the database of a URL.
        schemas: Returns the `threadhold.move.Schema`s that a move copies.
        launch: Python arguments that start the program again, for `--workers`. A folder in the
            working directory must not be able to shadow the program.
        tenant_rules: Returns the `threadhold.tenant_data.Rule`s of all its tables.
        tenant_folders: Returns the folders outside of the database that hold a tenant's data, by
            the tenant's name. An erase removes them.
        errors: Expected exceptions besides `RuntimeSqlError`, reported without traceback.
    """

    name: str
    settings: type[Settings]
    create_app: Callable[..., Starlette]
    migrate: Callable[[str], None]
    schemas: Callable[[], Sequence[Any]]
    launch: tuple[str, ...]
    errors: tuple[type[Exception], ...] = ()
    tenant_rules: Callable[[], Sequence[Any]] = runtime_rules
    tenant_folders: Callable[[str], Sequence[Path]] = no_folders

    @property
    def expected(self) -> tuple[type[Exception], ...]:
        """Exceptions that the command line reports without traceback."""
        return (RuntimeSqlError, *self.errors)

    def command(self, *arguments: str) -> list[str]:
        """Return the command line that starts this program with `arguments`."""
        return [sys.executable, *self.launch, *arguments]
