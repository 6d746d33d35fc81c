"""Damage: find the tables of a SQLite file that cannot be read, and name them to the operator."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

# Instructions of SQLite between two signs of life while it checks a file.
CHECK_STEPS = 1_000_000
# A start or a command that meets damage looks for more of it for this long.
LOOK_SECONDS = 30.0
MOST = 20
REMEDY = "stop the server, and put a backup in its place with `threadhold restore --force`"
FILE = "file"
_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_damage(error: BaseException | None) -> bool:
    """Return whether an error of SQLite says that the file is damaged, or none of SQLite's."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, sqlite3.DatabaseError) and code in _CODES


def damage(raw: sqlite3.Connection, alive: Callable[[], int | None]) -> Iterator[tuple[str, str]]:
    """Yield each damaged table, or `file`, with what SQLite says about it.

    Args:
        raw: A connection to the file.
        alive: Called now and then. A true result ends the check, and what it has found is all.
    """
    raw.set_progress_handler(alive, CHECK_STEPS)
    try:
        if (said := _check(raw, f"({MOST})")) == ["ok"]:
            return
        tables = [(name, _check(raw, f'("{name}")')) for name in _tables(raw)]
        found = [(f"table {name}", "; ".join(each[:3])) for name, each in tables if each != ["ok"]]
        yield from found or [(FILE, each) for each in said]
    finally:
        raw.set_progress_handler(None, 0)


def _check(raw: sqlite3.Connection, what: str) -> list[str]:
    found: list[str] = []
    try:
        for (line,) in raw.execute(f"PRAGMA integrity_check{what}"):
            found.append(str(line))
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
            return found or ["ok"]
        found.append(str(error))
    return found


def _tables(raw: sqlite3.Connection) -> list[str]:
    try:
        found = raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    except sqlite3.DatabaseError:
        return []
    return [name for (name,) in found]


def described(path: Path) -> str | None:
    """Return in one sentence what of a file is damaged and what to do, or None if nothing is."""
    deadline = time.monotonic() + LOOK_SECONDS
    uri = f"{path.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as raw:
        found = [
            why if where == FILE else f"{where}: {why}"
            for where, why in damage(raw, lambda: _is_late(deadline))
        ]
    if not found:
        return None
    return f"{path} is damaged: {'. '.join(found)}. {REMEDY[0].upper()}{REMEDY[1:]}."


def _is_late(deadline: float) -> bool:
    return time.monotonic() > deadline
