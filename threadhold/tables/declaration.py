"""Declaration: what becomes of the rows of a table, with their tenant, their thread and their age."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table

_KEY = "threadhold"


@dataclass(frozen=True)
class Derived:
    """A table that only the scripts know, and that triggers fill: an index of the rows of another.

    It is neither exported nor moved.

    Attributes:
        name: The table.
        tenant: The column with the tenant; None: it has no rows of tenants.
        rebuild: SQL to execute after an erase, for an index that keeps deleted words.
    """

    name: str
    tenant: str | None = None
    rebuild: str | None = None


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules of one table.

    Attributes:
        tenant: The text column with the tenant. Rows of the tenant `SHARED` may be read by all. An
            erase of a tenant deletes its rows. None: it has no rows of tenants.
        thread: The text column with the id of a thread; the rows are deleted with it.
        export: Whether an export of a tenant contains the rows; leave derived and secret ones out.
        files: A column with paths of files, which an export copies. A path that is not absolute is
            only a name, and no file.
        guard: The setting that lets a trigger of the table accept deletions of a tenant, whose name
            is its value: a row of `facts` on SQLite, `threadhold.<guard>` on Postgres.
        age: The column with the time from which rows grow old: seconds since 1970, or a `UtcDateTime`.
            The table then needs a primary key.
        keep_seconds: The age at which the server deletes rows; None: they stay.
        derived: The tables that the scripts derive from this one.
    """

    tenant: str | None = "tenant_id"
    thread: str | None = None
    export: bool = True
    files: str | None = None
    guard: str | None = None
    age: str | None = None
    keep_seconds: float | None = None
    derived: Sequence[Derived] = ()


def rules(**given: Any) -> dict[str, Any]:
    """Return the `info` of a SQLAlchemy table with rules; takes the attributes of `Rules`."""
    return {_KEY: Rules(**given)}


def rules_of(table: Table) -> Rules:
    """Return the rules of a table. One that declares none has the default ones."""
    found: Rules = table.info.get(_KEY) or Rules()
    named = (found.tenant, found.thread, found.files, found.age)
    if missing := [name for name in named if name is not None and name not in table.c]:
        raise TypeError(
            f"Rules of the table {table.name} name missing columns: {', '.join(missing)}"
        )
    if found.age is not None and not table.primary_key.columns:
        raise TypeError(f"The table {table.name} needs a primary key: its rules have an age")
    return found
