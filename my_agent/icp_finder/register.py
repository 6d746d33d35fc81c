"""The register: load Singapore's company register (ACRA) from CSV, and search it.

The file is read as a stream and written in short transactions, because the server writes to the
same database. Loading a file again updates companies by their UEN.
"""

import csv
import io
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, Select, case, literal, select

from my_agent.database import database
from my_agent.icp_finder import ssic
from my_agent.icp_finder.model import Candidate, Icp
from my_agent.icp_finder.records import now
from my_agent.icp_finder.scoring import around_singapore
from my_agent.icp_finder.statements import run, upsert
from my_agent.icp_finder.tables import SHARED, companies

NEEDED = ("uen", "entity_name", "entity_status_description", "primary_ssic_code")
"""Columns that a register must have."""

# Rows per transaction: it takes about ten milliseconds, during which the server waits.
BATCH = 500
MAX_CELL = 1000
# Cell values that mean "no value" in the register.
EMPTY = frozenset(("", "na", "n/a", "-", "null", "none"))


class RegisterError(RuntimeError):
    """A file is not a register. The message is the reason."""


@dataclass(frozen=True)
class BadRow:
    """A skipped row.

    Attributes:
        line: number of its last line in the file, from 1.
        why: the reason.
    """

    line: int
    why: str


@dataclass
class Ingested:
    """Number of rows by outcome.

    Attributes:
        kept: rows that were stored.
        bad: rows that were skipped.
    """

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
                bad = [row for row in batch if isinstance(row, BadRow)]
                good = [{**row, "tenant_id": tenant_id} for row in batch if isinstance(row, dict)]
                _keep(good)
                for each in bad:
                    report(each)
                done.kept += len(good)
                done.bad += len(bad)
                progress(file.tell() - at)
                at = file.tell()
    except UnicodeDecodeError as error:
        raise RegisterError(f"{path} is not in UTF-8: save it as CSV UTF-8") from error
    except OSError as error:
        raise RegisterError(f"{path}: {error.strerror}") from error
    return done


def _keep(rows: list[dict[str, Any]]) -> None:
    # If two rows have the same UEN, the last one counts: a statement must not touch a row twice.
    unique = list({row["uen"]: row for row in rows}.values())
    # All rows of a file have the same tenant.
    with database().write(unique[0]["tenant_id"] if unique else None) as connection:
        upsert(connection, companies, unique)


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
            if cells:
                yield _company(dict(zip(names, cells, strict=True)))
        except StopIteration:
            return
        except (ValueError, csv.Error) as error:
            why = (
                "the row has more or fewer cells than columns"
                if "zip()" in str(error)
                else str(error)
            )
            yield BadRow(reader.line_num, why)


def _header(reader: Any) -> list[str]:
    try:
        names = [cell.strip().lower() for cell in next(reader, [])]
    except csv.Error as error:
        raise RegisterError(f"The first line must name the columns: {error}") from error
    if missing := [name for name in NEEDED if name not in names]:
        raise RegisterError(
            f"The first line lacks {', '.join(missing)}: a register has the columns of ACRA's "
            "public data set"
        )
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
        "updated_at": now(),
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


# --- search -------------------------------------------------------------------


async def find(
    tenant_id: str,
    codes: Sequence[str],
    icp: Icp,
    *,
    limit: int,
    without: Collection[str] = (),
) -> list[Candidate]:
    """Find active companies of the given industries, those with the keywords first.

    The result alternates between the industries.

    Args:
        tenant_id: the tenant; its own companies and the shared ones are searched.
        codes: SSIC codes of the industries, best match first.
        icp: its keywords rank the companies. If its regions exclude Singapore, nothing is found.
        limit: maximum number of companies.
        without: keys of candidates to leave out.
    """
    if not codes or limit < 1 or (icp["regions"] and not around_singapore(icp["regions"])):
        return []
    known, new = frozenset(without), dict[str, Candidate]()

    def work(connection: Connection) -> list[Candidate]:
        # Companies with a matching main activity come before those with a matching secondary one.
        for column in (companies.c.primary_ssic, companies.c.secondary_ssic):
            asks = [_search(tenant_id, column, code, icp["keywords"]) for code in codes]
            # A company may occur twice: shared, and as the tenant's own.
            most = 2 * limit + len(without)
            found = [connection.execute(ask.limit(most)).all() for ask in asks]
            # The first company of each industry, then the second of each: a large industry must not
            # fill the result alone.
            for row in itertools.chain.from_iterable(itertools.zip_longest(*found)):
                if row is not None and f"uen:{row.uen}" not in known:
                    new.setdefault(f"uen:{row.uen}", _candidate(row))
            if len(new) >= limit:
                break
        return list(new.values())[:limit]

    return await run(work, tenant_id)


def _search(tenant_id: str, column: Any, code: str, keywords: Sequence[str]) -> Select[Any]:
    """Select the active companies whose code in `column` is in an industry, most keywords first."""
    activities = companies.c.primary_activity + literal(" ") + companies.c.secondary_activity
    text = companies.c.name + literal(" ") + activities
    hits = [text.icontains(word, autoescape=True) for word in keywords if word.strip()]
    asked_for = sum((case((hit, 1), else_=0) for hit in hits), literal(0))
    prefixes = ssic.prefixes(code)
    return (
        select(companies)
        # A range and not LIKE: every collation sorts digits alike, and the range can use an index.
        .where(
            companies.c.tenant_id.in_((SHARED, tenant_id)),
            companies.c.is_live,
            column >= prefixes[0].ljust(5, "0"),
            column <= prefixes[-1].ljust(5, "9"),
        )
        .order_by(*([asked_for.desc()] if hits else []), companies.c.name, companies.c.uen)
    )


def _candidate(row: Row[Any]) -> Candidate:
    activities = [each for each in (row.primary_activity, row.secondary_activity) if each]
    return Candidate(
        key=f"uen:{row.uen}",
        name=row.name,
        source="register",
        uen=row.uen,
        ssic=[code for code in (row.primary_ssic, row.secondary_ssic) if code],
        industry=(activities or [ssic.title(row.primary_ssic)])[0],
        region="Singapore",
        about="; ".join(activities),
    )
