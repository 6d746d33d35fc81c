"""The register: load Singapore's company register (ACRA) from CSV into the table `companies`.

The file is read as a stream and written in short transactions, because the server writes to the
same database. Loading a file again updates companies by their UEN.
"""

import csv
import io
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple

from my_agent.companies import ssic
from my_agent.companies.tables import companies
from my_agent.tables import tables, upsert
from threadhold.tables import SHARED

NEEDED = ("uen", "entity_name", "entity_status_description", "primary_ssic_code")
"""Columns that a register must have."""

# Rows per transaction: it takes about ten milliseconds, during which the server waits.
BATCH = 500
MAX_CELL = 1000
# Cell values that mean "no value" in the register.
EMPTY = frozenset(("", "na", "n/a", "-", "null", "none"))


class RegisterError(RuntimeError):
    """A file is not a register. The message is the reason."""


class BadRow(NamedTuple):
    """A skipped row."""

    line: int  # number of its last line in the file, from 1
    why: str  # the reason


@dataclass
class Ingested:
    """Number of rows that were stored, and that were skipped."""

    kept: int = 0
    bad: int = 0


def ingest(
    path: Path,
    tenant_id: str = SHARED,
    *,
    report: Callable[[BadRow], None],
    progress: Callable[[int], None] = lambda _: None,
) -> Ingested:
    """Load a file into the table `companies`. Blocks.

    Args:
        path: the file, in UTF-8; its first line names the columns, in any order and case.
        tenant_id: the owner of the companies; empty: shared by all tenants.
        report: called with each skipped row.
        progress: called with the number of bytes read since the last call.

    Raises:
        RegisterError: the file cannot be read, or lacks columns.
    """
    done, at = Ingested(), 0
    try:
        with (
            path.open("rb") as file,
            io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as lines,
        ):
            rows = parse(lines)
            while batch := list(itertools.islice(rows, BATCH)):
                good = [{**row, "tenant_id": tenant_id} for row in batch if isinstance(row, dict)]
                # If two rows have the same UEN, the last one counts: a statement must not touch a
                # row twice.
                unique = list({row["uen"]: row for row in good}.values())
                tables.write(lambda to, some=unique: upsert(to, companies, some), tenant_id)  # type: ignore[misc]
                for row in batch:
                    if isinstance(row, BadRow):
                        report(row)
                done.kept += len(good)
                done.bad += len(batch) - len(good)
                progress(file.tell() - at)
                at = file.tell()
    except UnicodeDecodeError as error:
        raise RegisterError(f"{path} is not in UTF-8: save it as CSV UTF-8") from error
    except OSError as error:
        raise RegisterError(f"{path}: {error.strerror}") from error
    return done


def parse(lines: Iterable[str]) -> Iterator[dict[str, Any] | BadRow]:
    """Yield the companies of a register, and its invalid rows, in the order of the file.

    Args:
        lines: lines of the file, the column names first.

    Raises:
        RegisterError: the column names are missing or incomplete.
    """
    reader = csv.reader(lines, strict=True)
    names = _header(reader)
    while True:
        try:
            cells = next(reader)
            if cells and len(cells) != len(names):
                raise ValueError("the row has more or fewer cells than columns")
            if cells:
                yield _company(dict(zip(names, cells, strict=True)))
        except StopIteration:
            return
        except (ValueError, csv.Error) as error:
            yield BadRow(reader.line_num, str(error))


def _header(reader: Any) -> list[str]:
    try:
        names = [cell.strip().lower() for cell in next(reader, [])]
    except csv.Error as error:
        raise RegisterError(f"The first line must name the columns: {error}") from error
    if missing := ", ".join(name for name in NEEDED if name not in names):
        why = "a register has the columns of ACRA's public data set"
        raise RegisterError(f"The first line lacks {missing}: {why}")
    return names


def _company(row: dict[str, str]) -> dict[str, Any]:
    """Convert a row of the file into a row of the table. Raises ValueError with the reason."""
    cells = {name: _cell(value) for name, value in row.items()}
    uen = cells["uen"].upper()
    if not (8 <= len(uen) <= 10 and uen.isascii() and uen.isalnum()):
        raise ValueError(f"uen {uen[:20]!r} is invalid" if uen else "uen is missing")
    if not cells["entity_name"]:
        raise ValueError("entity_name is missing")
    status = cells["entity_status_description"]
    return {
        "uen": uen,
        "name": cells["entity_name"],
        "entity_type": cells.get("entity_type_description", ""),
        "status": status,
        "is_live": status.lower().startswith("live"),
        "registered_on": _date(cells.get("registration_incorporation_date", "")),
        "primary_ssic": _code(cells, "primary_ssic_code"),
        "primary_activity": cells.get("primary_ssic_description", ""),
        "secondary_ssic": _code(cells, "secondary_ssic_code"),
        "secondary_activity": cells.get("secondary_ssic_description", ""),
        "address": " ".join(filter(None, (cells.get("block"), cells.get("street_name")))),
        "postal_code": cells.get("postal_code", ""),
        "updated_at": datetime.now(UTC),
    }


def _cell(value: str) -> str:
    text = " ".join(value.split())[:MAX_CELL]
    if "\0" in text:
        raise ValueError("a cell contains a NUL byte")
    return "" if text.lower() in EMPTY else text


def _code(cells: dict[str, str], name: str) -> str:
    written = cells.get(name, "")
    code = ssic.normal(written)
    if written and not code:
        raise ValueError(f"{name} {written[:20]!r} is invalid")
    return code


def _date(written: str) -> str:
    try:
        return date.fromisoformat(written[:10]).isoformat() if written else ""
    except ValueError as error:
        raise ValueError(f"registration_incorporation_date {written[:20]!r} is invalid") from error
