"""Programs: a command line with the app it serves, Threadhold's own or one that is built on it."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette

from langgraph_runtime_sql.errors import RuntimeSqlError
from threadhold.settings import Settings


@dataclass(frozen=True)
class Program:
    """What the commands of `threadhold.cli` work with. Its functions must be importable by name.

    Attributes:
        name: How the program is called in help and messages.
        settings: The class of its settings.
        create_app: Makes the host app of the settings; takes `studio`, which lets LangGraph Studio
            in, by keyword.
        migrate: Brings every table of the program in the database of a URL up to date.
        schemas: The `threadhold.move.Schema`s of the program, which a move carries over.
        launch: Arguments of Python that start the program again, for `--workers`. No folder that a
            user may have can take their place.
        errors: Expected failures beside `RuntimeSqlError`, shown as one sentence.
    """

    name: str
    settings: type[Settings]
    create_app: Callable[..., Starlette]
    migrate: Callable[[str], None]
    schemas: Callable[[], Sequence[Any]]
    launch: tuple[str, ...]
    errors: tuple[type[Exception], ...] = ()

    @property
    def expected(self) -> tuple[type[Exception], ...]:
        """Failures that are one sentence and not a traceback."""
        return (RuntimeSqlError, *self.errors)

    def command(self, *arguments: str) -> list[str]:
        """The command line of a process of this program."""
        return [sys.executable, *self.launch, *arguments]
